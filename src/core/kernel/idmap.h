/* kernel/idmap.h - which ids of the host the ids of a box are mapped to.
 *
 * Why:     no id inside may ever be the host's uid 0, and two boxes should not share ids (SECURITY 5.4).
 *
 *   root                     a range of 65536 ids of an unassigned block, a different one for each running box
 *   user with subordinate    the caller's own range (/etc/subuid, applied by newuidmap); with files of the caller's, the
 *   ids                      payload's id is the caller's own, so that they can be read and written
 *   user without             one id: the payload is the caller
 *
 * A box that joins the network of another has the ids of that one, whose user namespace owns the network.
 *
 * Owns:    the lock that keeps a range taken (released by the kernel when the last holder dies).
 * Mustn't: fall back to a weaker map than the one announced in `kind`. Runs in the parent; 0 or -errno. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum px_idmap_kind {
    PX_IDMAP_RANGE,             /* inner 0..65535 are host ids that nobody else uses */
    PX_IDMAP_SUBIDS,            /* the caller's subordinate ids */
    PX_IDMAP_SUBIDS_CALLER,     /* the same, but the payload's id is the caller */
    PX_IDMAP_SINGLE,            /* only the payload's id, which is the caller */
};

struct px_idmap {
    enum px_idmap_kind kind;
    uint32_t uid, gid;          /* of the payload, inside */
    uint32_t caller_uid, caller_gid;
    uint32_t uid_base, gid_base, count;
    int lock_fd;                /* -EBADF if none is needed */
};

/* want_caller: the box has binds, or a root of the caller, so an ordinary caller's own id must be mapped in the box. */
int px_idmap_choose(uint32_t uid, uint32_t gid, bool want_caller, struct px_idmap *ret_map);
/* The same in the user namespace of a running process, whose range stays held as long as this map. -ENOENT if it has
 * no such ids, -EACCES if the payload could not have the caller's id there. */
int px_idmap_join(pid_t pid, uint32_t uid, uint32_t gid, bool want_caller, struct px_idmap *ret_map);
void px_idmap_done(struct px_idmap *map);
/* Parses the next line of a uid_map or gid_map, cut in place: first ids inside and outside, and the count. 1, 0 at
 * the end, -EINVAL. */
int px_idmap_line(char **text, uint64_t ret_extent[3]);
const char *px_idmap_name(const struct px_idmap *map);   /* "ids=range" */
/* True unless it is known that the caller's uid is not the host's 0. */
bool px_idmap_caller_is_root(void);

/* Writes the maps of a process that was just made in a new user namespace. */
int px_idmap_apply(const struct px_idmap *map, pid_t pid);
/* The payload's id as the host sees it. */
uint32_t px_idmap_host_uid(const struct px_idmap *map);
uint32_t px_idmap_host_gid(const struct px_idmap *map);

/* Whether a user's id is one of those that boxes get: 0: no; 1: yes, and no box uses it now (or that is unknown);
 * -EBUSY: a box uses it; -errno. */
int px_idmap_of_box(const struct px_idmap *map, uint32_t uid);

/* A user namespace that maps one owner of files to host ids, for px_mount_idmap. Returns a descriptor or -errno. */
int px_idmap_userns(uint32_t file_uid, uint32_t file_gid, uint32_t host_uid, uint32_t host_gid);
/* The same for a bind: its owner is shown as the payload. Only for PX_IDMAP_RANGE. */
int px_idmap_userns_owner(const struct px_idmap *map, uint32_t file_uid, uint32_t file_gid);
/* The same for a whole root: its owner is shown as the payload, every other owner under its own number. Where the
 * payload's number is an owner too, the two are swapped, so that no owner is lost. Only for PX_IDMAP_RANGE. */
int px_idmap_userns_root(const struct px_idmap *map, uint32_t file_uid, uint32_t file_gid);
