/* plan/source.h - a path of the host that is shown to a box, or copied into one, and the links on its way.
 *
 * Why:     an earlier box that could write a directory may have left a link there, which leads the next bind to what the caller
 *          never meant to show.
 * Owns:    nothing.
 * Mustn't: follow a link at the end of a path, but where no box could have made it: in a directory of the system's. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

enum { PX_SOURCE_TEXT = 256 };

/* What the path names, as lstat says, with the system's own links (/bin, /etc/resolv.conf) followed. 0 or -errno; -ELOOP: it is a link,
 * or leads to one, that is not followed. */
int px_source_look(const char *path, struct stat *ret_st);
/* The same, opened with these flags. */
int px_source_open(const char *path, int flags);
/* "'PATH' is a link to 'REAL'", for one that was not followed. */
void px_source_tell(const char *path, char out[PX_SOURCE_TEXT]);
/* "a bind shows 'REAL', by a link in 'PATH'", if a directory on its way is a link that a box could have made; else "". */
void px_source_way(const char *path, char out[PX_SOURCE_TEXT]);
