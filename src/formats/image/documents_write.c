/* The documents of px's own images. Members are sorted by name, without spaces and without times, so the same image has
 * the same bytes everywhere. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "image/documents.h"
#include "store/document.h"

static int built(const struct px_buf *out, struct px_err *e)
{
    if (out->err == 0)
        return 0;
    return px_fail(e, out->err == -ENOMEM ? PX_E_MEMORY : PX_E_LIMIT, out->err,
                   "the image's documents would be larger than %d bytes", PX_IMAGE_JSON_MAX);
}

static void put_digest(struct px_json *j, const char *name, const struct px_oid *oid)
{
    char text[80];
    (void)px_fmt(text, sizeof text, "sha256:%s", oid->hex);
    px_json_text(j, name, text);
}

static void put_list(struct px_json *j, const char *name, const struct px_image_text *list)
{
    if (list->count == 0)
        return;
    px_json_array(j, name);
    for (size_t i = 0; i < list->count; i++)
        px_json_text(j, NULL, list->items[i]);
    px_json_end(j);
}

static void put_if(struct px_json *j, const char *name, const char *text)
{
    if (text && *text)
        px_json_text(j, name, text);
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Writes "key=value" items as an object, sorted by key. -ENOMEM; -EINVAL: no '=', or a key is there twice. */
static int put_pairs(struct px_json *j, const char *name, const struct px_image_text *list)
{
    char last[1024] = "", key[1024];
    if (list->count == 0)
        return 0;
    px_auto_free char **sorted = calloc(list->count, sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, list->items, list->count * sizeof *sorted);
    qsort(sorted, list->count, sizeof *sorted, compare_items);
    px_json_object(j, name);
    for (size_t i = 0; i < list->count; i++) {
        size_t n = strcspn(sorted[i], "=");
        if (sorted[i][n] != '=' || n == 0 || px_fmt(key, sizeof key, "%.*s", (int)n, sorted[i]) < 0 ||
            px_equal(key, last))
            return -EINVAL;
        px_json_text(j, key, sorted[i] + n + 1);
        memcpy(last, key, n + 1);
    }
    px_json_end(j);
    return 0;
}

/* ---- config ---- */

static int put_settings(struct px_json *j, const struct px_image_config *c)
{
    px_json_object(j, "config");
    put_list(j, "Cmd", &c->cmd);
    put_list(j, "Entrypoint", &c->entrypoint);
    put_list(j, "Env", &c->env);
    int r = put_pairs(j, "Labels", &c->labels);
    put_if(j, "StopSignal", c->stop_signal);
    put_if(j, "User", c->user);
    put_if(j, "WorkingDir", c->workdir);
    px_json_end(j);
    return r;
}

static void put_history(struct px_json *j, const struct px_image *image)
{
    px_json_array(j, "history");
    for (size_t i = 0; i < image->layer_count; i++) {
        px_json_object(j, NULL);
        put_if(j, "comment", image->comments[i]);
        px_json_text(j, "created", image->config.created);
        px_json_text(j, "created_by", "px");
        px_json_end(j);
    }
    px_json_end(j);
}

int px_documents_config_write(const struct px_image *image, struct px_buf *out, struct px_err *e)
{
    struct px_json j = {.out = out};
    px_json_object(&j, NULL);
    px_json_text(&j, "architecture", image->config.architecture);
    int r = put_settings(&j, &image->config);
    px_json_text(&j, "created", image->config.created);
    put_history(&j, image);
    px_json_text(&j, "os", image->config.os);
    px_json_object(&j, "rootfs");
    px_json_array(&j, "diff_ids");
    for (size_t i = 0; i < image->layer_count; i++)
        put_digest(&j, NULL, &image->layers[i].diff_id);
    px_json_end(&j);
    px_json_text(&j, "type", "layers");
    px_json_end(&j);
    px_json_end(&j);
    if (r < 0)
        return px_fail(e, PX_E_VALUE, r, "a label of the image is not of the form NAME=TEXT, or is there twice");
    return built(out, e);
}

/* ---- manifest ---- */

