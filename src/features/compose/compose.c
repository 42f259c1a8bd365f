/* compose/compose.c - assembles an image from a base and capabilities, records it and writes it. */
#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "compose/compose.h"
#include "distro/base.h"
#include "image/differ.h"
#include "image/identity.h"
#include "store/canonical.h"
#include "store/document.h"

enum { RECORD_MAX = 8 << 20 };
#define DEFAULT_BASE "debian-12"

void px_compose_pinned_done(struct px_pinned *pinned)
{
    px_packages_done(&pinned->base);
    px_packages_done(&pinned->packages);
    *pinned = (struct px_pinned){0};
}

void px_compose_done(struct px_compose *b)
{
    px_catalog_base_done(&b->base);
    px_capability_layer_done(&b->capabilities);
    px_packages_done(&b->lock);
    px_image_done(&b->image);
}

/* ---- what it is made of ---- */

/* Builds the base now if px can build it. */
static int find_base(struct px_compose *b, bool plan, struct px_err *e)
{
    const char *name = b->how->base ? b->how->base : DEFAULT_BASE;
    const struct px_base_row *row = px_bases_find(name);
    px_auto_free char *json = NULL;
    bool pinned = b->pinned && b->pinned->base.count > 0;
    if (row && row->suite && (b->renew || pinned)) {
        const struct px_distro_base_make how = {row, b->renew ? NULL : &b->pinned->base, b->place ? b->place : name, plan};
        return px_distro_base_make(b->s, &how, &b->base, e);
    }
    int r = px_catalog_base_find(b->s->store, name, &b->base, e);
    if (r > 0 && plan)
        return 1;
    if (r > 0 && row && row->suite && px_sandbox_base_build(b->s, name, NULL, &json, e) < 0)
        return -1;
    return r > 0 ? px_catalog_base_need(b->s->store, name, &b->base, e) : r;
}

static int check_capabilities(struct px_compose *b, struct px_err *e)
{
    const json_t *os = json_object_get(b->base.record, "os_release");
    b->row = px_bases_for(px_document_text(os, "id"), px_document_text(os, "version_id"));
    if (b->set.count == 0)
        return 0;
    if (b->row)
        return px_capability_set_check(&b->set, b->row, e);
    (void)px_fail(e, PX_E_CAPABILITY, 0, "px cannot satisfy capability '%s' on base '%s'", b->set.items[0]->name,
                  b->base.name);
    (void)px_detail(e, "capability", b->set.items[0]->name);
    (void)px_detail(e, "base", b->base.name);
    return px_why(e, "px knows no packages for that distribution.");
}

/* The sbx_id covers what a project runs in; the id of a shipped image also covers the project. */
static int identify_app(struct px_compose *b)
{
    char text[256];
    int r = px_fmt(text, sizeof text, "px-app 1\n%s\n%s\n", b->sbx_id.hex, b->app->layer.diff_id.hex);
    return r < 0 ? r : px_hash_bytes(text, strlen(text), &b->id);
}

bool px_compose_is_pinned(const struct px_compose *b)
{
    size_t i = 0;
    if (!b->pinned || b->pinned->base.count == 0 || b->renew)
        return false;
    while (i < b->set.count && px_equal(b->pinned->capabilities[i], b->set.items[i]->name))
        i++;
    return i == b->set.count && !b->pinned->capabilities[i];
}

/* 0; 1: only the archive knows. */
static int find_packages(struct px_compose *b, bool plan, struct px_err *e)
{
    const struct px_capability_ask ask = {.base = &b->base, .row = b->row, .set = &b->set, .renew = b->renew};
    int r = !px_compose_is_pinned(b) ? px_capability_packages(b->s, &ask, plan, &b->lock, e)
            : px_packages_copy(&b->pinned->packages, &b->lock) < 0 ? px_no_memory(e) : 0;
    if (r != 0 || b->lock.count == 0)
        return r;
    return px_packages_id(&b->lock, &b->system) < 0 ? px_no_memory(e) : 0;
}

static int identify(struct px_compose *b, struct px_err *e)
{
    const char *names[PX_CAPABILITIES_MAX], *system = *b->system.hex ? b->system.hex : NULL;
    for (size_t i = 0; i < b->set.count; i++)
        names[i] = b->set.items[i]->name;
    if (b->env)
        b->profile = b->env->profile;
    else if (px_identity_profile_empty(&b->profile) < 0)
        return px_no_memory(e);
    if (px_identity_sbx_id(b->base.oid.hex, names, b->set.count, system, b->profile.hex, PX_SBX_VERSION, &b->sbx_id) < 0)
        return px_no_memory(e);
    b->id = b->sbx_id;
    return b->app && identify_app(b) < 0 ? px_no_memory(e) : 0;
}

