/* catalog/housekeeping.c - the store's own care: what is there, what can go, whether it is what it was. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <px/sandbox.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "catalog/catalog.h"

enum { ANSWER_MAX = 256 << 20 };

static int take_answer(struct px_buf *text, char **ret_json, struct px_err *e)
{
    (void)px_buf_putc(text, '\n');
    char *json = px_buf_take(text);

    if (!json)
        return px_no_memory(e);
    *ret_json = json;
    return 0;
}

/* ---- gc, clean ---- */

static void on_removed(void *user, const char *what, const char *id, uint64_t bytes)
{
    struct px_json *j = user;

    px_json_object(j, NULL);
    px_json_text(j, "kind", what);
    px_json_text(j, "id", id);
    px_json_uint(j, "bytes", bytes);
    px_json_end(j);
}

static int collect(struct px_sandbox *s, struct px_gc *gc, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &text};

    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_bool(&j, "dry_run", gc->dry_run);
    px_json_array(&j, "removed");
    gc->tell = on_removed;
    gc->user = &j;
    if (px_store_gc(s->store, gc, e) < 0)
        return -1;
    px_json_end(&j);
    px_json_uint(&j, "records", gc->records);
    px_json_uint(&j, "trees", gc->trees);
    px_json_uint(&j, "blobs", gc->blobs);
    px_json_uint(&j, "bytes", gc->bytes);
    px_json_end(&j);
    return take_answer(&text, ret_json, e);
}

static int read_bounds(const struct px_gc_request *how, struct px_gc *gc, struct px_err *e)
{
    uint64_t msec = 0;

    if (how->min_age && px_parse_msec(how->min_age, &msec) < 0)
        return px_fail(e, PX_E_VALUE, 0, "'%.100s' is not a time", how->min_age);
    if (how->max_size && px_parse_bytes(how->max_size, &gc->max_bytes) < 0)
        return px_fail(e, PX_E_VALUE, 0, "'%.100s' is not a size", how->max_size);
    if (how->min_age)
        gc->min_age_sec = msec / 1000 + (msec % 1000 != 0);
    return 0;
}

int px_sandbox_gc(struct px_sandbox *s, const struct px_gc_request *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    static const struct px_gc_request nothing;
    struct px_gc gc = {0};

    how = how ? how : &nothing;
    gc.dry_run = how->dry_run;
    gc.min_age_sec = how->min_age_sec;
    gc.max_bytes = how->max_bytes;
    return read_bounds(how, &gc, e) < 0 ? -1 : collect(s, &gc, ret_json, e);
}

/* Images and environments of a project have the name of its directory, the base that it pins that of its lock; other
 * bases are called by where they came from. */
static bool is_projects(enum px_record_kind kind, const char *name)
{
    const char *file = strrchr(name, '/');
    return *name == '/' && (kind != PX_RECORD_BASE || px_equal(file, "/px.lock") || px_equal(file, "/px.workspace.lock"));
}

/* One that cannot be looked at may be there. */
static bool is_gone(enum px_record_kind kind, const char *name)
{
    struct stat st;
    return is_projects(kind, name) && lstat(name, &st) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

int px_sandbox_clean(struct px_sandbox *s, bool dry_run, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct px_gc gc = {.dry_run = dry_run, .unnamed = true, .gone = is_gone};

    return collect(s, &gc, ret_json, e);
}

/* ---- list ---- */

struct listed {
    struct px_sandbox *s;
    struct px_json *j;
    struct px_oid id;           /* of the record whose names are looked for */
    bool gone;                  /* only those that clean would drop */
    struct px_err *e;
};

static int add_name(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id)
{
    struct listed *l = user;

    if (px_hash_oid_equal(id, &l->id) && (!l->gone || is_gone(kind, name)))
        px_json_text(l->j, NULL, name);
    return 0;
}

static int add_names(struct listed *l, const char *member, bool gone)
{
    l->gone = gone;
    px_json_array(l->j, member);
    int r = px_name_each(l->s->store, add_name, l, l->e);
    px_json_end(l->j);
    return r;
}

/* One that cannot be read is a row as well: it can be removed. */
static int add_record(void *user, enum px_record_kind kind, const struct px_oid *id)
{
    struct listed *l = user;
    uint64_t bytes = 0;

    l->id = *id;
    int size = px_record_size(l->s->store, kind, id, &bytes, l->e);
    if (size < 0 && l->e->code != PX_E_RECORD)
        return -1;
    int used = px_catalog_record_in_use(l->s, kind, id, l->e);
    if (used < 0 && l->e->code != PX_E_RECORD)         /* a lease that cannot be read may be of this */
        return -1;
    px_json_object(l->j, NULL);
    px_json_text(l->j, "id", id->hex);
    int r = add_names(l, "names", false) < 0 || add_names(l, "gone", true) < 0 ? -1 : 0;
    px_json_uint(l->j, "bytes", bytes);
    px_json_bool(l->j, "in_use", used != 0);
    px_json_bool(l->j, "readable", size >= 0);
    px_json_end(l->j);
    return r;
}

int px_sandbox_list(struct px_sandbox *s, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    static const char *const words[PX_RECORD_KINDS] = {"bases", "images", "envs"};
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &text};
    struct listed listed = {.s = s, .j = &j, .e = e};

    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    for (int kind = 0; kind < PX_RECORD_KINDS; kind++) {
        px_json_array(&j, words[kind]);
        if (px_record_each(s->store, (enum px_record_kind)kind, add_record, &listed, listed.e) < 0)
            return -1;
        px_json_end(&j);
    }
    px_json_end(&j);
    return take_answer(&text, ret_json, e);
}

/* ---- status ---- */

struct verifying {
    struct px_sandbox *s;
    struct px_json *j;
    uint64_t total;
};

static void on_finding(void *user, const char *line)
{
    const struct verifying *v = user;

    px_json_text(v->j, NULL, line);
}

static void on_step(void *user, uint64_t bytes)
{
    const struct verifying *v = user;

    if (v->s->progress.tell)
        v->s->progress.tell(v->s->progress.user, "verifying", bytes, v->total);
}

static int add_verified(struct px_sandbox *s, struct px_json *j, uint64_t total, struct px_err *e)
{
    struct verifying v = {s, j, total};
    struct px_store_check check = {.tell = on_finding, .step = on_step, .user = &v};

    px_json_object(j, "verified");
    px_json_array(j, "findings");
    if (px_store_verify(s->store, &check, e) < 0)
        return -1;
    px_json_end(j);
    px_json_uint(j, "blobs", check.blobs);
    px_json_uint(j, "trees", check.trees);
    px_json_uint(j, "bytes", check.bytes);
    px_json_uint(j, "corrupt", check.corrupt);
    px_json_end(j);
    return 0;
}

int px_sandbox_status(struct px_sandbox *s, bool verify, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf text = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &text};
    struct px_store_size size;

    if (px_store_measure(s->store, &size, e) < 0)
        return -1;
    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_text(&j, "store", px_store_path(s->store));
    if (!verify)
        px_json_null(&j, "verified");
    else if (add_verified(s, &j, size.blob_bytes + size.tree_bytes, e) < 0 || px_store_measure(s->store, &size, e) < 0)
        return -1;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"blobs", size.blobs},           {"blob_bytes", size.blob_bytes}, {"trees", size.trees},
        {"tree_bytes", size.tree_bytes}, {"bases", size.bases},           {"images", size.images},
        {"envs", size.envs},             {"leases", size.leases},         {"corrupt", size.corrupt},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        px_json_uint(&j, rows[i].name, rows[i].value);
    px_json_end(&j);
    return take_answer(&text, ret_json, e);
}
