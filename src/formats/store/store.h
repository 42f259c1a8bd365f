/* store/store.h - content by its hash: blobs, trees, records that refer to them, and leases of those in use.
 *
 *     PX_HOME/store/      version blobs/sha256/HEX trees/ID/{complete,seal,root/} names/HASH leases/UUID locks/ID seen/HASH
 *                         tmp/UUID/ trash/UUID/ corrupt/
 *     PX_HOME/sandbox/    bases/ID/manifest.json  images/ID/manifest.json  envs/ID/manifest.json     ("records")
 *
 * Why:     an environment is built once, identified by its content, shared by all its users, and never visible half
 *          done. After a kill or a power failure at any instruction every name refers to something complete, or does
 *          not exist.
 * Owns:    the directories above, all 0700 and on one file system.
 * Mustn't: trust a clock, a pid, or an earlier check of a file; follow a link; repair anything silently.
 *
 * Rules. Functions return 0 or -1 and fill *e, unless they say otherwise. A store belongs to one thread at a time; any number
 * of processes may use one at once. Locks are taken in this order: store, then object. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/hash.h"

struct px_buf;
struct px_err;
struct px_store;

/* home NULL: PX_HOME, else HOME/.px. Creates what is missing, checks owners and modes, and removes what dead processes
 * left. */
int px_store_open(const char *home, struct px_store **ret_store, struct px_err *e);
void px_store_close(struct px_store *store);
/* Called with one sentence: for a tree whose content has changed, and for the process that px has waited for longer
 * than a second. */
struct px_store_aside {
    void (*tell)(void *user, const char *line);
    void *user;
};
void px_store_on_aside(struct px_store *store, struct px_store_aside aside);
unsigned px_store_asides(const struct px_store *store);                 /* how many this handle has found */
/* This handle uses no objects: for trees it only checks whether they exist. */
void px_store_look_only(struct px_store *store, bool look_only);
/* Directories of the store, for callers that create files by descriptor. Borrowed. */
const char *px_store_path(const struct px_store *store);                /* "PX_HOME/store"; borrowed */

/* ---- blobs (blob.c) ---- */

struct px_blob_writer;

/* A new blob of at most max bytes. Written by px_blob_write, or by anybody through px_blob_writer_fd (then the bytes
 * are hashed at the end, in one more pass). Commit makes it durable and visible, or finds that it exists; `expect` (may
 * be NULL) is the id that it must have. Commit and drop free the writer, even on failure. */
int px_blob_begin(struct px_store *store, uint64_t max, struct px_blob_writer **ret_writer, struct px_err *e);
int px_blob_write(struct px_blob_writer *w, const void *data, size_t size, struct px_err *e);
int px_blob_writer_fd(struct px_blob_writer *w);
int px_blob_commit(struct px_blob_writer *w, const struct px_oid *expect, struct px_oid *ret_oid, uint64_t *ret_size, struct px_err *e);
void px_blob_drop(struct px_blob_writer *w);

int px_blob_put(struct px_store *store, const void *data, size_t size, struct px_oid *ret_oid, struct px_err *e);
bool px_blob_has(struct px_store *store, const struct px_oid *oid);
/* For reading; a regular file of ours. Its bytes are not checked: a caller that parses them hashes them as well, or
 * verifies first. */
int px_blob_open(struct px_store *store, const struct px_oid *oid, int *ret_fd, uint64_t *ret_size, struct px_err *e);
/* Reads all of it and checks its hash. A blob that does not match its name is moved to corrupt/ and is PX800. */
int px_blob_read(struct px_store *store, const struct px_oid *oid, size_t max, struct px_buf *out, struct px_err *e);
int px_blob_verify(struct px_store *store, const struct px_oid *oid, struct px_err *e);

/* {"kind":KIND,"payload":PAYLOAD} as canonical JSON; payload is canonical JSON already. The oid of an object is its blob's. */
int px_object_put(struct px_store *store, const char *kind, const char *payload, struct px_oid *ret_oid, struct px_err *e);

