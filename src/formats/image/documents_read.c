/* Reads an index and a manifest, both untrusted. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "image/documents.h"
#include "store/document.h"

/* "the manifest: layers[3] has no digest" */
#define refuse(e, ...) px_fail(e, PX_E_IMAGE, 0, __VA_ARGS__)

static char *copy_text(const json_t *object, const char *name, bool *failed)
{
    const char *text = px_document_text(object, name);
    char *copy = text ? strdup(text) : NULL;
    *failed |= text && !copy;
    return copy;
}

/* where: "config", "layers[2]" */
static int read_descriptor(const json_t *object, const char *where, struct px_descriptor *ret, struct px_err *e)
{
    struct px_descriptor d = {.compression = PX_COMPRESS_NONE};
    const char *digest = px_document_text(object, "digest"), *type = px_document_text(object, "mediaType");
    if (!json_is_object(object))
        return refuse(e, "%s of the image is not an object", where);
    if (!digest || px_hash_oid_parse(digest, true, &d.digest) < 0)
        return refuse(e, "%s of the image has the digest '%.100s', which is not sha256: and 64 digits", where,
                      digest ? digest : "");
    if (px_document_number(object, "size", INT64_MAX, &d.size) != 1)
        return refuse(e, "%s of the image does not say its size", where);
    d.media = px_media_find(type, &d.compression);
    *ret = d;
    return 0;
}

/* The media type in a document must agree with its descriptor. A document must not be valid as two types: then two
 * readers would see two images under one digest. */
static int check_kind(const json_t *root, enum px_media said, enum px_media wanted, struct px_err *e)
{
    static const char *const not_in_manifest[] = {"manifests", "fsLayers", NULL};
    static const char *const not_in_index[] = {"config", "layers", "fsLayers", NULL};
    bool index = wanted == PX_MEDIA_INDEX;
    const char *type = px_document_text(root, "mediaType"), *name = index ? "index" : "manifest";
    uint64_t version = 0;
    if (!json_is_object(root))
        return refuse(e, "the image's %s is not an object", name);
    if (px_document_number(root, "schemaVersion", 99, &version) != 1 || version != 2)
        return refuse(e, "the image's %s has another schemaVersion than 2", name);
    if (json_object_get(root, "mediaType") && px_media_find(type, NULL) != wanted)
        return refuse(e, "the image's %s says that it is of the type '%.100s'", name, type ? type : "");
    if (said != PX_MEDIA_NONE && said != wanted)
        return refuse(e, "the image has an %s where something else was announced", name);
    for (const char *const *other = index ? not_in_index : not_in_manifest; *other; other++)
        if (json_object_get(root, *other))
            return refuse(e, "the image's %s has a member '%s': it is two things at once", name, *other);
    return 0;
}

/* ---- index ---- */

static int read_entry(const json_t *object, size_t at, struct px_index_entry *out, struct px_err *e)
{
    char where[48];
    bool failed = false;
    (void)px_fmt(where, sizeof where, "manifests[%zu]", at);
    if (read_descriptor(object, where, &out->is, e) < 0)
        return -1;
    const json_t *platform = json_object_get(object, "platform"), *annotations = json_object_get(object, "annotations");
    out->os = copy_text(platform, "os", &failed);
    out->architecture = copy_text(platform, "architecture", &failed);
    out->variant = copy_text(platform, "variant", &failed);
    out->name = copy_text(annotations, PX_REF_NAME, &failed);
    out->alias = copy_text(annotations, PX_REF_ALIAS, &failed);
    return failed ? px_no_memory(e) : 0;
}

int px_documents_index_read(const char *text, size_t len, enum px_media said, struct px_index *ret_index, struct px_err *e)
{
    px_auto(px_document) json_t *root = NULL;
    struct px_index index = {0};
    if (px_document_read(text, len, "the image's index", PX_E_IMAGE, &root, e) < 0 ||
        check_kind(root, said, PX_MEDIA_INDEX, e) < 0)
        return -1;
    const json_t *list = json_object_get(root, "manifests");
    if (!json_is_array(list) || json_array_size(list) > PX_INDEX_ENTRIES_MAX)
        return refuse(e, "the image's index has no list of manifests, or one longer than %d", PX_INDEX_ENTRIES_MAX);
    index.entries = calloc(json_array_size(list) + 1, sizeof *index.entries);
    if (!index.entries)
        return px_no_memory(e);
    for (size_t i = 0; i < json_array_size(list); i++) {
        index.count = i + 1;
        if (read_entry(json_array_get(list, i), i, &index.entries[i], e) < 0) {
            px_documents_index_done(&index);
            return -1;
        }
    }
    *ret_index = index;
    return 0;
}

