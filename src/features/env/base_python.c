#include "env/base_python.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "env/elf.h"

enum { FILE_MAX = 48 << 20 };

/* ---- numbers in files ---- */

/* The whole file, or its beginning; the caller's. */
static char *read_some(int fd, size_t *ret_size)
{
    char *data = malloc(FILE_MAX);
    ssize_t n = data && lseek(fd, 0, SEEK_SET) == 0 ? px_read_full(fd, data, FILE_MAX) : -1;
    if (n < 0) {
        free(data);
        return NULL;
    }
    *ret_size = (size_t)n;
    return data;
}

static size_t digits(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && n < 4 && at[n] >= '0' && at[n] <= '9')
        n++;
    return n;
}

int px_env_base_python_version(const char *data, size_t length, unsigned minor, char *out, size_t size)
{
    char mark[16] = "";                         /* begins with the NUL of the text before it */
    int n = snprintf(mark + 1, sizeof mark - 1, "3.%u.", minor) + 1;
    const char *end = data + length;
    for (const char *at = data; (at = memmem(at, (size_t)(end - at), mark, (size_t)n)); at++) {
        size_t count = digits(at + n, end);
        if (count > 0 && at + n + count < end && strchr("+abr", at[n + (int)count]))        /* its own NUL, or a pre-release */
            return px_fmt(out, size, "%s%.*s", mark + 1, (int)count, at + n);
    }
    return -ENOENT;
}

static int number(const char *at, size_t count, unsigned *ret_number)
{
    char text[8];
    uint64_t value;
    if (px_fmt(text, sizeof text, "%.*s", (int)count, at) < 0 || px_parse_u64(text, 999, &value) < 0)
        return -ENOENT;
    *ret_number = (unsigned)value;
    return 0;
}

int px_env_base_python_glibc(const char *data, size_t length, unsigned *ret_major, unsigned *ret_minor)
{
    static const char name[] = "GNU C Library (", mark[] = "release version ";
    enum { LINE = 256 };
    const char *end = data + length, *at = memmem(data, length, name, sizeof name - 1);
    at = at ? memmem(at, end - at < LINE ? (size_t)(end - at) : LINE, mark, sizeof mark - 1) : NULL;
    size_t one = at ? digits(at += sizeof mark - 1, end) : 0;
    size_t two = one && at + one < end && at[one] == '.' ? digits(at + one + 1, end) : 0;
    return !two || number(at, one, ret_major) < 0 || number(at + one + 1, two, ret_minor) < 0 ? -ENOENT : 0;
}

static int version_in(int fd, struct px_base_python *f)
{
    size_t length = 0;
    px_auto_free char *data = read_some(fd, &length);
    return data ? px_env_base_python_version(data, length, f->python.minor, f->version, sizeof f->version) : -ENOMEM;
}

static int glibc_in(int fd, struct px_base_python *f)
{
    size_t length = 0;
    px_auto_free char *data = read_some(fd, &length);
    return data ? px_env_base_python_glibc(data, length, &f->python.libc_major, &f->python.libc_minor) : -ENOMEM;
}

/* ---- what it is linked with ---- */

static int open_library(int root, const char *name)
{
    static const char *const places[] = {"usr/local/lib", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"};
    char path[PX_ELF_NAME_MAX + 64];
    for (size_t i = 0; i < PX_COUNT_OF(places); i++) {
        int fd = px_fmt(path, sizeof path, "%s/%s", places[i], name) < 0 ? -ENAMETOOLONG : px_open_beneath(root, path, O_RDONLY | O_NONBLOCK, 0);
        if (fd >= 0)
            return fd;
    }
    return -ENOENT;
}

static int take_library(int root, const char *name, struct px_base_python *f)
{
    bool glibc = px_equal(name, "libc.so.6"), musl = px_starts_with(name, "libc.musl-");
    char own[32];
    (void)px_fmt(own, sizeof own, "libpython3.%u.", f->python.minor);
    if (musl) {
        f->python.musl = true;
        f->python.libc_major = 1;
        f->python.libc_minor = 2;       /* musl 1.2, as all musl wheels; the library file has no version */
    }
    if (!glibc && !px_starts_with(name, own))
        return 0;
    px_auto_fd int fd = open_library(root, name);
    if (fd < 0)
        return glibc ? 1 : 0;
    if (glibc)
        return glibc_in(fd, f) < 0 ? 1 : 0;
    (void)version_in(fd, f);
    return 0;
}

/* 0; 1: not for this machine, or no C library by which wheels could be chosen. */
static int look_into(int root, int fd, struct px_base_python *f)
{
    struct px_elf elf;
    int r = px_elf_read(fd, &elf);
    if (r < 0)
        return r == -ENOMEM ? r : 1;
    if (elf.machine != EM_X86_64 || elf.bits != 64)
        r = 1;
    (void)px_fmt(f->version, sizeof f->version, "3.%u.0", f->python.minor);     /* where it says no more */
    (void)version_in(fd, f);
    for (uint32_t i = 0; r == 0 && i < elf.needed_count; i++)
        r = take_library(root, px_elf_text(&elf, elf.needed[i]), f);
    px_elf_done(&elf);
    return r != 0 ? r : f->python.libc_major ? 0 : 1;
}

/* ---- */

int px_env_base_python_at(int root, const char *base, const char *program, unsigned minor, struct px_base_python *f)
{
    f->python = (struct px_python){.base = f->base, .version = f->version, .minor = minor, .machine = f->machine, .program = f->program};
    if (px_fmt(f->base, sizeof f->base, "%s", base) < 0 || px_fmt(f->program, sizeof f->program, "%s", program) < 0)
        return -ENAMETOOLONG;
    (void)px_fmt(f->machine, sizeof f->machine, "x86_64");
    px_auto_fd int fd = px_open_beneath(root, f->program + 1, O_RDONLY | O_NONBLOCK, 0);
    return fd < 0 ? 1 : look_into(root, fd, f);
}

int px_env_base_python_find(int root, const char *base, struct px_base_python *ret_found)
{
    static const char *const places[] = {"usr/local/bin", "usr/bin"};
    char program[64];
    for (size_t i = 0; i < PX_COUNT_OF(places); i++)
        for (unsigned minor = PX_PYTHON_MINOR_MAX; minor >= PX_PYTHON_MINOR_MIN; minor--) {
            (void)px_fmt(program, sizeof program, "/%s/python3.%u", places[i], minor);
            int r = px_env_base_python_at(root, base, program, minor, ret_found);
            if (r <= 0)
                return r;
        }
    return 1;
}
