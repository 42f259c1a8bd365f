/* px task: workspaces, actions in them, and their branches. */
#include "cli/task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_MAX = 64 << 20 };

/* ---- what is read ---- */

/* A file, or standard input for "-"; free() it. */
static char *read_input(const char *path, size_t *ret_len, struct px_err *e)
{
    size_t len = 0, room = 0;
    char *data = NULL;
    ssize_t n = -1;
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    do {
        if (len + 1 >= room) {
            room = room ? 2 * room : 1 << 16;
            char *more = room <= INPUT_MAX ? realloc(data, room) : NULL;
            if (!more)
                break;
            data = more;
        }
        n = fd < 0 ? -1 : read(fd, data + len, room - len - 1);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && fd >= 0 && errno == EINTR));
    if (fd > STDIN_FILENO)
        (void)close(fd);
    if (n == 0) {
        data[len] = '\0';
        *ret_len = len;
        return data;
    }
    free(data);
    (void)make_error(e, PX_E_IO, NULL, n < 0 ? "'%.300s' cannot be read" : "'%.300s' is too large", path);
    return NULL;
}

static json_t *read_json(const char *path, struct px_err *e)
{
    size_t len;
    json_error_t wrong;
    char *text = read_input(path, &len, e);
    json_t *value = text ? json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong) : NULL;
    if (text && !value)
        (void)make_error(e, PX_E_VALUE, "Write one JSON object.", "'%.200s', line %d: %s", path, wrong.line, wrong.text);
    free(text);
    return value;
}

/* ---- prepare ---- */

struct file_list {
    struct px_task_file *items;
    size_t count, room;
    char **own;                 /* texts that are to be freed */
    size_t own_count;
    json_t *json;
};

static void done_files(struct file_list *l)
{
    for (size_t i = 0; i < l->own_count; i++)
        free(l->own[i]);
    free(l->own);
    free(l->items);
    json_decref(l->json);
}

static int add_given(struct call *c, struct file_list *l, const char *said, bool is_text)
{
    const char *equals = strchr(said, '=');
    size_t len = 0;
    if (!equals || equals == said)
        return make_error(&c->e, PX_E_USAGE, "Write PATH=FILE or PATH=TEXT.", "'%.100s' names no file of a workspace", said);
    char *path = strndup(said, (size_t)(equals - said));
    char *data = !path ? NULL : is_text ? strdup(equals + 1) : read_input(equals + 1, &len, &c->e);
    if (!data) {
        free(path);
        return c->e.code ? -1 : make_error(&c->e, PX_E_MEMORY, NULL, "px ran out of memory");
    }
    l->own[l->own_count++] = path;
    l->own[l->own_count++] = data;
    l->items[l->count++] = (struct px_task_file){path, data, is_text ? strlen(data) : len};
    return 0;
}

static int add_json(struct call *c, struct file_list *l)
{
    const char *path;
    json_t *value;
    if (!json_is_object(l->json))
        return make_error(&c->e, PX_E_VALUE, NULL, "the files are not a JSON object of paths and texts");
    json_object_foreach(l->json, path, value)
    {
        if (!json_is_string(value))
            return make_error(&c->e, PX_E_VALUE, "Write {\"path\": \"text\"}.", "the file '%.100s' has no text", path);
        l->items[l->count++] = (struct px_task_file){path, json_string_value(value), json_string_length(value)};
    }
    return 0;
}

static int collect_files(struct call *c, struct file_list *l)
{
    if (c->w.files && !(l->json = read_json(c->w.files, &c->e)))
        return -1;
    const struct option_list *files = &c->w.given_files, *texts = &c->w.given_texts;
    size_t given = files->count + texts->count;
    l->items = calloc(json_object_size(l->json) + given + 1, sizeof *l->items);
    l->own = calloc(2 * given + 1, sizeof *l->own);
    if (!l->items || !l->own)
        return make_error(&c->e, PX_E_MEMORY, NULL, "px ran out of memory");
    if (c->w.files && add_json(c, l) < 0)
        return -1;
    for (size_t i = 0; i < given; i++)
        if (add_given(c, l, i < files->count ? files->items[i] : texts->items[i - files->count], i >= files->count) < 0)
            return -1;
    return 0;
}

int answer(struct call *c, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(object);
    if (!text)
        return fail(c->cli, PX_E_MEMORY, 1, NULL, "px ran out of memory");
    int r = print_document(text);
    free(text);
    return r < 0 ? 1 : 0;
}

