/* A file or a directory of this machine becomes a tar for a box. Every step is by descriptor and no link is followed: a box may be able to
 * write in the tree. What goes meanwhile is left out, and a file has as many bytes as its header says. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "helpers/layer/layer.h"

struct sender {
    struct squeeze *to;
    char path[NAME_SIZE];       /* of what is being sent */
};

static int cannot(const struct sender *s, int code, int sys, const char *what, struct px_err *e)
{
    return px_fail(e, code, sys, "%s '%s'", what, show(s->path, strlen(s->path)).text);
}

static bool is_sent(const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
}

static int put(struct sender *s, char type, const struct stat *st, uint64_t size, const char *target, struct px_err *e)
{
    char name[NAME_SIZE + 1];
    const struct entar_entry entry = {.name = name, .type = type, .mode = st->st_mode & 0777, .size = size, .target = target,
                                      .mtime = st->st_mtime > 0 ? (uint64_t)st->st_mtime : 0, .gnu = true};
    if (px_fmt(name, sizeof name, "%s%s", s->path, type == '5' ? "/" : "") < 0)
        return cannot(s, PX_E_LIMIT, ENAMETOOLONG, "cannot copy", e);
    return entar_header(s->to, &entry, e);
}

static int put_content(struct sender *s, int fd, uint64_t size, struct px_err *e)
{
    for (uint64_t left = size; left > 0;) {
        size_t room;
        uint8_t *to = squeeze_room(s->to, &room);
        size_t want = room < left ? room : (size_t)left;
        ssize_t n = px_read_some(fd, to, want);
        if (n < 0)
            return cannot(s, PX_E_IO, (int)n, "cannot read", e);
        if (n == 0) {           /* it has become shorter */
            memset(to, 0, want);
            n = (ssize_t)want;
        }
        left -= (uint64_t)n;
        if (squeeze_took(s->to, (size_t)n, e) < 0)
            return -1;
    }
    return entar_pad(s->to, size, e);
}

static int put_link(struct sender *s, int dir, const char *name, const struct stat *st, struct px_err *e)
{
    char target[NAME_SIZE];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    if (n < 0)
        return cannot(s, PX_E_IO, errno, "cannot read the link", e);
    target[n] = '\0';
    return put(s, '2', st, 0, target, e);
}

static int walk(struct sender *s, int fd, unsigned depth, struct px_err *e);

static int put_open(struct sender *s, int fd, const struct stat *st, unsigned depth, struct px_err *e)
{
    bool directory = S_ISDIR(st->st_mode);
    uint64_t size = directory ? 0 : (uint64_t)st->st_size;
    if (put(s, directory ? '5' : '0', st, size, "", e) < 0)
        return -1;
    return directory ? walk(s, fd, depth, e) : put_content(s, fd, size, e);
}

static int put_found(struct sender *s, int dir, const char *name, unsigned depth, struct px_err *e)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : cannot(s, PX_E_IO, errno, "cannot look at", e);
    if (S_ISLNK(st.st_mode))
        return put_link(s, dir, name, &st, e);
    if (!is_sent(&st))
        return 0;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0 || !is_sent(&st))
        return cannot(s, PX_E_IO, fd < 0 ? fd : ESTALE, "cannot read", e);
    return put_open(s, fd, &st, depth + 1, e);
}

static int walk(struct sender *s, int fd, unsigned depth, struct px_err *e)
{
    size_t at = strlen(s->path);
    struct dirent *entry = NULL;
    int copy = depth < DEPTH_MAX ? (int)px_sys(SYS_openat, fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -ELOOP;
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        (void)px_fd_close(copy);
        return cannot(s, depth < DEPTH_MAX ? PX_E_IO : PX_E_LIMIT, copy < 0 ? copy : ENOMEM, "cannot read", e);
    }
    int r = 0;
    for (errno = 0; r == 0 && (entry = readdir(list)); errno = 0) {
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, ".."))
            continue;
        r = px_fmt(s->path + at, sizeof s->path - at, "/%s", entry->d_name) < 0
                ? cannot(s, PX_E_LIMIT, ENAMETOOLONG, "cannot copy", e)
                : put_found(s, dirfd(list), entry->d_name, depth, e);
        s->path[at] = '\0';
    }
    if (r == 0 && errno)
        r = cannot(s, PX_E_IO, errno, "cannot read", e);
    (void)closedir(list);
    return r;
}

int send_tree(int fd, const char *name, int out, struct px_err *e)
{
    struct sender s = {0};
    struct px_layer layer;
    struct stat st;
    if (fstat(fd, &st) < 0 || px_fmt(s.path, sizeof s.path, "%s", name) < 0)
        return px_fail(e, PX_E_IO, EINVAL, "cannot begin to copy");
    int r = squeeze_open(out, PX_COMPRESS_NONE, 0, &s.to, e);
    if (r == 0)
        r = put_open(&s, fd, &st, 0, e);
    if (r == 0)
        r = entar_end(s.to, e) < 0 ? -1 : squeeze_finish(s.to, &layer, e);
    squeeze_free(s.to);
    return r;
}
