/* base/node.h - changing the mode of an object by a descriptor of it, never by a name.
 *
 * Why:     a name can become a symbolic link between two calls wherever somebody else can write, and chmod follows it:
 *          px would change a file of the host that was never given to a box.
 * Mustn't: follow a link in any part of a name. tools/banned.txt has the calls that do. */
#pragma once

#include <sys/types.h>

/* Of what the descriptor holds, one with O_PATH as well; a symbolic link has no mode. 0 or -errno. */
int px_node_chmod(int fd, mode_t mode);
/* Of dirfd/path, if it has the type (S_IFDIR, S_IFREG, ...): -ESTALE if it has another, -ELOOP if a link is on the way.
 * */
int px_node_chmod_at(int dirfd, const char *path, mode_t type, mode_t mode);
/* The directory, open for reading. One of the caller's that even he may not read, enter or write gets mode | 0700
 * first; *ret_was is the mode that it had before. >= 0 or -errno. */
int px_node_open_dir(int dirfd, const char *name, mode_t *ret_was);
