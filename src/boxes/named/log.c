/* The output of a detached command: files out-N-K and err-N-K of one size in the box's directory; the oldest are
 * removed. The next file is made only when one is full, so a reader knows: the end of a file that has a successor is
 * not the end of the output. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "named/named_internal.h"

enum { FILES = 4, SIZE_LEAST = 4096, SIZE_UNBOUNDED = 16 << 20, NAMES_MAX = 100000 };

static int file_name(char *out, size_t size, unsigned command, enum px_stream stream, uint64_t number)
{
    return px_fmt(out, size, "%s-%u-%llu", stream == PX_STDERR ? "err" : "out", command, (unsigned long long)number);
}

/* ---- writing ---- */

void px_named_log_init(struct px_named_log *log, int dir, unsigned command, enum px_stream stream, uint64_t bytes_max)
{
    *log = (struct px_named_log){.dir = dir, .fd = -EBADF, .command = command, .stream = stream};
    bool bounded = px_policy_limited(bytes_max);
    uint64_t bytes = bounded ? bytes_max : PX_OUTPUT_DEFAULT;
    log->size_max = bytes / FILES > SIZE_LEAST ? bytes / FILES : SIZE_LEAST;
    log->files_max = FILES + 1;         /* the newest is not full */
    if (bytes_max == PX_UNLIMITED) {
        log->size_max = SIZE_UNBOUNDED;
        log->files_max = UINT64_MAX;
    }
}

static void unlink_file(const struct px_named_log *log, uint64_t number)
{
    char name[64];
    if (file_name(name, sizeof name, log->command, log->stream, number) >= 0)
        (void)px_sys(SYS_unlinkat, log->dir, name, 0);
}

static int next_file(struct px_named_log *log)
{
    char name[64];
    log->fd = px_fd_close(log->fd);
    int r = file_name(name, sizeof name, log->command, log->stream, log->next);
    if (r >= 0)
        r = (int)px_sys(SYS_openat, log->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r < 0)
        return r;
    log->fd = r;
    log->next++;
    log->size = 0;
    while (log->next - log->first > log->files_max)
        unlink_file(log, log->first++);
    return 0;
}

void px_named_log_write(struct px_named_log *log, const char *data, size_t size)
{
    while (size > 0) {
        if ((log->fd < 0 || log->size >= log->size_max) && next_file(log) < 0)
            break;
        size_t part = size < log->size_max - log->size ? size : (size_t)(log->size_max - log->size);
        ssize_t n = (ssize_t)px_sys(SYS_write, log->fd, data, part);
        if (n == -EINTR)
            continue;
        if (n <= 0)             /* the disk is full: the command goes on, and its lost output is counted */
            break;
        log->size += (uint64_t)n;
        data += n;
        size -= (size_t)n;
    }
    log->lost += size;
}

void px_named_log_done(struct px_named_log *log)
{
    log->fd = px_fd_close(log->fd);
}

void px_named_log_remove(struct px_named_log *log)
{
    px_named_log_done(log);
    while (log->first < log->next)
        unlink_file(log, log->first++);
}

/* ---- reading ---- */

static long read_at(int dir, const char *name, uint64_t offset, void *out, size_t size)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return fd;
    ssize_t n;
    do
        n = pread(fd, out, size, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* The number of the oldest file from `from` on; UINT64_MAX if there is none. */
static uint64_t oldest(int dir, unsigned command, enum px_stream stream, uint64_t from)
{
    char prefix[64];
    uint64_t best = UINT64_MAX;
    int copy = (int)px_sys(SYS_openat, dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        (void)px_fd_close(copy);
        return best;
    }
    if (file_name(prefix, sizeof prefix, command, stream, 0) >= 0)
        prefix[strlen(prefix) - 1] = '\0';
    struct dirent *entry;
    for (int seen = 0; seen < NAMES_MAX && (entry = readdir(list)); seen++) {
        uint64_t number;
        if (px_starts_with(entry->d_name, prefix) &&
            px_parse_u64(entry->d_name + strlen(prefix), UINT64_MAX - 1, &number) == 0 && number >= from && number < best)
            best = number;
    }
    (void)closedir(list);
    return best;
}

long px_named_log_read(int dir, unsigned command, enum px_stream stream, struct px_log_at *at, void *out, size_t size)
{
    char name[64], next[64];
    for (;;) {
        if (file_name(name, sizeof name, command, stream, at->segment) < 0 ||
            file_name(next, sizeof next, command, stream, at->segment + 1) < 0)
            return -EINVAL;
        struct stat st;
        /* before the read: then nothing is written after it */
        bool full = fstatat(dir, next, &st, AT_SYMLINK_NOFOLLOW) == 0;
        long n = read_at(dir, name, at->offset, out, size);
        if (n > 0)
            at->offset += (uint64_t)n;
        if (n > 0 || (n == 0 && !full))
            return n;
        uint64_t found = n == 0 ? at->segment + 1 : oldest(dir, command, stream, at->segment + 1);
        if (n < 0 && n != -ENOENT)
            return n;
        if (found == UINT64_MAX)
            return 0;
        at->gap = at->gap || n < 0;
        at->segment = found;
        at->offset = 0;
    }
}
