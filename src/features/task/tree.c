/* Puts trees into a workspace: given files, or a copy of a directory. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "changes/layer_write.h"
#include "kernel/tree.h"
#include "task/task.h"

enum { DIRS_MAX = 1 << 18 };

/* ---- directories beside a workspace ---- */

static int open_dir(int dir, const char *path)
{
    return px_open_in_root(dir, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

int px_task_scratch(const struct px_workspace *space, const char *name)
{
    if (mkdirat(space->own, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    px_auto_fd int fd = open_dir(space->own, name);
    int r = fd < 0 ? fd : px_kernel_tree_empty(fd);
    if (r >= 0 && fchmod(fd, 0755) < 0) /* the mode of a workspace must not depend on the caller's umask */
        r = -errno;
    return r < 0 ? r : px_fd_take(&fd);
}

void px_task_scratch_done(const struct px_workspace *space, const char *name)
{
    px_workspace_drop(space->root, space->own, name);
}

/* ---- directories to come ---- */

int px_task_dirs_add(struct px_task_dirs *d, char *path)
{
    if (path && d->count == d->room) {
        size_t more = d->room ? 2 * d->room : 64;
        char **bigger = more > DIRS_MAX ? NULL : realloc(d->items, more * sizeof *bigger);
        if (!bigger) {
            free(path);
            return -E2BIG;
        }
        d->items = bigger;
        d->room = more;
    }
    if (path)
        d->items[d->count++] = path;
    return path ? 0 : -ENOMEM;
}

char *px_task_dirs_take(struct px_task_dirs *d)
{
    if (d->count > 0)
        return d->items[--d->count];
    free(d->items);
    *d = (struct px_task_dirs){0};
    return NULL;
}

/* ---- copying ---- */

struct copy {
    const struct px_layers *from;
    const struct stat *skip; /* a directory that is left out; NULL: none */
    int into, here;          /* the directory that is copied now */
    const char *dir;
    struct px_task_dirs todo;
};

static int copy_entry(void *user, const char *name, const struct stat *st)
{
    struct copy *c = user;
    px_auto_buf struct px_buf path = PX_BUF(PATH_MAX);
    px_buf_printf(&path, "%s%s", c->dir, name);
    if (path.err < 0)
        return path.err;
    if (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode)) {
        int from = px_changes_holder(c->from, px_buf_text(&path));
        return from < 0 ? from : px_changes_layer_copy(from, px_buf_text(&path), st->st_mode, c->here, name);
    }
    if (!S_ISDIR(st->st_mode) || (c->skip && c->skip->st_dev == st->st_dev && c->skip->st_ino == st->st_ino))
        return 0;
    if (mkdirat(c->here, name, 0700) < 0)
        return -errno;
    px_buf_putc(&path, '/');
    return px_task_dirs_add(&c->todo, px_buf_take(&path));
}

static int copy_directory(struct copy *c, const char *dir)
{
    struct px_layers_at at;
    px_auto_fd int here = open_dir(c->into, dir);
    int r = here < 0 ? here : px_layers_find(c->from, dir, &at);
    c->here = here;
    c->dir = dir;
    if (r >= 0)
        r = px_layers_list(c->from, dir, copy_entry, c);
    if (r >= 0 && fchmod(here, (at.st.st_mode & 01777) | 0700) < 0)
        r = -errno;
    return r;
}

int px_task_copy(const struct px_layers *from, const struct stat *skip, int into)
{
    struct copy c = {.from = from, .skip = skip, .into = into};
    int r = copy_directory(&c, "");
    for (char *dir; (dir = px_task_dirs_take(&c.todo)); free(dir))
        if (r >= 0)
            r = copy_directory(&c, dir);
    return r;
}

/* ---- files that are given ---- */

static int bad_path(const char *path, const char *why, struct px_err *e)
{
    px_auto_buf struct px_buf quoted = PX_BUF(300);
    px_buf_quote(&quoted, path, strnlen(path, 60));
    px_fail(e, PX_E_TASK_PATH, 0, "the path '%s' is not allowed in a workspace", px_buf_text(&quoted));
    return px_why(e, "%s", why);
}

int px_task_path(const char *path, char out[], size_t size, struct px_err *e)
{
    px_auto_buf struct px_buf clean = PX_BUF(PATH_MAX);
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    if (path[0] == '/' || *last == '\0' || px_equal(last, "."))
        return bad_path(path, "It must name a file, from the workspace's own directory on.", e);
    for (const char *p = path; *p; p += strcspn(p, "/") + (p[strcspn(p, "/")] == '/')) {
        size_t part = strcspn(p, "/");
        if (part == 2 && p[0] == '.' && p[1] == '.')
            return bad_path(path, "It leads out of a directory by '..'.", e);
        if (part == 0 || (part == 1 && p[0] == '.'))
            continue;
        if (part > NAME_MAX)
            return bad_path(path, "A part of it is too long.", e);
        px_buf_printf(&clean, "%s%.*s", clean.len ? "/" : "", (int)part, p);
    }
    return clean.err < 0 || px_fmt(out, size, "%s", px_buf_text(&clean)) < 0 ? bad_path(path, "It is too long.", e) : 0;
}

/* Creates the parent directories, with their modes in the workspace. */
static int open_way(int into, const struct px_layers *like, char *path)
{
    px_auto_fd int at = open_dir(into, "");
    for (char *slash = path; at >= 0 && (slash = strchr(slash, '/')); slash++) {
        struct px_layers_at there;
        *slash = '\0';
        const char *last = strrchr(path, '/'), *name = last ? last + 1 : path;
        bool known = like && px_layers_find(like, path, &there) == 0 && S_ISDIR(there.st.st_mode);
        int r = mkdirat(at, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
        px_auto_fd int next = r < 0 ? r : (int)px_sys(SYS_openat, at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next >= 0 && fchmod(next, known ? there.st.st_mode & 01777 : 0755) < 0)
            return -errno;
        *slash = '/';
        (void)px_fd_close(at);
        at = px_fd_take(&next);
    }
    return px_fd_take(&at);
}

int px_task_put(int into, const struct px_layers *like, const struct px_task_file *file, struct px_err *e)
{
    char path[PATH_MAX];
    struct px_layers_at there;
    if (px_task_path(file->path, path, sizeof path, e) < 0)
        return -1;
    bool known = like && px_layers_find(like, path, &there) == 0 && S_ISREG(there.st.st_mode);
    px_auto_fd int dir = open_way(into, like, path);
    const char *slash = strrchr(path, '/');
    px_auto_fd int fd = dir < 0 ? dir : (int)px_sys(SYS_openat, dir, slash ? slash + 1 : path,
                                                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? fd : px_write_full(fd, file->data, file->len);
    if (r >= 0 && fchmod(fd, known ? there.st.st_mode & 0777 : 0644) < 0)
        r = -errno;
    if (r == -ENOTDIR || r == -ELOOP || r == -EISDIR)
        return bad_path(file->path, "Another file of the same list wants to be a directory there, or the other way round.", e);
    return r < 0 ? px_fail(e, PX_E_TASK_STATE, r, "the file '%.200s' cannot be written", file->path) : 0;
}
