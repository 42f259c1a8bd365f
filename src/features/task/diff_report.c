/* Reports the differences between workspaces, and merges them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "task/task.h"

enum { DIFF_MAX = 64 << 20 };

/* The memory of the strings of a px_task_changes. */
struct told {
    struct px_changes list;
    struct px_buf diff;
};

PX_API void px_task_changes_done(struct px_task_changes *changes)
{
    struct told *told = changes->own;
    if (told) {
        px_changes_done(&told->list);
        px_buf_done(&told->diff);
    }
    free(told);
    free(changes->changes);
    *changes = (struct px_task_changes){0};
}

int px_task_tell(const struct px_changes *list, enum px_diff_style style, uint64_t diff_max, struct px_task_changes *ret,
                 struct px_err *e)
{
    struct px_task_changes told = {.changes = calloc(list->count + 1, sizeof *told.changes)};
    px_auto_buf struct px_buf diff = PX_BUF(diff_max);
    struct told *own = calloc(1, sizeof *own);
    if (!own || !told.changes) {
        free(own);
        free(told.changes);
        return px_no_memory(e);
    }
    told.own = own;
    int r = px_changes_diff(list, style, PX_DIFF_BUDGET, &diff, &told.truncated);
    if (r < 0) {
        px_task_changes_done(&told);
        return px_fail(e, PX_E_TASK_STATE, r, "the changes cannot be shown");
    }
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].listed)
            told.changes[told.count++] = (struct px_change){list->items[i].path, px_changes_word(list->items[i].kind),
                                                            px_changes_is_link(&list->items[i])};
    own->diff = diff;
    diff = PX_BUF(0);
    told.diff = (struct px_bytes){px_buf_text(&own->diff), own->diff.len};
    *ret = told;
    return 0;
}

/* `ret` takes ownership of the list's strings. */
static int keep(struct px_changes *list, struct px_task_changes *ret, struct px_err *e)
{
    int r = px_task_tell(list, PX_DIFF_GIT, DIFF_MAX, ret, e);
    if (r < 0)
        px_changes_done(list);
    else
        ((struct told *)ret->own)->list = *list;
    return r;
}

static int cannot(int err, const char *a, const char *b, struct px_err *e)
{
    px_fail(e, PX_E_TASK_STATE, err, "'%s' and '%s' cannot be compared", a, b);
    return err == -E2BIG ? px_why(e, "They differ in more than %d files, or the names are too long.", PX_CHANGES_MAX) : -1;
}

static struct px_space_view view_of(const struct px_workspace *space)
{
    return (struct px_space_view){&space->tree, space->branch ? &space->stack : NULL};
}

/* The changes of the branch since the fork. `origin` must stay valid as long as the list. */
static int since_fork(const struct px_workspace *space, struct px_layers *origin, struct px_changes *ret, struct px_err *e)
{
    if (!space->branch) {
        px_fail(e, PX_E_NO_TASK, 0, "'%s' is no branch, so there is nothing that it could be compared with", space->id);
        px_why(e, "px remembers what a workspace was from the time on at which it is forked.");
        return px_fix(e, "Name both: px task diff A B.\nOr fork it before it is changed: px task fork %s NEW.", space->id);
    }
    int r = px_workspace_open_stack(space->root, &space->origin, origin);
    if (r >= 0)
        r = px_workspace_compare(&(struct px_space_view){origin, &space->origin}, &(struct px_space_view){&space->tree, &space->stack}, ret);
    return r < 0 ? cannot(r, space->id, "what it was forked from", e) : 0;
}

static int diff_one(const struct px_tasks *tasks, const char *id, struct px_task_changes *ret, struct px_err *e)
{
    struct px_workspace space;
    struct px_layers origin = {0};
    struct px_changes list = {0};
    if (px_workspace_open(&tasks->root, id, PX_SPACE_FIND, &space, e) < 0)
        return -1;
    int r = since_fork(&space, &origin, &list, e);
    if (r >= 0)
        r = keep(&list, ret, e);
    px_workspace_close_layers(&origin);
    px_workspace_close(&space);
    return r;
}

/* Locks both in the order of their names, so that of two callers who want both, one succeeds. Locks never block. */
static int open_both(const struct px_tasks *tasks, const char *a, const char *b, struct px_workspace *ret_a, struct px_workspace *ret_b,
                     struct px_err *e)
{
    bool swap = strcmp(a, b) > 0;
    if (px_workspace_open(&tasks->root, swap ? b : a, PX_SPACE_FIND, swap ? ret_b : ret_a, e) < 0)
        return -1;
    if (px_workspace_open(&tasks->root, swap ? a : b, PX_SPACE_FIND, swap ? ret_a : ret_b, e) < 0) {
        px_workspace_close(swap ? ret_b : ret_a);
        return -1;
    }
    return 0;
}

PX_API int px_task_diff(const struct px_tasks *tasks, const char *a, const char *b, struct px_task_changes *ret_changes,
                        struct px_err *e)
{
    PX_ERR(e);
    struct px_workspace from, to;
    struct px_changes list = {0};
    if (!b)
        return diff_one(tasks, a, ret_changes, e);
    if (px_equal(a, b))
        return px_fail(e, PX_E_USAGE, 0, "'%s' does not differ from itself", a);
    if (open_both(tasks, a, b, &from, &to, e) < 0)
        return -1;
    const struct px_space_view x = view_of(&from), y = view_of(&to);
    int r = px_workspace_compare(&x, &y, &list);
    r = r < 0 ? cannot(r, a, b, e) : keep(&list, ret_changes, e);
    px_workspace_close(&from);
    px_workspace_close(&to);
    return r;
}

static int note_line(struct px_buf *line, const struct px_task_changes *changes, const char *from, const char *to, const char *key)
{
    struct px_json j;
    px_task_line_begin(&j, line, "apply_from");
    px_json_text(&j, "from", from);
    px_json_array(&j, "changed_files");
    for (size_t i = 0; i < changes->count; i++)
        px_json_bytes(&j, NULL, changes->changes[i].path, strlen(changes->changes[i].path));
    px_json_end(&j);
    px_task_line_end(&j, to, key);
    return line->err;
}

static int carry_over(const struct px_changes *list, const char *from, struct px_workspace *to, const struct px_task_changes *told,
                      struct px_err *e)
{
    char key[PX_TASK_KEY];
    px_auto_buf struct px_buf line = PX_BUF(PX_TASK_LINE_MAX);
    if (px_workspace_conflicts(list, &to->tree, e) < 0)
        return -1;
    if (px_workspace_new_id(key) < 0 || note_line(&line, told, from, to->id, key) < 0)
        return px_no_memory(e);
    return px_workspace_commit(to, list, NULL, &(struct px_space_note){key, line.data}, e);
}

PX_API int px_task_apply_from(const struct px_tasks *tasks, const char *from, const char *to, struct px_task_changes *ret_changes,
                              struct px_err *e)
{
    PX_ERR(e);
    struct px_workspace source, target;
    struct px_layers origin = {0};
    struct px_changes list = {0};
    if (px_equal(from, to))
        return px_fail(e, PX_E_USAGE, 0, "'%s' cannot be applied to itself", from);
    if (open_both(tasks, from, to, &source, &target, e) < 0)
        return -1;
    int r = since_fork(&source, &origin, &list, e);
    if (r >= 0 && (r = keep(&list, ret_changes, e)) >= 0 && (r = carry_over(&list, from, &target, ret_changes, e)) < 0)
        px_task_changes_done(ret_changes);
    px_workspace_close_layers(&origin);
    px_workspace_close(&source);
    px_workspace_close(&target);
    return r;
}
