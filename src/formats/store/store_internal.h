/* store/store_internal.h - what the files of the store share.
 *
 * Why:     every file of the store writes in the same way (tmp, fsync, rename, fsync) and takes the same lock.
 * Owns:    struct px_store.
 * Mustn't: be included outside src/store. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "store/store.h"

enum px_place {
    PX_PLACE_BLOBS,
    PX_PLACE_TREES,
    PX_PLACE_NAMES,
    PX_PLACE_LEASES,
    PX_PLACE_LOCKS,
    PX_PLACE_SEEN,
    PX_PLACE_TMP,
    PX_PLACE_TRASH,
    PX_PLACE_CORRUPT,
    PX_PLACE_BASES,             /* the records, by kind: PX_PLACE_BASES + kind */
    PX_PLACE_IMAGES,
    PX_PLACE_ENVS,
    PX_PLACES
};

enum { PX_SMALL_MAX = 4 << 20, PX_RANDOM_NAME = 33 };
#define PX_NOTE_PREFIX "note-"         /* of files in seen/ that are notes */

/* What a lease can name. */
enum px_use { PX_USE_TREE, PX_USE_BLOB, PX_USE_BASE, PX_USE_IMAGE, PX_USE_ENV, PX_USES };

struct px_used {
    enum px_use use;
    struct px_oid oid;
};

struct px_used_list {
    struct px_used *items;      /* sorted if made by px_lease_used_add */
    size_t count, room;
};

struct px_store {
    int root, sandbox;          /* PX_HOME/store, PX_HOME/sandbox */
    int place[PX_PLACES];
    char path[PATH_MAX];        /* of root */
    /* Trees that were checked less than a second ago: one command asks for a tree more than once. */
    struct px_used_list checked;
    uint64_t checked_nsec;
    struct px_store_aside aside;
    unsigned asides;
    bool look_only;
    /* A lease of this handle, created when first needed. It keeps what the handle has put or found until the handle is
     * closed. */
    int session;                /* -EBADF: none yet */
    char session_name[PX_RANDOM_NAME];
    off_t session_size;
    struct px_used_list kept;
};

static inline int px_store_records(const struct px_store *store, enum px_record_kind kind)
{
    return store->place[PX_PLACE_BASES + kind];
}

/* The directory's name for messages: "blobs/sha256". */
const char *px_store_place_name(enum px_place place);

/* ---- lock.c: the lock of the whole store; closing the descriptor gives it back ---- */

int px_store_guard_take(const struct px_store *store, bool exclusive, struct px_err *e);
/* flock with a deadline on px_now_nsec's clock; 0: no deadline. 0, -ETIMEDOUT, -errno. */
int px_store_flock_until(int fd, int operation, uint64_t until_nsec);

/* ---- write.c: whole or not there ---- */

/* A private directory in tmp/, locked while fd is open. */
struct px_tmp {
    int fd;                     /* -EBADF: none */
    char name[PX_RANDOM_NAME];
};
int px_store_tmp_make(const struct px_store *store, struct px_tmp *ret_tmp, struct px_err *e);
void px_store_tmp_done(const struct px_store *store, struct px_tmp *tmp);

void px_store_random_name(char out[PX_RANDOM_NAME]);
/* A new file in dir with these bytes, on the disk. -errno. */
int px_store_write_new(int dir, const char *name, const void *data, size_t size, mode_t mode);
int px_store_fsync(int fd);           /* -errno */
/* never replaces a file; -errno */
int px_store_rename_new(int from, const char *name, int to, const char *new_name);
/* Writes a small file in tmp/, fsyncs it, and renames it over the old one. */
int px_store_small_put(const struct px_store *store, enum px_place place, const char *name, const void *data, size_t size,
                 struct px_err *e);
/* Reads a regular file of ours of at most PX_SMALL_MAX bytes. -errno; -EINVAL: another kind of file. */
int px_store_small_read(int dir, const char *name, struct px_buf *out);
/* Opens a regular file that we own; never blocks, follows no link. -errno, -EINVAL. */
int px_store_open_own(int dir, const char *name, int flags);

/* Whether this process lacks memory or descriptors: then the error says nothing about the stored object. */
bool px_store_lacks(const struct px_err *e);

