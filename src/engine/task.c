/* engine/task.c - workspaces: made, forked, removed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/task.h"

static const char scratch[] = "copy";

PX_API int px_tasks_new(const char *file, struct px_tasks **ret_tasks, struct px_err *e)
{
    struct px_tasks *tasks = calloc(1, sizeof *tasks);
    if (!tasks)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "tasks");
    tasks->root = (struct px_space_root){.dir = -EBADF, .own = -EBADF, .logs = -EBADF};
    if (px_task_config_read(tasks, file, e) < 0 ||
        px_space_root_open(tasks->work_root, tasks->logs_dir, tasks->config.log_bytes_max, &tasks->root, e) < 0) {
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
    px_space_root_done(&tasks->root);
    px_task_config_done(tasks);
    free(tasks);
}

PX_API const struct px_tasks_config *px_tasks_config(const struct px_tasks *tasks)
{
    return &tasks->config;
}

/* ---- the journal of all of this ---- */

static int log_workspace(const struct px_tasks *tasks, const char *event, const char *id, const char *key, const char *value,
                         struct px_err *e)
{
    px_auto_buf struct px_buf line = PX_BUF(64 << 10), path = PX_BUF(2 * PATH_MAX);
    struct px_json j;
    px_buf_printf(&path, "%s/%s", tasks->work_root, id);
    px_task_line_begin(&j, &line, event);
    px_json_text(&j, "workspace", px_buf_text(&path));
    if (key)
        px_json_text(&j, key, value);
    px_task_line_end(&j, id, NULL);
    return px_task_line_write(tasks, id, &line, e);
}

/* ---- prepare ---- */

static int fill(int into, const struct px_layers *like, const struct px_task_file *files, size_t count, const char *source,
                struct px_err *e)
{
    px_auto_fd int dir = source ? open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    const struct px_layers from = {.fds = {dir}, .count = 1};
    int r = !source ? 0 : dir < 0 ? -errno : px_task_copy(&from, into);
    if (r < 0)
        return px_fail(e, PX_E_TASK_STATE, r, "the directory '%.300s' cannot be copied", source);
    for (size_t i = 0; i < count; i++)
        if (px_task_put(into, like, &files[i], e) < 0)
            return -1;
    return 0;
}

/* What is there stays, but for what is replaced. */
static int add_to(struct px_space *space, int into, struct px_err *e)
{
    struct px_changes changes = {0};
    int r = px_changes_compare(into, &space->tree, NULL, &changes);
    if (r < 0)
        return px_space_state(space, r, "the files cannot be compared", e);
    r = changes.count == 0 ? 0 : px_space_commit(space, &changes, NULL, NULL, e);
    px_changes_done(&changes);
    return r;
}

static int move_into_place(struct px_space *space, struct px_err *e)
{
    long r = px_sys(SYS_renameat2, space->own, scratch, space->root->dir, space->id, 1 /* RENAME_NOREPLACE */);
    return r < 0 ? px_space_state(space, (int)r, "cannot be made", e) : 0;
}

static int prepare(struct px_space *space, const struct px_task_file *files, size_t count, const char *source, struct px_err *e)
{
    const struct px_layers *there = space->tree.count ? &space->tree : NULL;
    px_auto_fd int into = px_task_scratch(space, scratch);
    if (into < 0)
        return px_space_state(space, into, "cannot be prepared", e);
    int r = fill(into, there, files, count, source, e);
    if (r >= 0)
        r = there ? add_to(space, into, e) : move_into_place(space, e);
    px_task_scratch_done(space, scratch);
    return r;
}

static int give_path(const struct px_tasks *tasks, const char *id, char **ret_path, struct px_err *e)
{
    px_auto_buf struct px_buf path = PX_BUF(2 * PATH_MAX);
    if (!ret_path)
        return 0;
    px_buf_printf(&path, "%s/%s", tasks->work_root, id);
    *ret_path = px_buf_take(&path);
    return *ret_path ? 0 : px_fail(e, PX_E_MEMORY, ENOMEM, "tasks");
}

PX_API int px_task_prepare(const struct px_tasks *tasks, const char *id, const struct px_task_file *files, size_t count,
                           const char *source, char **ret_path, struct px_err *e)
{
    char path[PATH_MAX];
    struct px_space space;
    if (px_space_check_id(id, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (px_task_path(files[i].path, path, sizeof path, e) < 0)
            return -1;
    bool is_new = !px_space_exists(&tasks->root, id);
    if (px_space_open(&tasks->root, id, is_new ? PX_SPACE_NEW : PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = prepare(&space, files, count, source, e);
    if (r >= 0)
        r = log_workspace(tasks, "prepare_workspace", id, NULL, NULL, e);
    px_space_forget(&space);
    return r < 0 ? -1 : give_path(tasks, id, ret_path, e);
}

/* ---- the others ---- */

PX_API int px_task_cleanup(const struct px_tasks *tasks, const char *id, struct px_err *e)
{
    struct px_space space;
    if (px_space_check_id(id, e) < 0)
        return -1;
    if (px_space_exists(&tasks->root, id)) {
        if (px_space_open(&tasks->root, id, PX_SPACE_FIND, &space, e) < 0)
            return -1;
        int r = px_space_remove(&space, e);
        px_space_close(&space);
        if (r < 0)
            return -1;
    }
    return log_workspace(tasks, "cleanup", id, NULL, NULL, e);
}

PX_API int px_task_fork(const struct px_tasks *tasks, const char *from, const char *to, struct px_err *e)
{
    struct px_space space;
    if (px_space_check_id(to, e) < 0 || px_space_open(&tasks->root, from, PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = px_space_fork(&space, to, e);
    px_space_close(&space);
    return r < 0 ? -1 : log_workspace(tasks, "fork", to, "from", from, e);
}
