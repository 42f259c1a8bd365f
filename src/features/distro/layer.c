#include "distro/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "distro/fetch.h"
#include "distro/setup.h"
#include "image/differ.h"
#include "store/canonical.h"
#include "store/document.h"

enum { WANTS_MAX = 1024, TEXT_MAX = 8 << 20 };

void px_capability_layer_done(struct px_capability_layer *layer)
{
    px_packages_done(&layer->packages);
    *layer = (struct px_capability_layer){0};
}

/* ---- its packages ---- */

/* The packages of all capabilities as words of one text, which has to stay. */
static int collect(const struct px_capability_ask *ask, struct px_buf *text, const char **wants)
{
    size_t count = 0;
    bool build = ask->build || px_capability_set_has(ask->set, PX_CAPABILITY_HEADERS);
    for (size_t i = 0; i < ask->set->count; i++)
        px_buf_printf(text, "%s ", ask->set->items[i]->packages[ask->row->column].run);
    for (size_t i = 0; build && i < ask->set->count; i++)
        px_buf_printf(text, "%s ", ask->set->items[i]->packages[ask->row->column].build);
    px_buf_printf(text, "%s%s", ask->build ? ask->build : "", ask->build ? " " : "");
    if (text->err < 0)
        return text->err;
    for (char *at = text->data; at && *at;) {
        if (count == WANTS_MAX)
            return -E2BIG;
        wants[count++] = at;
        at += strcspn(at, " ");
        *at++ = '\0';
        at += strspn(at, " ");
    }
    wants[count] = NULL;
    return 0;
}

/* The base's own dpkg status file: its installed packages. */
static int open_status(struct px_sandbox *s, const struct px_capability_ask *ask, int *ret_fd, struct px_err *e)
{
    px_auto_fd int root = -EBADF;
    if (px_tree_open(s->store, &ask->base->tree, &root, e) < 0)
        return -1;
    *ret_fd = px_open_beneath(root, "var/lib/dpkg/status", O_RDONLY | O_NOFOLLOW, 0);
    if (*ret_fd >= 0)
        return 0;
    (void)px_fail(e, PX_E_CAPABILITY, 0, "px cannot satisfy capability '%s' on base '%s'",
                  ask->set->count ? ask->set->items[0]->name : "build", ask->base->name);
    return px_why(e, "The base has no list of its packages (var/lib/dpkg/status), so nothing can be added to it.");
}

static int find_packages(struct px_sandbox *s, const struct px_capability_ask *ask, int scratch,
                         struct px_packages *list, struct px_err *e)
{
    const char *wants[WANTS_MAX + 1];
    px_auto_buf struct px_buf text = PX_BUF(1 << 20);
    px_auto_fd int status = -EBADF;
    if (collect(ask, &text, wants) < 0)
        return px_no_memory(e);
    if (open_status(s, ask, &status, e) < 0)
        return -1;
    struct px_fetch f = {.sandbox = s, .base = ask->row, .scratch = scratch, .installed = status};
    return px_distro_fetch_packages(&f, wants, list, e);
}

static int fetch_locked(struct px_sandbox *s, const struct px_capability_ask *ask, int scratch,
                        const struct px_packages *list, struct px_err *e)
{
    px_auto_fd int status = -EBADF;
    if (open_status(s, ask, &status, e) < 0)
        return -1;
    struct px_fetch f = {.sandbox = s, .base = ask->row, .scratch = scratch, .installed = status};
    return px_distro_fetch_locked(&f, list, e);
}

/* An id from a base and capabilities, and the version of px: another version may select other packages. */
static int id_of(const char *what, const struct px_capability_ask *ask, struct px_oid *ret_id, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(1 << 16);
    px_buf_printf(&words, "%s %s", what, ask->base->oid.hex);
    for (size_t i = 0; i < ask->set->count; i++)
        px_buf_printf(&words, " %s (%s)", ask->set->items[i]->name, ask->set->items[i]->packages[ask->row->column].run);
    px_buf_puts(&words, ask->build ? ask->build : "");
    return words.err < 0 || px_hash_bytes(words.data, words.len, ret_id) < 0 ? px_no_memory(e) : 0;
}

