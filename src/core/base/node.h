/* base/node.h - changes the mode of an object by its descriptor, never by a name.
 *
 * Why:     a name can become a symbolic link between two calls wherever another user can write, and chmod follows it:
 *          px would change a file of the host that was never given to a box.
 * Mustn't: follow a link in any part of a name. tools/banned.txt has the calls that do. */
#pragma once

#include <sys/types.h>

/* The object of the descriptor, which may have O_PATH; a symbolic link has no mode. 0 or -errno. */
int px_node_chmod(int fd, mode_t mode);
/* dirfd/path, if it has the type (S_IFDIR, S_IFREG, ...): -ESTALE if it has another, -ELOOP if the path contains a
 * link. */
int px_node_chmod_at(int dirfd, const char *path, mode_t type, mode_t mode);
/* Opens the directory for reading. If the caller owns it and may not read, enter or write it, it gets mode | 0700
 * first; *ret_was is the mode that it had before. >= 0 or -errno. */
int px_node_open_dir(int dirfd, const char *name, mode_t *ret_was);
