/* Hashes everything in the store again, and counts it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "store/store_internal.h"

struct check {
    struct px_store *store;
    struct px_store_check *out;
    struct px_err *e;
};

static void tell(struct check *c, const char *fmt, const char *what, const char *name)
{
    char line[512];

    c->out->corrupt++;
    if (c->out->tell && px_fmt(line, sizeof line, fmt, what, name) >= 0)
        c->out->tell(c->out->user, line);
}

static void count(struct check *c, uint64_t *objects, uint64_t bytes)
{
    (*objects)++;
    c->out->bytes += bytes;
    if (c->out->step)
        c->out->step(c->out->user, c->out->bytes);
}

/* ---- verify ---- */

static int foreign(struct check *c, enum px_place place, const char *name)
{
    px_store_quarantine(c->store, place, name);
    tell(c, "%s/%.200s is not something that px has stored", px_store_place_name(place), name);
    return 0;
}

static int verify_blob(void *user, const char *name)
{
    struct check *c = user;
    struct px_err e = {0};
    struct px_oid oid;
    uint64_t bytes = 0;

    if (px_hash_oid_parse(name, false, &oid) < 0)
        return foreign(c, PX_PLACE_BLOBS, name);
    (void)px_blob_there(c->store, &oid, &bytes);
    if (px_blob_verify(c->store, &oid, &e) < 0) {
        if (px_store_lacks(&e))
            return e.sys ? -e.sys : -ENOMEM;
        if (e.sys != ENOENT)    /* GC removed it meanwhile */
            tell(c, "%s %s is not what it is called", "blob", name);
        return 0;
    }
    count(c, &c->out->blobs, bytes);
    return 0;
}

static int verify_tree(void *user, const char *name)
{
    struct check *c = user;
    struct px_err e = {0};
    uint64_t bytes = 0;
    struct px_oid id;

    if (px_hash_oid_parse(name, false, &id) < 0)
        return foreign(c, PX_PLACE_TREES, name);
    int r = px_tree_read_again(c->store, &id, &bytes, &e);
    if (r < 0)
        return e.sys ? -e.sys : -ENOMEM;
    if (r == 0)
        count(c, &c->out->trees, bytes);
    if (r == 2)                 /* 1: it was removed meanwhile */
        tell(c, "%s %s is not what was stored", "tree", name);
    return 0;
}

/* A broken record is reported but not removed: without it GC would remove what it refers to. */
static int verify_record(void *user, enum px_record_kind kind, const struct px_oid *id)
{
    struct check *c = user;
    struct px_refs refs = {0};
    static const char *const words[PX_RECORD_KINDS] = {"base", "image", "env"};
    int r = px_record_refs(c->store, kind, id, &refs, NULL);

    if (r < 0)
        tell(c, "the manifest of %s %s cannot be read", words[kind], id->hex);
    for (size_t i = 0; i < refs.blob_count; i++)
        if (!px_blob_there(c->store, &refs.blobs[i], NULL))
            tell(c, "%s needs blob %s, which is not there", id->hex, refs.blobs[i].hex);
    for (size_t i = 0; i < refs.tree_count; i++)
        if (!px_tree_there(c->store, &refs.trees[i]))
            tell(c, "%s needs tree %s, which is not there", id->hex, refs.trees[i].hex);
    px_record_refs_done(&refs);
    return 0;
}

int px_store_verify(struct px_store *store, struct px_store_check *check, struct px_err *e)
{
    struct check c = {store, check, e};

    check->blobs = check->trees = check->bytes = check->corrupt = 0;
    int r = px_store_entries(store, PX_PLACE_BLOBS, verify_blob, &c);
    if (r >= 0)
        r = px_store_entries(store, PX_PLACE_TREES, verify_tree, &c);
    if (r < 0)
        return px_fail(e, PX_E_OBJECT, r, "cannot read the store in '%s'", store->path);
    for (int kind = 0; r >= 0 && kind < PX_RECORD_KINDS; kind++)
        r = px_record_each(store, (enum px_record_kind)kind, verify_record, &c, e);
    return r;
}

/* ---- measure ---- */

struct measure {
    const struct px_store *store;
    struct px_store_size *size;
};

static int measure_blob(void *user, const char *name)
{
    struct measure *m = user;
    struct px_oid oid;
    uint64_t bytes = 0;

    if (px_hash_oid_parse(name, false, &oid) == 0 && px_blob_there(m->store, &oid, &bytes)) {
        m->size->blobs++;
        m->size->blob_bytes += bytes;
    }
    return 0;
}

static int measure_tree(void *user, const char *name)
{
    struct measure *m = user;
    struct px_tree_complete complete;
    struct px_oid id;

    if (px_hash_oid_parse(name, false, &id) == 0 && px_tree_look(m->store, &id, &complete, NULL) == 0) {
        m->size->trees++;
        m->size->tree_bytes += complete.bytes;
    }
    return 0;
}

static int measure_lease(void *user, const char *name)
{
    struct measure *m = user;
    px_auto_fd int fd = px_store_open_own(m->store->place[PX_PLACE_LEASES], name, O_RDONLY);

    m->size->leases += fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
    return 0;
}

static int count_one(void *user, const char *name)
{
    uint64_t *count = user;

    (void)name;
    (*count)++;
    return 0;
}

int px_store_measure(struct px_store *store, struct px_store_size *ret_size, struct px_err *e)
{
    struct px_store_size size = {0};
    struct measure m = {store, &size};
    const struct {
        enum px_place place;
        px_entry_seen *seen;
        void *user;
    } rows[] = {
        {PX_PLACE_BLOBS, measure_blob, &m},         {PX_PLACE_TREES, measure_tree, &m},
        {PX_PLACE_LEASES, measure_lease, &m},       {PX_PLACE_BASES, count_one, &size.bases},
        {PX_PLACE_IMAGES, count_one, &size.images}, {PX_PLACE_ENVS, count_one, &size.envs},
        {PX_PLACE_CORRUPT, count_one, &size.corrupt},
    };

    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        int r = px_store_entries(store, rows[i].place, rows[i].seen, rows[i].user);
        if (r < 0)
            return px_fail(e, PX_E_STORE_WRITE, r, "cannot read '%s' of the store in '%s'",
                           px_store_place_name(rows[i].place), store->path);
    }
    *ret_size = size;
    return 0;
}
