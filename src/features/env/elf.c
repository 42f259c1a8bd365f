#include "env/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADERS_MAX = 256, DYNAMIC_MAX = 4096 };

struct file {
    int fd;
    uint64_t size;
    bool wide, swap;            /* 64 bit; bytes the other way round than ours */
};

struct segment {
    uint32_t type;
    uint64_t offset, address, bytes;
};

struct segments {
    struct segment items[HEADERS_MAX];
    uint32_t count;
};

/* Reads exactly `size` bytes at `at`; -EINVAL if the file is shorter, because a header points there. */
static int read_at(const struct file *f, uint64_t at, void *out, size_t size)
{
    if (at > f->size || size > f->size - at)
        return -EINVAL;
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(f->fd, (char *)out + done, size - done, (off_t)(at + done));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -EINVAL;     /* it has become shorter */
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static uint16_t half(const struct file *f, uint16_t v)
{
    return f->swap ? __builtin_bswap16(v) : v;
}

static uint32_t word(const struct file *f, uint32_t v)
{
    return f->swap ? __builtin_bswap32(v) : v;
}

static uint64_t long_word(const struct file *f, uint64_t v)
{
    return f->swap ? __builtin_bswap64(v) : v;
}

/* ---- headers ---- */

struct header {
    uint16_t machine, entry_size, entries;
    uint64_t table;
};

static int read_header(struct file *f, struct header *h)
{
    unsigned char ident[EI_NIDENT];
    union {
        Elf32_Ehdr narrow;
        Elf64_Ehdr wide;
    } u;
    if (read_at(f, 0, ident, sizeof ident) < 0 || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return -ENOEXEC;
    if (ident[EI_CLASS] < ELFCLASS32 || ident[EI_CLASS] > ELFCLASS64 || ident[EI_DATA] < ELFDATA2LSB || ident[EI_DATA] > ELFDATA2MSB)
        return -EINVAL;
    f->wide = ident[EI_CLASS] == ELFCLASS64;
    f->swap = (ident[EI_DATA] == ELFDATA2MSB) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    int r = read_at(f, 0, &u, f->wide ? sizeof u.wide : sizeof u.narrow);
    if (r < 0)
        return r;
    *h = f->wide ? (struct header){half(f, u.wide.e_machine), half(f, u.wide.e_phentsize), half(f, u.wide.e_phnum),
                                   long_word(f, u.wide.e_phoff)}
                 : (struct header){half(f, u.narrow.e_machine), half(f, u.narrow.e_phentsize), half(f, u.narrow.e_phnum),
                                   word(f, u.narrow.e_phoff)};
    if (h->entries > HEADERS_MAX)
        return -ERANGE;
    return h->entries && h->entry_size < (f->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) ? -EINVAL : 0;
}

static int read_segments(const struct file *f, const struct header *h, struct segments *list)
{
    for (uint32_t i = 0; i < h->entries; i++) {
        union {
            Elf32_Phdr narrow;
            Elf64_Phdr wide;
        } u;
        uint64_t at = (uint64_t)i * h->entry_size;
        if (h->table > UINT64_MAX - at)
            return -EINVAL;
        int r = read_at(f, h->table + at, &u, f->wide ? sizeof u.wide : sizeof u.narrow);
        if (r < 0)
            return r;
        list->items[i] = f->wide ? (struct segment){word(f, u.wide.p_type), long_word(f, u.wide.p_offset), long_word(f, u.wide.p_vaddr),
                                                    long_word(f, u.wide.p_filesz)}
                                 : (struct segment){word(f, u.narrow.p_type), word(f, u.narrow.p_offset), word(f, u.narrow.p_vaddr),
                                                    word(f, u.narrow.p_filesz)};
    }
    list->count = h->entries;
    return 0;
}

static const struct segment *find_dynamic(const struct segments *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].type == PT_DYNAMIC)
            return &list->items[i];
    return NULL;
}

/* Where in the file an address is, and how many bytes of the file follow it in the same segment. */
static int locate(const struct segments *list, uint64_t address, uint64_t *ret_at, uint64_t *ret_left)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct segment *s = &list->items[i];
        if (s->type != PT_LOAD || address < s->address || address - s->address >= s->bytes)
            continue;
        uint64_t inside = address - s->address;
        if (s->offset > UINT64_MAX - inside)
            return -EINVAL;
        *ret_at = s->offset + inside;
        *ret_left = s->bytes - inside;
        return 0;
    }
    return -EINVAL;
}

/* ---- the dynamic section ---- */

struct dynamic {
    uint64_t strings, strings_size, soname, rpath, runpath;
    bool has_strings, has_soname, has_rpath, has_runpath;
    uint64_t needed[PX_ELF_NEEDED_MAX];
    uint32_t needed_count;
};