int px_compose_find(struct px_compose *b, bool plan, struct px_err *e)
{
    if (px_capability_set_make(b->how->capabilities, &b->set, e) < 0)
        return -1;
    /* Reports capabilities that the base does not have before it looks for the base. */
    b->row = px_bases_find(b->how->base ? b->how->base : DEFAULT_BASE);
    if (b->row && px_capability_set_check(&b->set, b->row, e) < 0)
        return -1;
    int r = find_base(b, plan, e);
    if (r == 0)
        r = check_capabilities(b, e) < 0 ? -1 : find_packages(b, plan, e);
    if (r == 0)
        return identify(b, e);
    return r < 0 ? -1 : 1;
}

/* ---- its record ---- */

static json_t *names(const struct px_capability_set *set)
{
    json_t *out = json_array();
    for (size_t i = 0; out && i < set->count; i++)
        (void)json_array_append_new(out, json_string(set->items[i]->name));
    return out;
}

static json_t *layers(const struct px_image *image)
{
    json_t *out = json_array();
    for (size_t i = 0; out && i < image->layer_count; i++)
        (void)json_array_append_new(out, px_catalog_layer_json(&image->layers[i]));
    return out;
}

static void refer(json_t *blobs, const struct px_oid *oid)
{
    (void)json_array_append_new(blobs, json_string(oid->hex));
}

static json_t *refs(const struct px_compose *b)
{
    json_t *blobs = json_array(), *trees = json_array();
    refer(blobs, &b->image.manifest);
    refer(blobs, &b->image.config_digest);
    for (size_t i = 0; i < b->image.layer_count; i++)
        refer(blobs, &b->image.layers[i].digest);
    /* only those still in the store: the layer may be older than the loss of one */
    for (size_t i = 0; i < b->lock.count; i++)
        if (px_blob_has(b->s->store, &b->lock.items[i].sha256))
            refer(blobs, &b->lock.items[i].sha256);
    if (b->capabilities.any)
        refer(trees, &b->capabilities.key);
    if (b->env) {
        refer(blobs, &b->env->profile);
        refer(trees, &b->root);
        refer(trees, &b->part.tree);
    }
    return json_pack("{soso}", "blobs", blobs, "trees", trees);
}

json_t *px_compose_json(const struct px_compose *b)
{
    char digest[80];
    (void)px_fmt(digest, sizeof digest, "sha256:%s", b->image.manifest.hex);
    json_t *lock = b->lock.count > 0 ? px_packages_lock(&b->lock, b->base.name, b->image.config.architecture) : NULL;
    return json_pack("{ss* ss* ss* sssssosssssoso*sssssssi}", "system_oid", *b->system.hex ? b->system.hex : NULL,
                     "root", b->env ? b->root.hex : NULL, "inside",
                     b->env ? b->part.tree.hex : NULL, "base", b->base.name, "base_os_oid", b->base.oid.hex, "capabilities",
                     names(&b->set), "created_at", b->image.config.created, "image_digest", digest, "layers",
                     layers(&b->image), "lock", lock, "profile_oid", b->profile.hex, "px_version", PX_VERSION, "sbx_id",
                     b->sbx_id.hex, "sbx_version", PX_SBX_VERSION);
}

static int put_record(struct px_compose *b, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    px_auto(px_document) json_t *record = px_compose_json(b);
    if (!record || json_object_set_new(record, "refs", refs(b)) < 0 || px_canonical(record, &text) < 0)
        return px_no_memory(e);
    return px_record_put(b->s->store, PX_RECORD_IMAGE, &b->id, px_buf_text(&text), e);
}

/* ---- one that is there ---- */

/* Checks that the record of this id describes this image. */
static int not_ours(const struct px_compose *b, const char *what, const char *expected, const char *found,
                    struct px_err *e)
{
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the record of image %s is not what px writes: %s", b->id.hex, what);
    (void)px_detail(e, "sbx_id", b->sbx_id.hex);
    (void)px_detail(e, "expected", expected);
    (void)px_detail(e, "found", found ? found : "");
    return px_fix(e, "Rebuild sandbox images with this px version: px sandbox build --force.\n"
                     "Or clear the sandbox store and rerun: px sandbox delete %s.", b->id.hex);
}

/* With an environment: the trees that a box needs. 0; 1: one is missing; -1; OLDER: another version of px laid out the
 * environment. */
