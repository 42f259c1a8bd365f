/* Files of a wheel: listed, moved, read and written, always by descriptor and without following a link. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "pep/wheel.h"

/* ---- listing ---- */

struct listing {
    struct px_paths paths;
    size_t room;
};

static int add_path(struct listing *l, const char *path)
{
    if (l->paths.count == PX_WHEEL_FILES_MAX)
        return -E2BIG;
    if (l->paths.count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        char **items = realloc(l->paths.items, room * sizeof *items);
        if (!items)
            return -ENOMEM;
        l->paths.items = items;
        l->room = room;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    l->paths.items[l->paths.count++] = copy;
    return 0;
}

static int open_dir(int parent, const char *name)
{
    return px_open_beneath(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int list_below(struct listing *l, int fd, const char *prefix, unsigned depth);

static int list_one(struct listing *l, int dir, const char *name, const char *prefix, unsigned depth)
{
    char path[PX_WHEEL_PATH_MAX];
    struct stat st;
    if (px_fmt(path, sizeof path, "%s%s%s", prefix, *prefix ? "/" : "", name) < 0)
        return -ENAMETOOLONG;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(st.st_mode))
        return add_path(l, path);
    if (!S_ISDIR(st.st_mode))
        return -EINVAL;
    int below = depth < PX_WHEEL_DEPTH_MAX ? open_dir(dir, name) : -ELOOP;
    return below < 0 ? below : list_below(l, below, path, depth + 1);
}

/* Takes the descriptor. */
static int list_below(struct listing *l, int fd, const char *prefix, unsigned depth)
{
    DIR *dir = fdopendir(fd);
    int r = 0;
    if (!dir) {
        (void)px_fd_close(fd);
        return -ENOMEM;
    }
    for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            r = list_one(l, dirfd(dir), entry->d_name, prefix, depth);
    (void)closedir(dir);
    return r;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int px_wheel_paths_list(int dir, const char *below, struct px_paths *ret_paths)
{
    struct listing l = {0};
    int fd = open_dir(dir, below);
    int r = fd < 0 ? fd : list_below(&l, fd, "", 0);
    if (r < 0) {
        px_wheel_paths_done(&l.paths);
        return r;
    }
    if (l.paths.count)
        qsort(l.paths.items, l.paths.count, sizeof *l.paths.items, compare_paths);
    *ret_paths = l.paths;
    return 0;
}

void px_wheel_paths_done(struct px_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
    *paths = (struct px_paths){0};
}

/* ---- moving ---- */

static int move_dir(int from, int to, unsigned depth);

static int move_one(int from, int to, const char *name, unsigned depth)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    long r = px_sys(SYS_renameat2, from, name, to, name, RENAME_NOREPLACE);
    if (r != -EEXIST || !S_ISDIR(st.st_mode))
        return (int)r;
    int source = open_dir(from, name);
    px_auto_fd int target = open_dir(to, name);
    if (source < 0 || target < 0) {
        (void)px_fd_close(source);
        return target == -ENOTDIR || target == -ELOOP ? -EEXIST : source < 0 ? source : target;
    }
    r = depth < PX_WHEEL_DEPTH_MAX ? move_dir(source, target, depth + 1) : -ELOOP;
    return r < 0 ? (int)r : (int)px_sys(SYS_unlinkat, from, name, AT_REMOVEDIR);
}

/* Takes the descriptor `from`. */
static int move_dir(int from, int to, unsigned depth)
{
    DIR *dir = fdopendir(from);
    int r = 0;
    if (!dir) {
        (void)px_fd_close(from);
        return -ENOMEM;
    }
    for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            r = move_one(dirfd(dir), to, entry->d_name, depth);
    (void)closedir(dir);
    return r;
}

/* Creates the directories of a path from the top, with modes that do not depend on the umask. */
int px_wheel_paths_make(int root, const char *path)
{
    char part[PX_WHEEL_PATH_MAX];
    for (size_t at = 0; path[at];) {
        at += strcspn(path + at, "/");
        if (px_fmt(part, sizeof part, "%.*s", (int)at, path) < 0)
            return -ENAMETOOLONG;
        long r = px_sys(SYS_mkdirat, root, part, 0755);
        if (r == 0)
            r = px_node_chmod_at(root, part, S_IFDIR, 0755);
        if (r < 0 && r != -EEXIST)
            return (int)r;
        at += path[at] == '/';
    }
    return 0;
}

int px_wheel_paths_move(int from, const char *name, int to, const char *target)
{
    int r = px_equal(target, ".") ? 0 : px_wheel_paths_make(to, target);
    if (r < 0)
        return r;
    int source = open_dir(from, name);
    px_auto_fd int place = open_dir(to, target);
    if (source < 0 || place < 0) {
        (void)px_fd_close(source);
        return source < 0 ? source : place;
    }
    r = move_dir(source, place, 0);
    return r < 0 ? r : (int)px_sys(SYS_unlinkat, from, name, AT_REMOVEDIR);
}

/* ---- reading and writing ---- */

int px_wheel_paths_read(int dir, const char *path, size_t max, struct px_buf *out)
{
    char piece[1 << 14];
    struct stat st;
    px_auto_fd int fd = px_open_beneath(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    if ((uint64_t)st.st_size > max)
        return -EFBIG;
    ssize_t n;
    while ((n = px_read_some(fd, piece, sizeof piece)) > 0)
        if (px_buf_add(out, piece, (size_t)n) < 0)
            return out->err;
    return (int)n;
}

int px_wheel_paths_write(int dir, const char *path, const void *data, size_t size, unsigned mode)
{
    px_auto_fd int fd = px_open_beneath(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd < 0)
        return fd;
    int r = px_write_full(fd, data, size);
    return r < 0 ? r : fchmod(fd, mode) < 0 ? -errno : 0;
}
