/* kernel/tree.h - walking trees that untrusted code has written, by descriptor, never following a link.
 *
 * A file has privileges if who executes it gets more than he had: a set-user-id bit, a set-group-id bit with execution
 * for the group, or the attribute security.capability.
 *
 * Mustn't: recurse, hold more descriptors than three at any depth, open anything but directories for reading, or change
 *          the mode of anything by its name. Parent side. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the privileges of regular files below dirfd whose inode changed at or after the time given (CLOCK_REALTIME; the
 * kernel's own stamp, which nobody can set). Directories of the caller's that are closed to him are opened and get
 * their mode back. The number of files changed, or -errno. */
int px_kernel_tree_strip(int dirfd, int64_t since_sec);
/* The same for one file, whenever it changed: 1 if it was changed. */
int px_kernel_tree_strip_file(int fd);

/* What a box must not get to write. */
enum px_tree_found {
    PX_TREE_NOTHING,
    PX_TREE_SET_ID,
    PX_TREE_CAPABILITY,
    PX_TREE_CLOSED,             /* a directory that cannot be searched, but the box could open it */
    PX_TREE_IN_USE,             /* a locked directory with the mark in it */
};
struct px_kernel_tree_search {
    const char *mark;           /* the name of a file; or NULL */
    char name[256];             /* of what was found; "" for the top */
};
/* The first such thing below dirfd, or -errno. Closed directories are opened as for strip. */
int px_kernel_tree_search(int dirfd, struct px_kernel_tree_search *search);
/* The same for one file, by any descriptor of it: PX_TREE_SET_ID, PX_TREE_CAPABILITY, 0, -errno. */
int px_kernel_tree_search_file(int fd);
/* Adds what a directory with everything below it, or one file, takes on its disk. What cannot be read is not counted. */
struct px_tree_size {
    uint64_t bytes, files;
    bool unread;                /* something was there that could not be read */
};
void px_kernel_tree_measure(int fd, struct px_tree_size *size);
/* Who owns a file. */
struct px_tree_ids {
    uint32_t uid, gid;
};
/* What belongs to a user of `from` belongs to to->uid afterwards, and what belongs to a group of `from` to to->gid: everything
 * below dirfd that lies on the same mount, but files of the caller's with several names: they may lie elsewhere, too. The kernel takes set-id bits and capabilities of a file away with its owner. 0 or -errno
 * of the first thing that would not go. */
int px_kernel_tree_give(int dirfd, const struct px_tree_ids from[2], const struct px_tree_ids *to);
/* The same for what the descriptor itself holds, one with O_PATH as well. */
int px_kernel_tree_give_one(int fd, const struct px_tree_ids from[2], const struct px_tree_ids *to);
/* Removes everything below dirfd; 0 or -errno of the first thing that would not go. */
int px_kernel_tree_empty(int dirfd);
