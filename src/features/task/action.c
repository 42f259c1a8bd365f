/* task/action.c - one action of a task: checks it, runs it in a box on an overlay over the workspace, and merges or
 * drops its changes.
 *
 * When the box ends, its exit hook (struct px_after) gets the upper layer. There the changes are compared, reported,
 * and committed together with the journal's line. Without an overlay the box works on a copy, which is compared by
 * file times. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "box/supervise.h"
#include "config/found.h"
#include "plan/mounts.h"
#include "policy/policy.h"
#include "task/task.h"

enum { DIFF_MAX = 16 << 20, ARGS_MAX = 65536, TIMED_OUT = 124, REFUSED = 126, INVALID = 127 };

static const char scratch[] = "copy";

struct px_task_run {
    struct px_after after; /* first: the box knows only this */
    const struct px_tasks *tasks;
    char id[PX_SPACE_ID_MAX + 1], key[PX_TASK_KEY];
    bool discard, discard_on_timeout, test, logged;
    struct px_workspace space;
    bool has_space;
    struct timespec since;
    uint64_t merge_max;    /* bytes that may be merged */
    int copy;              /* what the box works on instead of an overlay; -EBADF: there is none */
    struct timespec copied;
    struct px_box *box;
    char **cmd;
    char *words; /* of a refusal */
    struct px_changes list;
    struct px_task_changes told;
    struct px_task_result result;
};

/* ---- the line of the journal ---- */

static uint64_t count_characters(const struct px_bytes *text)
{
    uint64_t count = 0;
    for (size_t at = 0; at < text->len; count++) {
        size_t n = px_utf8_length(text->data + at, text->len - at);
        at += n ? n : 1;
    }
    return count;
}

static bool is_special(const struct px_change *c)
{
    return px_equal(c->kind, "special");
}

static void print_changed(struct px_json *j, const struct px_task_result *r)
{
    px_json_array(j, "changed_files");
    for (size_t i = 0; i < r->changes_count; i++)
        if (!is_special(&r->changes[i]))
            px_json_bytes(j, NULL, r->changes[i].path, strlen(r->changes[i].path));
    px_json_end(j);
}

static void print_cmd(struct px_json *j, const struct px_task_result *r)
{
    px_json_array(j, "cmd");
    for (size_t i = 0; r->cmd[i]; i++)
        px_json_bytes(j, NULL, r->cmd[i], strlen(r->cmd[i]));
    px_json_end(j);
}

static void print_limits(struct px_json *j, const struct px_result *box)
{
    px_json_array(j, "limits_hit");
    for (size_t i = 0; box && i < box->limits_hit_count; i++)
        px_json_text(j, NULL, box->limits_hit[i].limit);
    px_json_end(j);
}

static void make_line(const struct px_task_run *run, struct px_buf *line)
{
    const struct px_task_result *r = &run->result;
    struct px_json j;
    px_task_line_begin(&j, line, "apply_action");
    print_cmd(&j, r);
    px_json_int(&j, "exit_code", r->exit_code);
    px_json_decimal(&j, "duration_sec", r->wall_nsec / 1000, 6);
    px_json_text(&j, "error", r->error);
    print_changed(&j, r);
    px_json_uint(&j, "diff_len", count_characters(&r->diff));
    if (r->box && r->box->limits_hit_count > 0)
        print_limits(&j, r->box);
    px_task_line_end(&j, run->id, run->key);
}

static int log_alone(struct px_task_run *run, struct px_err *e)
{
    px_auto_buf struct px_buf line = PX_BUF(PX_TASK_LINE_MAX);
    if (run->logged)
        return 0;
    make_line(run, &line);
    run->logged = true;
    return px_task_line_write(run->tasks, run->id, &line, e);
}

/* ---- when the box is gone ---- */

