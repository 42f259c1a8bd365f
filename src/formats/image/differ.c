#include "image/differ.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "store/document.h"
#include "store/store.h"

enum { LISTING_MAX = 256 << 20 };

/* The entries of a layer, sorted by path. */
static json_t *list_in(struct px_store *store, const struct px_layer *layer, int dir, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(LISTING_MAX);
    px_auto_fd int blob = -EBADF;
    struct px_unpacked done;
    struct px_listing listing;
    uint64_t size = 0;
    if (px_blob_open(store, &layer->digest, &blob, &size, e) < 0 ||
        px_layer_unpack(blob, size, dir, false, NULL, (struct px_progress_to){0}, &done, e) < 0 ||
        px_listing_tree(dir, &text, &listing, e) < 0)
        return NULL;
    return json_loadb(px_buf_text(&text), text.len, 0, NULL);
}

static json_t *list(struct px_store *store, const char *which, const struct px_layer *layer, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(256);
    struct px_tree_build *scratch = NULL;
    struct px_oid id;
    px_buf_printf(&words, "compare %s %s", which, layer->digest.hex);
    if (words.err < 0 || px_hash_bytes(words.data, words.len, &id) < 0 || px_tree_begin(store, &id, &scratch, e) != 0)
        return NULL;
    json_t *found = list_in(store, layer, px_tree_build_fd(scratch), e);
    px_tree_drop(scratch);
    return found;
}

static const char *first_of(const json_t *a, const json_t *b)
{
    size_t i = 0;
    while (i < json_array_size(a) && i < json_array_size(b) && json_equal(json_array_get(a, i), json_array_get(b, i)))
        i++;
    const char *one = px_document_text(json_array_get(a, i), "path"), *two = px_document_text(json_array_get(b, i), "path");
    return one && two ? (strcmp(one, two) < 0 ? one : two) : one ? one : two;
}

int px_differ(struct px_store *store, const char *layer, const struct px_layer *expected, const struct px_layer *found,
              struct px_err *e)
{
    struct px_err ignored = {0};
    (void)px_detail(e, "layer", layer);
    (void)px_detail(e, "expected", expected->diff_id.hex);
    (void)px_detail(e, "found", found->diff_id.hex);
    px_auto(px_document) json_t *before = list(store, "before", expected, &ignored);
    px_auto(px_document) json_t *now = before ? list(store, "now", found, &ignored) : NULL;
    const char *path = now ? first_of(before, now) : NULL;
    char why[sizeof e->why];
    if (!path)
        return -1;
    memcpy(why, e->why, sizeof why);
    (void)px_detail(e, "path", path);
    return px_why(e, "The layer '%s' differs, first in '%.200s'. %s", layer, path, why);
}

/* The layers list the same files, so the content of a file or the configuration differs. */
static void differ_elsewhere(const struct px_image *before, const struct px_image *found, struct px_err *e)
{
    char why[sizeof e->why];
    size_t i = 0;
    while (i < before->layer_count && i < found->layer_count && px_hash_oid_equal(&before->layers[i].digest, &found->layers[i].digest))
        i++;
    bool more = before->layer_count != found->layer_count;
    bool packed = i < before->layer_count && i < found->layer_count;
    memcpy(why, e->why, sizeof why);
    if (packed)
        (void)px_why(e, "The layer '%s' has the same files, compressed to other bytes. %s", found->comments[i] ? found->comments[i] : "", why);
    else
        (void)px_why(e, "%s %s", more ? "It has another number of layers." : "Its layers are the same, its configuration is not.", why);
}

int px_differ_images(struct px_store *store, const struct px_oid *expected, const struct px_image *found, struct px_err *e)
{
    struct px_err ignored = {0};
    px_auto_free struct px_image *before = calloc(1, sizeof *before);
    if (!before)
        return -1;
    if (px_image_load(store, expected, before, &ignored) < 0)
        return px_why(e, "The one before is not whole any more: %s", ignored.what);
    size_t i = 0, count = before->layer_count < found->layer_count ? before->layer_count : found->layer_count;
    while (i < count && px_hash_oid_equal(&before->layers[i].diff_id, &found->layers[i].diff_id))
        i++;
    if (i < count)
        (void)px_differ(store, found->comments[i] ? found->comments[i] : "", &before->layers[i], &found->layers[i], e);
    else
        differ_elsewhere(before, found, e);
    px_image_done(before);
    return -1;
}
