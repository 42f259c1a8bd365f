/* Merging: first everything is looked at, then what is gone goes (the deepest first), then what is there comes (the
 * shallowest first). A file is written beside its place, made durable, and renamed: after a crash it is the old one or
 * the new one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "changes/changes.h"
#include "kernel/copy.h"

enum { NAMES_MAX = 8, FILE_MODE = 0777, DIRECTORY_MODE = 01777 };

/* The parent directory of an item in the lower tree, and its name there. */
struct spot {
    int dir;
    char path[PATH_MAX];
    const char *name;
};

/* A temporary name that nobody has; the same process never uses one twice. */
struct apply {
    const struct px_changes *changes;
    const struct timespec *since;
    uint64_t random, counter;
};

static int open_spot(const struct px_changes *c, const char *path, struct spot *ret)
{
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof ret->path)
        return -ENAMETOOLONG;
    memcpy(ret->path, path, n + 1);
    if (ret->path[n - 1] == '/')
        ret->path[n - 1] = '\0';
    char *slash = strrchr(ret->path, '/');
    ret->name = slash ? slash + 1 : ret->path;
    if (slash)
        *slash = '\0';
    ret->dir = px_open_in_root(c->lower.fds[0], slash ? ret->path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return ret->dir < 0 ? ret->dir : 0;
}

/* ---- conflicts ---- */

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Whether somebody else has changed what the item replaces. A directory that stays may change: its own files are looked
 * at. */
static bool conflicts(const struct apply *a, const struct px_changes_item *item, const struct spot *spot)
{
    struct stat st;
    bool there = fstatat(spot->dir, spot->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there || !item->before)
        return there != (item->before != 0) && !(there && S_ISDIR(item->after) && S_ISDIR(st.st_mode));
    if ((st.st_mode & S_IFMT) != (item->before & S_IFMT))
        return true;
    return (!S_ISDIR(st.st_mode) || item->kind == PX_CHANGE_DELETED) && is_later(&st.st_ctim, a->since);
}

