/* Removing what nothing refers to.
 *
 * (1) GC decides under the exclusive guard: no other process is between finding an object and recording its use.
 * (2) If any root cannot be read, nothing is removed.
 * (3) Records are removed, and the removal is fsynced, before the objects that they refer to.
 * (4) Objects are renamed to trash/, which needs no free space, and deleted after the guard is released. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "store/gc.h"

struct victim {
    struct px_used what;
    uint64_t bytes;
};

/* An object that records need, and how many records do. */
struct object {
    uint64_t count, bytes;
};

struct collection {
    struct px_store *store;
    struct px_gc *gc;
    struct px_gc_roots roots;
    struct px_used_list needed;         /* by records and leases */
    struct object *objects;             /* of each in `needed` */
    struct victim *victims;
    size_t count, room;
};

static const enum px_place place_of[PX_USES] = {PX_PLACE_TREES, PX_PLACE_BLOBS, PX_PLACE_BASES, PX_PLACE_IMAGES,
                                                   PX_PLACE_ENVS};
static const char *const words[PX_USES] = {"tree", "blob", "base", "image", "env"};

static bool is_record(enum px_use use)
{
    return use >= PX_USE_BASE;
}

/* ---- sizes ---- */

static uint64_t size_of(const struct px_store *store, const struct px_used *what)
{
    struct px_tree_complete complete;
    uint64_t bytes = 0;

    if (what->use == PX_USE_BLOB)
        return px_blob_there(store, &what->oid, &bytes) ? bytes : 0;
    return what->use == PX_USE_TREE && px_tree_look(store, &what->oid, &complete, NULL) == 0 ? complete.bytes : 0;
}

/* ---- which records ---- */

static bool old_enough(const struct px_gc *gc, const struct px_gc_record *record)
{
    struct timespec now;

    if (gc->min_age_sec == 0)
        return true;
    return clock_gettime(CLOCK_REALTIME, &now) == 0 && record->used_sec <= now.tv_sec &&
           (uint64_t)(now.tv_sec - record->used_sec) >= gc->min_age_sec;
}

/* Calls f for every object that the record needs. */
static int each_ref(struct collection *c, const struct px_gc_record *record,
                    int (*f)(struct collection *c, enum px_use use, const struct px_oid *oid))
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < record->refs.blob_count; i++)
        r = f(c, PX_USE_BLOB, &record->refs.blobs[i]);
    for (size_t i = 0; r == 0 && i < record->refs.tree_count; i++)
        r = f(c, PX_USE_TREE, &record->refs.trees[i]);
    return r;
}

static int need(struct collection *c, enum px_use use, const struct px_oid *oid)
{
    return px_lease_used_add(&c->needed, use, oid);
}

static struct object *object_of(struct collection *c, enum px_use use, const struct px_oid *oid)
{
    size_t low = 0, high = c->needed.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct px_used *item = &c->needed.items[middle];
        int order = use != item->use ? (int)use - (int)item->use : strcmp(oid->hex, item->oid.hex);
        if (order == 0)
            return &c->objects[middle];
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return NULL;
}

static int count_up(struct collection *c, enum px_use use, const struct px_oid *oid)
{
    object_of(c, use, oid)->count++;
    return 0;
}

static int count_down(struct collection *c, enum px_use use, const struct px_oid *oid)
{
    object_of(c, use, oid)->count--;
    return 0;
}

static int build_objects(struct collection *c)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < c->roots.count; i++)
        r = each_ref(c, &c->roots.records[i], need);
    for (size_t i = 0; r == 0 && i < c->roots.leased.count; i++)
        r = px_lease_used_add(&c->needed, c->roots.leased.items[i].use, &c->roots.leased.items[i].oid);
    c->objects = r == 0 ? calloc(c->needed.count + 1, sizeof *c->objects) : NULL;
    if (!c->objects)
        return -ENOMEM;
    for (size_t i = 0; i < c->roots.count; i++)
        (void)each_ref(c, &c->roots.records[i], count_up);
    for (size_t i = 0; i < c->roots.leased.count; i++)
        (void)count_up(c, c->roots.leased.items[i].use, &c->roots.leased.items[i].oid);
    for (size_t i = 0; c->gc->max_bytes && i < c->needed.count; i++)
        c->objects[i].bytes = size_of(c->store, &c->needed.items[i]);
    return 0;
}

static uint64_t live_bytes(const struct collection *c)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < c->needed.count; i++)
        bytes += c->objects[i].count ? c->objects[i].bytes : 0;
    return bytes;
}

static void choose_records(struct collection *c)
{
    for (size_t i = 0; i < c->roots.count; i++) {
        struct px_gc_record *record = &c->roots.records[i];
        bool too_large = c->gc->max_bytes && live_bytes(c) > c->gc->max_bytes;
        if ((!c->gc->unnamed && !too_large) || record->held || !old_enough(c->gc, record))
            continue;
        record->victim = true;
        (void)each_ref(c, record, count_down);
    }
}

/* ---- victims ---- */

