#include "catalog/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "catalog/bases.h"
#include "catalog/catalog.h"
#include "host/release.h"
#include "store/canonical.h"
#include "store/document.h"

enum { LISTING_MAX = 256 << 20, RECORD_MAX = 8 << 20, RELEASE_MAX = 16 * 1024 };

/* ---- layers in records ---- */

json_t *px_catalog_layer_json(const struct px_layer *layer)
{
    return json_pack("{sssssssIsIsI}", "compression", px_compression_word(layer->compression), "diff_id",
                     layer->diff_id.hex, "digest", layer->digest.hex, "entries", (json_int_t)layer->entries, "size",
                     (json_int_t)layer->size, "tar_size", (json_int_t)layer->tar_size);
}

int px_catalog_layer_from_json(const json_t *object, struct px_layer *ret_layer)
{
    const char *compression = px_document_text(object, "compression"), *diff_id = px_document_text(object, "diff_id");
    const char *digest = px_document_text(object, "digest");
    struct px_layer layer = {0};
    if (!compression || !diff_id || !digest || px_compression_parse(compression, &layer.compression) < 0 ||
        px_hash_oid_parse(diff_id, false, &layer.diff_id) < 0 || px_hash_oid_parse(digest, false, &layer.digest) < 0 ||
        px_document_number(object, "size", INT64_MAX, &layer.size) != 1 ||
        px_document_number(object, "tar_size", INT64_MAX, &layer.tar_size) != 1 ||
        px_document_number(object, "entries", INT64_MAX, &layer.entries) != 1)
        return -EINVAL;
    *ret_layer = layer;
    return 0;
}

/* ---- the object ---- */