/* Moves it to corrupt/, with a line of explanation for `px sandbox status`. */
void px_store_quarantine(const struct px_store *store, enum px_place place, const char *name);
/* Moves it to trash/. -errno. */
int px_store_trash(const struct px_store *store, enum px_place place, const char *name);
void px_store_trash_empty(const struct px_store *store, bool wait);
/* Removes what dead processes left in tmp/ and trash/. */
void px_store_sweep(const struct px_store *store);

/* Calls back for every name of a directory but "." and ".."; stops at the first non-zero return and returns it.
 * -errno. */
typedef int px_entry_seen(void *user, const char *name);
int px_store_entries(const struct px_store *store, enum px_place place, px_entry_seen *seen, void *user);

/* ---- lease.c ---- */

int px_lease_used_add(struct px_used_list *list, enum px_use use, const struct px_oid *oid);          /* once each; -errno */
bool px_lease_used_has(const struct px_used_list *list, enum px_use use, const struct px_oid *oid);
void px_lease_used_done(struct px_used_list *list);
/* The text of a lease; -EINVAL. */
int px_lease_parse(const char *text, size_t len, struct px_used_list *list);

/* Under the guard: protects the object from GC until the store is closed. */
int px_lease_session_keep(struct px_store *store, enum px_use use, const struct px_oid *oid, struct px_err *e);
/* Drops everything that is kept so far. */
void px_lease_session_forget(struct px_store *store);
void px_lease_session_end(struct px_store *store);

/* ---- blob.c, tree.c, record.c: what GC and check ask ---- */

bool px_blob_there(const struct px_store *store, const struct px_oid *oid, uint64_t *ret_size);
struct px_tree_complete {
    struct px_oid listing;
    uint64_t files, bytes;
};
/* 0; 1 if there is no such tree; -EINVAL if it is not a complete tree; -errno: could not be checked. Both may be
 * NULL. */
int px_tree_look(const struct px_store *store, const struct px_oid *id, struct px_tree_complete *ret_complete,
                 struct px_buf *about);
bool px_tree_there(const struct px_store *store, const struct px_oid *id);

/* The objects that a record refers to. */
struct px_refs {
    struct px_oid *blobs, *trees;
    size_t blob_count, tree_count;
};
int px_record_refs_parse(const char *text, size_t len, struct px_refs *ret_refs, char *ret_why,
                  size_t why_size); /* -errno and why */
void px_record_refs_done(struct px_refs *refs);
int px_record_refs(const struct px_store *store, enum px_record_kind kind, const struct px_oid *id,
                   struct px_refs *ret_refs, struct px_err *e);

/* Parses a name file; -EINVAL. name is at most PX_NAMED_MAX bytes and a NUL. */
enum { PX_NAMED_MAX = 512 };
struct px_name {
    enum px_record_kind kind;
    struct px_oid id;
    char name[PX_NAMED_MAX + 1];
};
int px_name_parse(const char *text, size_t len, struct px_name *ret_named);
int px_name_read(const struct px_store *store, const char *file, struct px_name *ret_named, struct px_err *e);

/* Checks that the files of a tree are unchanged; a changed tree is moved to corrupt/. 0, 1: it does not exist, 2: it
 * was moved now, -1. */
int px_tree_whole(struct px_store *store, const struct px_oid *id, struct px_err *e);
/* The same by reading every byte: 0 and their number. */
int px_tree_read_again(struct px_store *store, const struct px_oid *id, uint64_t *ret_bytes, struct px_err *e);
int px_tree_lost(const struct px_oid *id, int found, struct px_err *e);        /* the error for 1 and 2 */

/* ---- listing.c ---- */

/* With `settle`, sets modes on disk to normal form. `paths` gets every directory and file, each followed by a NUL; it
 * and `out` may be NULL. */
enum { PX_PATHS_MAX = 512 << 20 };
int px_listing_make(int dirfd, bool settle, struct px_buf *out, struct px_buf *paths, struct px_listing *ret_listing,
                    struct px_err *e);

/* ---- seal.c ---- */

/* tree is trees/ID, or the build that becomes it. NULL: it has no valid seal. px_seal_end is in store.h. */
struct px_seal *px_seal_begin(int tree);
/* Writes the seal. The caller guarantees that nothing changed since `hashed`, or (NULL) that nobody else can see the
 * tree. If the write fails there is no seal, and the next use reads everything. */
void px_seal_put(const struct px_store *store, int tree, const struct px_buf *paths, const struct timespec *hashed);