/* ---- one builder (lock.c) ---- */

struct px_store_lock;

/* The lock of an id, for building it: one process builds, the others wait (until the deadline; 0: no deadline) and then
 * find it done. The error names the holder, if known. */
int px_store_lock_take(struct px_store *store, const struct px_oid *id, uint64_t timeout_msec, struct px_store_lock **ret_lock, struct px_err *e);
void px_store_lock_drop(struct px_store_lock *lock);

/* ---- trees (tree.c) ---- */

/* A directory that becomes a tree. Begin takes the lock of the id and checks again: 1 if the tree exists (nothing to
 * build), 0 with a build whose directory is empty, -1. */
struct px_tree_build;
int px_tree_begin(struct px_store *store, const struct px_oid *id, struct px_tree_build **ret_build, struct px_err *e);
int px_tree_build_fd(const struct px_tree_build *build);                /* the directory to fill; borrowed */
/* Durable, then visible as trees/ID; about is kept in `complete` beside it (canonical JSON, may be NULL). */
int px_tree_commit(struct px_tree_build *build, const char *about, struct px_err *e);
void px_tree_drop(struct px_tree_build *build);                         /* removes it; NULL is fine */

/* Each of these first checks that the tree is unchanged (seal.c). A changed tree is moved to corrupt/ and counts as
 * missing. */
bool px_tree_has(struct px_store *store, const struct px_oid *id);
/* The root of a complete tree as an O_PATH descriptor, and its path for mounts. */
int px_tree_open(struct px_store *store, const struct px_oid *id, int *ret_fd, struct px_err *e);
int px_tree_path(struct px_store *store, const struct px_oid *id, char *out, size_t size, struct px_err *e);
/* The same check in the background: begin starts threads, end waits for them, returns whether the tree is unchanged,
 * and frees it. NULL or false: the functions above check it by reading everything. */
struct px_seal;
struct px_seal *px_tree_look_begin(struct px_store *store, const struct px_oid *id);
bool px_seal_end(struct px_seal *seal);
/* Whether there is a complete tree with this id; its files are not checked. */
bool px_tree_known(struct px_store *store, const struct px_oid *id);
/* The `about` that commit stored. */
int px_tree_about(struct px_store *store, const struct px_oid *id, struct px_buf *out, struct px_err *e);

/* The normal form of a directory as a listing: an array of
 * {"gid":0,"mode":M,"path":P,"sha256":H,"size":N,"type":"file","uid":0}, {..."type":"dir"},
 * {..."target":T,"type":"link"}, {..."target":FIRST,"type":"hardlink"}, canonical JSON, sorted by the bytes of the
 * path, no times, no extended attributes. Normal form on disk: mode & 01777, a directory has at least u=rwx and a file
 * u=r, set-id bits gone, owners ignored; anything but files, directories and links is an error that names it. Streams
 * into the hash; `out` may be NULL. */
struct px_listing {
    struct px_oid oid;          /* of the listing's bytes */
    uint64_t files, bytes;      /* entries of any type; bytes of the files, each once */
};
int px_listing_tree(int dirfd, struct px_buf *out, struct px_listing *ret_listing, struct px_err *e);

/* ---- records and names (record.c) ---- */

enum px_record_kind { PX_RECORD_BASE, PX_RECORD_IMAGE, PX_RECORD_ENV, PX_RECORD_KINDS };

/* sandbox/bases|images|envs/ID/manifest.json. It is one JSON object; what it needs is in its member
 * "refs": {"blobs": [HEX...], "trees": [ID...]}, all of which must be there already (checked). */
int px_record_put(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, const char *json, struct px_err *e);
/* PX_RECORD_MISSING if there is none: 1. */
int px_record_get(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, struct px_buf *out, struct px_err *e);
/* The size of everything that it needs; missing objects count as 0. 1: there is no such record. */
int px_record_size(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, uint64_t *ret_bytes, struct px_err *e);
int px_record_remove(struct px_store *store, enum px_record_kind kind, const struct px_oid *id, struct px_err *e);
/* Calls back for each; a non-zero return stops and is returned. */
typedef int px_record_seen(void *user, enum px_record_kind kind, const struct px_oid *id);
int px_record_each(struct px_store *store, enum px_record_kind kind, px_record_seen *seen, void *user, struct px_err *e);

