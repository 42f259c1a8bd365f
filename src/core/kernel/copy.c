#include "kernel/copy.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { CHUNK = 64 << 10, BLOCK = 4096 };

/* ---- parts with data ---- */

/* Where the next data begins, or `end`. A file system without holes has data everywhere. */
static off_t next_data(int fd, off_t at, off_t end)
{
    off_t found = lseek(fd, at, SEEK_DATA);
    if (found < 0)
        found = errno == ENXIO ? end : at;
    return found < end ? found : end;
}

static off_t next_hole(int fd, off_t at, off_t end)
{
    off_t found = lseek(fd, at, SEEK_HOLE);
    if (found == at) /* written since: read a little, then look again */
        found = at + CHUNK;
    return found >= 0 && found < end ? found : end;
}

/* Reads as many bytes as there are, up to `size`. */
static ssize_t read_at(int fd, char *out, size_t size, off_t at)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = pread(fd, out + have, size - have, at + (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : (ssize_t)have;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

static int write_at(int fd, const char *data, size_t size, off_t at)
{
    while (size > 0) {
        ssize_t n = pwrite(fd, data, size, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        data += n;
        size -= (size_t)n;
        at += n;
    }
    return 0;
}

static size_t piece_size(off_t from, off_t end)
{
    return end - from < CHUNK ? (size_t)(end - from) : CHUNK;
}

/* ---- copying ---- */

static int copy_data(int from, off_t at, off_t end, int to, off_t shift, char *room)
{
    while (at < end) {
        ssize_t n = read_at(from, room, piece_size(at, end), at);
        int r = n < 0 ? (int)n : n == 0 ? -ENODATA : write_at(to, room, (size_t)n, at - shift);
        if (r < 0)
            return r;
        at += n;
    }
    return 0;
}

int px_copy_part(int from, uint64_t first, uint64_t size, int to)
{
    struct stat st;
    if (first > INT64_MAX || size > INT64_MAX - first)
        return -EFBIG;
    px_auto_free char *room = malloc(CHUNK);
    if (!room)
        return -ENOMEM;
    if (ftruncate(to, (off_t)size) < 0) /* first: nothing is written if the file system has no files of that size */
        return -errno;
    off_t at = (off_t)first, end = (off_t)(first + size);
    for (off_t hole; at < end; at = hole) {
        at = next_data(from, at, end);
        hole = next_hole(from, at, end);
        int r = copy_data(from, at, hole, to, (off_t)first, room);
        if (r < 0)
            return r;
    }
    return fstat(from, &st) < 0 ? -errno : st.st_size < end ? -ENODATA : 0;
}

int px_copy_file(int from, int to)
{
    struct stat st;
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    if (fstat(from, &st) < 0)
        return -errno;
    return px_copy_part(from, 0, (uint64_t)st.st_size, to);
}

/* ---- streams ---- */

static bool is_zero(const char *bytes, size_t size)
{
    return size > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

int px_copy_stream(int to, uint64_t *at, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t n = BLOCK - *at % BLOCK; /* up to the end of a block */
        n = n < size ? n : size;
        int r = is_zero(bytes, n) ? 0 : write_at(to, bytes, n, (off_t)*at);
        if (r < 0)
            return r;
        *at += n;
        bytes += n;
        size -= n;
    }
    return 0;
}

int px_copy_end(int to, uint64_t size)
{
    return ftruncate(to, (off_t)size) < 0 ? -errno : 0;
}

/* ---- comparing ---- */

int px_copy_same(int a, int b)
{
    struct stat x, y;
    if (fstat(a, &x) < 0 || fstat(b, &y) < 0)
        return -errno;
    if (x.st_size != y.st_size)
        return 0;
    px_auto_free char *room = malloc((size_t)2 * CHUNK);
    if (!room)
        return -ENOMEM;
    for (off_t at = 0, end = x.st_size;;) {
        off_t one = next_data(a, at, end), other = next_data(b, at, end);
        at = one < other ? one : other;
        if (at == end)
            return 1;
        ssize_t n = read_at(a, room, piece_size(at, end), at), m = read_at(b, room + CHUNK, piece_size(at, end), at);
        if (n < 0 || m < 0)
            return (int)(n < 0 ? n : m);
        if (n != m || n == 0 || memcmp(room, room + CHUNK, (size_t)n) != 0)
            return 0;
        at += n;
    }
}
