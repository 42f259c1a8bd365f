/* store/gc.h - the state of one collection: roots, and what can be removed.
 *
 * Why:     finding the roots and deciding what goes are two files.
 * Owns:    its lists.
 * Mustn't: be included outside src/store. */
#pragma once

#include "store/store_internal.h"

struct px_gc_record {
    enum px_record_kind kind;
    struct px_oid id;
    struct px_refs refs;
    bool held;                  /* it has a name, or a running process has just made it */
    int64_t used_sec;           /* last use, from file times */
    bool victim;
};

struct px_gc_roots {
    struct px_used_list named, leased;
    struct px_gc_record *records;       /* oldest use first */
    size_t count, room;
    struct px_used_list lost_names;     /* names of missing or removed records; use is the kind, oid the file's name */
    char **gone;                        /* the names that gc->gone has given up */
    size_t gone_count, gone_room;
    char (*dead_leases)[PX_RANDOM_NAME];
    size_t dead_count, dead_room;
};

/* Under the guard, exclusive. Anything that cannot be read is an error: nothing may be removed then. But with
 * gc->unnamed an unreadable record counts as one that needs nothing. */
int px_gc_roots(struct px_store *store, const struct px_gc *gc, struct px_gc_roots *ret_roots, struct px_err *e);
void px_gc_roots_done(struct px_gc_roots *roots);
