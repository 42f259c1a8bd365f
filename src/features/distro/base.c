/* distro/base.c - bases: built from their packages, listed, removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "catalog/record.h"
#include "distro/base.h"
#include "distro/fetch.h"
#include "distro/setup.h"
#include "image/differ.h"
#include "store/canonical.h"
#include "store/document.h"

enum { WANTS_MAX = 32, ANSWER_MAX = 16 << 20 };

struct build {
    struct px_sandbox *s;
    const struct px_base_row *row;
    const char *place;                  /* its name; NULL: the row's */
    struct px_packages packages;        /* of a lock, or found */
    bool locked;
    struct px_oid expected;             /* the id that a rebuild must give; "": any */
};

/* ---- what is asked for ---- */

static int find_row(const char *name, const struct px_base_row **ret_row, struct px_err *e)
{
    const struct px_base_row *row = px_bases_find(name);
    if (!row) {
        px_auto_buf struct px_buf names = PX_BUF(256);
        const char *near = px_bases_names(true, name, &names);
        (void)px_fail(e, PX_E_BASE, 0, "px knows no base '%.128s'", name);
        return px_fix(e,
                      "%s%s%sBuild one that it knows: %s.\n"
                      "Or bring your own: px sandbox base import NAME SOURCE.\n"
                      "SOURCE is docker://IMAGE (docker://ubuntu:24.04), a directory or an archive.",
                      near ? "Is it " : "", near ? near : "", near ? "? " : "", px_buf_text(&names));
    }
    if (!row->suite) {
        (void)px_fail(e, PX_E_BASE, 0, "px cannot build the base '%s'", name);
        (void)px_why(e, "It has no way to fetch and check that distribution's packages.");
        return px_fix(e, "Import it: px sandbox base import %s docker://REFERENCE, or an archive of its files", name);
    }
    *ret_row = row;
    return 0;
}

static int read_lock(const char *path, struct build *b, struct px_err *e)
{
    px_auto_free char *text = malloc(PX_LOCK_MAX);
    char *base = NULL, *arch = NULL;
    ssize_t n = text ? px_read_file(AT_FDCWD, path, text, PX_LOCK_MAX) : -ENOMEM;
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "cannot read the lock '%s'", path);
    if (px_packages_read(text, (size_t)n, &b->packages, &base, &arch, e) < 0)
        return -1;
    int r = 0;
    if (!px_equal(base, b->row->name))
        r = px_fail(e, PX_E_VALUE, 0, "the lock '%s' is of the base '%s', not of '%s'", path, base, b->row->name);
    else if (!px_equal(arch, px_distro_fetch_arch()))
        r = px_fail(e, PX_E_BASE, 0, "the lock '%s' is of %s, and this machine is %s", path, arch,
                    px_distro_fetch_arch() ? px_distro_fetch_arch() : "unknown");
    free(base);
    free(arch);
    b->locked = r == 0;
    return r;
}

/* The lock of a base in the store. 1: it has none. */
static int kept_lock(struct px_sandbox *s, const struct px_base *base, struct px_buf *out, struct px_err *e)
{
    const char *hex = px_document_text(base->record, "lock");
    struct px_oid oid;
    if (!hex || px_hash_oid_parse(hex, false, &oid) < 0)
        return 1;
    return px_blob_read(s->store, &oid, PX_LOCK_MAX, out, e);
}

int px_distro_base_packages(struct px_sandbox *s, const struct px_base *base, struct px_packages *ret_list, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_LOCK_MAX);
    px_auto_free char *name = NULL;
    px_auto_free char *arch = NULL;
    int r = kept_lock(s, base, &text, e);
    return r != 0 ? r : px_packages_read(px_buf_text(&text), text.len, ret_list, &name, &arch, e);
}

static int lock_of(struct build *b, const struct px_base *base, struct px_err *e)
{
    int r = px_distro_base_packages(b->s, base, &b->packages, e);
    if (r < 0)
        return -1;
    if (r > 0)
        return px_fail(e, PX_E_BASE, 0, "the base '%s' was imported: px cannot build it again", base->name);
    b->locked = true;
    b->expected = base->oid;
    return 0;
}

/* ---- one that is there ---- */

static char *text_of(json_t *value)
{
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX);
    int r = value ? px_canonical(value, &text) : -ENOMEM;
    json_decref(value);
    return r < 0 ? NULL : px_buf_take(&text);
}

static char *lock_text(const struct px_base_row *row, const struct px_packages *list)
{
    return text_of(px_packages_lock(list, row->name, px_distro_fetch_arch()));
}

/* Whether this version of px would build it from this lock. */
static bool is_made_of(const struct px_base *base, const struct px_base_row *row, const struct px_oid *lock)
{
    uint64_t version = 0;
    return px_equal(px_document_text(base->record, "lock"), lock->hex) && px_equal(base->name, row->name) &&
           px_document_number(base->record, "px_base_version", INT32_MAX, &version) == 1 &&
           version == (uint64_t)row->version;
}