void px_documents_index_done(struct px_index *index)
{
    for (size_t i = 0; i < index->count; i++) {
        struct px_index_entry *entry = &index->entries[i];
        free(entry->os);
        free(entry->architecture);
        free(entry->variant);
        free(entry->name);
        free(entry->alias);
    }
    free(index->entries);
    *index = (struct px_index){0};
}

void px_documents_index_offers(const struct px_index *index, struct px_buf *out)
{
    for (size_t i = 0; i < index->count && i < 16; i++) {
        const struct px_index_entry *entry = &index->entries[i];
        (void)px_buf_puts(out, i ? ", " : "");
        if (entry->name)
            (void)px_buf_printf(out, "'%.80s' ", entry->name);
        (void)px_buf_printf(out, "%.20s/%.20s", entry->os ? entry->os : "?",
                            entry->architecture ? entry->architecture : "?");
    }
}

/* ---- manifest ---- */

static int compare_items(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_annotations(const json_t *object, struct px_image_text *list, struct px_err *e)
{
    const char *key;
    json_t *value;
    if (object && (!json_is_object(object) || json_object_size(object) > PX_CONFIG_TEXTS_MAX))
        return refuse(e, "the manifest's annotations are not an object, or too many");
    json_object_foreach((json_t *)object, key, value)
    { /* the library's macro wants it writable, and writes nothing */
        px_auto_buf struct px_buf item = PX_BUF(PX_IMAGE_JSON_MAX);
        if (!json_is_string(value) || !*key || strchr(key, '='))
            return refuse(e, "the manifest's annotation '%.100s' is not a name with a text", key);
        (void)px_buf_printf(&item, "%s=%s", key, json_string_value(value));
        if (item.err < 0 || px_documents_text_add(list, px_buf_text(&item)) < 0)
            return px_no_memory(e);
    }
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_items);
    return 0;
}

static int read_layer(const json_t *object, size_t at, struct px_descriptor *out, struct px_err *e)
{
    char where[48];
    (void)px_fmt(where, sizeof where, "layers[%zu]", at);
    if (read_descriptor(object, where, out, e) < 0)
        return -1;
    if (out->media == PX_MEDIA_FOREIGN) {
        (void)refuse(e, "%s of the image is a foreign layer", where);
        return px_why(
            e,
            "It lies at an address that the image names; px takes layers only from where the image itself comes from.");
    }
    if (out->media != PX_MEDIA_LAYER)
        return refuse(e, "%s of the image has the type '%.100s', which is not one of a layer", where,
                      px_document_text(object, "mediaType") ? px_document_text(object, "mediaType") : "");
    return 0;
}

static int read_layers(const json_t *list, struct px_oci_manifest *m, struct px_err *e)
{
    if (!json_is_array(list))
        return refuse(e, "the image's manifest has no list of layers");
    if (json_array_size(list) > PX_IMAGE_LAYERS_MAX)
        return refuse(e, "the image has %zu layers, more than %d", json_array_size(list), PX_IMAGE_LAYERS_MAX);
    m->layer_count = json_array_size(list);
    for (size_t i = 0; i < m->layer_count; i++)
        if (read_layer(json_array_get(list, i), i, &m->layers[i], e) < 0)
            return -1;
    return 0;
}

static int read_manifest(const json_t *root, struct px_oci_manifest *m, struct px_err *e)
{
    if (read_descriptor(json_object_get(root, "config"), "config", &m->config, e) < 0)
        return -1;
    if (m->config.media != PX_MEDIA_CONFIG)
        return refuse(e, "the manifest's config is of the type '%.100s': it is not an image of a file system",
                      px_document_text(json_object_get(root, "config"), "mediaType")
                          ? px_document_text(json_object_get(root, "config"), "mediaType") : "");
    if (m->config.size > PX_IMAGE_JSON_MAX)
        return refuse(e, "the image's config is larger than %d bytes", PX_IMAGE_JSON_MAX);
    return read_layers(json_object_get(root, "layers"), m, e) < 0 ||
                   read_annotations(json_object_get(root, "annotations"), &m->annotations, e) < 0
               ? -1 : 0;
}

int px_documents_manifest_read(const char *text, size_t len, enum px_media said, struct px_oci_manifest *ret_manifest,
                     struct px_err *e)
{
    px_auto(px_document) json_t *root = NULL;
    struct px_oci_manifest m = {0};
    if (px_document_read(text, len, "the image's manifest", PX_E_IMAGE, &root, e) < 0 ||
        check_kind(root, said, PX_MEDIA_MANIFEST, e) < 0)
        return -1;
    if (read_manifest(root, &m, e) < 0) {
        px_documents_manifest_done(&m);
        return -1;
    }
    *ret_manifest = m;
    return 0;
}

void px_documents_manifest_done(struct px_oci_manifest *manifest)
{
    px_documents_text_done(&manifest->annotations);
}
