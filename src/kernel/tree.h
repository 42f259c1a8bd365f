/* kernel/tree.h - walking trees that untrusted code has written, by descriptor, never following a link.
 *
 * Mustn't: recurse, hold more descriptors than two at any depth, or open anything but directories and set-id files. Parent side. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Clears setuid and setgid bits of regular files below dirfd whose inode changed at or after the time given (CLOCK_REALTIME; the
 * kernel's own stamp, which nobody can set). The number of files changed, or -errno. */
int px_tree_strip(int dirfd, int64_t since_sec);
/* Looks for a regular file with such a bit: 1 and its name if there is one, 0 if not, -errno. */
int px_tree_find_set_id(int dirfd, char *ret_name, size_t size);
/* The same as strip for one file, whenever it changed: 1 if it was changed. */
int px_tree_strip_file(int fd);
/* Adds what a directory with everything below it, or one file, takes on its disk. What cannot be read is not counted. */
struct px_tree_size {
    uint64_t bytes, files;
    bool unread;                /* something was there that could not be read */
};
void px_tree_measure(int fd, struct px_tree_size *size);
/* Removes everything below dirfd; 0 or -errno of the first thing that would not go. */
int px_tree_empty(int dirfd);
