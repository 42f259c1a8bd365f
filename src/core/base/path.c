/* base/path.c - openat2 and the syntax of paths. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "base/sys.h"

/* <linux/openat2.h> is not part of every libc's headers; these numbers are the kernel's ABI since Linux 5.6. */
struct open_how_v0 {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};

enum {
    NO_MAGICLINKS = 0x02,
    NO_SYMLINKS = 0x04,
    BENEATH = 0x08,
    IN_ROOT = 0x10,
    TRIES = 32,
};

static int open_how(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how_v0 how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .mode = mode,           /* 0 unless creating; the kernel refuses anything else */
        .resolve = resolve,
    };
    long fd = -EAGAIN;

    for (int i = 0; i < TRIES && (fd == -EAGAIN || fd == -EINTR); i++)  /* EAGAIN: a racing rename */
        fd = px_sys(SYS_openat2, dirfd, path, &how, sizeof how);
    return (int)fd;
}

int px_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
    return open_how(dirfd, path, flags, mode, BENEATH | NO_MAGICLINKS);
}

int px_open_straight(const char *path, int flags)
{
    return open_how(AT_FDCWD, path, flags, 0, NO_SYMLINKS | NO_MAGICLINKS);
}

int px_open_in_root(int dirfd, const char *path, int flags, mode_t mode)
{
    return open_how(dirfd, path, flags, mode, IN_ROOT | NO_SYMLINKS | NO_MAGICLINKS);
}

/* The next part of a path: skips slashes, returns its length; 0 at the end. */
static size_t next_part(const char **at)
{
    *at += strspn(*at, "/");
    return strcspn(*at, "/");
}

static bool part_is(const char *part, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(part, name, len) == 0;
}

/* Two passes over the same parts: the first one checks, so that out is written only on success. */
static int clean_length(const char *text, size_t *ret_len)
{
    size_t total = 0, len;

    if (text[0] != '/')
        return -EINVAL;
    for (const char *at = text; (len = next_part(&at)) > 0; at += len) {
        if (part_is(at, len, ".."))
            return -EINVAL;
        if (!part_is(at, len, "."))
            total += 1 + len;
    }
    *ret_len = total > 0 ? total : 1;
    return 0;
}

int px_path_clean(const char *text, char *out, size_t size)
{
    size_t total, len;
    int r = clean_length(text, &total);

    if (r < 0)
        return r;
    if (total >= size)
        return -ENAMETOOLONG;

    char *end = out;
    for (const char *at = text; (len = next_part(&at)) > 0; at += len) {
        if (part_is(at, len, "."))
            continue;
        *end++ = '/';
        memmove(end, at, len);  /* out may be text itself: the result is never longer than what was read */
        end += len;
    }
    if (end == out)
        *end++ = '/';
    *end = 0;
    return 0;
}

bool px_path_within(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    if (strcmp(dir, "/") == 0)
        return path[0] == '/';
    return strncmp(path, dir, len) == 0 && (path[len] == 0 || path[len] == '/');
}