static int verb_prepare(struct call *c)
{
    struct file_list files = {0};
    char *path = NULL;
    int r = collect_files(c, &files);
    if (r >= 0)
        r = px_task_prepare(c->tasks, c->w.names[0], files.items, files.count, c->w.from, &path, &c->e);
    done_files(&files);
    if (r < 0)
        return say_error(c->cli, &c->e, 1);
    int status = 0;
    if (c->cli->json)
        status = answer(c, json_pack("{s:i, s:s, s:s}", "schema", 1, "task", c->w.names[0], "workspace", path));
    else
        status = print("%s\n", path) < 0 || flush();
    free(path);
    return status;
}

/* ---- actions ---- */

/* The command of a JSON object; *ret stays NULL if it is none that could be run. */
static int command_of(const json_t *action, const char ***ret)
{
    const json_t *list = json_object_get(action, "command");
    size_t count = json_array_size(list);
    const char **command = calloc(count + 1, sizeof *command);
    if (!command)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_array_get(list, i);
        if (!json_is_string(word) || strlen(json_string_value(word)) != json_string_length(word)) {
            free(command);
            return 0;
        }
        command[i] = json_string_value(word);
    }
    *ret = command;
    return 0;
}

static void say_changes(const struct call *c, const struct px_task_result *r)
{
    if (c->cli->verbose < 0)
        return;
    for (size_t i = 0; i < r->changes_count; i++)
        say("px: %s %s%s%s", r->changes[i].kind, r->changes[i].path, r->changes[i].link ? " (symbolic link)" : "",
            r->applied ? "" : " (dropped)");
    for (size_t i = 0; r->box && !r->error && i < r->box->limits_hit_count; i++)
        say("px: limit reached: %s", r->box->limits_hit[i].limit);
    if (r->error)
        say("px: %s", r->error);
    if (!r->error || strcmp(r->error, "not_allowed") != 0)
        return;
    const char *const *name = px_tasks_config(c->tasks)->allowed;
    for (size_t i = 0; name[i]; i++)
        say_part("%s%s", i ? ", " : "px: allowed are ", name[i]);
    say("%s", name[0] ? ": allowed_binaries in the configuration" : "px: allowed_binaries in the configuration is empty");
}

static int tell(struct call *c, struct px_task_run *run)
{
    const struct px_task_result *r = px_task_result(run);
    char *json = NULL;
    int status = r->exit_code < 0 ? 128 - r->exit_code : r->exit_code;
    if (!c->cli->json) {
        (void)fwrite(r->out.data ? r->out.data : "", 1, r->out.len, stdout);
        (void)fflush(stdout);
        (void)fwrite(r->err.data ? r->err.data : "", 1, r->err.len, stderr);
        if (r->err.len && r->err.data[r->err.len - 1] != '\n')
            say("%s", "");
        say_changes(c, r);
    } else if (px_task_json(run, &json, &c->e) < 0) {
        status = say_error(c->cli, &c->e, 1);
    } else {
        status = print_document(json) < 0 ? 1 : status;
    }
    free(json);
    return flush() ? 1 : status;
}

static int act(struct call *c, bool test)
{
    struct px_task_action action = {.command = c->w.command, .timeout = c->w.timeout,
                                    .cpu_time = c->w.cpu_time, .memory = c->w.memory, .discard = c->w.discard,
                                    .discard_on_timeout = c->w.discard_on_timeout, .test = test};
    struct px_task_run *run = NULL;
    const char **command = NULL;
    json_t *json = c->w.action ? read_json(c->w.action, &c->e) : NULL;
    if (c->w.action && (!json || command_of(json, &command) < 0)) {
        json_decref(json);
        return say_error(c->cli, &c->e, START_STATUS);
    }
    if (c->w.action)
        action.command = command;
    int r = px_tasks_ready(c->tasks, &c->e);
    wipe_environment();
    if (r >= 0)
        r = px_task_apply(c->tasks, c->w.names[0], &action, &run, &c->e);
    int status = r < 0 ? say_error(c->cli, &c->e, START_STATUS) : tell(c, run);
    px_task_run_free(run);
    free(command);
    json_decref(json);
    return status;
}

static int verb_apply(struct call *c)
{
    return act(c, false);
}

static int verb_test(struct call *c)
{
    return act(c, true);
}

/* ---- branches ---- */

