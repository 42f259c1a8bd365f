#include "task/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

enum { NAME_SIZE = 160, TAIL = 1 << 20, TRIES = 1000 };

static int part_name(const char *id, int part, char out[NAME_SIZE])
{
    return part == 0 ? px_fmt(out, NAME_SIZE, "%s.jsonl", id) : px_fmt(out, NAME_SIZE, "%s.jsonl.%d", id, part);
}

int px_journal_open(int dir, const char *id, int part)
{
    char name[NAME_SIZE];
    struct stat st;
    int r = part_name(id, part, name);
    if (r < 0)
        return r;
    px_auto_fd int fd = px_open_in_root(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    return fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? px_fd_take(&fd) : -EINVAL;
}

/* Locks the file and checks that it still has its name: another process may have rotated it. */
static int open_locked(int dir, const char *name, struct stat *ret_st)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        px_auto_fd int fd = px_open_in_root(dir, name, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0644);
        if (fd < 0)
            return fd;
        long r = px_sys(SYS_flock, fd, LOCK_EX);
        if (r == -EINTR)
            continue;
        if (r < 0 || fstat(fd, ret_st) < 0)
            return r < 0 ? (int)r : -errno;
        if (!S_ISREG(ret_st->st_mode))
            return -EINVAL;
        if (ret_st->st_uid != geteuid() || ret_st->st_nlink > 1)
            return -EPERM;      /* it may be a hard link to another file, which would be truncated */
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ret_st->st_ino && st.st_dev == ret_st->st_dev)
            return px_fd_take(&fd);
    }
    return -EAGAIN;
}

static void rotate(int dir, const char *id)
{
    char from[NAME_SIZE], to[NAME_SIZE];
    for (int part = PX_JOURNAL_PARTS; part > 0; part--)
        if (part_name(id, part - 1, from) >= 0 && part_name(id, part, to) >= 0)
            (void)renameat(dir, from, dir, to);
}

/* Removes the partial line of a killed writer: nobody was told that it exists. */
static int cut_torn_line(int fd, off_t *size)
{
    char room[4096];
    off_t end = *size;
    while (end > 0) {
        size_t n = end < (off_t)sizeof room ? (size_t)end : sizeof room;
        if (pread(fd, room, n, end - (off_t)n) != (ssize_t)n)
            return -EIO;
        const char *newline = memrchr(room, '\n', n);
        end -= newline ? (off_t)(room + n - 1 - newline) : (off_t)n;
        if (newline)
            break;
    }
    if (end != *size && ftruncate(fd, end) < 0)
        return -errno;
    *size = end;
    return 0;
}

static int write_line(int fd, off_t size, const char *line, size_t len)
{
    px_auto_free char *whole = malloc(len + 1);
    if (!whole)
        return -ENOMEM;
    memcpy(whole, line, len);
    whole[len] = '\n';
    int r = px_write_full(fd, whole, len + 1);
    if (r < 0)
        (void)!ftruncate(fd, size);
    return r;
}

int px_journal_append(int dir, const char *id, const char *line, size_t len, uint64_t bytes_max)
{
    char name[NAME_SIZE];
    struct stat st;
    if (part_name(id, 0, name) < 0 || memchr(line, '\n', len))
        return -EINVAL;
    px_auto_fd int fd = open_locked(dir, name, &st);
    if (fd >= 0 && st.st_size > 0 && bytes_max && (uint64_t)st.st_size + len >= bytes_max) {
        rotate(dir, id);
        fd = px_fd_close(fd);
        fd = open_locked(dir, name, &st);
    }
    if (fd < 0)
        return fd;
    int r = cut_torn_line(fd, &st.st_size);
    return r < 0 ? r : write_line(fd, st.st_size, line, len);
}

static bool part_has(int dir, const char *id, int part, const char *text)
{
    struct stat st;
    px_auto_free char *room = malloc(TAIL);
    px_auto_fd int fd = px_journal_open(dir, id, part);
    if (!room || fd < 0 || fstat(fd, &st) < 0)
        return false;
    ssize_t n = pread(fd, room, TAIL, st.st_size > TAIL ? st.st_size - TAIL : 0);
    const char *end = n > 0 ? memrchr(room, '\n', (size_t)n) : NULL; /* the rest is incomplete */
    return end && memmem(room, (size_t)(end - room), text, strlen(text)) != NULL;
}

bool px_journal_has(int dir, const char *id, const char *text)
{
    return part_has(dir, id, 0, text) || part_has(dir, id, 1, text);
}