/* What the tree says of itself; an empty object if it says nothing. Its links are followed inside the tree. */
static json_t *os_release(int root)
{
    static const char *const keys[][2] = {{"id", "ID"}, {"name", "NAME"}, {"pretty_name", "PRETTY_NAME"},
                                          {"version_codename", "VERSION_CODENAME"}, {"version_id", "VERSION_ID"}};
    char text[RELEASE_MAX], value[256];
    json_t *out = json_object();
    px_auto_fd int fd = px_open_beneath(root, "usr/lib/os-release", O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        fd = px_open_beneath(root, "etc/os-release", O_RDONLY | O_NONBLOCK, 0);
    ssize_t n = fd < 0 ? 0 : px_read_full(fd, text, sizeof text);
    for (size_t i = 0; out && n > 0 && i < PX_COUNT_OF(keys); i++)
        if (px_release_value(text, (size_t)n, keys[i][1], value, sizeof value))
            (void)json_object_set_new(out, keys[i][0], json_string(value));    /* not UTF-8: left out */
    return out;
}

static int px_base_version(const char *name)
{
    const struct px_base_row *row = px_bases_find(name);
    return row ? row->version : 1;
}

/* The members of the payload that come behind fs_tree, in their order. */
static int other_members(const struct px_base_facts *f, int root, const json_t *packages, struct px_buf *out)
{
    px_auto(px_document) json_t *object =
        json_pack("{sssosOsiss}", "name", f->name, "os_release", os_release(root), "packages", packages,
                  "px_base_version", px_base_version(f->name), "variant", f->variant);
    return object ? px_canonical(object, out) : -ENOMEM;
}

/* {"kind":"sandbox-base","payload":{"fs_tree":[..],"name":..}}: canonical by the order of its pieces, for the listing
 * of a large
 * tree is too much for a tree of JSON values. */
static int put_object(struct px_store *store, const struct px_base_facts *f, int root, const json_t *packages,
                      struct px_oid *ret_base, struct px_listing *listing, struct px_err *e)
{
    static const char head[] = "{\"kind\":\"sandbox-base\",\"payload\":{\"fs_tree\":";
    px_auto_buf struct px_buf files = PX_BUF(LISTING_MAX), rest = PX_BUF(RECORD_MAX);
    struct px_blob_writer *w = NULL;
    uint64_t size;
    if (px_listing_tree(root, &files, listing, e) < 0)
        return -1;
    int r = files.err < 0 ? files.err : other_members(f, root, packages, &rest);
    if (r < 0)
        return px_fail(e, PX_E_MEMORY, r, "the base has too many files to be described");
    if (px_blob_begin(store, LISTING_MAX + 2 * RECORD_MAX, &w, e) < 0)
        return -1;
    if (px_blob_write(w, head, sizeof head - 1, e) < 0 || px_blob_write(w, files.data, files.len, e) < 0 ||
        px_blob_write(w, ",", 1, e) < 0 || px_blob_write(w, rest.data + 1, rest.len - 1, e) < 0 ||
        px_blob_write(w, "}", 1, e) < 0) {
        px_blob_drop(w);
        return -1;
    }
    return px_blob_commit(w, NULL, ret_base, &size, e);
}

/* ---- the record ---- */

static int add_blob(json_t *blobs, const struct px_oid *oid)
{
    return json_array_append_new(blobs, json_string(oid->hex));
}

static json_t *refs(const struct px_base_facts *f, const struct px_oid *base, const struct px_oid *lock)
{
    json_t *blobs = json_array(), *trees = json_pack("[s]", f->tree.hex);
    int r = blobs && trees ? add_blob(blobs, base) | add_blob(blobs, &f->layer->digest) : -1;
    if (r == 0 && *lock->hex)
        r = add_blob(blobs, lock);
    for (size_t i = 0; r == 0 && i < f->blob_count; i++)
        r = add_blob(blobs, &f->blobs[i]);
    if (r == 0)
        return json_pack("{soso}", "blobs", blobs, "trees", trees);
    json_decref(blobs);
    json_decref(trees);
    return NULL;
}

static json_t *describe(const struct px_base_facts *f, const struct px_oid *base, const struct px_oid *lock, int root,
                        const json_t *packages, const struct px_listing *listing)
{
    return json_pack("{sssIsIsossso*sOsosiss*sososssissss}", "base_os_oid", base->hex, "bytes",
                     (json_int_t)listing->bytes, "files", (json_int_t)listing->files, "layer", px_catalog_layer_json(f->layer),
                     "name", f->name, "lock", *lock->hex ? json_string(lock->hex) : NULL, "packages", packages,
                     "os_release", os_release(root), "px_base_version", px_base_version(f->name), "source", f->source,
                     "refs", refs(f, base, lock), "tree", json_string(f->tree.hex), "px_version", PX_VERSION,
                     "sbx_version", PX_SBX_VERSION, "variant", f->variant, "kind", "sandbox-base");
}

/* Everybody who reads records knows what these members mean; a person who asked for a base wants the others. */
static int answer(json_t *record, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    (void)json_object_del(record, "refs");
    int r = px_canonical(record, &text);
    char *json = r < 0 ? NULL : px_buf_take(&text);
    if (!json)
        return px_no_memory(e);
    *ret_json = json;
    return 0;
}

static int put_record(struct px_store *store, const struct px_base_facts *f, const struct px_oid *base, json_t *record,
                      struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    if (!record || px_canonical(record, &text) < 0)
        return px_no_memory(e);
    if (px_record_put(store, PX_RECORD_BASE, base, px_buf_text(&text), e) < 0)
        return -1;
    return px_name_put(store, PX_RECORD_BASE, f->place ? f->place : f->name, base, e);
}

static int record(struct px_store *store, const struct px_base_facts *f, int root, const json_t *packages,
                  struct px_oid *ret_base, char **ret_json, struct px_err *e)
{
    struct px_oid base, lock = {""};
    struct px_listing listing;
    if (f->lock && px_blob_put(store, f->lock, strlen(f->lock), &lock, e) < 0)
        return -1;
    if (put_object(store, f, root, packages, &base, &listing, e) < 0)
        return -1;
    px_auto(px_document) json_t *object = describe(f, &base, &lock, root, packages, &listing);
    if (put_record(store, f, &base, object, e) < 0 || answer(object, ret_json, e) < 0)
        return -1;
    *ret_base = base;
    return 0;
}

int px_catalog_base_record(struct px_store *store, const struct px_base_facts *facts, struct px_oid *ret_base, char **ret_json,
                   struct px_err *e)
{
    px_auto_fd int root = -EBADF;
    px_auto(px_document) json_t *packages =
        facts->packages ? json_loads(facts->packages, JSON_REJECT_DUPLICATES, NULL) : json_array();
    if (!packages)
        return px_no_memory(e);
    if (px_tree_open(store, &facts->tree, &root, e) < 0)
        return -1;
    return record(store, facts, root, packages, ret_base, ret_json, e);
}

/* ---- finding ---- */

void px_catalog_base_done(struct px_base *base)
{
    free(base->name);
    json_decref(base->record);
    *base = (struct px_base){0};
}

static int damaged(const struct px_oid *oid, struct px_err *e)
{
    (void)px_fail(e, PX_E_RECORD, 0, "the record of base %s is not what px writes", oid->hex);
    return px_fix(e, "Remove it: px sandbox delete %s.\nThen build or import the base again.", oid->hex);
}

static int read_record(struct px_store *store, const struct px_oid *oid, struct px_base *base, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    int r = px_record_get(store, PX_RECORD_BASE, oid, &text, e);
    if (r != 0)
        return r;
    if (px_document_read(px_buf_text(&text), text.len, "the record of a base", PX_E_RECORD, &base->record, e) < 0)
        return e->code == PX_E_RECORD ? damaged(oid, e) : -1;
    const char *name = px_document_text(base->record, "name"), *tree = px_document_text(base->record, "tree");
    uint64_t version = 0;
    if (!name || !tree || px_hash_oid_parse(tree, false, &base->tree) < 0 ||
        px_catalog_layer_from_json(json_object_get(base->record, "layer"), &base->layer) < 0 ||
        px_document_number(base->record, "sbx_version", UINT32_MAX, &version) != 1)
        return damaged(oid, e);
    if (version != PX_SBX_VERSION) {
        (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the base '%s' has sandbox version %u, and this px knows %d", name,
                      (unsigned)version, PX_SBX_VERSION);
        return px_fix(e, "Remove it: px sandbox delete %s.\nThen build or import the base again.", oid->hex);
    }
    base->oid = *oid;
    base->name = strdup(name);
    return base->name ? 0 : px_no_memory(e);
}

int px_catalog_base_find(struct px_store *store, const char *name, struct px_base *ret_base, struct px_err *e)
{
    struct px_base base = {0};
    struct px_oid oid;
    int r = px_hash_oid_parse(name, false, &oid) == 0 ? 0 : px_name_get(store, PX_RECORD_BASE, name, &oid, e);
    if (r == 0)
        r = read_record(store, &oid, &base, e);
    if (r != 0)
        px_catalog_base_done(&base);
    else
        *ret_base = base;
    return r;
}

int px_catalog_base_need(struct px_store *store, const char *name, struct px_base *ret_base, struct px_err *e)
{
    int r = px_catalog_base_find(store, name, ret_base, e);
    if (r <= 0)
        return r;
    const struct px_base_row *row = px_bases_find(name);
    (void)px_fail(e, PX_E_BASE, 0, "there is no base '%.128s' in the store", name);
    if (!row)
        return px_fix(e, "`px sandbox base list` shows those there are.\n"
                         "Bring one: px sandbox base import NAME SOURCE. SOURCE is docker://IMAGE (docker://ubuntu:24.04), a directory or an archive.");
    (void)px_why(e, row->suite ? "It was not built yet." : "It was not imported yet.");
    return row->suite
               ? px_fix(e, "Build it: px sandbox base build %s", name)
               : px_fix(e, "Import it: px sandbox base import %s docker://REFERENCE, or an archive of its files", name);
}

/* ---- its tree ---- */

static int unpack(struct px_sandbox *s, const struct px_base *base, int dir, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    struct px_unpacked done;
    uint64_t size;
    if (px_blob_open(s->store, &base->layer.digest, &fd, &size, e) < 0 ||
        px_layer_unpack(fd, size, dir, false, &px_unpack_limits_default, s->progress, &done, e) < 0)
        return -1;
    return px_hash_oid_equal(&done.packed, &base->layer.digest) && px_hash_oid_equal(&done.diff_id, &base->layer.diff_id)
               ? 0 : px_fail(e, PX_E_OBJECT, 0, "layer sha256:%s is not what it is called", base->layer.digest.hex);
}

static int beyond_repair(const struct px_base *base, struct px_err *e)
{
    struct px_err said = *e;
    (void)px_fail(e, PX_E_OBJECT, said.sys, "the files of base '%s' are not what px stored, and its layer cannot be unpacked again",
                  base->name);
    (void)px_why(e, "%s", said.what);
    return px_fix(e, "Remove it: px sandbox base remove %s.\nThen build it or import it again.", base->name);
}

int px_catalog_base_whole(struct px_sandbox *s, const struct px_base *base, struct px_err *e)
{
    struct px_tree_build *build = NULL;
    int r = px_tree_has(s->store, &base->tree) ? 1 : px_tree_begin(s->store, &base->tree, &build, e);
    if (r != 0)
        return r < 0 ? -1 : 0;
    if (unpack(s, base, px_tree_build_fd(build), e) == 0)
        return px_tree_commit(build, "{\"kind\":\"base\"}", e);
    px_tree_drop(build);
    return beyond_repair(base, e);
}

/* ---- images ---- */

/* Which file it is, and what helps. */
static int name_record(const struct px_store *store, const struct px_oid *id, struct px_err *e)
{
    const char *path = px_store_path(store);
    char file[256];             /* a longer one would leave no room for other details */
    if (px_fmt(file, sizeof file, "%.*s/sandbox/images/%s/manifest.json", (int)(strlen(path) - strlen("/store")), path, id->hex) >= 0)
        (void)px_detail(e, "file", file);
    return px_fix(e, "Rebuild sandbox images with this px version: px sandbox build --force.\n"
                     "Or clear the sandbox store and rerun: px sandbox delete %s.", id->hex);
}

static int not_written_by_px(const struct px_store *store, const struct px_oid *id, const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_RECORD, 0, "the record of image %s is not what px writes: sandbox/images/%s/manifest.json in PX_HOME", id->hex,
                  id->hex);
    if (why)
        (void)px_why(e, "%s", why);
    return name_record(store, id, e);
}

