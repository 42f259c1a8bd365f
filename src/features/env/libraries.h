/* env/libraries.h - the shared libraries that the files of a directory need from outside.
 *
 * Why:     the second layer of inference: the libraries that extensions link, read from the files, not from their
 *          names.
 * Owns:    its texts.
 * Mustn't: run or map anything, follow a link, or count libraries of the same directory: a library is in the
 *          directory only if an ELF file has its name. Files that are not ELF are ignored, as are damaged ones and
 *          those of other machines. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PX_LIBRARIES_MAX = 4096, PX_LIBRARIES_ENTRIES_MAX = 500000, PX_LIBRARIES_DEPTH_MAX = 64 };

struct px_libraries {
    char **items;               /* sonames, sorted, each once */
    size_t count;
};

/* dir is borrowed; machine: EM_X86_64. 0 or -errno; -E2BIG: too many libraries. */
int px_libraries_scan(int dir, uint16_t machine, struct px_libraries *ret_libraries);
void px_libraries_done(struct px_libraries *libraries);
