/* fuzz/fuzz_elf.c - any bytes as an ELF file: read to the end or refused, nothing beyond it touched. */
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "env/elf.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    px_auto_fd int fd = px_fd_memory("fuzz", data, size, 0);
    struct px_elf elf;
    CHECK(fd >= 0);
    int r = px_elf_read(fd, &elf);
    CHECK(r == 0 || r == -ENOEXEC || r == -EINVAL || r == -ERANGE);
    if (r < 0)
        return 0;
    for (uint32_t i = 0; i < elf.needed_count; i++)
        CHECK(strlen(px_elf_text(&elf, elf.needed[i])) <= PX_ELF_NAME_MAX);
    px_elf_done(&elf);
    return 0;
}
