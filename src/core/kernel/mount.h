/* kernel/mount.h - file systems and trees by the descriptor API: made detached, given their attributes, then attached.
 *
 * Why:     a tree gets its read-only, nosuid, nodev flags, recursively, before anybody can see it.
 * Mustn't: allocate, or follow a link at a mount target. Runs in the child: raw calls only, 0 or fd or -errno. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct px_mount_option {
    const char *key;
    const char *value;          /* NULL: a flag */
};

/* A detached mount of a new file system; options end with a NULL key. */
int px_mount_new(const char *type, const struct px_mount_option *options, unsigned attributes);
/* The same in one old-style call, attached at once to a place that only we have made; a third cheaper, as no detached tree is
 * made and freed. `attributes` take hold with the mount; data is the options as one text. */
int px_mount_at(const char *type, const char *target, unsigned attributes, const char *data);
/* A copy of one mount of ours, with its attributes, at a place of ours. */
int px_mount_copy(const char *source, const char *target);
/* A detached, recursive copy of the tree at dirfd/path with these attributes added. */
int px_mount_clone(int dirfd, const char *path, unsigned attributes);
/* Adds attributes to a whole tree, attached or not. */
int px_mount_restrict(int fd, unsigned attributes, int recursive);
/* Maps the tree's owners through a user namespace (detached trees only). */
int px_mount_idmap(int tree_fd, int userns_fd);
/* Which mount the descriptor lies on. */
int px_mount_of(int fd, uint64_t *ret_mount);
/* The file system at path itself, so that no mount of it can be written through any more. */
int px_mount_close_for_writing(const char *path);
/* Attaches a detached tree at a target resolved below dirfd without following links. */
int px_mount_attach(int tree_fd, int dirfd, const char *target);
/* The same in one call, for a target that only we have made: its parents cannot be links, and a link at its end is not followed. */
int px_mount_attach_own(int tree_fd, const char *target);
/* The tree at fd becomes "/", everything else goes out of sight. The working directory must be that tree's root. */
int px_mount_pivot(void);
int px_mount_private(void);