/* A path that another item makes free first is none. */
static bool freed(const struct px_changes *c, const struct px_changes_item *item)
{
    if (item->kind != PX_CHANGE_ADDED)
        return false;
    size_t n = strlen(item->path);
    px_auto_free char *other = malloc(n + 2);
    if (!other)
        return false;
    memcpy(other, item->path, n + 1);
    if (n && other[n - 1] == '/')
        other[n - 1] = '\0';
    else
        memcpy(other + n, "/", 2);
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(c->items[middle].path, other);
        if (order == 0)
            return c->items[middle].kind == PX_CHANGE_DELETED;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static int check_all(const struct apply *a, struct px_err *e)
{
    px_auto_buf struct px_buf names = PX_BUF(384);
    size_t count = 0;
    for (size_t i = 0; i < a->changes->count; i++) {
        const struct px_changes_item *item = &a->changes->items[i];
        struct spot spot;
        if (item->kind == PX_CHANGE_SPECIAL || open_spot(a->changes, item->path, &spot) < 0)
            continue; /* its parent is new */
        bool bad = !freed(a->changes, item) && conflicts(a, item, &spot);
        (void)px_fd_close(spot.dir);
        if (bad && ++count <= NAMES_MAX) {
            px_buf_puts(&names, count > 1 ? ", " : "");
            px_buf_quote(&names, item->path, strlen(item->path));
        }
    }
    if (count == 0)
        return 0;
    return px_fail(e, PX_E_CHANGES, 0, "nothing was applied: %zu changed meanwhile: %s%s", count, px_buf_text(&names),
                   count > NAMES_MAX || names.err < 0 ? ", ..." : "");
}

/* ---- doing ---- */

static int temporary_name(struct apply *a, char out[64])
{
    return px_fmt(out, 64, ".px-%016llx-%llu", (unsigned long long)a->random, (unsigned long long)a->counter++);
}

/* Files of a root caller's directory keep the owner of what they replace, or get that of where they are put. */
static int give_owner(const struct spot *spot, const char *name)
{
    struct stat st;
    if (geteuid() != 0)
        return 0;
    if (fstatat(spot->dir, spot->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && fstat(spot->dir, &st) < 0)
        return -errno;
    return fchownat(spot->dir, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int write_file(const struct apply *a, const struct px_changes_item *item, const struct spot *spot,
                      const char *name)
{
    struct stat st;
    px_auto_fd int from = px_changes_open(px_changes_holder(&a->changes->upper, item->path), item->path, true);
    if (from < 0)
        return from;
    if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
        return -ESTALE;
    px_auto_fd int to =
        (int)px_sys(SYS_openat, spot->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return to;
    int r = px_copy_file(from, to);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (r >= 0)
        r = give_owner(spot, name);
    if (r >= 0 && (fchmod(to, item->after & FILE_MODE) < 0 || futimens(to, times) < 0 || fsync(to) < 0))
        r = -errno;
    return r;
}

static int write_link(const struct apply *a, const struct px_changes_item *item, const struct spot *spot,
                      const char *name)
{
    px_auto_free char *target = NULL;
    size_t length = 0;
    int r = px_changes_load_from(&a->changes->upper, item->path, item->after, true, &target, &length);
    if (r < 0)
        return r;
    return symlinkat(target, spot->dir, name) < 0 ? -errno : give_owner(spot, name);
}

static int put(struct apply *a, const struct px_changes_item *item, const struct spot *spot)
{
    char name[64];
    int r = temporary_name(a, name);
    if (r >= 0)
        r = (S_ISLNK(item->after) ? write_link : write_file)(a, item, spot, name);
    if (r >= 0 && conflicts(a, item, spot)) /* once more, at the last moment */
        r = -EBUSY;
    if (r >= 0 && renameat(spot->dir, name, spot->dir, spot->name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(spot->dir, name, 0);
    return r;
}

/* Open to us until everything is in it. */
static int make_directory(const struct spot *spot)
{
    struct stat st;
    if (mkdirat(spot->dir, spot->name, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    if (geteuid() != 0)
        return 0;
    return fstat(spot->dir, &st) < 0 || fchownat(spot->dir, spot->name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0
               ? -errno
               : 0;
}

/* By the object itself, whatever has its name by then. */
static int change_mode(const struct px_changes_item *item, const struct spot *spot)
{
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, spot->dir, spot->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != (item->after & S_IFMT))
        return -ESTALE;
    return px_node_chmod(fd, item->after & (S_ISDIR(st.st_mode) ? DIRECTORY_MODE : FILE_MODE));
}

static int remove_item(const struct px_changes_item *item, const struct spot *spot)
{
    int flags = S_ISDIR(item->before) ? AT_REMOVEDIR : 0;
    return unlinkat(spot->dir, spot->name, flags) < 0 && errno != ENOENT ? -errno : 0;
}

/* What is gone, what comes, and last the modes of directories, which may forbid even us to write. */
enum pass { REMOVE, PUT, CLOSE_DIRECTORIES };

static bool belongs(enum pass pass, const struct px_changes_item *item)
{
    if (item->kind == PX_CHANGE_SPECIAL)
        return false;
    if (item->kind == PX_CHANGE_DELETED)
        return pass == REMOVE;
    return pass == CLOSE_DIRECTORIES ? S_ISDIR(item->after)
                                     : pass == PUT && !(S_ISDIR(item->after) && item->kind == PX_CHANGE_MODE);
}

static int apply_item(struct apply *a, enum pass pass, const struct px_changes_item *item)
{
    struct spot spot;
    int r = open_spot(a->changes, item->path, &spot);
    if (r < 0)
        return r;
    if (pass == REMOVE)
        r = remove_item(item, &spot);
    else if (pass == CLOSE_DIRECTORIES || item->kind == PX_CHANGE_MODE)
        r = change_mode(item, &spot);
    else
        r = S_ISDIR(item->after) ? make_directory(&spot) : put(a, item, &spot);
    (void)px_fd_close(spot.dir);
    return r;
}

static int item_failed(const struct px_changes_item *item, int err, struct px_err *e)
{
    char name[256];
    px_auto_buf struct px_buf quoted = PX_BUF(200);
    px_buf_quote(&quoted, item->path, strlen(item->path));
    (void)px_fmt(name, sizeof name, "%s", px_buf_text(&quoted));
    px_fail(e, PX_E_CHANGES, err, "only a part was applied: '%s' could not be", name);
    return err == -EBUSY || err == -ENOTEMPTY ? px_why(e, "It was changed meanwhile.") : -1;
}

/* ---- how much ---- */

static int too_large(const char *what, uint64_t bytes, uint64_t max, struct px_err *e)
{
    px_fail(e, PX_E_MERGE_TOO_LARGE, 0, "nothing was merged: the changes take %llu bytes%s", (unsigned long long)bytes,
            what);
    return max == UINT64_MAX
               ? -1
               : px_why(e, "The limit of the command is %llu bytes; a file counts once for each of its names.",
                        (unsigned long long)max);
}

/* A sparse file can be larger than the other file system lets any file be; an unnamed file there shows it. */
static int fits_in(int dir, uint64_t size, struct px_err *e)
{
    px_auto_fd int trial = (int)px_sys(SYS_openat, dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (trial < 0 || ftruncate(trial, (off_t)size) == 0 || errno != EFBIG)
        return 0;
    too_large(" in one file", size, UINT64_MAX, e);
    return px_why(e, "The file system that they are merged into has no files of that size.");
}

int px_changes_weigh(const struct px_changes *changes, uint64_t bytes_max, int dir, struct px_err *e)
{
    const uint64_t asked_from = (uint64_t)1 << 40; /* every file system has files of that size */
    uint64_t bytes = 0, largest = 0;
    for (size_t i = 0; i < changes->count; i++) {
        const struct px_changes_item *item = &changes->items[i];
        bytes = item->blocks > UINT64_MAX - bytes ? UINT64_MAX : bytes + item->blocks;
        largest = item->size > largest ? item->size : largest;
    }
    if (bytes > bytes_max)
        return too_large("", bytes, bytes_max, e);
    return largest > asked_from ? fits_in(dir, largest, e) : 0;
}

int px_changes_check(const struct px_changes *changes, const struct timespec *since, struct px_err *e)
{
    return check_all(&(struct apply){.changes = changes, .since = since}, e);
}

int px_changes_apply(const struct px_changes *changes, const struct timespec *since, struct px_err *e)
{
    struct apply a = {.changes = changes, .since = since};
    if (px_sys(SYS_getrandom, &a.random, sizeof a.random, 0) != sizeof a.random)
        return px_fail(e, PX_E_CHANGES, EIO, "no random number for a temporary name");
    if (check_all(&a, e) < 0)
        return -1;
    for (enum pass pass = REMOVE; pass <= CLOSE_DIRECTORIES; pass++)
        for (size_t i = 0; i < changes->count; i++) {
            const struct px_changes_item *item = &changes->items[pass == PUT ? i : changes->count - 1 - i];
            int r = belongs(pass, item) ? apply_item(&a, pass, item) : 0;
            if (r < 0)
                return item_failed(item, r, e);
        }
    return 0;
}