struct sought {
    struct px_sandbox *s;
    const struct px_base_row *row;
    struct px_oid lock;
    struct px_base base;        /* found */
};

static int look_at(struct sought *sought, const char *name)
{
    struct px_err ignored = {0};
    struct px_base base = {0};
    if (px_catalog_base_find(sought->s->store, name, &base, &ignored) != 0)
        return 0;
    if (!is_made_of(&base, sought->row, &sought->lock) || !px_tree_has(sought->s->store, &base.tree)) {
        px_catalog_base_done(&base);
        return 0;
    }
    sought->base = base;
    return 1;
}

static int look_at_record(void *user, enum px_record_kind kind, const struct px_oid *id)
{
    (void)kind;
    return look_at(user, id->hex);
}

/* Finds a base by its expected name, else by its content. 0, 1: there is none. */
static int find_made_of(struct px_sandbox *s, const struct px_base_row *row, const struct px_packages *list,
                        const char *place, struct px_base *ret_base, struct px_err *e)
{
    px_auto_free char *text = lock_text(row, list);
    struct sought sought = {.s = s, .row = row};
    if (!text || px_hash_bytes(text, strlen(text), &sought.lock) < 0)
        return px_no_memory(e);
    int r = look_at(&sought, place);
    r = r ? r : px_record_each(s->store, PX_RECORD_BASE, look_at_record, &sought, e);
    if (r > 0)
        *ret_base = sought.base;
    return r < 0 ? -1 : !r;
}

/* ---- building ---- */

static int fetch(struct build *b, int scratch, struct px_err *e)
{
    const char *wants[WANTS_MAX] = {0};
    struct px_fetch f = {.sandbox = b->s, .base = b->row, .scratch = scratch, .installed = -EBADF};
    if (b->locked)
        return px_distro_fetch_locked(&f, &b->packages, e);
    size_t count = 0;
    for (const char *at = b->row->wants; *at && count < WANTS_MAX - 1; at += strlen(at) + 1)
        wants[count++] = at;
    return px_distro_fetch_packages(&f, wants, &b->packages, e);
}

static int record(struct build *b, const struct px_layer *layer, const struct px_oid *tree, char **ret_json,
                  struct px_err *e)
{
    const struct px_packages *list = &b->packages;
    px_auto_free char *lock = lock_text(b->row, list);
    px_auto_free char *names = text_of(px_packages_names(list));
    px_auto_free struct px_oid *debs = calloc(list->count, sizeof *debs);
    px_auto_free char *json = NULL;
    struct px_oid base;
    if (!lock || !names || !debs)
        return px_no_memory(e);
    for (size_t i = 0; i < list->count; i++)
        debs[i] = list->items[i].sha256;
    struct px_base_facts facts = {.name = b->row->name,
                                  .place = b->place,
                                  .variant = b->row->variant,
                                  .tree = *tree,
                                  .layer = layer,
                                  .packages = names,
                                  .blobs = debs,
                                  .blob_count = list->count,
                                  .lock = lock};
    if (px_catalog_base_record(b->s->store, &facts, &base, &json, e) < 0)
        return -1;
    if (*b->expected.hex && !px_hash_oid_equal(&base, &b->expected)) {
        (void)px_name_put(b->s->store, PX_RECORD_BASE, b->place ? b->place : b->row->name, &b->expected, NULL);
        (void)px_fail(e, PX_E_BUILD, 0, "the same packages gave another base: %s instead of %s", base.hex,
                      b->expected.hex);
        return px_why(
            e, "A package does not install the same way twice, or this px builds differently than the one before.");
    }
    *ret_json = px_take(&json);
    return 0;
}

static int build_in(struct build *b, int scratch, char **ret_json, struct px_err *e)
{
    struct px_layer layer;
    struct px_oid tree;
    if (fetch(b, scratch, e) < 0)
        return -1;
    struct px_setup setup = {.sandbox = b->s, .packages = &b->packages, .scratch = scratch};
    if (px_setup_base(&setup, &layer, &tree, e) < 0)
        return -1;
    return record(b, &layer, &tree, ret_json, e);
}

static int with_member(const struct px_base *base, const char *member, bool value, char **ret_json, struct px_err *e)
{
    json_t *copy = json_copy(base->record);
    if (copy)
        (void)json_object_del(copy, "refs");
    if (!copy || json_object_set_new(copy, member, json_boolean(value)) < 0) {
        json_decref(copy);
        return px_no_memory(e);
    }
    *ret_json = text_of(copy);
    return *ret_json ? 0 : px_no_memory(e);
}

/* The build uses px_tree_begin although no tree results: it gives one builder at a time, and a directory that is
 * removed when the builder ends or dies. */