static int scratch_begin(struct px_sandbox *s, const struct px_capability_ask *ask, struct px_tree_build **ret_scratch,
                         struct px_err *e)
{
    struct px_oid id;
    return id_of("build layer", ask, &id, e) < 0 ? -1 : px_tree_begin(s->store, &id, ret_scratch, e);
}

/* ---- what the archive said last ---- */

#define NO_PACKAGES "none"      /* the base has everything */

static bool noted(struct px_sandbox *s, const struct px_oid *key, struct px_packages *list)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_LOCK_MAX);
    px_auto_free char *base = NULL;
    px_auto_free char *arch = NULL;
    struct px_err ignored = {0};
    if (!px_note_get(s->store, key, &text))
        return false;
    return px_equal(px_buf_text(&text), NO_PACKAGES) ||
           px_packages_read(px_buf_text(&text), text.len, list, &base, &arch, &ignored) == 0;
}

static int note(struct px_sandbox *s, const struct px_capability_ask *ask, const struct px_oid *key,
                const struct px_packages *list, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_LOCK_MAX);
    px_auto(px_document) json_t *lock = px_packages_lock(list, ask->row->name, px_distro_fetch_arch());
    if (!lock || (list->count > 0 && px_canonical(lock, &text) < 0))
        return px_no_memory(e);
    return px_note_put(s->store, key, list->count > 0 ? px_buf_text(&text) : NO_PACKAGES, e);
}

/* One process at a time: those who waited find the answer in the store. */
static int ask_archive(struct px_sandbox *s, const struct px_capability_ask *ask, const struct px_oid *key,
                       struct px_packages *list, struct px_err *e)
{
    struct px_tree_build *scratch = NULL;
    if (scratch_begin(s, ask, &scratch, e) < 0)
        return -1;
    int r = !ask->renew && noted(s, key, list) ? 0
            : find_packages(s, ask, px_tree_build_fd(scratch), list, e) < 0 || note(s, ask, key, list, e) < 0 ? -1 : 0;
    px_tree_drop(scratch);
    return r;
}

int px_capability_packages(struct px_sandbox *s, const struct px_capability_ask *ask, bool plan,
                           struct px_packages *ret_list, struct px_err *e)
{
    struct px_packages list = {0};
    struct px_oid key;
    if (ask->set->count == 0)
        return 0;
    if (id_of("packages", ask, &key, e) < 0)
        return -1;
    bool known = !ask->renew && noted(s, &key, &list);
    if (!known && plan)
        return 1;
    if (!known && ask_archive(s, ask, &key, &list, e) < 0) {
        px_packages_done(&list);
        return -1;
    }
    *ret_list = list;
    return 0;
}

/* ---- what is remembered ---- */

/* Includes the hash of each package: two archives may give different files the same version. */
static json_t *describe(const struct px_capability_ask *ask, const struct px_packages *list)
{
    return json_pack("{sssssoss}", "base_os_oid", ask->base->oid.hex, "compression",
                     px_compression_word(ask->compression), "packages", px_packages_exact(list), "kind",
                     "sandbox-layer");
}

static int key_of(const struct px_capability_ask *ask, const struct px_packages *list, struct px_oid *ret_key,
                  struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *object = describe(ask, list);
    if (!object || px_canonical(object, &text) < 0 || px_hash_bytes(text.data, text.len, ret_key) < 0)
        return px_no_memory(e);
    return 0;
}

/* 0: the layer is known and there. 1: it is known, and lost. */
static int recall(struct px_sandbox *s, const struct px_oid *key, struct px_layer *ret_layer, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *about = NULL;
    if (px_tree_about(s->store, key, &text, e) < 0 ||
        px_document_read(px_buf_text(&text), text.len, "the record of a layer", PX_E_RECORD, &about, e) < 0)
        return -1;
    if (px_catalog_layer_from_json(json_object_get(about, "layer"), ret_layer) < 0)
        return px_fail(e, PX_E_RECORD, 0, "the record of the layer %s is not what px writes", key->hex);
    return px_blob_has(s->store, &ret_layer->digest) ? 0 : 1;
}

