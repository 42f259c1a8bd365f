#include "image/oci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "image/documents.h"

void px_image_done(struct px_image *image)
{
    px_documents_config_done(&image->config);
    px_documents_text_done(&image->annotations);
    *image = (struct px_image){0};
}

/* ---- putting together ---- */

/* The creation time: the caller's, or none. The clock is not read, so the same image always has the same bytes. */
static int default_created(char **ret_text, struct px_err *e)
{
    const uint64_t last = 253402300799;         /* the year 9999 has four digits */
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    uint64_t seconds = 0;
    struct tm tm;
    char text[40];
    if (epoch && *epoch && px_parse_u64(epoch, last, &seconds) < 0)
        return px_fail(e, PX_E_VALUE, 0, "SOURCE_DATE_EPOCH is '%.60s', which is not a number of seconds", epoch);
    time_t time = (time_t)seconds;
    if (!gmtime_r(&time, &tm) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return px_fail(e, PX_E_VALUE, 0, "SOURCE_DATE_EPOCH is not a time");
    *ret_text = strdup(text);
    return *ret_text ? 0 : px_no_memory(e);
}

static int fill_in(struct px_image_config *c, struct px_err *e)
{
    if (!c->architecture)
        c->architecture = strdup(px_image_architecture());
    if (!c->os)
        c->os = strdup("linux");
    if (!c->architecture || !c->os)
        return px_no_memory(e);
    return c->created ? 0 : default_created(&c->created, e);
}

int px_image_seal(struct px_store *store, struct px_image *image, struct px_err *e)
{
    px_auto_buf struct px_buf config = PX_BUF(PX_IMAGE_JSON_MAX), manifest = PX_BUF(PX_IMAGE_JSON_MAX);
    if (image->layer_count > PX_IMAGE_LAYERS_MAX)
        return px_fail(e, PX_E_LIMIT, 0, "an image has at most %d layers", PX_IMAGE_LAYERS_MAX);
    if (fill_in(&image->config, e) < 0 || px_documents_config_write(image, &config, e) < 0 ||
        px_blob_put(store, px_buf_text(&config), config.len, &image->config_digest, e) < 0)
        return -1;
    image->config_size = config.len;
    if (px_documents_manifest_write(image, &manifest, e) < 0 ||
        px_blob_put(store, px_buf_text(&manifest), manifest.len, &image->manifest, e) < 0)
        return -1;
    image->manifest_size = manifest.len;
    return 0;
}

/* ---- reading ---- */

static int check_size(struct px_store *store, const struct px_descriptor *d, const char *what, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    uint64_t size = 0;
    if (px_blob_open(store, &d->digest, &fd, &size, e) < 0)
        return -1;
    if (size != d->size)
        return px_fail(e, PX_E_IMAGE, 0, "the %s sha256:%s has %llu bytes, and the image's manifest says %llu", what,
                       d->digest.hex, (unsigned long long)size, (unsigned long long)d->size);
    return 0;
}

static int load_config(struct px_store *store, const struct px_oci_manifest *m, struct px_image *image,
                       struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
    struct px_oid diff_ids[PX_IMAGE_LAYERS_MAX];
    if (check_size(store, &m->config, "config", e) < 0 ||
        px_blob_read(store, &m->config.digest, PX_IMAGE_JSON_MAX, &text, e) < 0 ||
        px_documents_config_read(px_buf_text(&text), text.len, m->layer_count, diff_ids, &image->config, e) < 0)
        return -1;
    image->config_digest = m->config.digest;
    image->config_size = m->config.size;
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct px_descriptor *d = &m->layers[i];
        if (check_size(store, d, "layer", e) < 0)
            return -1;
        image->layers[i] = (struct px_layer){
            .digest = d->digest, .diff_id = diff_ids[i], .size = d->size, .compression = d->compression};
    }
    image->layer_count = m->layer_count;
    return 0;
}

static int load_parts(struct px_store *store, const struct px_oid *manifest, struct px_image *image, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
    struct px_oci_manifest m;
    if (px_blob_read(store, manifest, PX_IMAGE_JSON_MAX, &text, e) < 0 ||
        px_documents_manifest_read(px_buf_text(&text), text.len, PX_MEDIA_NONE, &m, e) < 0)
        return -1;
    image->manifest = *manifest;
    image->manifest_size = text.len;
    image->annotations = m.annotations;         /* owned by the image from here on */
    return load_config(store, &m, image, e);
}

