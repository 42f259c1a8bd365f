#include "changes/layers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

bool px_layers_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool px_layers_is_opaque(int dir)
{
    char value = 0;
    return fgetxattr(dir, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

/* ---- finding ---- */

static int look(int layer, const char *path, struct stat *ret_st)
{
    px_auto_fd int fd = px_open_in_root(layer, *path ? path : ".", O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
    return fstat(fd, ret_st) < 0 ? -errno : 0;
}

static bool hides(int layer, const char *path)
{
    px_auto_fd int dir = px_open_in_root(layer, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return dir >= 0 && px_layers_is_opaque(dir);
}

/* One path in those layers that have its parent; `at->parts` says which, and which have it itself afterwards. */
static int descend(const struct px_layers *l, const char *path, struct px_layers_at *at)
{
    uint32_t parents = at->parts;
    bool found = false;
    at->parts = 0;
    for (size_t i = 0; i < l->count; i++) {
        struct stat st;
        int r = parents >> i & 1 ? look(l->fds[i], path, &st) : -ENOENT;
        if (r == -ENOENT)
            continue;
        if (r < 0)
            return r;
        bool directory = S_ISDIR(st.st_mode);
        if (px_layers_is_whiteout(&st) || (found && !directory))
            break;
        if (!found)
            *at = (struct px_layers_at){.st = st, .layer = i};
        found = true;
        if (!directory)
            break;
        at->parts |= (uint32_t)1 << i;
        if (parents >> i > 1 && hides(l->fds[i], path))
            break;
    }
    return found ? 0 : -ENOENT;
}

int px_layers_find(const struct px_layers *layers, const char *path, struct px_layers_at *ret)
{
    char prefix[PATH_MAX];
    struct px_layers_at at = {.parts = ((uint32_t)1 << layers->count) - 1};
    int r = descend(layers, "", &at);
    for (const char *p = path; r >= 0 && *p;) {
        const char *slash = strchrnul(p, '/');
        size_t n = (size_t)(slash - path);
        if (!(at.parts & (at.parts - 1))) { /* one layer is left: the rest of the way is its own */
            n = strlen(path);
            slash = path + n;
        }
        if (n >= sizeof prefix)
            return -ENAMETOOLONG;
        if (!S_ISDIR(at.st.st_mode))
            return -ENOENT;
        memcpy(prefix, path, n);
        while (n > 0 && prefix[n - 1] == '/')
            n--;
        prefix[n] = '\0';
        r = descend(layers, prefix, &at);
        p = *slash ? slash + 1 : slash;
    }
    if (r >= 0)
        *ret = at;
    return r;
}

int px_layers_open(const struct px_layers *layers, const char *path)
{
    struct px_layers_at at;
    int r = px_layers_find(layers, path, &at);
    if (r < 0)
        return r;
    return px_open_in_root(layers->fds[at.layer], *path ? path : ".", O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
}

/* ---- listing ---- */

struct listing {
    int dirs[PX_LAYERS_DEPTH]; /* the parts of the directory */
    size_t count;
    int (*each)(void *user, const char *name, const struct stat *st);
    void *user;
};

/* What lies above has been shown, or hides it. */
static bool is_covered(const struct listing *l, size_t part, const char *name)
{
    struct stat st;
    for (size_t i = 0; i < part; i++)
        if (fstatat(l->dirs[i], name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static int list_part(const struct listing *l, size_t part)
{
    int copy = px_open_in_root(l->dirs[part], ".", O_RDONLY | O_DIRECTORY, 0), r = 0;
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        r = copy < 0 ? copy : -errno;
        (void)px_fd_close(copy);
        return r;
    }
    for (struct dirent *entry; r >= 0 && (entry = readdir(list));) {
        struct stat st;
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, "..") ||
            fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || px_layers_is_whiteout(&st) ||
            is_covered(l, part, entry->d_name))
            continue;
        r = l->each(l->user, entry->d_name, &st);
    }
    (void)closedir(list);
    return r;
}

int px_layers_list(const struct px_layers *layers, const char *dir,
                   int (*each)(void *user, const char *name, const struct stat *st), void *user)
{
    struct px_layers_at at;
    struct listing l = {.each = each, .user = user};
    int r = px_layers_find(layers, dir, &at);
    if (r < 0 || !S_ISDIR(at.st.st_mode))
        return r < 0 ? r : -ENOENT;
    for (size_t i = 0; i < layers->count && r >= 0; i++) {
        if (!(at.parts >> i & 1))
            continue;
        int fd = px_open_in_root(layers->fds[i], *dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (fd < 0)
            r = fd;
        else
            l.dirs[l.count++] = fd;
    }
    for (size_t i = 0; i < l.count && r >= 0; i++)
        r = list_part(&l, i);
    for (size_t i = 0; i < l.count; i++)
        (void)px_fd_close(l.dirs[i]);
    return r < 0 ? r : 0;
}
