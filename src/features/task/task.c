/* task/task.c - workspaces: made, forked, removed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "task/task.h"

static const char scratch[] = "copy";

PX_API int px_tasks_new(const char *file, struct px_tasks **ret_tasks, struct px_err *e)
{
    PX_ERR(e);
    struct px_tasks *tasks = calloc(1, sizeof *tasks);
    if (!tasks)
        return px_no_memory(e);
    tasks->root = PX_SPACE_NO_ROOT;
    if (px_task_config_read(tasks, file, e) < 0 ||
        px_workspace_root_open(tasks->work_root, tasks->logs_dir, tasks->config.log_bytes_max, &tasks->root, e) < 0 ||
        px_task_project_open(tasks, e) < 0) {
        px_tasks_free(tasks);
        return -1;
    }
    *ret_tasks = tasks;
    return 0;
}

PX_API void px_tasks_free(struct px_tasks *tasks)
{
    if (!tasks)
        return;
    px_task_project_done(tasks);
    px_workspace_root_done(&tasks->root);
    px_task_config_done(tasks);
    free(tasks);
}

PX_API const struct px_tasks_config *px_tasks_config(const struct px_tasks *tasks)
{
    return &tasks->config;
}

PX_API int px_tasks_ready(const struct px_tasks *tasks, struct px_err *e)
{
    PX_ERR(e);
    return px_task_project_need(tasks, e);
}

/* ---- the journal of all of this ---- */

static void make_line(const struct px_tasks *tasks, const char *event, const char *id, const char *from, const char *key,
                      struct px_buf *out)
{
    px_auto_buf struct px_buf path = PX_BUF(2 * PATH_MAX);
    struct px_json j;
    px_buf_printf(&path, "%s/%s", tasks->work_root, id);
    px_task_line_begin(&j, out, event);
    px_json_text(&j, "workspace", px_buf_text(&path));
    if (from)
        px_json_text(&j, "from", from);
    px_task_line_end(&j, id, key);
}

static int log_workspace(const struct px_tasks *tasks, const char *event, const char *id, const char *from, const char *key,
                         struct px_err *e)
{
    px_auto_buf struct px_buf line = PX_BUF(64 << 10);
    make_line(tasks, event, id, from, key, &line);
    return px_task_line_write(tasks, id, &line, e);
}

/* ---- prepare ---- */

struct prepare {
    const struct px_tasks *tasks;
    const struct px_task_file *files;
    size_t count;
    const char *source, *key;
};

/* Skips work_root if it is inside the copied directory. */
static int copy_source(const struct prepare *p, int into)
{
    struct stat skip;
    px_auto_fd int dir = open(p->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(p->tasks->root.dir, &skip) < 0)
        return -errno;
    return px_task_copy(&(struct px_layers){.fds = {dir}, .count = 1}, &skip, into);
}

static int fill(const struct prepare *p, int into, const struct px_layers *like, struct px_err *e)
{
    int r = p->source ? copy_source(p, into) : 0;
    if (r < 0)
        return px_fail(e, PX_E_TASK_STATE, r, "the directory '%.300s' cannot be copied", p->source);
    for (size_t i = 0; i < p->count; i++)
        if (px_task_put(into, like, &p->files[i], e) < 0)
            return -1;
    return 0;
}

/* Existing files stay, except those that are replaced. */
static int add_to(const struct prepare *p, struct px_workspace *space, int into, struct px_err *e)
{
    char key[PX_TASK_KEY];
    struct px_changes changes = {0};
    px_auto_buf struct px_buf line = PX_BUF(64 << 10);
    int r = p->key ? px_fmt(key, sizeof key, "%s", p->key) : px_workspace_new_id(key);
    if (r >= 0)
        r = px_changes_compare(into, &space->tree, NULL, &changes);
    if (r < 0)
        return px_workspace_state(space, r, "the files cannot be compared", e);
    make_line(p->tasks, "prepare_workspace", space->id, NULL, key, &line);
    r = line.err < 0 ? px_fail(e, PX_E_LIMIT, line.err, "the paths are too long")
                     : px_workspace_commit(space, &changes, NULL, &(struct px_space_note){key, line.data}, e);
    px_changes_done(&changes);
    return r;
}

