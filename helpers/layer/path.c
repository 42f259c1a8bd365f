/* Where an entry goes: every step below the root by descriptor, and no link is ever followed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "helpers/layer/layer.h"
#include "kernel/tree.h"

int place_open(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = -EAGAIN;
    for (int i = 0; i < 32 && (fd == -EAGAIN || fd == -EINTR); i++)
        fd = (int)px_sys(SYS_openat2, root, path, &how, sizeof how);
    return fd;
}

/* Makes the directories of a path that are not there, from the top. The descriptor of the last, or -errno. */
static int make_all(int root, const char *path)
{
    px_auto_fd int dir = place_open(root, ".", O_PATH | O_DIRECTORY);
    while (dir >= 0 && *path) {
        char part[PART_MAX + 1];
        size_t n = strcspn(path, "/");
        memcpy(part, path, n);
        part[n] = '\0';
        path += n + (path[n] == '/');
        long r = px_sys(SYS_mkdirat, dir, part, 0755);
        if (r < 0 && r != -EEXIST)
            return (int)r;
        int next = place_open(dir, part, O_PATH | O_DIRECTORY);
        (void)px_fd_close(dir);
        dir = next;
    }
    return px_fd_take(&dir);
}

/* A whiteout in the same layer must not take these away: they lead to something of it. */
static int note_way(struct extract *x, const char *path)
{
    char prefix[NAME_SIZE];
    for (size_t at = 0; path[at];) {
        at += strcspn(path + at, "/");
        memcpy(prefix, path, at);
        prefix[at] = '\0';
        at += path[at] == '/';
        px_auto_fd int fd = place_open(x->root, prefix, O_PATH | O_DIRECTORY);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
            return fd < 0 ? fd : -errno;
        int r = seen_add(&x->seen, st.st_ino);
        if (r < 0)
            return r;
    }
    return 0;
}

static int say_no_way(const char *name, const char *parent, int r, struct px_err *e)
{
    struct shown n = show(name, strlen(name)), p = show(parent, strlen(parent));
    if (r == -ELOOP || r == -ENOTDIR || r == -EXDEV)
        return px_fail(e, PX_E_ARCHIVE, 0, "the archive's entry '%s' was refused: '%s' leads through a link or a file", n.text,
                       p.text);
    return px_fail(e, PX_E_STORE_WRITE, r, "cannot make '%s' for the archive's entry '%s'", p.text, n.text);
}

int place_parent(struct extract *x, const char *name, bool make, int *ret_fd, const char **ret_leaf, struct px_err *e)
{
    const char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0;
    char parent[NAME_SIZE];
    *ret_leaf = slash ? slash + 1 : name;
    if (n == 0) {
        *ret_fd = x->root;
        return 0;
    }
    memcpy(parent, name, n);
    parent[n] = '\0';
    if (x->parent_fd < 0 || strcmp(parent, x->parent) != 0) {
        x->parent_fd = px_fd_close(x->parent_fd);
        int fd = place_open(x->root, parent, O_PATH | O_DIRECTORY);
        if (fd == -ENOENT && !make)
            return 1;
        if (fd == -ENOENT)
            fd = make_all(x->root, parent);
        int r = fd < 0 ? fd : make && x->whiteouts ? note_way(x, parent) : 0;
        if (r < 0) {
            (void)px_fd_close(fd);
            return say_no_way(name, parent, r, e);
        }
        x->parent_fd = fd;
        memcpy(x->parent, parent, n + 1);       /* hide_entry, which makes nothing, does not leave it there */
    }
    *ret_fd = x->parent_fd;
    return 0;
}

int place_clear(struct extract *x, int dir, const char *leaf)
{
    long r = px_sys(SYS_unlinkat, dir, leaf, 0);
    if (r != -EISDIR && r != -EPERM)
        return r == -ENOENT ? 0 : (int)r;
    px_auto_fd int fd = place_open(dir, leaf, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    int failed = px_kernel_tree_empty(fd);
    if (failed == 0)
        failed = (int)px_sys(SYS_unlinkat, dir, leaf, AT_REMOVEDIR);
    if (dir == x->parent_fd)
        return failed;          /* what goes is below the directory that is kept, not above it */
    x->parent_fd = px_fd_close(x->parent_fd);
    return failed;
}
