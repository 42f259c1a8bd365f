/* env/test_elf.c - files made by hand, valid ones and ones with a single error. tests/oracles asks readelf about real
 * ones. */
#include "env/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

/* A library with soname libme.so.1 that needs libpq.so.5. */
struct sample {
    Elf64_Ehdr header;
    Elf64_Phdr load, dynamic;
    Elf64_Dyn entries[6];
    char strings[64];
};

static void fill(struct sample *s)
{
    *s = (struct sample){0};
    memcpy(s->header.e_ident, ELFMAG "\2\1\1", 7);
    s->header.e_machine = EM_X86_64;
    s->header.e_phoff = offsetof(struct sample, load);
    s->header.e_phentsize = sizeof s->load;
    s->header.e_phnum = 2;
    s->load = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = sizeof *s};
    s->dynamic = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_offset = offsetof(struct sample, entries), .p_filesz = sizeof s->entries};
    memcpy(s->strings, "\0libme.so.1\0libpq.so.5\0$ORIGIN", 30);
    s->entries[0] = (Elf64_Dyn){.d_tag = DT_SONAME, .d_un.d_val = 1};
    s->entries[1] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 12};
    s->entries[2] = (Elf64_Dyn){.d_tag = DT_RUNPATH, .d_un.d_val = 23};
    s->entries[3] = (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_val = 0x1000 + offsetof(struct sample, strings)};
    s->entries[4] = (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = sizeof s->strings};
}

static int read_sample(const struct sample *s, size_t size, struct px_elf *ret_elf)
{
    px_auto_fd int fd = px_fd_memory("sample", s, size, 0);
    ASSERT_OK(fd);
    return px_elf_read(fd, ret_elf);
}

TEST(a_library)
{
    struct sample s;
    struct px_elf elf;
    fill(&s);
    ASSERT_OK(read_sample(&s, sizeof s, &elf));
    ASSERT_STR(px_elf_text(&elf, elf.soname), "libme.so.1");
    ASSERT_STR(px_elf_text(&elf, elf.runpath), "$ORIGIN");
    ASSERT_EQ(elf.needed_count, 1);
    ASSERT_STR(px_elf_text(&elf, elf.needed[0]), "libpq.so.5");
    ASSERT_EQ(elf.bits, 64);
    px_elf_done(&elf);
}

TEST(cut_short_anywhere)
{
    struct sample s;
    struct px_elf elf;
    fill(&s);
    ASSERT_EQ(read_sample(&s, 0, &elf), -ENOEXEC);
    ASSERT_EQ(read_sample(&s, 10, &elf), -ENOEXEC);
    for (size_t size = EI_NIDENT; size < offsetof(struct sample, strings) + 20; size++)
        ASSERT_EQ(read_sample(&s, size, &elf), -EINVAL);
}

TEST(what_contradicts_itself)
{
    struct sample s;
    struct px_elf elf;
#define WRONG(statement, error)                          \
    do {                                                 \
        fill(&s);                                        \
        statement;                                       \
        ASSERT_EQ(read_sample(&s, sizeof s, &elf), error); \
    } while (0)
    WRONG(s.header.e_ident[0] = 'x', -ENOEXEC);
    WRONG(s.header.e_ident[EI_CLASS] = 3, -EINVAL);
    WRONG(s.header.e_phoff = UINT64_MAX - 8, -EINVAL);
    WRONG(s.header.e_phnum = 300, -ERANGE);
    WRONG(s.header.e_phentsize = 8, -EINVAL);
    WRONG(s.dynamic.p_offset = UINT64_MAX - 4, -EINVAL);
    WRONG(s.dynamic.p_filesz = UINT64_MAX, -ERANGE);
    WRONG(s.entries[1].d_un.d_val = 64, -EINVAL);
    WRONG(s.entries[1].d_un.d_val = UINT64_MAX, -EINVAL);
    WRONG(s.entries[3].d_un.d_val = 0x9000, -EINVAL);
    WRONG(s.load.p_offset = UINT64_MAX - 16, -EINVAL);
    WRONG(memset(s.strings, 'x', sizeof s.strings), -EINVAL);
#undef WRONG
}

TEST(a_program_without_libraries)
{
    struct sample s;
    struct px_elf elf;
    fill(&s);
    s.dynamic.p_type = PT_NOTE;
    ASSERT_OK(read_sample(&s, sizeof s, &elf));
    ASSERT_EQ(elf.needed_count, 0);
    ASSERT_STR(px_elf_text(&elf, elf.soname), "");
    px_elf_done(&elf);
}
