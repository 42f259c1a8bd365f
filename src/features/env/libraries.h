/* env/libraries.h - which shared libraries the files of a directory need from elsewhere.
 *
 * Why:     the second layer of inference: what extensions link, read from their bytes and not from their names.
 * Owns:    its texts.
 * Mustn't: run or map anything, follow a link, or count what the same directory brings: a name counts as brought
 *          only if an ELF file has it. Files that are not ELF are nothing, whatever they are called; so are damaged
 *          ones, and those of other machines. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PX_LIBRARIES_MAX = 4096, PX_LIBRARIES_ENTRIES_MAX = 500000, PX_LIBRARIES_DEPTH_MAX = 64 };

struct px_libraries {
    char **items;               /* sonames, sorted, each once */
    size_t count;
};

/* dir is borrowed; machine: EM_X86_64. 0 or -errno; -E2BIG: more than any package has. */
int px_libraries_scan(int dir, uint16_t machine, struct px_libraries *ret_libraries);
void px_libraries_done(struct px_libraries *libraries);
