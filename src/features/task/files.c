/* The files of a workspace outside of a box: lists them, copies them to a directory, or makes a branch plain. A branch
 * is a list of layers, so its files are not in one directory. */
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
#include "kernel/tree.h"
#include "task/task.h"

enum { READ_MAX = 64 << 20, NAMES_MAX = 1 << 20 };

static const char scratch[] = "copy";

/* ---- showing ---- */

static const char *type_of(mode_t mode)
{
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "special";
}

struct listing {
    const struct px_layers *tree;
    const char *dir;            /* the one that is listed now: "" or "a/b/" */
    struct px_task_dirs todo;
    size_t seen;
    int (*each)(void *user, const struct px_task_entry *entry);
    void *user;
};

static int show_entry(void *user, const char *name, const struct stat *st)
{
    struct listing *l = user;
    px_auto_buf struct px_buf path = PX_BUF(PATH_MAX);
    px_buf_printf(&path, "%s%s%s", l->dir, name, S_ISDIR(st->st_mode) ? "/" : "");
    if (path.err < 0 || l->seen++ == NAMES_MAX)
        return path.err < 0 ? path.err : -E2BIG;
    const struct px_task_entry entry = {px_buf_text(&path), type_of(st->st_mode), (uint64_t)st->st_size, st->st_mode & 07777};
    int r = l->each(l->user, &entry);
    return r >= 0 && S_ISDIR(st->st_mode) ? px_task_dirs_add(&l->todo, px_buf_take(&path)) : r;
}

static int list_all(struct listing *l, const char *path)
{
    int r = px_task_dirs_add(&l->todo, strdup(path));
    for (; (l->dir = px_task_dirs_take(&l->todo)); free((char *)(uintptr_t)l->dir))
        r = r < 0 ? r : px_layers_list(l->tree, l->dir, show_entry, l);
    return r;
}

/* "a/./b" as "a/b"; "." and "" as the workspace itself. */
static int plain_path(const char *path, char out[PATH_MAX], struct px_err *e)
{
    size_t n = strlen(path);
    char text[PATH_MAX];
    while (n > 0 && path[n - 1] == '/')
        n--;
    if (n >= sizeof text)
        return px_task_path(path, out, PATH_MAX, e);
    memcpy(text, path, n);
    text[n] = '\0';
    *out = '\0';
    return *path != '/' && (n == 0 || px_equal(text, ".")) ? 0 : px_task_path(text, out, PATH_MAX, e);
}

static int nothing_there(const struct px_workspace *space, const char *path, int err, struct px_err *e)
{
    px_auto_buf struct px_buf quoted = PX_BUF(512);
    px_buf_quote(&quoted, path, strnlen(path, 100));
    px_fail(e, PX_E_IO, err, "'%s' of the workspace '%s' cannot be read", px_buf_text(&quoted), space->id);
    return px_fix(e, "See what it holds: px task show %s.", space->id);
}

static int list_below(const struct px_workspace *space, const char *path, struct listing *l, struct px_err *e)
{
    struct px_layers_at at;
    char dir[PATH_MAX + 1];
    int r = px_layers_find(&space->tree, path, &at);
    if (r < 0)
        return nothing_there(space, path, r, e);
    if (S_ISDIR(at.st.st_mode)) {
        (void)px_fmt(dir, sizeof dir, "%s%s", path, *path ? "/" : "");
        l->tree = &space->tree;
        r = list_all(l, dir);
    } else {
        r = l->each(l->user, &(struct px_task_entry){path, type_of(at.st.st_mode), (uint64_t)at.st.st_size, at.st.st_mode & 07777});
    }
    return r < 0 ? nothing_there(space, path, r, e) : 0;
}

PX_API int px_task_list(const struct px_tasks *tasks, const char *id, const char *path,
                        int (*each)(void *user, const struct px_task_entry *entry), void *user, struct px_err *e)
{
    PX_ERR(e);
    struct listing l = {.each = each, .user = user};
    struct px_workspace space;
    char plain[PATH_MAX];
    if (plain_path(path ? path : "", plain, e) < 0 || px_workspace_open(&tasks->root, id, PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = list_below(&space, plain, &l, e);
    px_workspace_close(&space);
    return r;
}

static int read_file(const struct px_workspace *space, const char *path, struct px_bytes *ret, struct px_err *e)
{
    struct stat st;
    px_auto_fd int fd = px_layers_open(&space->tree, path);
    int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    if (r >= 0 && st.st_size > READ_MAX)
        r = -EFBIG;
    char *data = r < 0 ? NULL : malloc((size_t)st.st_size + 1);
    ssize_t n = r < 0 ? r : data ? px_read_full(fd, data, (size_t)st.st_size) : -ENOMEM;
    if (n < 0) {
        free(data);
        return nothing_there(space, path, (int)n, e);
    }
    data[n] = '\0';
    *ret = (struct px_bytes){data, (size_t)n};
    return 0;
}

PX_API int px_task_read(const struct px_tasks *tasks, const char *id, const char *path, struct px_bytes *ret_data,
                        struct px_err *e)
{
    PX_ERR(e);
    struct px_workspace space;
    char plain[PATH_MAX];
    if (px_task_path(path, plain, sizeof plain, e) < 0 || px_workspace_open(&tasks->root, id, PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = read_file(&space, plain, ret_data, e);
    px_workspace_close(&space);
    return r;
}

/* ---- copying ---- */

static int not_exported(int err, const char *dir, struct px_err *e)
{
    px_fail(e, PX_E_IO, err, "the workspace cannot be copied to '%.300s'", dir);
    return err == -EEXIST ? px_fix(e, "Name a directory that is not there yet: px makes it.") : -1;
}

PX_API int px_task_export(const struct px_tasks *tasks, const char *id, const char *dir, struct px_err *e)
{
    PX_ERR(e);
    struct px_workspace space;
    if (px_workspace_open(&tasks->root, id, PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = (int)px_sys(SYS_mkdirat, AT_FDCWD, dir, 0755);
    px_auto_fd int into = r < 0 ? r : (int)px_sys(SYS_openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (into >= 0 && (r = px_task_copy(&space.tree, NULL, into)) < 0) {
        (void)px_kernel_tree_empty(into);
        (void)unlinkat(AT_FDCWD, dir, AT_REMOVEDIR);
    }
    px_workspace_close(&space);
    return into < 0 || r < 0 ? not_exported(into < 0 ? into : r, dir, e) : 0;
}

static int checkout(struct px_workspace *space, struct px_err *e)
{
    if (!space->branch)         /* it has its directory */
        return 0;
    px_auto_fd int into = px_task_scratch(space, scratch);
    int r = into < 0 ? into : px_task_copy(&space->tree, NULL, into);
    r = r < 0 ? px_workspace_state(space, r, "cannot be copied", e) : px_workspace_checkout(space, scratch, e);
    px_task_scratch_done(space, scratch);
    return r;
}

PX_API int px_task_checkout(const struct px_tasks *tasks, const char *id, char **ret_path, struct px_err *e)
{
    PX_ERR(e);
    struct px_workspace space;
    px_workspace_sweep(&tasks->root);
    if (px_workspace_open(&tasks->root, id, PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = checkout(&space, e);
    px_workspace_close(&space);
    return r < 0 ? -1 : px_task_give_path(tasks, id, ret_path, e);
}
