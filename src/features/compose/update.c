/* compose/update.c - rebuilds bases and images outside of projects from the archive's current packages. Names move to
 * the new ones; the old ones stay until GC. The sandbox of a project is updated by `px update --system`. */
#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "compose/compose.h"
#include "distro/base.h"
#include "store/canonical.h"
#include "store/document.h"

enum { ANSWER_MAX = 16 << 20 };

static int add_row(json_t *rows, const char *kind, const char *name, const struct px_oid *from, const struct px_oid *to,
                   struct px_err *e)
{
    json_t *row = json_pack("{sbssssssss}", "changed", (int)!px_hash_oid_equal(from, to), "from", from->hex, "kind", kind,
                            "name", name, "to", to->hex);
    return json_array_append_new(rows, row) < 0 ? px_no_memory(e) : 0;
}

/* ---- bases ---- */

static int update_base(struct px_sandbox *s, const struct px_base_row *row, json_t *rows, struct px_err *e)
{
    const struct px_distro_base_make how = {.row = row, .place = row->name};
    struct px_base before = {0}, after = {0};
    int r = px_catalog_base_find(s->store, row->name, &before, e);
    if (r != 0 || !px_document_text(before.record, "lock")) {           /* not here, or imported under that name */
        px_catalog_base_done(&before);
        return r < 0 ? -1 : 0;
    }
    r = px_distro_base_make(s, &how, &after, e) < 0 ? -1 : add_row(rows, "base", row->name, &before.oid, &after.oid, e);
    px_catalog_base_done(&before);
    px_catalog_base_done(&after);
    return r;
}

static int update_bases(struct px_sandbox *s, json_t *rows, struct px_err *e)
{
    const struct px_base_row *row;
    for (size_t i = 0; (row = px_bases_at(i)); i++)
        if (row->suite && update_base(s, row, rows, e) < 0)
            return -1;
    return 0;
}

/* ---- images ---- */

struct tags {
    json_t *list;
    struct px_err *e;
};

/* Images with a tag: the image of a project is named by its directory. */
static int note_tag(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    struct tags *tags = user;
    (void)id;
    if (kind != PX_RECORD_IMAGE || *name == '/')
        return 0;
    return json_array_append_new(tags->list, json_string(name)) < 0 ? px_no_memory(tags->e) : 0;
}

static int build_image(struct px_sandbox *s, const json_t *record, const char *tag, struct px_oid *ret_id,
                       struct px_err *e)
{
    const json_t *list = json_object_get(record, "capabilities");
    const char *names[PX_CAPABILITIES_MAX + 1] = {NULL};
    for (size_t i = 0; i < json_array_size(list) && i < PX_CAPABILITIES_MAX; i++)
        names[i] = json_string_value(json_array_get(list, i));
    const struct px_image_build how = {.base = px_document_text(record, "base"), .capabilities = names};
    px_auto_free struct px_compose *b = calloc(1, sizeof *b);
    if (!b)
        return px_no_memory(e);
    b->s = s;
    b->how = &how;
    int r = px_compose_find(b, false, e) < 0 || px_compose_make(b, e) < 0 ||
                    px_name_put(s->store, PX_RECORD_IMAGE, tag, &b->id, e) < 0
                ? -1 : 0;
    *ret_id = b->id;
    px_compose_done(b);
    return r;
}

/* Skips images with an environment, which belong to projects, and those on an imported base, which cannot be
 * rebuilt. */
static int update_image(struct px_sandbox *s, const char *tag, json_t *rows, json_t *kept, struct px_err *e)
{
    px_auto(px_document) json_t *record = NULL;
    struct px_oid before, after, manifest;
    int r = px_name_get(s->store, PX_RECORD_IMAGE, tag, &before, e);
    r = r != 0 ? r : px_catalog_image_find(s->store, tag, &record, &manifest, e);
    if (r != 0)
        return r < 0 ? -1 : 0;          /* 1: removed meanwhile */
    const char *base = px_document_text(record, "base");
    const struct px_base_row *row = base ? px_bases_find(base) : NULL;
    if (json_object_get(record, "inside") || !row || !row->suite)
        return json_array_append_new(kept, json_string(tag)) < 0 ? px_no_memory(e) : 0;
    return build_image(s, record, tag, &after, e) < 0 ? -1 : add_row(rows, "image", tag, &before, &after, e);
}

static int update_images(struct px_sandbox *s, json_t *rows, json_t *kept, struct px_err *e)
{
    px_auto(px_document) json_t *tags = json_array();
    struct tags noted = {tags, e};
    if (!tags)
        return px_no_memory(e);
    if (px_name_each(s->store, note_tag, &noted, e) != 0)
        return -1;
    for (size_t i = 0; i < json_array_size(tags); i++)
        if (update_image(s, json_string_value(json_array_get(tags, i)), rows, kept, e) < 0)
            return -1;
    return 0;
}

int px_sandbox_update(struct px_sandbox *s, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX);
    px_auto(px_document) json_t *rows = json_array();
    px_auto(px_document) json_t *kept = json_array();
    if (!rows || !kept)
        return px_no_memory(e);
    /* If the archive does not answer, nothing changes: cached answers are dropped only after a new answer. */
    if (update_bases(s, rows, e) < 0 || px_note_all_drop(s->store, e) < 0 || update_images(s, rows, kept, e) < 0)
        return -1;
    px_auto(px_document) json_t *out = json_pack("{sOsisO}", "kept", kept, "schema", 1, "updated", rows);
    if (!out || px_canonical(out, &text) < 0 || !(*ret_json = px_buf_take(&text)))
        return px_no_memory(e);
    return 0;
}
