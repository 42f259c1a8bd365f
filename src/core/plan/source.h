/* plan/source.h - a path of the host that is bound or copied into a box, and the links in it.
 *
 * Why:     an earlier box that could write a directory may have left a link there, which leads the next bind to what
 *          the caller never meant to show.
 * Owns:    nothing.
 * Mustn't: follow a link at the end of a path, except in a system directory, where no box can have made it. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

enum { PX_SOURCE_TEXT = 256 };

/* The lstat of the path, with the system's own links (/bin, /etc/resolv.conf) followed. 0 or -errno; -ELOOP: it is a
 * link, or leads to one, that is not followed. */
int px_source_look(const char *path, struct stat *ret_st);
/* The same, opened with these flags. */
int px_source_open(const char *path, int flags);
/* Writes "'PATH' is a link to 'REAL'", for a link that was not followed. */
void px_source_tell(const char *path, char out[PX_SOURCE_TEXT]);
/* Writes "a bind shows 'REAL', by a link in 'PATH'" if a directory of the path is a link that a box could have made;
 * else "". */
void px_source_way(const char *path, char out[PX_SOURCE_TEXT]);
