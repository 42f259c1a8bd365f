/* A tar that a box sends becomes files and directories in one new directory, with their modes and times. Links, devices and pipes are
 * counted and left out. The box may be able to write in that directory: every step is by descriptor, no link is followed, and no file
 * that is there is opened for writing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "helpers/layer/layer.h"
#include "kernel/copy.h"

/* ---- bytes ---- */

struct stream {
    int fd;
    const struct extract *x;
    uint64_t bytes;             /* with headers, and with what is left out */
    uint8_t slot[SLOT];
};

/* Whole blocks, as they come. */
static long stream_next(void *user, const uint8_t **ret_data, struct px_err *e)
{
    enum { OF_AN_ENTRY = 8192, SPARE = 1024 };
    struct stream *s = user;
    size_t have = 0;
    ssize_t n;
    do {
        n = px_read_some(s->fd, s->slot + have, have ? BLOCK - have % BLOCK : SLOT);
        have += n > 0 ? (size_t)n : 0;
    } while (n > 0 && have % BLOCK != 0);
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "cannot read what the box sends");
    s->bytes += have;
    if (s->bytes / OF_AN_ENTRY > s->x->limits.bytes / OF_AN_ENTRY + s->x->entries + SPARE)
        return px_fail(e, PX_E_LIMIT, 0, "the box sends more than what is to be copied can take");
    *ret_data = s->slot;
    return (long)have;
}

/* ---- entries ---- */

static int cannot(const struct entry *entry, int sys, struct px_err *e)
{
    return px_fail(e, PX_E_IO, sys, "cannot write '%s'", show(entry->name, strlen(entry->name)).text);
}

/* Bytes count whether they become holes or not. */
static int count_bytes(struct extract *x, uint64_t bytes, struct px_err *e)
{
    if (bytes <= x->limits.bytes - x->bytes) {
        x->bytes += bytes;
        return 0;
    }
    px_fail(e, PX_E_LIMIT, 0, "there is more to copy than %llu bytes", (unsigned long long)x->limits.bytes);
    return px_fix(e, "Copy a part of it, or allow more: --max-size.");
}

static int make_directory(int dir, const char *leaf, const struct entry *entry, struct px_err *e)
{
    long r = px_sys(SYS_mkdirat, dir, leaf, (entry->mode & 0777) | 0700);
    return r < 0 && r != -EEXIST ? cannot(entry, (int)r, e) : 0;
}

static int open_new(int dir, const char *leaf, const struct entry *entry)
{
    return (int)px_sys(SYS_openat, dir, leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry->mode & 0777);
}

static int write_file(struct tar *t, int dir, const char *leaf, const struct entry *entry, struct px_err *e)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = entry->mtime}};
    const uint8_t *data;
    uint64_t at = 0;
    long n = 0;
    px_auto_fd int fd = open_new(dir, leaf, entry);
    int r = fd < 0 ? fd : 0;
    while (r >= 0 && (n = tar_data(t, &data, e)) > 0)
        r = px_copy_stream(fd, &at, (const char *)data, (size_t)n);
    if (n < 0)
        return -1;
    if (r >= 0)
        r = px_copy_end(fd, at);
    if (r >= 0 && entry->mtime > 0)
        (void)futimens(fd, times);
    return r < 0 ? cannot(entry, r, e) : 0;
}

/* A second name of a file becomes a file of its own. */
static int copy_link(struct extract *x, int dir, const char *leaf, const struct entry *entry, struct px_err *e)
{
    struct stat st;
    px_auto_fd int from = place_open(x->root, entry->target, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
        return cannot(entry, from < 0 ? from : EINVAL, e);
    if (count_bytes(x, (uint64_t)st.st_size, e) < 0)
        return -1;
    px_auto_fd int to = open_new(dir, leaf, entry);
    int r = to < 0 ? to : px_copy_part(from, 0, (uint64_t)st.st_size, to);
    return r < 0 ? cannot(entry, r, e) : 0;
}

static int take(struct extract *x, struct tar *t, const struct entry *entry, const char *top, struct px_err *e)
{
    const char *leaf;
    int dir;
    if (++x->entries > x->limits.entries)
        return px_fail(e, PX_E_ARCHIVE, 0, "the archive that came from the box has more than %llu entries",
                       (unsigned long long)x->limits.entries);
    if (entry->name[0] == '\0')
        return 0;
    if (!px_path_within(entry->name, top))
        return px_fail(e, PX_E_ARCHIVE, 0, "the archive that came from the box holds '%s', which nobody asked for",
                       show(entry->name, strlen(entry->name)).text);
    if (entry->kind == KIND_SYMLINK || entry->kind == KIND_DROPPED) {
        x->dropped++;
        return 0;
    }
    if (count_bytes(x, entry->size, e) < 0 || place_parent(x, entry->name, true, &dir, &leaf, e) < 0)
        return -1;
    if (entry->kind == KIND_DIRECTORY)
        return make_directory(dir, leaf, entry, e);
    return entry->kind == KIND_FILE ? write_file(t, dir, leaf, entry, e) : copy_link(x, dir, leaf, entry, e);
}

int receive(const struct receive_job *job, struct px_unpacked *ret_done, struct px_err *e)
{
    struct entry *entry = malloc(sizeof *entry);
    struct stream *s = malloc(sizeof *s);
    struct extract x = {.root = -EBADF, .parent_fd = -EBADF};
    struct tar t;
    int r = entry && s ? extract_init(&x, job->dir, false, &job->limits) : -ENOMEM;
    if (r < 0) {
        r = px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_IO, r, "cannot begin to copy");
    } else {
        s->fd = job->archive;
        s->x = &x;
        s->bytes = 0;
        tar_init(&t, stream_next, s);
        while ((r = tar_next(&t, entry, e)) > 0 && (r = take(&x, &t, entry, job->top, e)) >= 0)
            ;
        tar_done(&t);
    }
    *ret_done = (struct px_unpacked){.bytes = x.bytes, .entries = x.entries, .dropped = x.dropped};
    extract_done(&x);
    free(s);
    free(entry);
    return r;
}
