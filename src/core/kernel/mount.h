/* kernel/mount.h - file systems and trees by the descriptor API: made detached, given their attributes, then
 * attached.
 *
 * Why:     a tree gets its read-only, nosuid and nodev flags, recursively, before any process can see it.
 * Mustn't: allocate, or follow a link at a mount target. Runs in the child: raw system calls only, 0 or fd or
 *          -errno. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct px_mount_option {
    const char *key;
    const char *value;          /* NULL: a flag */
};

/* A detached mount of a new file system; options end with a NULL key. */
int px_mount_new(const char *type, const struct px_mount_option *options, unsigned attributes);
/* The same in one mount(2) call, attached at once to a path that only px has made. It costs a third less, as no
 * detached tree is made and freed. `attributes` take effect with the mount; data is the options as one text. */
int px_mount_at(const char *type, const char *target, unsigned attributes, const char *data);
/* A copy of one of px's own mounts, with its attributes, at a path that px has made. */
int px_mount_copy(const char *source, const char *target);
/* A detached, recursive copy of the tree at dirfd/path with these attributes added. */
int px_mount_clone(int dirfd, const char *path, unsigned attributes);
/* Adds attributes to a whole tree, attached or not. */
int px_mount_restrict(int fd, unsigned attributes, int recursive);
/* Makes a detached tree id-mapped by a user namespace. */
int px_mount_idmap(int tree_fd, int userns_fd);
/* The id of the mount on which the descriptor lies. */
int px_mount_of(int fd, uint64_t *ret_mount);
/* Makes the file system at path itself read-only, so that it cannot be written through any of its mounts. */
int px_mount_close_for_writing(const char *path);
/* Attaches a detached tree at a target resolved below dirfd without following links. */
int px_mount_attach(int tree_fd, int dirfd, const char *target);
/* The same in one call, for a target that only px has made: its parents cannot be links, and a link at its end is
 * not followed. */
int px_mount_attach_own(int tree_fd, const char *target);
/* The tree at the working directory becomes "/", and everything else is detached. The working directory must be that
 * tree's root. */
int px_mount_pivot(void);
int px_mount_private(void);
