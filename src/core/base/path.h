/* base/path.h - opens paths that another user may control, and checks the syntax of paths.
 *
 * Mustn't: be called with a path joined from strings where a directory descriptor is available. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Opens below dirfd: refuses "..", absolute paths and links that lead out, and magic links. O_CLOEXEC is added. >= 0
 * or -errno. */
int px_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/* The same, but dirfd is the root for absolute paths and links ("/etc" is dirfd/etc), and no link at all is followed. */
int px_open_in_root(int dirfd, const char *path, int flags, mode_t mode);

/* Opens a path of the host if no part of it is a link; -ELOOP else. */
int px_open_straight(const char *path, int flags);

/* "/a//b/./c/" -> "/a/b/c" into out. -EINVAL if text is not absolute or has a ".." part or is empty, -ENAMETOOLONG. */
int px_path_clean(const char *text, char *out, size_t size);
/* True for path == dir or below it; both cleaned. */
bool px_path_within(const char *path, const char *dir);