static int remember(struct px_tree_build *build, const struct px_capability_ask *ask,
                    const struct px_capability_layer *l, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *about = describe(ask, &l->packages);
    if (!about || json_object_set_new(about, "layer", px_catalog_layer_json(&l->layer)) < 0 || px_canonical(about, &text) < 0) {
        px_tree_drop(build);
        return px_no_memory(e);
    }
    return px_tree_commit(build, px_buf_text(&text), e);
}

/* ---- making it ---- */

static int install(struct px_sandbox *s, const struct px_capability_ask *ask, int scratch,
                   const struct px_packages *list, struct px_layer *ret_layer, struct px_err *e)
{
    struct px_setup setup = {.sandbox = s, .packages = list, .scratch = scratch, .compression = ask->compression};
    if (ask->lock && fetch_locked(s, ask, scratch, list, e) < 0)
        return -1;
    return px_setup_layer(&setup, &ask->base->tree, ret_layer, e);
}

static int again(struct px_sandbox *s, const struct px_capability_ask *ask, int scratch,
                 const struct px_capability_layer *l, struct px_err *e)
{
    struct px_layer layer;
    if (install(s, ask, scratch, &l->packages, &layer, e) < 0)
        return -1;
    if (px_hash_oid_equal(&layer.digest, &l->layer.digest))
        return 0;
    (void)px_fail(e, PX_E_BUILD, 0, "the same packages gave another layer: %s instead of %s", layer.digest.hex,
                  l->layer.digest.hex);
    (void)px_why(e,
                 "A package does not install the same way twice, or this px builds differently than the one before.");
    return px_differ(s->store, "capabilities", &l->layer, &layer, e);
}

/* The tree of the key has no files: it is the build lock of the layer, and its `about` holds the result. */
static int make(struct px_sandbox *s, const struct px_capability_ask *ask, int scratch, struct px_capability_layer *l,
                struct px_err *e)
{
    struct px_tree_build *build = NULL;
    if (key_of(ask, &l->packages, &l->key, e) < 0)
        return -1;
    int r = px_tree_begin(s->store, &l->key, &build, e);
    int lost = r == 1 ? recall(s, &l->key, &l->layer, e) : 0;
    if (r != 0)
        return r < 0 || lost < 0 ? -1 : ask->force || lost ? again(s, ask, scratch, l, e) : 0;
    if (install(s, ask, scratch, &l->packages, &l->layer, e) < 0) {
        px_tree_drop(build);
        return -1;
    }
    return remember(build, ask, l, e);
}

static int make_in(struct px_sandbox *s, const struct px_capability_ask *ask, int scratch,
                   struct px_capability_layer *l, struct px_err *e)
{
    if (ask->lock && px_packages_copy(ask->lock, &l->packages) < 0)
        return px_no_memory(e);
    if (!ask->lock && find_packages(s, ask, scratch, &l->packages, e) < 0)
        return -1;
    l->any = l->packages.count > 0;
    return l->any ? make(s, ask, scratch, l, e) : 0;
}

int px_capability_layer_make(struct px_sandbox *s, const struct px_capability_ask *ask,
                             struct px_capability_layer *ret_layer, struct px_err *e)
{
    struct px_tree_build *scratch = NULL;
    struct px_capability_layer l = {0};
    if (ask->set->count == 0 && !ask->build) {
        *ret_layer = l;
        return 0;
    }
    if (px_catalog_base_whole(s, ask->base, e) < 0 || scratch_begin(s, ask, &scratch, e) < 0)
        return -1;
    int r = make_in(s, ask, px_tree_build_fd(scratch), &l, e);
    px_tree_drop(scratch);
    if (r < 0)
        px_capability_layer_done(&l);
    else
        *ret_layer = l;
    return r;
}