static int take_entry(struct dynamic *d, uint64_t tag, uint64_t value)
{
    switch (tag) {
    case DT_STRTAB: d->strings = value; d->has_strings = true; return 0;
    case DT_STRSZ: d->strings_size = value; return 0;
    case DT_SONAME: d->soname = value; d->has_soname = true; return 0;
    case DT_RPATH: d->rpath = value; d->has_rpath = true; return 0;
    case DT_RUNPATH: d->runpath = value; d->has_runpath = true; return 0;
    case DT_NEEDED:
        if (d->needed_count == PX_ELF_NEEDED_MAX)
            return -ERANGE;
        d->needed[d->needed_count++] = value;
        return 0;
    default: return 0;
    }
}

static int read_dynamic(const struct file *f, const struct segment *s, struct dynamic *d)
{
    size_t size = f->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    uint64_t count = s->bytes / size;
    if (count > DYNAMIC_MAX)
        return -ERANGE;
    for (uint64_t i = 0; i < count; i++) {
        union {
            Elf32_Dyn narrow;
            Elf64_Dyn wide;
        } u;
        if (s->offset > UINT64_MAX - i * size)
            return -EINVAL;
        int r = read_at(f, s->offset + i * size, &u, size);
        if (r < 0)
            return r;
        uint64_t tag = f->wide ? long_word(f, (uint64_t)u.wide.d_tag) : word(f, (uint32_t)u.narrow.d_tag);
        uint64_t value = f->wide ? long_word(f, u.wide.d_un.d_val) : word(f, u.narrow.d_un.d_val);
        if (tag == DT_NULL)
            return 0;
        r = take_entry(d, tag, value);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A name of the string table into the text; it must end inside the table, and be no longer than any real one. */
static int take_name(const struct file *f, uint64_t table, uint64_t size, uint64_t offset, size_t max, struct px_elf *elf,
                     uint32_t *ret_offset)
{
    char out[PX_ELF_PATH_MAX + 1];
    if (offset >= size)
        return -EINVAL;
    uint64_t left = size - offset, at = table + offset;
    size_t n = left < max + 1 ? (size_t)left : max + 1;
    if (table > UINT64_MAX - offset)
        return -EINVAL;
    int r = read_at(f, at, out, n);
    if (r < 0)
        return r;
    const char *end = memchr(out, '\0', n);
    if (!end)
        return left > n ? -ERANGE : -EINVAL;
    *ret_offset = (uint32_t)elf->text.len;
    return px_buf_add(&elf->text, out, (size_t)(end - out) + 1);
}

static int take_names(const struct file *f, const struct segments *list, const struct dynamic *d, struct px_elf *elf)
{
    uint64_t table = 0, left = 0;
    if (!d->needed_count && !d->has_soname)
        return 0;
    int r = d->has_strings ? locate(list, d->strings, &table, &left) : -EINVAL;
    if (r < 0)
        return r;
    uint64_t size = d->strings_size && d->strings_size < left ? d->strings_size : left;
    if (d->has_soname)
        r = take_name(f, table, size, d->soname, PX_ELF_NAME_MAX, elf, &elf->soname);
    if (r >= 0 && (d->has_runpath || d->has_rpath))
        r = take_name(f, table, size, d->has_runpath ? d->runpath : d->rpath, PX_ELF_PATH_MAX, elf, &elf->runpath);
    for (uint32_t i = 0; r >= 0 && i < d->needed_count; i++) {
        r = take_name(f, table, size, d->needed[i], PX_ELF_NAME_MAX, elf, &elf->needed[i]);
        elf->needed_count = i + 1;
    }
    return r < 0 ? r : 0;
}

static int read_all(struct file *f, struct px_elf *elf)
{
    struct header h;
    struct segments list = {.count = 0};
    struct dynamic d = {.needed_count = 0};
    int r = read_header(f, &h);
    if (r < 0)
        return r;
    elf->bits = f->wide ? 64 : 32;
    elf->machine = h.machine;
    r = read_segments(f, &h, &list);
    const struct segment *s = r < 0 ? NULL : find_dynamic(&list);
    if (!s)
        return r;
    r = read_dynamic(f, s, &d);
    return r < 0 ? r : take_names(f, &list, &d, elf);
}

int px_elf_read(int fd, struct px_elf *ret_elf)
{
    struct stat st;
    struct px_elf elf = {.text = PX_BUF(1 << 20)};
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -ENOEXEC;
    struct file f = {.fd = fd, .size = (uint64_t)st.st_size};
    int r = px_buf_putc(&elf.text, '\0');
    if (r >= 0)
        r = read_all(&f, &elf);
    if (r < 0) {
        px_elf_done(&elf);
        return r;
    }
    *ret_elf = elf;
    return 0;
}

void px_elf_done(struct px_elf *elf)
{
    px_buf_done(&elf->text);
    *elf = (struct px_elf){0};
}