static int add_victim(struct collection *c, enum px_use use, const struct px_oid *oid)
{
    if (c->count == c->room) {
        size_t room = c->room ? c->room * 2 : 64;
        struct victim *grown = realloc(c->victims, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        c->victims = grown;
        c->room = room;
    }
    struct victim v = {.what = {use, *oid}};
    v.bytes = size_of(c->store, &v.what);
    c->victims[c->count++] = v;
    return 0;
}

struct look {
    struct collection *c;
    enum px_use use;
};

static int look_at(void *user, const char *name)
{
    struct look *l = user;
    struct px_oid oid;

    if (px_hash_oid_parse(name, false, &oid) < 0)    /* not made by px: leave it */
        return 0;
    const struct object *object = object_of(l->c, l->use, &oid);
    return object && object->count > 0 ? 0 : add_victim(l->c, l->use, &oid);
}

/* Sorts records first, then by kind and name, so that a dry run and a real one report the same order. */
static int compare_victims(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;

    return x->what.use != y->what.use ? (int)y->what.use - (int)x->what.use : strcmp(x->what.oid.hex, y->what.oid.hex);
}

static int choose(struct collection *c)
{
    struct look blobs = {c, PX_USE_BLOB}, trees = {c, PX_USE_TREE};
    int r = build_objects(c);

    if (r < 0)
        return r;
    choose_records(c);
    for (size_t i = 0; r == 0 && i < c->roots.count; i++)
        if (c->roots.records[i].victim)
            r = add_victim(c, (enum px_use)(PX_USE_BASE + (int)c->roots.records[i].kind), &c->roots.records[i].id);
    if (r == 0)
        r = px_store_entries(c->store, PX_PLACE_BLOBS, look_at, &blobs);
    if (r == 0)
        r = px_store_entries(c->store, PX_PLACE_TREES, look_at, &trees);
    if (r == 0 && c->count)
        qsort(c->victims, c->count, sizeof *c->victims, compare_victims);
    return r;
}

/* ---- removing ---- */

static int remove_all(struct collection *c, bool records)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < c->count; i++) {
        const struct px_used *what = &c->victims[i].what;
        if (is_record(what->use) != records)
            continue;
        r = px_store_trash(c->store, place_of[what->use], what->oid.hex);
        if (r == -ENOENT)
            r = 0;
    }
    return r;
}

static int remove_lock(void *user, const char *name)
{
    const struct px_store *store = user;
    px_auto_fd int fd = px_store_open_own(store->place[PX_PLACE_LOCKS], name, O_RDWR);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(store->place[PX_PLACE_LOCKS], name, 0);
    return 0;
}

struct emptied {
    const struct px_store *store;
    enum px_place place;
};

static int empty_one(void *user, const char *name)
{
    const struct emptied *emptied = user;

    if (emptied->place == PX_PLACE_SEEN && px_starts_with(name, PX_NOTE_PREFIX))
        return 0;               /* of an archive, not of the store */
    (void)px_store_trash(emptied->store, emptied->place, name);
    return 0;
}

/* Removes names without a record, and the leases and locks of dead processes. */
static void tidy(struct collection *c)
{
    const struct px_gc_roots *roots = &c->roots;
    struct emptied emptied[] = {{c->store, PX_PLACE_CORRUPT}, {c->store, PX_PLACE_SEEN}};

    for (size_t i = 0; i < roots->lost_names.count; i++)
        (void)unlinkat(c->store->place[PX_PLACE_NAMES], roots->lost_names.items[i].oid.hex, 0);
    for (size_t i = 0; i < roots->dead_count; i++)
        (void)unlinkat(c->store->place[PX_PLACE_LEASES], roots->dead_leases[i], 0);
    (void)px_store_entries(c->store, PX_PLACE_LOCKS, remove_lock, c->store);
    for (size_t i = 0; c->gc->unnamed && i < 2; i++)
        (void)px_store_entries(c->store, emptied[i].place, empty_one, &emptied[i]);
}

static int collect(struct collection *c)
{
    int r = remove_all(c, true);

    for (int kind = 0; r >= 0 && kind < PX_RECORD_KINDS; kind++)
        r = px_store_fsync(px_store_records(c->store, (enum px_record_kind)kind));
    if (r >= 0)
        r = remove_all(c, false);
    if (r >= 0)
        tidy(c);
    return r;
}

/* ---- all of it ---- */

static void tell(struct collection *c)
{
    struct px_gc *gc = c->gc;

    gc->names = c->roots.gone_count;
    gc->blobs = gc->trees = gc->records = gc->bytes = 0;
    for (size_t i = 0; gc->tell && i < c->roots.gone_count; i++)
        gc->tell(gc->user, "name", c->roots.gone[i], 0);
    for (size_t i = 0; i < c->count; i++) {
        const struct victim *v = &c->victims[i];
        gc->blobs += v->what.use == PX_USE_BLOB;
        gc->trees += v->what.use == PX_USE_TREE;
        gc->records += is_record(v->what.use);
        gc->bytes += v->bytes;
        if (gc->tell)
            gc->tell(gc->user, words[v->what.use], v->what.oid.hex, v->bytes);
    }
}

static int under_guard(struct collection *c, struct px_err *e)
{
    px_auto_fd int guard = px_store_guard_take(c->store, true, e);

    if (guard < 0)
        return -1;
    px_lease_session_forget(c->store);        /* GC itself uses no object now */
    if (px_gc_roots(c->store, c->gc, &c->roots, e) < 0)
        return -1;
    int r = choose(c);
    if (r >= 0 && !c->gc->dry_run)
        r = collect(c);
    return r < 0
               ? px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_STORE_WRITE, r, "cannot remove from '%s'", c->store->path)
               : 0;
}

int px_store_gc(struct px_store *store, struct px_gc *gc, struct px_err *e)
{
    struct collection c = {.store = store, .gc = gc};
    int r = under_guard(&c, e);

    if (!gc->dry_run) {
        px_store_trash_empty(store, true);
        px_store_sweep(store);
    }
    if (r >= 0)
        tell(&c);
    px_gc_roots_done(&c.roots);
    px_lease_used_done(&c.needed);
    free(c.objects);
    free(c.victims);
    return r;
}