static void put_descriptor(struct px_json *j, const char *name, const struct px_oid *digest, const char *type,
                           uint64_t size)
{
    px_json_object(j, name);
    put_digest(j, "digest", digest);
    px_json_text(j, "mediaType", type);
    px_json_uint(j, "size", size);
    px_json_end(j);
}

int px_documents_manifest_write(const struct px_image *image, struct px_buf *out, struct px_err *e)
{
    struct px_json j = {.out = out};
    px_json_object(&j, NULL);
    if (put_pairs(&j, "annotations", &image->annotations) < 0)
        return px_fail(e, PX_E_VALUE, 0, "an annotation of the image is not of the form NAME=TEXT, or is there twice");
    put_descriptor(&j, "config", &image->config_digest, PX_MEDIA_CONFIG_TYPE, image->config_size);
    px_json_array(&j, "layers");
    for (size_t i = 0; i < image->layer_count; i++) {
        const struct px_layer *l = &image->layers[i];
        put_descriptor(&j, NULL, &l->digest, px_compression_media(l->compression), l->size);
    }
    px_json_end(&j);
    px_json_text(&j, "mediaType", PX_MEDIA_MANIFEST_TYPE);
    px_json_uint(&j, "schemaVersion", 2);
    px_json_end(&j);
    return built(out, e);
}

int px_documents_manifest_type(const char *text, size_t len, char *out, size_t size, struct px_err *e)
{
    px_auto(px_document) json_t *root = NULL;
    if (px_document_read(text, len, "the image's manifest", PX_E_IMAGE, &root, e) < 0)
        return -1;
    const char *type = px_document_text(root, "mediaType");
    if (!type)                  /* only an OCI manifest may omit it */
        type = PX_MEDIA_MANIFEST_TYPE;
    return px_fmt(out, size, "%s", type) < 0 ? px_fail(e, PX_E_IMAGE, 0, "the image's manifest has too long a type")
                                             : 0;
}

/* ---- the index of a layout ---- */

static json_t *new_entry(const struct px_image *image, const char *type, const char *name)
{
    char digest[80];
    (void)px_fmt(digest, sizeof digest, "sha256:%s", image->manifest.hex);
    json_t *entry = json_pack("{s:s, s:s, s:I, s:{s:s, s:s}}", "mediaType", type, "digest", digest, "size",
                              (json_int_t)image->manifest_size, "platform", "architecture", image->config.architecture,
                              "os", image->config.os);
    if (entry && name &&
        json_object_set_new(entry, "annotations", json_pack("{s:s, s:s}", PX_REF_NAME, name, PX_REF_ALIAS, name)) < 0) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

static bool same_entry(const json_t *entry, const json_t *other, const char *name)
{
    const char *old = px_document_text(json_object_get(entry, "annotations"), PX_REF_NAME);
    return name ? px_equal(old, name)
                : !old && px_equal(px_document_text(entry, "digest"), px_document_text(other, "digest"));
}

static json_t *old_index(const char *old, size_t old_len, struct px_err *e)
{
    json_t *root = NULL;
    if (!old)
        return json_pack("{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType", PX_MEDIA_INDEX_TYPE, "manifests");
    return px_document_read(old, old_len, "the layout's index", PX_E_IMAGE, &root, e) < 0 ? NULL : root;
}

int px_documents_index_write(const struct px_image *image, const char *type, const char *name, const char *old, size_t old_len,
                   struct px_buf *out, struct px_err *e)
{
    (void)px_no_memory(e);
    px_auto(px_document) json_t *root = old_index(old, old_len, e);
    px_auto(px_document) json_t *entry = new_entry(image, type, name);
    json_t *list = json_object_get(root, "manifests");
    if (!root || !entry || !json_is_array(list))
        return -1;
    for (size_t i = json_array_size(list); i-- > 0;)
        if (same_entry(json_array_get(list, i), entry, name))
            (void)json_array_remove(list, i);
    if (json_array_append(list, entry) < 0)
        return -1;
    px_auto_free char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return -1;
    (void)px_buf_puts(out, text);
    return built(out, e);
}