int px_image_load(struct px_store *store, const struct px_oid *manifest, struct px_image *ret_image, struct px_err *e)
{
    px_auto_free struct px_image *image = calloc(1, sizeof *image);
    if (!image)
        return px_no_memory(e);
    if (load_parts(store, manifest, image, e) < 0) {
        px_image_done(image);
        return -1;
    }
    *ret_image = *image;
    return 0;
}

int px_image_verify(struct px_store *store, const struct px_image *image, struct px_err *e)
{
    if (px_blob_verify(store, &image->manifest, e) < 0 || px_blob_verify(store, &image->config_digest, e) < 0)
        return -1;
    for (size_t i = 0; i < image->layer_count; i++)
        if (px_blob_verify(store, &image->layers[i].digest, e) < 0)
            return -1;
    return 0;
}

/* ---- all layers as one tree ---- */

static int tree_about(const struct px_image *image, struct px_buf *out)
{
    struct px_json j = {.out = out};
    px_json_object(&j, NULL);
    px_json_array(&j, "diff_ids");
    for (size_t i = 0; i < image->layer_count; i++)
        px_json_text(&j, NULL, image->layers[i].diff_id.hex);
    px_json_end(&j);
    px_json_text(&j, "kind", "layers");
    px_json_end(&j);
    return out->err;
}

/* Hashes the bytes that it unpacks, so it detects a blob that changed after it was stored. */
static int unpack_layer(struct px_store *store, const struct px_layer *layer, int dir, struct px_unpack_limits *left,
                        struct px_progress_to progress, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    struct px_unpacked done;
    if (px_blob_open(store, &layer->digest, &fd, NULL, e) < 0)
        return -1;
    if (px_layer_unpack(fd, layer->size, dir, true, left, progress, &done, e) < 0) {
        struct px_err damaged = {0};
        if (px_blob_verify(store, &layer->digest, &damaged) < 0 && e)
            *e = damaged;       /* the changed blob is the cause */
        return -1;
    }
    if (!px_hash_oid_equal(&done.packed, &layer->digest))
        return px_blob_verify(store, &layer->digest, e) < 0
                   ? -1
                   : px_fail(e, PX_E_OBJECT, 0, "layer sha256:%s was not what it is called when it was read",
                             layer->digest.hex);
    if (!px_hash_oid_equal(&done.diff_id, &layer->diff_id)) {
        (void)px_fail(e, PX_E_IMAGE, 0, "layer sha256:%s is another one than the image's config says",
                      layer->digest.hex);
        return px_why(e, "Its diff id is sha256:%s, and the config says sha256:%s.", done.diff_id.hex,
                      layer->diff_id.hex);
    }
    left->bytes -= done.bytes < left->bytes ? done.bytes : left->bytes;
    left->entries -= done.entries < left->entries ? done.entries : left->entries;
    return 0;
}

static int unpack_all(struct px_store *store, const struct px_image *image, int dir, struct px_progress_to progress,
                      struct px_err *e)
{
    struct px_unpack_limits left = px_unpack_limits_default;
    for (size_t i = 0; i < image->layer_count; i++)
        if (unpack_layer(store, &image->layers[i], dir, &left, progress, e) < 0)
            return -1;
    return 0;
}

int px_image_tree(struct px_store *store, const struct px_image *image, struct px_progress_to progress,
                  struct px_oid *ret_tree, struct px_err *e)
{
    px_auto_buf struct px_buf about = PX_BUF(64 << 10);
    struct px_tree_build *build = NULL;
    struct px_oid id;
    if (tree_about(image, &about) < 0 || px_hash_bytes(px_buf_text(&about), about.len, &id) < 0)
        return px_no_memory(e);
    int r = px_tree_begin(store, &id, &build, e);
    if (r < 0)
        return -1;
    if (r == 0 && unpack_all(store, image, px_tree_build_fd(build), progress, e) < 0) {
        px_tree_drop(build);
        return -1;
    }
    if (r == 0 && px_tree_commit(build, px_buf_text(&about), e) < 0)
        return -1;
    *ret_tree = id;
    return 0;
}