static void judge_end(struct px_task_run *run, const struct px_result *box)
{
    static const struct px_bytes timeout = {"timeout", 7};
    struct px_task_result *r = &run->result;
    bool cpu = false;
    for (size_t i = 0; i < box->limits_hit_count; i++)
        cpu = cpu || px_equal(box->limits_hit[i].limit, "cpu-time");
    r->box = box;
    r->out = box->out;
    r->err = box->err;
    r->out_truncated = box->out_truncated;
    r->err_truncated = box->err_truncated;
    r->wall_nsec = box->wall_nsec;
    r->exit_code = box->timed_out ? TIMED_OUT : cpu && box->signal ? -SIGKILL : box->signal ? -box->signal : box->exit_code;
    r->error = box->timed_out ? "timeout" : NULL;
    if (box->timed_out && r->err.len == 0)
        r->err = timeout;
}

static int compare(struct px_task_run *run, int upper, struct px_err *e)
{
    struct px_task_result *r = &run->result;
    int err = run->copy >= 0 ? px_changes_compare(run->copy, &run->space.tree, &run->copied, &run->list)
              : upper < 0    ? -ESTALE
                             : px_changes_compare(upper, &run->space.tree, NULL, &run->list);
    if (err < 0) {
        px_fail(e, PX_E_TASK_STATE, err, "what the action did cannot be read");
        return err == -E2BIG ? px_why(e, "It has changed more than %d files, or their names are too long.", PX_CHANGES_MAX) : -1;
    }
    if (px_task_tell(&run->list, PX_DIFF_PLAIN, DIFF_MAX, &run->told, e) < 0)
        return -1;
    r->changes = run->told.changes;
    r->changes_count = run->told.count;
    r->changed = run->told.count > 0;
    r->diff = run->told.diff;
    r->diff_truncated = run->told.truncated;
    return 0;
}

static int commit(struct px_task_run *run, struct px_err *e)
{
    px_auto_buf struct px_buf line = PX_BUF(PX_TASK_LINE_MAX);
    bool keep = run->list.count > 0 && !run->discard && !(run->discard_on_timeout && run->result.box->timed_out);
    if (!keep)
        return log_alone(run, e);
    make_line(run, &line);
    if (line.err < 0)
        return px_fail(e, PX_E_LIMIT, line.err, "the action has changed too much for one line of the journal");
    if (px_changes_weigh(&run->list, run->merge_max, run->space.own, e) < 0)
        return -1;
    if (px_workspace_commit(&run->space, &run->list, &run->since, &(struct px_space_note){run->key, line.data}, e) < 0)
        return -1;
    run->logged = run->result.applied = true;
    return 0;
}

/* It ran, and its changes were not merged: records this in the journal. */
static int failed(struct px_task_run *run, struct px_err *e)
{
    struct px_task_result *r = &run->result;
    r->error = e->code == PX_E_TASK_CONFLICT ? "conflict" : e->code == PX_E_MERGE_TOO_LARGE ? "too_large" : "internal";
    r->changes_count = 0;
    r->changed = false;
    r->diff = (struct px_bytes){0};
    (void)log_alone(run, NULL);
    return -1;
}

static int ended(struct px_box *box, struct px_err *e)
{
    struct px_task_run *run = (struct px_task_run *)(void *)box->after;
    judge_end(run, &box->result);
    if (compare(run, box->changes, e) == 0 && commit(run, e) == 0)
        return 0;
    return failed(run, e);
}

static void done(struct px_after *after)
{
    (void)after; /* the caller owns the run */
}

/* ---- before ---- */

/* The entry of the list for a name; NULL: not allowed. python and python3 are treated as the same name. */
static const char *allowed_name(const struct px_tasks *tasks, const char *name)
{
    if (px_found_has(tasks->allowed, name))
        return name;
    const char *twin = px_found_twin(name);
    return twin && px_found_has(tasks->allowed, twin) ? "python3" : NULL;
}

static const char *const usual_places[] = {"/usr/local/bin",  "/usr/bin",  "/bin",
                                           "/usr/local/sbin", "/usr/sbin", "/sbin", NULL};