static int move_into_place(struct px_workspace *space, struct px_err *e)
{
    long r = px_sys(SYS_renameat2, space->own, scratch, space->root->dir, space->id, 1 /* RENAME_NOREPLACE */);
    return r < 0 ? px_workspace_state(space, (int)r, "cannot be made", e) : 0;
}

static int prepare(const struct prepare *p, struct px_workspace *space, struct px_err *e)
{
    const struct px_layers *there = space->tree.count ? &space->tree : NULL;
    px_auto_fd int into = px_task_scratch(space, scratch);
    if (into < 0)
        return px_workspace_state(space, into, "cannot be prepared", e);
    int r = fill(p, into, there, e);
    if (r >= 0 && there)
        r = add_to(p, space, into, e);
    else if (r >= 0 && (r = move_into_place(space, e)) >= 0)
        r = log_workspace(p->tasks, "prepare_workspace", space->id, NULL, p->key, e);
    px_task_scratch_done(space, scratch);
    return r;
}

int px_task_give_path(const struct px_tasks *tasks, const char *id, char **ret_path, struct px_err *e)
{
    px_auto_buf struct px_buf path = PX_BUF(2 * PATH_MAX);
    if (!ret_path)
        return 0;
    px_buf_printf(&path, "%s/%s", tasks->work_root, id);
    *ret_path = px_buf_take(&path);
    return *ret_path ? 0 : px_no_memory(e);
}

int px_task_prepare_as(const struct px_tasks *tasks, const char *id, const struct px_task_file *files, size_t count,
                       const char *source, const char *key, struct px_err *e)
{
    char path[PATH_MAX];
    struct px_workspace space;
    const struct prepare p = {tasks, files, count, source, key};
    if (px_workspace_check_id(id, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (px_task_path(files[i].path, path, sizeof path, e) < 0)
            return -1;
    px_workspace_sweep(&tasks->root);
    enum px_space_how how = px_workspace_exists(&tasks->root, id) ? PX_SPACE_FIND : PX_SPACE_NEW;
    if (px_workspace_open(&tasks->root, id, how, &space, e) < 0)
        return -1;
    int r = px_workspace_unsettle(&tasks->root, id); /* if we are killed, a name without a workspace must be removed */
    r = r < 0 ? px_workspace_state(&space, r, "cannot be prepared", e) : prepare(&p, &space, e);
    px_workspace_settle(&tasks->root, id);
    px_workspace_forget(&space);
    return r;
}

PX_API int px_task_prepare(const struct px_tasks *tasks, const char *id, const struct px_task_file *files, size_t count,
                           const char *source, char **ret_path, struct px_err *e)
{
    PX_ERR(e);
    if (px_task_prepare_as(tasks, id, files, count, source, NULL, e) < 0)
        return -1;
    return px_task_give_path(tasks, id, ret_path, e);
}

/* ---- the others ---- */

int px_task_cleanup_as(const struct px_tasks *tasks, const char *id, const char *key, struct px_err *e)
{
    struct px_workspace space;
    if (px_workspace_check_id(id, e) < 0)
        return -1;
    px_workspace_sweep(&tasks->root);
    if (px_workspace_exists(&tasks->root, id)) {
        if (px_workspace_open(&tasks->root, id, PX_SPACE_FIND, &space, e) < 0)
            return -1;
        int r = px_workspace_remove(&space, e);
        px_workspace_close(&space);
        if (r < 0)
            return -1;
    }
    return log_workspace(tasks, "cleanup", id, NULL, key, e);
}

PX_API int px_task_cleanup(const struct px_tasks *tasks, const char *id, struct px_err *e)
{
    PX_ERR(e);
    return px_task_cleanup_as(tasks, id, NULL, e);
}

PX_API int px_task_fork(const struct px_tasks *tasks, const char *from, const char *to, struct px_err *e)
{
    PX_ERR(e);
    struct px_workspace space;
    px_workspace_sweep(&tasks->root);
    if (px_workspace_check_id(to, e) < 0 || px_workspace_open(&tasks->root, from, PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = px_workspace_fork(&space, to, e);
    px_workspace_close(&space);
    return r < 0 ? -1 : log_workspace(tasks, "fork", to, from, NULL, e);
}