static int show_changes(struct call *c, struct px_task_changes *changes, bool diff)
{
    json_t *list = json_array(), *object = NULL;
    int status = 0;
    for (size_t i = 0; c->cli->json && i < changes->count; i++) {
        json_t *path = json_string(changes->changes[i].path);   /* NULL if it is no UTF-8 */
        json_t *link = changes->changes[i].link ? json_true() : NULL;
        (void)json_array_append_new(list, json_pack("{s:o, s:s, s:o*}", "path", path ? path : json_null(), "kind",
                                                    changes->changes[i].kind, "link", link));
    }
    if (c->cli->json) {
        json_t *text = json_stringn(changes->diff.data, changes->diff.len);
        object = json_pack("{s:i, s:o, s:o, s:b}", "schema", 1, "changes", list, "diff", text ? text : json_null(),
                           "diff_truncated", changes->truncated);
        list = NULL;
        status = answer(c, object);
    } else if (diff) {
        (void)fwrite(changes->diff.data, 1, changes->diff.len, stdout);
        if (changes->truncated)
            say("px: warning: files whose diff is too large were left out");
        status = flush();
    } else {
        for (size_t i = 0; i < changes->count && c->cli->verbose >= 0; i++)
            say("px: %s %s%s", changes->changes[i].kind, changes->changes[i].path,
                changes->changes[i].link ? " (symbolic link)" : "");
    }
    json_decref(list);
    px_task_changes_done(changes);
    return status;
}

static int verb_diff(struct call *c)
{
    struct px_task_changes changes = {0};
    const char *b = c->w.names_count > 1 ? c->w.names[1] : NULL;
    if (px_task_diff(c->tasks, c->w.names[0], b, &changes, &c->e) < 0)
        return say_error(c->cli, &c->e, 1);
    return show_changes(c, &changes, true);
}

static int verb_fork(struct call *c)
{
    if (px_task_fork(c->tasks, c->w.names[0], c->w.names[1], &c->e) < 0)
        return say_error(c->cli, &c->e, 1);
    if (!c->cli->json)
        return 0;
    return answer(c, json_pack("{s:i, s:s, s:s}", "schema", 1, "task", c->w.names[1], "from", c->w.names[0]));
}

static int verb_apply_from(struct call *c)
{
    struct px_task_changes changes = {0};
    if (!c->w.to)
        return usage_error(c->cli, USAGE_STATUS, "Write px task apply-from ID --to OTHER.", "--to is missing");
    if (px_task_apply_from(c->tasks, c->w.names[0], c->w.to, &changes, &c->e) < 0)
        return say_error(c->cli, &c->e, 1);
    return show_changes(c, &changes, false);
}

/* ---- the rest ---- */

static int print_line(void *user, const char *line, size_t len)
{
    (void)user;
    return fwrite(line, 1, len, stdout) == len && fputc('\n', stdout) != EOF ? 0 : -EIO;
}

static int verb_log(struct call *c)
{
    if (px_task_log(c->tasks, c->w.names[0], print_line, NULL, &c->e) < 0)
        return say_error(c->cli, &c->e, 1);
    return flush();
}

static int verb_cleanup(struct call *c)
{
    for (size_t i = 0; i < c->w.names_count; i++)
        if (px_task_cleanup(c->tasks, c->w.names[i], &c->e) < 0)
            return say_error(c->cli, &c->e, 1);
    return c->cli->json ? answer(c, json_pack("{s:i, s:i}", "schema", 1, "removed", (int)c->w.names_count)) : 0;
}

/* Nobody gets less than a box without being told; a JSON result says so itself. */
static void warn(const struct call *c, bool runs)
{
    if (runs && c->cli->verbose >= 0 && !c->cli->json && !px_tasks_config(c->tasks)->jail)
        say("px: warning: enable_jail is false: actions run as you, with the host's files and network, held by rlimits alone");
}

static int run_task(struct args *a, int (*verb)(struct call *c))
{
    const struct words *w = a->request;
    struct call c = {.cli = a->cli, .w = *w};
    bool command = a->verb->command != COMMAND_NONE;
    c.w.names = a->names;
    c.w.names_count = a->count;
    c.w.command = a->commanded ? a->o.argv : NULL;
    if (command && !c.w.command && !c.w.action)
        return usage_error(a->cli, USAGE_STATUS, "Write the command behind --.", "%s needs a command", a->title);
    int status = px_tasks_new(c.w.config, &c.tasks, &c.e) < 0 ? say_error(a->cli, &c.e, command ? START_STATUS : 1) : -1;
    if (status < 0) {
        warn(&c, command || verb == verb_run);
        status = verb(&c);
    }
    px_tasks_free(c.tasks);
    return status;
}

