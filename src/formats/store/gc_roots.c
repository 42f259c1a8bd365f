/* Roots: records, their names, and held leases. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "store/gc.h"

struct look {
    struct px_store *store;
    const struct px_gc *gc;
    struct px_gc_roots *roots;
    struct px_err *e;
};

/* Grows a list; NULL without memory. */
static void *one_more(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t more = *room ? *room * 2 : 32;
    void *grown = realloc(items, more * size);
    *room = grown ? more : *room;
    return grown;
}

/* ---- names ---- */

static int add_gone(struct look *l, const char *name)
{
    struct px_gc_roots *roots = l->roots;
    void *grown = one_more(roots->gone, roots->gone_count, &roots->gone_room, sizeof *roots->gone);

    if (!grown)
        return px_no_memory(l->e);
    roots->gone = grown;
    roots->gone[roots->gone_count] = strdup(name);
    return roots->gone[roots->gone_count] ? (roots->gone_count++, 0) : px_no_memory(l->e);
}

static int look_at_name(void *user, const char *file)
{
    struct look *l = user;
    struct px_name named;
    struct px_oid oid;
    struct stat st;

    if (px_hash_oid_parse(file, false, &oid) < 0)
        return px_fail(l->e, PX_E_RECORD, 0, "'%.80s' in '%s/names' is not a name", file, l->store->path);
    int r = px_name_read(l->store, file, &named, l->e);
    if (r != 0)                 /* 1: names can be removed without the guard */
        return r < 0 ? -1 : 0;
    enum px_use use = (enum px_use)(PX_USE_BASE + (int)named.kind);
    bool lost =
        fstatat(px_store_records(l->store, named.kind), named.id.hex, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
    bool gone = !lost && l->gc->gone && l->gc->gone(named.kind, named.name);
    if (gone && add_gone(l, named.name) < 0)
        return -1;
    r = lost || gone ? px_lease_used_add(&l->roots->lost_names, use, &oid) : px_lease_used_add(&l->roots->named, use, &named.id);
    return r < 0 ? px_no_memory(l->e) : 0;
}

/* ---- leases ---- */

static int add_dead(struct look *l, const char *name)
{
    struct px_gc_roots *roots = l->roots;
    void *grown = one_more(roots->dead_leases, roots->dead_count, &roots->dead_room, sizeof *roots->dead_leases);

    if (!grown)
        return px_no_memory(l->e);
    roots->dead_leases = grown;
    if (px_fmt(roots->dead_leases[roots->dead_count], PX_RANDOM_NAME, "%s", name) >= 0) /* longer: not px's */
        roots->dead_count++;
    return 0;
}

static int look_at_lease(void *user, const char *name)
{
    struct look *l = user;
    px_auto_buf struct px_buf text = PX_BUF(64 << 20);
    px_auto_fd int fd = px_store_open_own(l->store->place[PX_PLACE_LEASES], name, O_RDONLY);

    if (fd == -ENOENT)          /* released meanwhile, which needs no guard */
        return 0;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return add_dead(l, name);
    int r = fd < 0 ? fd : px_store_small_read(l->store->place[PX_PLACE_LEASES], name, &text);
    if (r == -ENOENT)
        return 0;
    if (r >= 0)
        r = px_lease_parse(px_buf_text(&text), text.len, &l->roots->leased);
    if (r >= 0)
        return 0;
    (void)px_fail(l->e, r == -ENOMEM ? PX_E_MEMORY : PX_E_RECORD, r == -EINVAL ? 0 : r, "cannot read '%s/leases/%.80s'",
                  l->store->path, name);
    return px_fix(l->e, "End the process that holds it, or remove that file, then run the command again.");
}

static int look_in(struct look *l, enum px_place place, px_entry_seen *seen)
{
    l->e->code = 0;
    int r = px_store_entries(l->store, place, seen, l);
    if (r < 0 && l->e->code == 0)
        (void)px_fail(l->e, PX_E_RECORD, r, "cannot read '%s/%s'", l->store->path, px_store_place_name(place));
    return r < 0 ? -1 : 0;
}

int px_store_in_use(struct px_store *store, const struct px_oid *object, struct px_err *e)
{
    static const struct px_gc none;
    struct px_err mine = {0};
    struct px_gc_roots roots = {0};
    struct look look = {store, &none, &roots, e ? e : &mine};
    px_auto_fd int guard = px_store_guard_take(store, true, look.e);

    if (guard < 0)
        return -1;
    px_lease_session_forget(store);
    int r = look_in(&look, PX_PLACE_LEASES, look_at_lease);
    bool used = px_lease_used_has(&roots.leased, PX_USE_TREE, object) || px_lease_used_has(&roots.leased, PX_USE_BLOB, object);
    px_gc_roots_done(&roots);
    return r < 0 ? -1 : used;
}

/* ---- records ---- */

/* Whether the record itself is broken, so that nobody can use it. A lack of memory or descriptors here is not that. */
static bool is_none(const struct px_err *e)
{
    static const int wrong[] = {0, ENOENT, ENOTDIR, EINVAL, EFBIG, ELOOP};
    bool found = false;

    for (size_t i = 0; i < PX_COUNT_OF(wrong); i++)
        found |= e->sys == wrong[i];
    return found && e->code == PX_E_RECORD;
}

static void later(int64_t *sec, int dir, const char *path)
{
    struct stat st;

    if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtim.tv_sec > *sec)
        *sec = st.st_mtim.tv_sec;
}