static int scratch_begin(struct build *b, struct px_tree_build **ret_scratch, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(256);
    struct px_oid id;
    px_buf_printf(&words, "build base %s", b->row->name);
    if (words.err < 0 || px_hash_bytes(words.data, words.len, &id) < 0)
        return px_no_memory(e);
    return px_tree_begin(b->s->store, &id, ret_scratch, e);
}

/* Checks again, with the lock held, whether the base exists: 1 and the answer. */
static int done_already(struct build *b, const struct px_base_build *how, char **ret_json, struct px_err *e)
{
    struct px_base base = {0};
    int r = px_catalog_base_find(b->s->store, b->row->name, &base, e);
    if (r < 0 && how->force && (e->code == PX_E_RECORD || e->code == PX_E_SANDBOX_FORMAT))
        return 0;               /* the record is unreadable: build from today's packages and move the name */
    if (r != 0)
        return r < 0 ? -1 : 0;
    if (how->force && !how->lock)
        r = lock_of(b, &base, e);
    else if (!how->lock)
        r = with_member(&base, "cached", true, ret_json, e) < 0 ? -1 : 1;
    px_catalog_base_done(&base);
    return r;
}

static int build(struct build *b, const struct px_base_build *how, char **ret_json, struct px_err *e)
{
    struct px_tree_build *scratch = NULL;
    if (how->lock && read_lock(how->lock, b, e) < 0)
        return -1;
    if (scratch_begin(b, &scratch, e) < 0)
        return -1;
    int r = done_already(b, how, ret_json, e);
    if (r == 0)
        r = build_in(b, px_tree_build_fd(scratch), ret_json, e);
    px_tree_drop(scratch);
    return r < 0 ? -1 : 0;
}

int px_sandbox_base_build(struct px_sandbox *s, const char *name, const struct px_base_build *how, char **ret_json,
                          struct px_err *e)
{
    PX_ERR(e);
    static const struct px_base_build plain = {0};
    struct build b = {.s = s};
    if (find_row(name, &b.row, e) < 0)
        return -1;
    int r = build(&b, how ? how : &plain, ret_json, e);
    px_packages_done(&b.packages);
    return r;
}

/* ---- by its packages ---- */

/* Gives it the name, unless it already has it. */
static int call_it(struct px_sandbox *s, const char *place, const struct px_base *base, struct px_err *e)
{
    struct px_oid now;
    int r = px_name_get(s->store, PX_RECORD_BASE, place, &now, e);
    if (r < 0 || (r == 0 && px_hash_oid_equal(&now, &base->oid)))
        return r;
    return px_name_put(s->store, PX_RECORD_BASE, place, &base->oid, e);
}

/* 0, 1: not here, -1. */
static int take_known(struct build *b, bool plan, struct px_base *ret_base, struct px_err *e)
{
    struct px_base base = {0};
    int r = find_made_of(b->s, b->row, &b->packages, b->place, &base, e);
    if (r == 0 && !plan)
        r = call_it(b->s, b->place, &base, e);
    if (r == 0)
        *ret_base = base;
    else
        px_catalog_base_done(&base);
    return r;
}

/* The archive's current packages may be those of an existing base. */
static int make_in(struct build *b, int scratch, struct px_base *ret_base, struct px_err *e)
{
    px_auto_free char *json = NULL;
    if (!b->locked && fetch(b, scratch, e) < 0)
        return -1;
    int r = take_known(b, false, ret_base, e);
    if (r <= 0)
        return r;
    b->locked = true;
    return build_in(b, scratch, &json, e) < 0 ? -1 : px_catalog_base_need(b->s->store, b->place, ret_base, e);
}

int px_distro_base_make(struct px_sandbox *s, const struct px_distro_base_make *how, struct px_base *ret_base, struct px_err *e)
{
    struct build b = {.s = s, .row = how->row, .place = how->place, .locked = how->packages != NULL};
    struct px_tree_build *scratch = NULL;
    if (how->packages && px_packages_copy(how->packages, &b.packages) < 0) {
        px_packages_done(&b.packages);
        return px_no_memory(e);
    }
    int r = how->packages ? take_known(&b, how->plan, ret_base, e) : 1;
    if (r == 1 && !how->plan) {
        r = scratch_begin(&b, &scratch, e) < 0 ? -1 : make_in(&b, px_tree_build_fd(scratch), ret_base, e);
        px_tree_drop(scratch);
    }
    px_packages_done(&b.packages);
    return r;
}

static int make_again(struct px_sandbox *s, const struct px_base_row *row, const struct px_packages *list, int scratch,
                      struct px_layer *ret_layer, struct px_err *e)
{
    const struct px_fetch f = {.sandbox = s, .base = row, .scratch = scratch, .installed = -EBADF};
    const struct px_setup setup = {.sandbox = s, .packages = list, .scratch = scratch};
    struct px_oid tree;
    return px_distro_fetch_locked(&f, list, e) < 0 ? -1 : px_setup_base(&setup, ret_layer, &tree, e);
}