#define ACT(verb)                                                                                                      \
    static int run_##verb(struct args *a)                                                                              \
    {                                                                                                                  \
        return run_task(a, verb_##verb);                                                                               \
    }
ACT(prepare)
ACT(apply)
ACT(test)
ACT(diff)
ACT(fork)
ACT(apply_from)
ACT(show)
ACT(export)
ACT(checkout)
ACT(log)
ACT(cleanup)
ACT(run)
ACT(report)

#define ROW(name, kind, member, arg, help) {name, 0, kind, offsetof(struct words, member), arg, help}

static const struct option_row shared[] = {
    ROW("config", OPTION_TEXT, config, "FILE", "the configuration (configs/sandbox.yaml, if it is there)"),
    {0},
};
static const struct option_row prepare_rows[] = {
    ROW("from", OPTION_TEXT, from, "DIR", "with a copy of its files"),
    ROW("file", OPTION_LIST, given_files, "PATH=FILE", "with this file"),
    ROW("text", OPTION_LIST, given_texts, "PATH=TEXT", "with this text"),
    ROW("files", OPTION_TEXT, files, "JSON", "a JSON object of paths and texts; - for standard input"),
    {0},
};
static const struct option_row action_rows[] = {
    ROW("timeout", OPTION_TEXT, timeout, "TIME", "of the action (30s)"),
    ROW("cpu-time", OPTION_TEXT, cpu_time, "TIME", "(20s)"),
    ROW("memory", OPTION_TEXT, memory, "SIZE", "(4096m)"),
    ROW("action", OPTION_TEXT, action, "FILE", "the action as a JSON object with a command; - for standard input"),
    ROW("discard", OPTION_FLAG, discard, NULL, "drop what it changes"),
    ROW("discard-on-timeout", OPTION_FLAG, discard_on_timeout, NULL, "drop it if the time was up"),
    {0},
};
static const struct option_row to_rows[] = {ROW("to", OPTION_TEXT, to, "OTHER", "the workspace that gets the changes"), {0}};
static const struct option_row run_rows[] = {
    ROW("from", OPTION_TEXT, from, "FILE", "the actions, one a line; - for standard input"),
    ROW("jobs", OPTION_NUMBER, jobs, "N", "boxes at once (as many as there are processors)"),
    ROW("name", OPTION_TEXT, name, "NAME", "of the run: lines done under it are skipped (the path of FILE)"),
    {0},
};
static const struct option_row report_rows[] = {ROW("html", OPTION_TEXT, html, "FILE", "also a page"), {0}};

#define TASK(name, usage, help, run, rows, least, most) \
    {name, usage, help, run, rows, shared, sizeof(struct words), least, most, "a name", .alone = true}
#define TASK_ACTION(name, usage, help, run) \
    {name, usage, help, run, action_rows, shared, sizeof(struct words), 1, 1, "a name", COMMAND_BEHIND, .alone = true}

const struct verb task_verbs[] = {
    TASK("prepare", "ID [OPTIONS]", "make the workspace, or add to it", run_prepare, prepare_rows, 1, 1),
    TASK_ACTION("apply", "ID [OPTIONS] -- COMMAND", "run an allowed command on it, and keep or drop what it changes", run_apply),
    TASK_ACTION("test", "ID [OPTIONS] -- COMMAND", "the same for tests: the answer has no diff", run_test),
    TASK("diff", "A [B]", "what differs; of a branch alone: since it was forked", run_diff, NULL, 1, 2),
    TASK("fork", "ID NEW", "a branch, in constant time", run_fork, NULL, 2, 2),
    TASK("apply-from", "ID --to OTHER", "what a branch has done, done to another one", run_apply_from, to_rows, 1, 1),
    TASK("show", "ID [PATH]", "a file of it, or the names of its files; also of a branch", run_show, NULL, 1, 2),
    TASK("export", "ID DIR", "a copy of its files, in a directory that px makes", run_export, NULL, 2, 2),
    TASK("checkout", "ID", "give a branch a directory in work_root again", run_checkout, NULL, 1, 1),
    TASK("log", "ID", "its journal, one JSON object a line", run_log, NULL, 1, 1),
    TASK("cleanup", "ID...", "remove workspaces", run_cleanup, NULL, 1, NAMES_ANY),
    TASK("run", "--from FILE [OPTIONS]", "one action a line, many boxes at once; results are JSON lines", run_run, run_rows, 0, 0),
    TASK("report", "[DIR] [OPTIONS]", "what the journals say: counts and durations", run_report, report_rows, 0, 1),
    {0},
};
