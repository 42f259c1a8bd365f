/* kernel/tree.h - walks trees that untrusted code has written, by descriptor, never following a link.
 *
 * A file has privileges if a process that executes it gains any: a set-user-id bit, a set-group-id bit with execution
 * for the group, or the attribute security.capability.
 *
 * Mustn't: recurse, hold more than three descriptors at any depth, open anything but directories for reading, or change
 *          the mode of anything by its name. Runs in the parent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Removes the privileges of regular files below dirfd whose inode changed at or after the given time
 * (CLOCK_REALTIME; ctime, which no program can set). Directories that the caller owns and may not enter are opened,
 * and get their mode back. Returns the number of files changed, or -errno. */
int px_kernel_tree_strip(int dirfd, int64_t since_sec);
/* The same for one file, whenever it changed: 1 if it was changed. */
int px_kernel_tree_strip_file(int fd);

/* What a box must not get for writing. */
enum px_tree_found {
    PX_TREE_NOTHING,
    PX_TREE_SET_ID,
    PX_TREE_CAPABILITY,
    PX_TREE_CLOSED,             /* a directory that px cannot search, but the box could */
    PX_TREE_IN_USE,             /* a locked directory with the mark in it */
};
struct px_kernel_tree_search {
    const char *mark;           /* the name of a file; or NULL */
    char name[256];             /* of what was found; "" for the top */
};
/* The first such thing below dirfd, or -errno. Closed directories are opened as by px_kernel_tree_strip. */
int px_kernel_tree_search(int dirfd, struct px_kernel_tree_search *search);
/* The same for one file, by any descriptor of it: PX_TREE_SET_ID, PX_TREE_CAPABILITY, 0, -errno. */
int px_kernel_tree_search_file(int fd);
/* Adds the disk usage of a directory with everything below it, or of one file. What cannot be read is not counted. */
struct px_tree_size {
    uint64_t bytes, files;
    bool unread;                /* something could not be read */
};
void px_kernel_tree_measure(int fd, struct px_tree_size *size);
/* Who owns a file. */
struct px_tree_ids {
    uint32_t uid, gid;
};
/* Changes the owner of everything below dirfd on the same mount: a uid of `from` becomes to->uid, a gid of `from`
 * becomes to->gid. Files of the caller with several names are left out: another name may lie elsewhere. The kernel
 * removes set-id bits and capabilities with the change. 0, or the -errno of the first failure. */
int px_kernel_tree_give(int dirfd, const struct px_tree_ids from[2], const struct px_tree_ids *to);
/* The same for the object of the descriptor itself, which may have O_PATH. */
int px_kernel_tree_give_one(int fd, const struct px_tree_ids from[2], const struct px_tree_ids *to);
/* Removes everything below dirfd; 0, or the -errno of the first failure. */
int px_kernel_tree_empty(int dirfd);
