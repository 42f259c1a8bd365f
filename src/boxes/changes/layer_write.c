/* Layers as an overlay wants them: files and directories, a whiteout for what is gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "changes/layer_write.h"
#include "kernel/copy.h"

enum { FILE_MODE = 0777, DIRECTORY_MODE = 01777 };

/* ---- one file ---- */

static int copy_file(int from, const char *path, unsigned mode, int to, const char *name)
{
    struct stat st;
    px_auto_fd int source = px_changes_open(from, path, true);
    if (source < 0)
        return source;
    if (fstat(source, &st) < 0 || !S_ISREG(st.st_mode))
        return -ESTALE;
    px_auto_fd int target = (int)px_sys(SYS_openat, to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (target < 0)
        return target;
    int r = px_copy_file(source, target);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    return r < 0 ? r : fchmod(target, mode & FILE_MODE) < 0 || futimens(target, times) < 0 ? -errno : 0;
}

int px_changes_layer_copy(int from, const char *path, unsigned mode, int to, const char *name)
{
    if (S_ISREG(mode))
        return copy_file(from, path, mode, to, name);
    px_auto_free char *target = NULL;
    size_t length = 0;
    int r = px_changes_load(from, path, mode, true, &target, &length);
    return r < 0 ? r : symlinkat(target, to, name) < 0 ? -errno : 0;
}

/* ---- a layer from changes ---- */

struct layer {
    const struct px_layers *below;
    int into;
};

static int open_dir(int into, const char *path)
{
    return px_open_in_root(into, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* The directory `path` (up to n bytes) of the layer; what is missing on the way is made like what lies below, open to us. */
static int open_way(const struct layer *l, const char *path, size_t n)
{
    char part[PATH_MAX];
    if (n >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, n);
    part[n] = '\0';
    int fd = open_dir(l->into, part);
    if (fd != -ENOENT)
        return fd;
    for (size_t at = 1; at <= n; at++) {
        if (at < n && part[at] != '/')
            continue;
        struct px_layers_at below;
        char was = part[at];
        part[at] = '\0';
        char *slash = strrchr(part, '/');
        if (slash)
            *slash = '\0';
        px_auto_fd int parent = open_dir(l->into, slash ? part : "");
        if (slash)
            *slash = '/';
        const char *name = slash ? slash + 1 : part;
        if (parent < 0)
            return parent;
        if (mkdirat(parent, name, 0700) == 0) {
            unsigned mode = px_layers_find(l->below, part, &below) == 0 && S_ISDIR(below.st.st_mode) ? below.st.st_mode : 0755;
            int r = px_node_chmod_at(parent, name, S_IFDIR, (mode & DIRECTORY_MODE) | 0700);
            if (r < 0)
                return r;
        } else if (errno != EEXIST) {
            return -errno;
        }
        part[at] = was;
    }
    return open_dir(l->into, part);
}

static int put_directory(int parent, const char *name, unsigned mode)
{
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && px_layers_is_whiteout(&st) && unlinkat(parent, name, 0) < 0)
        return -errno;
    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    return px_node_chmod_at(parent, name, S_IFDIR, (mode & DIRECTORY_MODE) | 0700);
}

static int put_whiteout(int parent, const char *name)
{
    return mknodat(parent, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -errno : 0;
}

static int put_item(const struct layer *l, const struct px_changes *changes, const struct px_changes_item *item)
{
    size_t n = strlen(item->path);
    while (n > 0 && item->path[n - 1] == '/')
        n--;
    const char *slash = memrchr(item->path, '/', n), *start = slash ? slash + 1 : item->path;
    char name[NAME_MAX + 1];
    int r = px_fmt(name, sizeof name, "%.*s", (int)(item->path + n - start), start);
    if (r < 0)
        return r;
    px_auto_fd int parent = open_way(l, item->path, slash ? (size_t)(slash - item->path) : 0);
    if (item->kind == PX_CHANGE_DELETED && (parent == -ENOTDIR || parent == -ENXIO))
        return 0; /* what was above it is gone, or a file now */
    if (parent < 0)
        return parent;
    if (item->kind == PX_CHANGE_DELETED)
        return put_whiteout(parent, name);
    if (S_ISDIR(item->after))
        return put_directory(parent, name, item->after);
    int from = px_changes_holder(&changes->upper, item->path);
    return from < 0 ? from : px_changes_layer_copy(from, item->path, item->after, parent, name);
}

/* A directory that forbids its owner to write is closed when all is in it. */
static int close_directories(const struct layer *l, const struct px_changes *changes)
{
    for (size_t i = changes->count; i-- > 0;) {
        const struct px_changes_item *item = &changes->items[i];
        if (item->kind == PX_CHANGE_DELETED || !S_ISDIR(item->after) || (item->after & 0700) == 0700)
            continue;
        px_auto_fd int dir = open_dir(l->into, item->path);
        if (dir < 0 || fchmod(dir, item->after & DIRECTORY_MODE) < 0)
            return dir < 0 ? dir : -errno;
    }
    return 0;
}

int px_changes_layer_write(const struct px_changes *changes, const struct px_layers *below, int into)
{
    const struct layer l = {below, into};
    const char *gone = NULL; /* a directory that is gone with all that was in it */
    int r = 0;
    for (size_t i = 0; i < changes->count && r >= 0; i++) {
        const struct px_changes_item *item = &changes->items[i];
        if (item->kind == PX_CHANGE_SPECIAL || (gone && item->kind == PX_CHANGE_DELETED && px_starts_with(item->path, gone)))
            continue;
        if (item->kind == PX_CHANGE_DELETED && S_ISDIR(item->before))
            gone = item->path;
        r = put_item(&l, changes, item);
    }
    return r < 0 ? r : close_directories(&l, changes);
}

/* ---- several layers as one ---- */

struct merge {
    struct px_layers upper; /* all but the lowest */
    struct layer layer;
    char **todo;
    size_t count, room;
};

static int remember(struct merge *m, char *path)
{
    if (m->count == m->room) {
        size_t more = m->room ? 2 * m->room : 64;
        char **bigger = more > PX_CHANGES_MAX ? NULL : realloc(m->todo, more * sizeof *bigger);
        if (!bigger) {
            free(path);
            return -E2BIG;
        }
        m->todo = bigger;
        m->room = more;
    }
    m->todo[m->count++] = path;
    return 0;
}

/* Frozen files are shared, not copied. */
static int share(int from, const char *path, unsigned mode, int to, const char *name)
{
    px_auto_fd int held = px_open_in_root(from, path, O_PATH | O_NOFOLLOW, 0);
    char link[32];
    if (held < 0 || px_fmt(link, sizeof link, "/proc/self/fd/%d", held) < 0)
        return held < 0 ? held : -EINVAL;
    if (linkat(AT_FDCWD, link, to, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return px_changes_layer_copy(from, path, mode, to, name);
}

/* One name of one layer: the first that has it wins. */
static int merge_entry(struct merge *m, int from, const char *dir, const char *name, int into, const struct stat *st)
{
    struct stat there;
    px_auto_buf struct px_buf path = PX_BUF(PATH_MAX);
    px_buf_printf(&path, "%s%s", dir, name);
    if (path.err < 0)
        return path.err;
    bool known = fstatat(into, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
    if (S_ISDIR(st->st_mode)) {
        if (known)
            return 0;
        int r = put_directory(into, name, st->st_mode);
        px_buf_putc(&path, '/');
        char *taken = px_buf_take(&path);
        return r < 0 || !taken ? (free(taken), r < 0 ? r : -ENOMEM) : remember(m, taken);
    }
    if (known)
        return 0;
    return px_layers_is_whiteout(st) ? put_whiteout(into, name) : share(from, px_buf_text(&path), st->st_mode, into, name);
}

static int merge_part(struct merge *m, int from, const char *dir, int into)
{
    int fd = open_dir(from, dir), r = 0;
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        r = fd < 0 ? fd : -errno;
        (void)px_fd_close(fd);
        return r;
    }
    for (struct dirent *entry; r >= 0 && (entry = readdir(list));) {
        struct stat st;
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, "..") ||
            fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        r = merge_entry(m, from, dir, entry->d_name, into, &st);
    }
    (void)closedir(list);
    return r;
}

/* All parts of a directory that are in sight. If the lowest layer's is not, it must not shine through the one of two. */
static int merge_directory(struct merge *m, const char *dir)
{
    struct px_layers_at at;
    px_auto_fd int into = open_dir(m->layer.into, dir);
    int r = into < 0 ? into : px_layers_find(m->layer.below, dir, &at);
    for (size_t i = 0; i < m->upper.count && r >= 0; i++)
        if (at.parts >> i & 1)
            r = merge_part(m, m->upper.fds[i], dir, into);
    if (r >= 0 && !(at.parts >> m->upper.count & 1) && fsetxattr(into, "user.overlay.opaque", "y", 1, 0) < 0)
        r = -errno;
    return r;
}

int px_changes_layer_merge(const struct px_layers *layers, int into)
{
    struct merge m = {.upper = *layers, .layer = {layers, into}};
    m.upper.count--;
    int r = merge_directory(&m, "");
    while (m.count > 0) {
        px_auto_free char *dir = m.todo[--m.count];
        if (r >= 0)
            r = merge_directory(&m, dir);
    }
    free(m.todo);
    return r;
}