enum { OLDER = 2 };
static int take_trees(struct px_compose *b, const json_t *record, struct px_err *e)
{
    struct px_oid today;
    const char *profile = px_document_text(record, "profile_oid"), *base = px_document_text(record, "base_os_oid");
    if (!px_equal(profile, b->profile.hex))
        return not_ours(b, "profile_oid", b->profile.hex, profile, e);
    if (!px_equal(base, b->base.oid.hex))
        return not_ours(b, "base_os_oid", b->base.oid.hex, base, e);
    if (px_hash_oid_parse(px_document_text(record, "root"), false, &b->root) < 0 ||
        px_hash_oid_parse(px_document_text(record, "inside"), false, &b->part.tree) < 0)
        return not_ours(b, "its trees", "root and inside", NULL, e);
    if (px_env_part_name(b->env, &b->base, &today, e) < 0)
        return -1;
    if (!px_hash_oid_equal(&today, &b->part.tree))
        return OLDER;
    return px_tree_has(b->s->store, &b->root) && px_tree_has(b->s->store, &b->part.tree) ? 0 : 1;
}

/* 0, 1: there is none, -1. */
static int find_record(struct px_compose *b, json_t **ret_record, struct px_oid *ret_manifest, struct px_err *e)
{
    int r = px_catalog_image_find(b->s->store, b->id.hex, ret_record, ret_manifest, e);
    if (r >= 0 || !b->env || e->code != PX_E_RECORD)
        return r;
    struct px_err said = *e;
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, said.sys, "%s", said.what);
    memcpy(e->fix, said.fix, sizeof e->fix);
    memcpy(e->details, said.details, sizeof e->details);
    (void)px_detail(e, "sbx_id", b->sbx_id.hex);
    return px_why(e, "%s", said.why);
}

/* With --force a foreign record counts as missing and is written again. */
static bool is_replaced(const struct px_compose *b, const struct px_err *e)
{
    return b->how->force && (e->code == PX_E_RECORD || e->code == PX_E_SANDBOX_FORMAT);
}

/* 1: a complete image exists. A damaged one is built again from the packages in its record. */
static int look(struct px_compose *b, struct px_err *e)
{
    px_auto(px_document) json_t *record = NULL;
    struct px_oid manifest;
    int r = find_record(b, &record, &manifest, e);
    if (r != 0)
        return r < 0 && !is_replaced(b, e) ? -1 : 0;
    int lost = b->env ? take_trees(b, record, e) : 0;
    if (lost < 0)
        return is_replaced(b, e) ? 0 : -1;
    if (b->compression != PX_COMPRESS_GZIP || lost == OLDER)
        return 0;
    if (!b->how->force && lost == 0 && px_image_load(b->s->store, &manifest, &b->image, e) == 0)
        return 1;
    if (!b->how->force && lost == 0 && e->code != PX_E_OBJECT)
        return -1;
    b->expected = manifest;
    return 0;
}

static int build_and_record(struct px_compose *b, struct px_err *e)
{
    int r = look(b, e);
    b->cached = r == 1;
    if (r != 0)
        return r < 0 ? -1 : 0;
    if (px_compose_assemble(b, e) < 0)
        return -1;
    if (*b->expected.hex && !px_hash_oid_equal(&b->expected, &b->image.manifest)) {
        (void)px_fail(e, PX_E_BUILD, 0, "the same input gave another image: %s instead of %s", b->image.manifest.hex,
                      b->expected.hex);
        (void)px_why(
            e, "A package does not install the same way twice, or this px builds differently than the one before.");
        return px_differ_images(b->s->store, &b->expected, &b->image, e);
    }
    return b->compression == PX_COMPRESS_GZIP ? put_record(b, e) : 0;
}

int px_compose_make(struct px_compose *b, struct px_err *e)
{
    struct px_store_lock *lock = NULL;
    if (px_store_lock_take(b->s->store, &b->id, 0, &lock, e) < 0)
        return -1;
    int r = build_and_record(b, e);
    px_store_lock_drop(lock);
    return r;
}

/* ---- where it goes ---- */

static int format_of(const struct px_image_build *how, enum px_image_format *ret_format, struct px_err *e)
{
    static const char *const words[PX_IMAGE_FORMATS] = {[PX_IMAGE_OCI_DIR] = "oci",
                                                        [PX_IMAGE_OCI_ARCHIVE] = "oci-archive",
                                                        [PX_IMAGE_DOCKER_ARCHIVE] = "docker-archive"};
    size_t n = strlen(how->out);
    *ret_format = n > 4 && px_equal(how->out + n - 4, ".tar") ? PX_IMAGE_OCI_ARCHIVE : PX_IMAGE_OCI_DIR;
    for (int i = 0; i < PX_IMAGE_FORMATS; i++)
        if (how->format && px_equal(how->format, words[i])) {
            *ret_format = (enum px_image_format)i;
            return 0;
        }
    if (!how->format)
        return 0;
    (void)px_fail(e, PX_E_VALUE, 0, "'%.60s' is not a format of images", how->format);
    return px_fix(e, "Write oci, oci-archive or docker-archive.");
}