/* A name of a record: "debian-12", an image's tag. 1: there is none. */
int px_name_put(struct px_store *store, enum px_record_kind kind, const char *name, const struct px_oid *id, struct px_err *e);
int px_name_get(struct px_store *store, enum px_record_kind kind, const char *name, struct px_oid *ret_id, struct px_err *e);
int px_name_remove(struct px_store *store, enum px_record_kind kind, const char *name, struct px_err *e);
typedef int px_name_seen(void *user, enum px_record_kind kind, const char *name, const struct px_oid *id);
int px_name_each(struct px_store *store, px_name_seen *seen, void *user, struct px_err *e);

/* ---- use (lease.c) ---- */

/* As long as the lease is held (the process lives and has not dropped it) GC keeps these trees and blobs. Fails with PX800 if one
 * is not there. The descriptor can be passed on to a process that goes on using them. */
struct px_lease;
int px_lease_take(struct px_store *store, const struct px_oid *trees, size_t trees_count, const struct px_oid *blobs,
                  size_t blobs_count, struct px_lease **ret_lease, struct px_err *e);
void px_lease_drop(struct px_lease *lease);
/* Whether a running process has a lease of this tree or blob. Drops what this handle keeps itself. 1, 0, -1. */
int px_store_in_use(struct px_store *store, const struct px_oid *object, struct px_err *e);

/* The hash of the file behind fd, cached by device, inode, size, mtime and ctime, so that an archive is read once. */
int px_hash_cache_file(struct px_store *store, int fd, struct px_oid *ret_oid, uint64_t *ret_size, struct px_err *e);

/* Cached answers of servers (an archive, about a set of packages), until they are dropped; cleaning the store keeps
 * them. */
int px_note_put(struct px_store *store, const struct px_oid *key, const char *text, struct px_err *e);
bool px_note_get(struct px_store *store, const struct px_oid *key, struct px_buf *out);
int px_note_all_drop(struct px_store *store, struct px_err *e);

/* ---- what is not needed any more (gc.c) ---- */

struct px_gc {
    bool dry_run;
    uint64_t min_age_sec;       /* keep unnamed records that are younger; 0: keep none */
    uint64_t max_bytes;         /* then remove unnamed records, oldest use first, until the store is at most this large; 0: no bound */
    /* px sandbox clean: remove every record that has no name, or that cannot be read by anybody, and what is in corrupt/ and in seen/ */
    bool unnamed;
    /* Whether a name no longer protects its record and is removed; may be NULL. */
    bool (*gone)(enum px_record_kind kind, const char *name);
    /* what it did, or would do: counts, and each by name ("name", "blob", "tree", "base", "image", "env") once nothing is locked any
     * more */
    uint64_t names, blobs, trees, records, bytes;
    void (*tell)(void *user, const char *what, const char *id, uint64_t bytes);         /* may be NULL */
    void *user;
};
int px_store_gc(struct px_store *store, struct px_gc *gc, struct px_err *e);

/* Every blob and tree hashed again. */
struct px_store_check {
    uint64_t blobs, trees, bytes;
    uint64_t corrupt;           /* moved to corrupt/, each reported through `tell` */
    void (*tell)(void *user, const char *line);
    void (*step)(void *user, uint64_t bytes);   /* progress; may be NULL */
    void *user;
};
int px_store_verify(struct px_store *store, struct px_store_check *check, struct px_err *e);

struct px_store_size {
    uint64_t blobs, blob_bytes, trees, tree_bytes, bases, images, envs, leases, corrupt;
};
int px_store_measure(struct px_store *store, struct px_store_size *ret_size, struct px_err *e);
