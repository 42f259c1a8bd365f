/* env/elf.h - which libraries an ELF file needs, from its dynamic section alone.
 *
 * Why:     the libraries that an extension links are what a project needs; section headers may be stripped, and
 *          names may be wrong.
 * Owns:    its strings.
 * Mustn't: trust an offset, run or map the file, or read more of it than a few pages. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { PX_ELF_NEEDED_MAX = 256, PX_ELF_NAME_MAX = 255, PX_ELF_PATH_MAX = 4096 };

struct px_elf {
    uint8_t bits;               /* 32 or 64 */
    uint16_t machine;           /* EM_X86_64, ... */
    struct px_buf text;         /* soname, runpath, then each needed name, every one with its NUL */
    uint32_t soname, runpath;   /* offsets in text; 0 is "" */
    uint32_t needed[PX_ELF_NEEDED_MAX];
    uint32_t needed_count;
};

/* 0; -ENOEXEC: not an ELF file; -EINVAL: inconsistent; -ERANGE: larger than any real one; or the -errno of a read. A
 * static program or an object file needs nothing and is fine. */
int px_elf_read(int fd, struct px_elf *ret_elf);
void px_elf_done(struct px_elf *elf);
static inline const char *px_elf_text(const struct px_elf *elf, uint32_t offset)
{
    return elf->text.data + offset;
}
