/* Selects one of several images by name and platform, through nested indexes. Each step follows one entry, so at most
 * PX_INDEX_DEPTH_MAX documents are read (SECURITY J16). */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "image/select.h"

static bool named(const struct px_index_entry *entry, const char *name)
{
    return !name || px_equal(entry->name, name) || px_equal(entry->alias, name);
}

static bool fits(const struct px_index_entry *entry)
{
    if (entry->is.media != PX_MEDIA_MANIFEST && entry->is.media != PX_MEDIA_INDEX)
        return false;
    return (!entry->os || px_equal(entry->os, "linux")) &&
           (!entry->architecture || px_equal(entry->architecture, px_image_architecture()));
}

static int nothing_fits(const struct px_index *index, const char *name, struct px_err *e)
{
    px_auto_buf struct px_buf offers = PX_BUF(2048);
    px_documents_index_offers(index, &offers);
    (void)px_fail(e, PX_E_IMAGE, 0, "there is no image %s%s%sfor linux/%s there", name ? "'" : "", name ? name : "",
                  name ? "' " : "", px_image_architecture());
    (void)px_why(e, "There is: %.400s.", index->count ? px_buf_text(&offers) : "nothing");
    return px_fix(e, "Name one of those that are there, and for this machine.");
}

int px_select_entry(const struct px_index *index, const char *name, bool one, struct px_descriptor *ret_entry,
                  struct px_err *e)
{
    const struct px_index_entry *found = NULL;
    for (size_t i = 0; i < index->count; i++) {
        const struct px_index_entry *entry = &index->entries[i];
        if (!named(entry, name) || !fits(entry))
            continue;
        if (found && one && !px_hash_oid_equal(&found->is.digest, &entry->is.digest)) {
            (void)nothing_fits(index, name, e);
            (void)px_fail(e, PX_E_IMAGE, 0, "there are several images there, and none is chosen");
            return px_fix(e, "Name one of them.");
        }
        found = found ? found : entry;
    }
    if (!found)
        return nothing_fits(index, name, e);
    *ret_entry = found->is;
    return 0;
}

int px_select_manifest(const struct px_pick *pick, struct px_descriptor *entry, struct px_err *e)
{
    struct px_oid seen[PX_INDEX_DEPTH_MAX];
    for (unsigned depth = 0; entry->media == PX_MEDIA_INDEX; depth++) {
        px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
        struct px_index index;
        if (depth == PX_INDEX_DEPTH_MAX)
            return px_fail(e, PX_E_IMAGE, 0, "the image's indexes lead through more than %d others",
                           PX_INDEX_DEPTH_MAX);
        for (unsigned i = 0; i < depth; i++)
            if (px_hash_oid_equal(&seen[i], &entry->digest))
                return px_fail(e, PX_E_IMAGE, 0, "the image's index leads to itself");
        seen[depth] = entry->digest;
        if (entry->size > PX_IMAGE_JSON_MAX)
            return px_fail(e, PX_E_IMAGE, 0, "the image's index is larger than %d bytes", PX_IMAGE_JSON_MAX);
        if (pick->read(pick->user, entry, &text, e) < 0 ||
            px_documents_index_read(px_buf_text(&text), text.len, PX_MEDIA_INDEX, &index, e) < 0)
            return -1;
        int r = px_select_entry(&index, NULL, false, entry, e);
        px_documents_index_done(&index);
        if (r < 0)
            return -1;
    }
    return 0;
}