static char *find_in(const char *const *places, const char *name)
{
    for (; *places; places++) {
        char path[PATH_MAX];
        struct stat st;
        if (px_fmt(path, sizeof path, "%s%s%s", *name == '/' ? "" : *places, *name == '/' ? "" : "/", name) >= 0 &&
            stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return strdup(path);
    }
    return NULL;
}

/* An entry of the list is a name, looked up in the box's PATH, or a path. Nothing else is allowed. */
static char *find_program(const struct px_tasks *tasks, const char *name)
{
    const char *const project[] = {px_task_project_bin(tasks), NULL};
    if (px_equal(name, "sg")) /* of ast-grep; the sg of login runs any line in a shell */
        return find_program(tasks, "ast-grep");
    char *path = find_in(tasks->config.path, name);
    path = path ? path : find_in(project, name);
    path = path ? path : find_in(usual_places, name);
    /* Distributions with one Python have only this name. */
    return !path && px_equal(name, "python") ? find_program(tasks, "python3") : path;
}

static int copy_command(struct px_task_run *run, const char *const *command, struct px_err *e)
{
    size_t n = 0;
    while (command && command[n] && n < ARGS_MAX)
        n++;
    run->cmd = calloc(n + 1, sizeof *run->cmd);
    for (size_t i = 0; run->cmd && i < n; i++)
        if (!(run->cmd[i] = strdup(command[i])))
            return px_no_memory(e);
    run->result.cmd = (const char *const *)run->cmd;
    return run->cmd ? 0 : px_no_memory(e);
}

static void refuse(struct px_task_run *run, int exit_code, const char *error, const char *text)
{
    run->result.exit_code = exit_code;
    run->result.error = error;
    run->result.err = (struct px_bytes){text, strlen(text)};
}

static void refuse_binary(struct px_task_run *run, const char *words)
{
    px_auto_buf struct px_buf text = PX_BUF(512);
    px_buf_puts(&text, "binary '");
    px_buf_quote(&text, run->cmd[0], strnlen(run->cmd[0], 100));
    px_buf_printf(&text, "' %s", words);
    run->words = px_buf_take(&text);
    refuse(run, REFUSED, "not_allowed", run->words ? run->words : words);
}

static int set(struct px_policy *policy, const char *field, const char *said, uint64_t value, const char *unit, struct px_err *e)
{
    char text[40];
    (void)px_fmt(text, sizeof text, "%llu%s", (unsigned long long)value, unit);
    return px_policy_set(policy, field, said ? said : text, e);
}

static int show(struct px_policy *policy, const char *const *places, struct px_err *e)
{
    for (; *places; places++) {
        px_auto_buf struct px_buf text = PX_BUF(2 * PATH_MAX + 8);
        px_buf_printf(&text, "%s:%s:ro", *places, *places);
        if (px_policy_set(policy, "bind", px_buf_text(&text), e) < 0)
            return -1;
    }
    return 0;
}

static bool is_below(const char *const *tops, const char *path)
{
    for (; *tops; tops++) {
        size_t n = strlen(*tops);
        if (px_starts_with(path, *tops) && (path[n] == '/' || path[n] == '\0'))
            return true;
    }
    return false;
}

/* Adds directories of `path` that the box does not have yet: two binds on one path are refused. */
static int show_path(struct px_policy *policy, const struct px_tasks_config *c, struct px_err *e)
{
    static const char *const always[] = {"/usr", NULL};
    const char *seen[PX_TASK_LIST_MAX + 1] = {0};
    size_t count = 0;
    for (size_t i = 0; c->path[i]; i++)
        if (!is_below(always, c->path[i]) && !is_below(c->binds, c->path[i]) && !is_below(seen, c->path[i]))
            seen[count++] = c->path[i];
    return show(policy, seen, e);
}

static int set_variables(struct px_policy *policy, const struct px_tasks *tasks, struct px_err *e)
{
    px_auto_buf struct px_buf path = PX_BUF((PX_TASK_LIST_MAX + 1) * PATH_MAX + 256);
    const struct px_tasks_config *c = &tasks->config;
    const char *project = px_task_project_bin(tasks);
    px_buf_puts(&path, "PATH=");
    for (size_t i = 0; c->path[i]; i++)
        px_buf_printf(&path, "%s:", c->path[i]);
    if (project)
        px_buf_printf(&path, "%s:", project);
    for (size_t i = 0; usual_places[i]; i++)
        px_buf_printf(&path, "%s%s", i ? ":" : "", usual_places[i]);
    if ((c->path[0] || project) && px_policy_set(policy, "env", px_buf_text(&path), e) < 0)
        return -1;
    for (size_t i = 0; c->env[i]; i++)
        if (px_policy_set(policy, "env", c->env[i], e) < 0)
            return -1;
    return 0;
}

/* What the configuration shows the action of the host; without a box it sees everything. */
static int add_own(struct px_policy *policy, const struct px_tasks *tasks, const char *place, struct px_err *e)
{
    const struct px_tasks_config *c = &tasks->config;
    if (c->jail && (show(policy, c->binds, e) < 0 || show_path(policy, c, e) < 0))
        return -1;
    if (set_variables(policy, tasks, e) < 0)
        return -1;
    return px_task_project_give(tasks, policy, c->jail ? policy->work_target : place, e);
}

static int make_policy(struct px_task_run *run, const struct px_task_action *a, const char *place, struct px_policy **ret,
                       struct px_err *e)
{
    const struct px_tasks_config *c = &run->tasks->config;
    struct px_policy *policy = NULL;
    if (px_policy_new("task", &policy, e) < 0)
        return -1;
    policy->plain = !c->jail;
    const char *where = !c->jail ? "workdir" : run->copy >= 0 ? "work-dir" : "changes";
    if (px_policy_set(policy, where, place, e) < 0 || (c->base && px_policy_set(policy, "base", c->base, e) < 0) ||
        set(policy, "timeout", a->timeout, c->timeout_msec, "ms", e) < 0 ||
        set(policy, "cpu-time", a->cpu_time, c->cpu_time_msec, "ms", e) < 0 ||
        set(policy, "memory", a->memory, c->memory_bytes, "", e) < 0 || add_own(policy, run->tasks, place, e) < 0) {
        px_policy_free(policy);
        return -1;
    }
    if (px_policy_limited(policy->file_bytes) && policy->file_bytes < policy->memory_bytes)
        policy->file_bytes = policy->memory_bytes;
    run->merge_max = px_mounts_merge_bytes(policy);
    *ret = policy;
    return 0;
}

/* The paths of the layers in one allocation: pointers first, then strings. */
static int list_layers(const struct px_workspace *space, const char **out, char (*texts)[PATH_MAX])
{
    for (size_t i = 0; i < space->tree.count; i++) {
        int r = px_workspace_path(space, i, texts[i], PATH_MAX);
        if (r < 0)
            return r;
        out[i] = texts[i];
    }
    return 0;
}

static int start_on_overlay(struct px_task_run *run, const struct px_task_action *a, struct px_err *e)
{
    const char *layers[PX_LAYERS_DEPTH];
    struct px_policy *policy = NULL;
    char(*texts)[PATH_MAX] = calloc(PX_LAYERS_DEPTH, sizeof *texts);
    int r = !texts || list_layers(&run->space, layers, texts) < 0
                ? px_fail(e, PX_E_LIMIT, 0, "the path of the workspace '%s' is too long", run->id)
                : make_policy(run, a, layers[0], &policy, e);
    if (r >= 0) {
        policy->after = &run->after;
        policy->layers = layers + 1;
        policy->layers_count = run->space.tree.count - 1;
        r = px_box_start(policy, run->result.cmd, NULL, &run->box, e);
    }
    px_policy_free(policy);
    free(texts);
    return r;
}

static int start_on_copy(struct px_task_run *run, const struct px_task_action *a, struct px_err *e)
{
    char place[PATH_MAX];
    struct px_policy *policy = NULL;
    run->copy = px_task_scratch(&run->space, scratch);
    int err = run->copy < 0 ? run->copy : px_task_copy(&run->space.tree, NULL, run->copy);
    if (err < 0 || clock_gettime(CLOCK_REALTIME, &run->copied) < 0)
        return px_fail(e, PX_E_TASK_STATE, err, "the workspace '%s' cannot be copied", run->id);
    const char *top = run->space.root->path;
    if (px_fmt(place, sizeof place, "%s/.px/tasks/%s/%s", top, run->id, scratch) < 0) /* state: opened by px_task_scratch above */
        return px_fail(e, PX_E_LIMIT, 0, "the path of the workspace '%s' is too long", run->id);
    if (make_policy(run, a, place, &policy, e) < 0)
        return -1;
    policy->after = &run->after;
    int r = px_box_start(policy, run->result.cmd, NULL, &run->box, e);
    px_policy_free(policy);
    return r;
}

static int start_box(struct px_task_run *run, const struct px_task_action *a, struct px_err *e)
{
    if (clock_gettime(CLOCK_REALTIME, &run->since) < 0)
        return px_fail(e, PX_E_INTERNAL, errno, "there is no clock");
    int r = -1;
    if (run->tasks->config.overlay && run->tasks->config.jail) { /* with the host's root there is no overlay */
        r = start_on_overlay(run, a, e);
        if (r >= 0 || e->code != PX_E_OVERLAY)
            return r;
    }
    *e = (struct px_err){0};
    return start_on_copy(run, a, e);
}

/* The program's path on the host; of a base its name, which the box looks up in its own PATH. free() it. */
static char *program_of(const struct px_tasks *tasks, const char *name)
{
    return !tasks->base ? find_program(tasks, name) : strdup(px_equal(name, "sg") ? "ast-grep" : name);
}

/* 1: it runs; 0: there is no such program; -1. */
static int try_start(struct px_task_run *run, const struct px_task_action *a, const char *name, struct px_err *e)
{
    char *program = program_of(run->tasks, name);
    if (!program)
        return 0;
    free(run->cmd[0]);
    run->cmd[0] = program;
    if (start_box(run, a, e) >= 0)
        return 1;
    if (e->code != PX_E_NOT_FOUND && e->code != PX_E_EXEC)
        return -1;
    *e = (struct px_err){0};
    return 0;
}

/* 1: it runs; 0: it is over already. */
static int start(struct px_task_run *run, const struct px_task_action *a, struct px_err *e)
{
    if (!run->cmd[0]) {
        refuse(run, INVALID, "invalid_command", "invalid command");
        return log_alone(run, e);
    }
    const char *name = allowed_name(run->tasks, run->cmd[0]);
    if (!name) {
        refuse_binary(run, "not allowed");
        return log_alone(run, e);
    }
    if (px_task_project_need(run->tasks, e) < 0)
        return -1;
    const bool python = run->tasks->config.base && px_equal(name, "python");
    int r = try_start(run, a, name, e);
    if (r == 0 && python)
        r = try_start(run, a, "python3", e);    /* as find_program does on the host */
    if (r != 0)
        return r;
    refuse_binary(run, "not allowed: it is listed, but not installed in the box: `path` and `binds` of a named configuration show it tools of yours");
    return log_alone(run, e);
}

static int name_key(struct px_task_run *run, const char *key, struct px_err *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (!key)
        return px_workspace_new_id(run->key) < 0 ? px_fail(e, PX_E_INTERNAL, EIO, "there are no random numbers") : 0;
    size_t n = strlen(key);
    if (n == 0 || n >= sizeof run->key || strspn(key, allowed) != n)
        return px_fail(e, PX_E_VALUE, 0, "'%.40s' is no key of an action", key);
    memcpy(run->key, key, n + 1);
    return 0;
}

PX_API int px_task_start(const struct px_tasks *tasks, const char *id, const struct px_task_action *action,
                         struct px_task_run **ret_run, struct px_err *e)
{
    PX_ERR(e);
    if (px_workspace_check_id(id, e) < 0)
        return -1;
    struct px_task_run *run = calloc(1, sizeof *run);
    if (!run)
        return px_no_memory(e);
    *run = (struct px_task_run){.after = {.ended = ended, .done = done}, .tasks = tasks, .discard = action->discard,
                                .discard_on_timeout = action->discard_on_timeout, .test = action->test, .copy = -EBADF};
    memcpy(run->id, id, strlen(id) + 1);
    if (copy_command(run, action->command, e) < 0 || name_key(run, action->key, e) < 0 ||
        px_workspace_open(&tasks->root, id, PX_SPACE_FIND, &run->space, e) < 0) {
        px_task_run_free(run);
        return -1;
    }
    run->has_space = true;
    if (start(run, action, e) < 0) {
        px_task_run_free(run);
        return -1;
    }
    *ret_run = run;
    return 0;
}

/* ---- while it runs, and after ---- */

PX_API int px_task_fd(const struct px_task_run *run)
{
    return run->box ? px_box_fd(run->box) : -1;
}

PX_API int px_task_step(struct px_task_run *run, struct px_err *e)
{
    PX_ERR(e);
    return run->box ? px_box_step(run->box, e) : 0;
}

PX_API int px_task_apply(const struct px_tasks *tasks, const char *id, const struct px_task_action *action,
                         struct px_task_run **ret_run, struct px_err *e)
{
    PX_ERR(e);
    struct px_task_run *run = NULL;
    if (px_task_start(tasks, id, action, &run, e) < 0)
        return -1;
    if (run->box && px_box_wait(run->box, e) < 0) {
        px_task_run_free(run);
        return -1;
    }
    *ret_run = run;
    return 0;
}

PX_API const struct px_task_result *px_task_result(const struct px_task_run *run)
{
    return &run->result;
}

PX_API void px_task_run_free(struct px_task_run *run)
{
    if (!run)
        return;
    px_box_free(run->box);
    if (run->copy >= 0)
        px_task_scratch_done(&run->space, scratch);
    run->copy = px_fd_close(run->copy);
    px_changes_done(&run->list);
    px_task_changes_done(&run->told);
    if (run->has_space)
        px_workspace_close(&run->space);
    for (size_t i = 0; run->cmd && run->cmd[i]; i++)
        free(run->cmd[i]);
    free(run->cmd);
    free(run->words);
    free(run);
}

static void print_diff(struct px_json *j, const struct px_task_result *r)
{
    if (!r->changed) {
        px_json_null(j, "diff");
        px_json_null(j, "changed_files");
        return;
    }
    px_json_bytes(j, "diff", r->diff.data, r->diff.len);
    print_changed(j, r);
    px_json_bool(j, "diff_truncated", r->diff_truncated);
    px_report_changes(j, "changes", r->changes, r->changes_count);
}

static void print_box(struct px_json *j, const struct px_result *box)
{
    px_json_text(j, "status", box ? px_status_name(box->status) : "refused");
    px_json_text(j, "reason", box ? box->reason : NULL);
    print_limits(j, box);
    px_json_text(j, "tier", box ? box->tier : NULL);
    px_json_array(j, "missing");
    for (size_t i = 0; box && i < box->missing_count; i++)
        px_json_text(j, NULL, box->missing[i]);
    px_json_end(j);
}

PX_API int px_task_json(const struct px_task_run *run, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    const struct px_task_result *r = &run->result;
    px_auto_buf struct px_buf out = PX_BUF((size_t)256 << 20);
    struct px_json j = {.out = &out};
    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_text(&j, "task", run->id);
    print_cmd(&j, r);
    px_json_int(&j, "exit_code", r->exit_code);
    px_json_bytes(&j, "stdout", r->out.data ? r->out.data : "", r->out.len);
    px_json_bytes(&j, "stderr", r->err.data ? r->err.data : "", r->err.len);
    px_json_decimal(&j, "duration_sec", r->wall_nsec / 1000, 6);
    px_json_text(&j, "error", r->error);
    if (!run->test)
        print_diff(&j, r);
    px_json_bool(&j, "applied", r->applied);
    px_json_object(&j, "truncated");
    px_json_bool(&j, "stdout", r->out_truncated);
    px_json_bool(&j, "stderr", r->err_truncated);
    px_json_end(&j);
    print_box(&j, r->box);
    px_json_text(&j, "action", run->key);
    px_json_end(&j);
    if (out.err < 0)
        return px_fail(e, PX_E_LIMIT, out.err, "the result is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}