static int other_version(const struct px_store *store, const struct px_oid *id, unsigned version, struct px_err *e)
{
    char expected[16], found[16];
    (void)px_fmt(expected, sizeof expected, "%d", PX_SBX_VERSION);
    (void)px_fmt(found, sizeof found, "%u", version);
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the image %s has sandbox version %s, and this px knows %s", id->hex, found,
                  expected);
    (void)px_detail(e, "expected", expected);
    (void)px_detail(e, "found", found);
    return name_record(store, id, e);
}

int px_catalog_image_find(struct px_store *store, const char *name, json_t **ret_record, struct px_oid *ret_manifest,
                  struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    px_auto(px_document) json_t *record = NULL;
    struct px_oid id;
    uint64_t version = 0;
    int r = px_hash_oid_parse(name, false, &id) == 0 ? 0 : px_name_get(store, PX_RECORD_IMAGE, name, &id, e);
    r = r != 0 ? r : px_record_get(store, PX_RECORD_IMAGE, &id, &text, e);
    if (r != 0)
        return r;
    struct px_err damaged = {0};
    if (px_document_read(px_buf_text(&text), text.len, "the record of an image", PX_E_RECORD, &record, &damaged) < 0) {
        if (damaged.code == PX_E_RECORD)
            return not_written_by_px(store, &id, damaged.why, e);
        *e = damaged;
        return -1;
    }
    const char *digest = px_document_text(record, "image_digest");
    if (px_document_number(record, "sbx_version", UINT32_MAX, &version) == 1 && version != PX_SBX_VERSION)
        return other_version(store, &id, (unsigned)version, e);
    if (!digest || px_hash_oid_parse(digest, true, ret_manifest) < 0)
        return not_written_by_px(store, &id, NULL, e);
    *ret_record = px_take(&record);
    return 0;
}