int px_distro_base_again(struct px_sandbox *s, const struct px_base *base, struct px_err *e)
{
    struct build b = {.s = s, .row = px_bases_find(base->name)};
    struct px_tree_build *scratch = NULL;
    struct px_layer layer;
    int r = b.row && b.row->suite ? px_distro_base_packages(s, base, &b.packages, e) : 1;
    if (r == 0) {
        r = scratch_begin(&b, &scratch, e) < 0
                ? -1
                : make_again(s, b.row, &b.packages, px_tree_build_fd(scratch), &layer, e);
        px_tree_drop(scratch);
    }
    px_packages_done(&b.packages);
    if (r != 0 || px_hash_oid_equal(&layer.diff_id, &base->layer.diff_id))
        return r;
    (void)px_fail(e, PX_E_SANDBOX_FORMAT, 0, "the packages of base '%s' gave another base this time", base->name);
    (void)px_why(e, "A package does not install the same way twice, "
                    "or this px builds differently than the one before.");
    return px_differ(s->store, "base", &base->layer, &layer, e);
}

/* ---- the others ---- */

struct listing {
    struct px_sandbox *s;
    json_t *out;
    struct px_err *e;
};

static int list_one(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    struct listing *l = user;
    struct px_base base = {0};
    if (kind != PX_RECORD_BASE)
        return 0;
    int r = px_catalog_base_find(l->s->store, id->hex, &base, l->e);
    if (r != 0)
        return r < 0 ? -1 : 0;
    json_t *row = json_copy(base.record);
    r = row && json_object_del(row, "refs") <= 0 && json_object_set_new(row, "name", json_string(name)) == 0 ? 0 : -1;
    (void)json_object_set_new(row, "packages",
                              json_integer((json_int_t)json_array_size(json_object_get(base.record, "packages"))));
    if (json_array_append_new(l->out, row) < 0 || r < 0)
        r = px_no_memory(l->e);
    px_catalog_base_done(&base);
    return r;
}

static int add_known(json_t *out)
{
    const struct px_base_row *row;
    for (size_t i = 0; (row = px_bases_at(i)); i++)
        if (json_array_append_new(out, json_pack("{sbssss}", "can_build", row->suite != NULL, "name", row->name,
                                                 "variant", row->variant)) < 0)
            return -1;
    return 0;
}

int px_sandbox_base_list(struct px_sandbox *s, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct listing l = {.s = s, .out = json_array(), .e = e};
    px_auto(px_document) json_t *known = json_array();
    px_auto(px_document) json_t *bases = l.out;
    if (!bases || !known || add_known(known) < 0)
        return px_no_memory(e);
    if (px_name_each(s->store, list_one, &l, e) != 0)
        return -1;
    *ret_json = text_of(json_pack("{sOsO}", "bases", bases, "known", known));
    return *ret_json ? 0 : px_no_memory(e);
}

int px_sandbox_base_lock(struct px_sandbox *s, const char *name, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf text = PX_BUF(PX_LOCK_MAX);
    struct px_base base = {0};
    if (px_catalog_base_need(s->store, name, &base, e) < 0)
        return -1;
    int r = kept_lock(s, &base, &text, e);
    px_catalog_base_done(&base);
    if (r > 0)
        return px_fail(e, PX_E_BASE, 0, "the base '%s' was imported and has no lock", name);
    *ret_json = r < 0 ? NULL : px_buf_take(&text);
    return *ret_json ? 0 : -1;
}

/* Removes the name, and the record unless another name refers to it. Images built on it keep what they need. */
struct others {
    const char *name;
    struct px_oid oid;
};

static int is_other(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    const struct others *o = user;
    return kind == PX_RECORD_BASE && px_hash_oid_equal(id, &o->oid) && !px_equal(name, o->name);
}

int px_sandbox_base_remove(struct px_sandbox *s, const char *name, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct px_base base = {0};
    struct others others = {.name = name};
    if (px_catalog_base_need(s->store, name, &base, e) < 0)
        return -1;
    others.oid = base.oid;
    bool by_name = px_hash_oid_parse(name, false, &(struct px_oid){0}) < 0;
    int named = px_name_each(s->store, is_other, &others, e);
    int r = named < 0 || (by_name && px_name_remove(s->store, PX_RECORD_BASE, name, e) < 0) ||
                    (named == 0 && px_record_remove(s->store, PX_RECORD_BASE, &base.oid, e) < 0)
                ? -1
                : with_member(&base, "removed", true, ret_json, e);
    px_catalog_base_done(&base);
    return r;
}