static int64_t used_sec(const struct px_store *store, const struct px_gc_record *record)
{
    char path[96];
    int64_t sec = INT64_MIN;

    if (px_fmt(path, sizeof path, "%s/manifest.json", record->id.hex) >= 0)
        later(&sec, px_store_records(store, record->kind), path);
    for (size_t i = 0; i < record->refs.tree_count; i++)
        if (px_fmt(path, sizeof path, "%s/complete", record->refs.trees[i].hex) >= 0)
            later(&sec, store->place[PX_PLACE_TREES], path);
    return sec;
}

static int look_at_record(void *user, enum px_record_kind kind, const struct px_oid *id)
{
    struct look *l = user;
    struct px_gc_roots *roots = l->roots;
    struct px_gc_record record = {.kind = kind, .id = *id};
    enum px_use use = (enum px_use)(PX_USE_BASE + (int)kind);
    void *grown = one_more(roots->records, roots->count, &roots->room, sizeof *roots->records);

    if (!grown)
        return px_no_memory(l->e);
    roots->records = grown;
    int r = px_record_refs(l->store, kind, id, &record.refs, l->e);
    bool none = r < 0 && l->gc->unnamed && is_none(l->e);
    if (r != 0 && !none)
        return r < 0 ? -1 : 0;
    record.held = !none && (px_lease_used_has(&roots->named, use, id) || px_lease_used_has(&roots->leased, use, id));
    record.used_sec = used_sec(l->store, &record);
    roots->records[roots->count++] = record;
    return 0;
}

static int compare_records(const void *a, const void *b)
{
    const struct px_gc_record *x = a, *y = b;

    if (x->used_sec != y->used_sec)
        return x->used_sec < y->used_sec ? -1 : 1;
    return x->kind != y->kind ? (int)y->kind - (int)x->kind : strcmp(x->id.hex, y->id.hex);
}

/* ---- all of them ---- */

int px_gc_roots(struct px_store *store, const struct px_gc *gc, struct px_gc_roots *ret_roots, struct px_err *e)
{
    struct px_err mine = {0};
    struct px_gc_roots roots = {0};
    struct look look = {store, gc, &roots, e ? e : &mine};
    int r = look_in(&look, PX_PLACE_NAMES, look_at_name);

    if (r >= 0)
        r = look_in(&look, PX_PLACE_LEASES, look_at_lease);
    for (int kind = 0; r >= 0 && kind < PX_RECORD_KINDS; kind++)
        r = px_record_each(store, (enum px_record_kind)kind, look_at_record, &look, look.e);
    if (r < 0) {
        px_gc_roots_done(&roots);
        return -1;
    }
    if (roots.count)
        qsort(roots.records, roots.count, sizeof *roots.records, compare_records);
    *ret_roots = roots;
    return 0;
}

void px_gc_roots_done(struct px_gc_roots *roots)
{
    px_lease_used_done(&roots->named);
    px_lease_used_done(&roots->leased);
    px_lease_used_done(&roots->lost_names);
    for (size_t i = 0; i < roots->count; i++)
        px_record_refs_done(&roots->records[i].refs);
    for (size_t i = 0; i < roots->gone_count; i++)
        free(roots->gone[i]);
    free(roots->gone);
    free(roots->records);
    free(roots->dead_leases);
    *roots = (struct px_gc_roots){0};
}