/* A local tag: "demo", "demo:1". Anything else is a reference to a registry. */
static bool is_name(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789",
                      more[] = "abcdefghijklmnopqrstuvwxyz0123456789._:-";
    size_t n = strlen(text);
    return n > 0 && n < 128 && strchr(plain, text[0]) && strspn(text, more) == n;
}

int px_compose_words(struct px_compose *b, struct px_err *e)
{
    enum px_image_format format;
    struct px_image_ref ref;
    const struct px_image_build *how = b->how;
    if (how->compression && px_compression_parse(how->compression, &b->compression) < 0) {
        (void)px_fail(e, PX_E_VALUE, 0, "'%.60s' is not a compression", how->compression);
        return px_fix(e, "Write gzip, zstd or none.");
    }
    if (how->tag && (how->push || !is_name(how->tag)) && px_image_ref_parse(how->tag, &ref, e) < 0)
        return -1;
    if (how->push && !how->tag) {
        (void)px_fail(e, PX_E_USAGE, 0, "an image is pushed to where its tag says, and there is none");
        return px_fix(e, "Add --tag REGISTRY/NAME:VERSION.");
    }
    if (b->compression != PX_COMPRESS_GZIP && !how->out && !how->push) {
        (void)px_fail(e, PX_E_USAGE, 0, "the store keeps images as gzip");
        return px_fix(e, "Say where the other form should go: --out PATH, or --push.");
    }
    return how->out ? format_of(how, &format, e) : 0;
}

int px_compose_deliver(struct px_compose *b, struct px_err *e)
{
    const struct px_image_build *how = b->how;
    enum px_image_format format;
    struct px_image_ref ref;
    if (how->tag && b->compression == PX_COMPRESS_GZIP &&
        px_name_put(b->s->store, PX_RECORD_IMAGE, how->tag, &b->id, e) < 0)
        return -1;
    if (how->out && (format_of(how, &format, e) < 0 ||
                     px_image_write(b->s->store, &b->image, format, how->out, how->tag, b->s->progress, e) < 0))
        return -1;
    if (how->push && (px_image_ref_parse(how->tag, &ref, e) < 0 ||
                      px_registry_push(b->s->store, &b->image, &ref, b->s->progress, e) < 0))
        return -1;
    return 0;
}

static int answer(struct px_compose *b, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    uint64_t size = b->image.manifest_size + b->image.config_size;
    for (size_t i = 0; i < b->image.layer_count; i++)
        size += b->image.layers[i].size;
    px_auto(px_document) json_t *out = px_compose_json(b);
    px_auto(px_document) json_t *more = json_pack("{sbsbss*ss*sI}", "cached", b->cached, "pushed", b->how->push, "out",
                                                  b->how->out, "tag", b->how->tag, "size", (json_int_t)size);
    if (!out || !more || json_object_update(out, more) < 0 || px_canonical(out, &text) < 0 ||
        !(*ret_json = px_buf_take(&text)))
        return px_no_memory(e);
    return 0;
}

int px_sandbox_build(struct px_sandbox *s, const struct px_image_build *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_free struct px_compose *b = calloc(1, sizeof *b);
    if (!b)
        return px_no_memory(e);
    b->s = s;
    b->how = how;
    int r = px_compose_words(b, e) < 0 || px_compose_find(b, false, e) < 0 || px_compose_make(b, e) < 0 || px_compose_deliver(b, e) < 0
                ? -1
                : answer(b, ret_json, e);
    px_compose_done(b);
    return r;
}

/* ---- what there is to ask for ---- */

static json_t *column(const struct px_capability *c)
{
    json_t *out = json_object();
    const struct px_base_row *row;
    for (size_t i = 0; out && (row = px_bases_at(i)); i++)
        (void)json_object_set_new(
            out, row->name,
            json_pack("{ssss}", "build", c->packages[row->column].build, "run", c->packages[row->column].run));
    return out;
}

int px_sandbox_capabilities(struct px_sandbox *s, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf text = PX_BUF(RECORD_MAX);
    px_auto(px_document) json_t *rows = json_array();
    const struct px_capability *c;
    (void)s;
    for (size_t i = 0; rows && (c = px_capability_at(i)); i++)
        if (json_array_append_new(
                rows, json_pack("{ssssso}", "name", c->name, "summary", c->summary, "packages", column(c))) < 0)
            return px_no_memory(e);
    px_auto(px_document) json_t *out = json_pack("{sO}", "capabilities", rows);
    if (!out || px_canonical(out, &text) < 0 || !(*ret_json = px_buf_take(&text)))
        return px_no_memory(e);
    return 0;
}
