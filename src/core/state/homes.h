/* state/homes.h - home directories on the host for boxes: TMPDIR/px-homes-UID/HOME, which exist as long as the box.
 *
 * Why:     a box without mounts, and the sandbox of a library, need one for their files. A process that is killed
 *          leaves it behind.
 * Owns:    the directory px-homes-UID, which px marks, and what lies in it. A home directory is locked (flock) while
 *          it is used.
 * Mustn't: remove anything that does not lie in a directory with the mark. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct px_err;

/* Makes a home directory and returns the lock on it; sweep: removes those that no process holds. tmp: TMPDIR. */
int px_homes_make(const char *tmp, bool sweep, char *ret_path, size_t size, int *ret_lock, struct px_err *e);
/* Removes it, and px-homes-UID after the last one. */
void px_homes_drop(const char *path);
