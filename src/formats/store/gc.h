/* store/gc.h - what one collection knows: roots, and what can go.
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
    bool held;                  /* it has a name, or a living process has just made it */
    int64_t used_sec;           /* when it was last used, as far as files tell */
    bool victim;
};

struct px_gc_roots {
    struct px_used_list named, leased;
    struct px_gc_record *records;       /* oldest use first */
    size_t count, room;
    struct px_used_list lost_names;     /* of records that are not there, or gone; use is the kind's, oid the file's name */
    char **gone;                        /* those that keep nothing any more */
    size_t gone_count, gone_room;
    char (*dead_leases)[PX_RANDOM_NAME];
    size_t dead_count, dead_room;
};

/* Under the guard, exclusive. Anything that cannot be read is an error: nothing may be removed then. But gc->unnamed takes
 * a record that is none for one that needs nothing. */
int px_gc_roots(struct px_store *store, const struct px_gc *gc, struct px_gc_roots *ret_roots, struct px_err *e);
void px_gc_roots_done(struct px_gc_roots *roots);
