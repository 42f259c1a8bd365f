/* files/roots.h - the cleanup of a px_files that is not finished.
 *
 * Owns: nothing. */
#pragma once

#include <px/files.h>

static inline void px_files_freep(struct px_files **files)
{
    px_files_free(*files);
}
