/* configs/sandbox.yaml: its keys as a table, errors name the line. A file that px found may only restrict. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "config/found.h"
#include "config/yaml.h"
#include "task/task.h"

static const char usual_file[] = "configs/sandbox.yaml";

struct reader {
    struct px_tasks *tasks;
    const char *name;
    const struct px_tasks *usual; /* the defaults, for a file that was found; NULL: the caller named it */
};

static int wrong(const struct reader *r, const struct px_yaml *n, const char *what, struct px_err *e)
{
    return px_fail(e, PX_E_TASK_CONFIG, 0, "%s, line %zu: %s%s%s %s", r->name, n->line, n->key ? "'" : "", n->key ? n->key : "this",
                   n->key ? "'" : "", what);
}

/* ---- values ---- */

static int read_path(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    char *copy = *n->text ? strdup(n->text) : NULL;
    if (!copy)
        return wrong(r, n, "must be a directory", e);
    free(*(char **)out);
    *(char **)out = copy;
    return 0;
}

static int read_optional(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    char *copy = *n->text ? strdup(n->text) : NULL; /* an empty value counts as absent */
    (void)r;
    if (!copy && *n->text)
        return px_no_memory(e);
    free(*(char **)out);
    *(char **)out = copy;
    return 0;
}

static int read_seconds(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    static const uint64_t month_msec = (uint64_t)1000 * 3600 * 24 * 31;
    uint64_t value;
    if (!n->plain || px_parse_milli(n->text, &value) < 0 || value == 0 || value > month_msec)
        return wrong(r, n, "must be a number of seconds, more than 0", e);
    *(uint64_t *)out = value;
    return 0;
}

static int read_megabytes(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    uint64_t value;
    if (!n->plain || px_parse_u64(n->text, UINT64_MAX >> 24, &value) < 0 || value == 0)
        return wrong(r, n, "must be a number of megabytes, more than 0", e);
    *(uint64_t *)out = value << 20;
    return 0;
}

static void drop_list(char **list)
{
    for (; *list; list++) {
        free(*list);
        *list = NULL;
    }
}

/* An entry of a list in stored form; NULL: invalid, and *ret_why has what it must be. */
typedef char *(*read_item)(const char *text, const char **ret_why);

static int read_list(struct reader *r, const struct px_yaml *list, char **out, size_t max, read_item item,
                     struct px_err *e)
{
    size_t count = 0;
    drop_list(out);
    for (const struct px_yaml *n = list->first; n; n = n->next) {
        const char *why = NULL;
        if (count == max)
            return wrong(r, list, "has too many entries", e);
        out[count++] = item(n->kind == PX_YAML_TEXT ? n->text : "", &why);
        if (!out[count - 1])
            return why ? wrong(r, n, why, e) : px_no_memory(e);
    }
    return 0;
}

static char *program_item(const char *text, const char **ret_why)
{
    *ret_why = *text == '\0'                       ? "must be the name of a program"
               : *text != '/' && strchr(text, '/') ? "must be a name or an absolute path"
                                                   : NULL;
    return *ret_why ? NULL : strdup(text);
}

/* The box has the same path; ':' separates paths in the list. */
static char *place_item(const char *text, const char **ret_why)
{
    char *path = *text ? realpath(text, NULL) : NULL;
    if (path && !strchr(path, ':'))
        return path;
    free(path);
    *ret_why = "must be a path that is there, without ':'";
    return NULL;
}

static char *variable_item(const char *text, const char **ret_why)
{
    size_t n = strcspn(text, "=");
    *ret_why = n == 0 || text[n] != '='       ? "must be NAME=VALUE"
               : px_starts_with(text, "PATH=") ? "must not be PATH: the key path is for that"
                                               : NULL;
    return *ret_why ? NULL : strdup(text);
}

static int read_allowed(struct reader *r, const struct px_yaml *list, void *out, struct px_err *e)
{
    return read_list(r, list, out, PX_TASK_ALLOWED_MAX, program_item, e);
}

static int read_places(struct reader *r, const struct px_yaml *list, void *out, struct px_err *e)
{
    return read_list(r, list, out, PX_TASK_LIST_MAX, place_item, e);
}

static int read_variables(struct reader *r, const struct px_yaml *list, void *out, struct px_err *e)
{
    return read_list(r, list, out, PX_TASK_LIST_MAX, variable_item, e);
}

static int read_jail(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    *(bool *)out = n->plain && px_equal(n->text, "true");
    return *(bool *)out || (n->plain && px_equal(n->text, "false")) ? 0 : wrong(r, n, "must be true or false", e);
}

static int read_jailer(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    (void)out;
    bool null = n->plain && (px_equal(n->text, "null") || px_equal(n->text, "~"));
    if (px_equal(n->text, "none") || px_equal(n->text, "px") || *n->text == '\0' || null)
        return 0;
    px_fail(e, PX_E_NOT_BUILT, 0, "%s, line %zu: px is the jailer, and uses no other", r->name, n->line);
    return px_fix(e, "Leave jailer out, or write jailer: none.");
}

static int read_overlay(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e)
{
    *(bool *)out = px_equal(n->text, "auto");
    return *(bool *)out || px_equal(n->text, "never") ? 0 : wrong(r, n, "must be auto or never", e);
}

/* ---- the file ---- */

#define T(member) offsetof(struct px_tasks, member)
static const struct field {
    const char *key;
    enum px_yaml_kind kind;
    int (*read)(struct reader *r, const struct px_yaml *n, void *out, struct px_err *e);
    size_t at;
} fields[] = {
    {"work_root", PX_YAML_TEXT, read_path, T(work_root)},
    {"logs_dir", PX_YAML_TEXT, read_path, T(logs_dir)},
    {"default_timeout_sec", PX_YAML_TEXT, read_seconds, T(config.timeout_msec)},
    {"cpu_time_sec", PX_YAML_TEXT, read_seconds, T(config.cpu_time_msec)},
    {"mem_limit_mb", PX_YAML_TEXT, read_megabytes, T(config.memory_bytes)},
    {"allowed_binaries", PX_YAML_LIST, read_allowed, T(allowed)},
    {"enable_jail", PX_YAML_TEXT, read_jail, T(config.jail)},
    {"jailer", PX_YAML_TEXT, read_jailer, 0},
    {"log_max_mb", PX_YAML_TEXT, read_megabytes, T(config.log_bytes_max)},
    {"overlay", PX_YAML_TEXT, read_overlay, T(config.overlay)},
    {"base", PX_YAML_TEXT, read_optional, T(base)},
    {"project", PX_YAML_TEXT, read_optional, T(project)},
    {"path", PX_YAML_LIST, read_places, T(path)},
    {"binds", PX_YAML_LIST, read_places, T(binds)},
    {"env", PX_YAML_LIST, read_variables, T(env)},
    {0},
};

const char *px_task_config_key(size_t index)
{
    return index < PX_COUNT_OF(fields) ? fields[index].key : NULL;
}

static void put_value(const struct px_yaml *n, struct px_buf *out)
{
    enum { SHOWN = 200 };
    if (n->kind == PX_YAML_TEXT) {
        (void)px_buf_quote(out, n->text, strnlen(n->text, SHOWN));
        return;
    }
    px_buf_puts(out, "[");
    for (const struct px_yaml *item = n->first; item && out->len < SHOWN; item = item->next) {
        (void)px_buf_quote(out, item->text, strnlen(item->text, SHOWN));
        px_buf_puts(out, item->next ? ", " : "");
    }
    px_buf_puts(out, "]");
}

static int loosens(const struct reader *r, const struct px_yaml *n, struct px_err *e)
{
    px_auto_buf struct px_buf value = PX_BUF(1 << 12);
    put_value(n, &value);
    px_fail(e, PX_E_FOUND_LOOSENS, 0, "%s, line %zu: '%s: %s' is weaker than the default", r->name, n->line, n->key,
            px_buf_text(&value));
    (void)px_detail(e, "file", r->name);
    (void)px_detail(e, "field", n->key);
    (void)px_detail(e, "value", px_buf_text(&value));
    return px_fix(
        e,
        "Read the file. If its settings are yours, name it: --config %s (Python: config=SandboxConfig.load(\"%s\")).\n"
        "Or remove '%s' from it.",
        r->name, r->name, n->key);
}

/* Checked while reading, so that the error has the file's line. */
static int judge(const struct reader *r, const struct field *f, const struct px_yaml *n, struct px_err *e)
{
    int way = px_found_way(f->key);
    const void *value = (const char *)r->tasks + f->at, *usual = (const char *)r->usual + f->at;
    return way >= 0 && px_found_restricts((enum px_found_way)way, AT_FDCWD, value, usual) ? 0 : loosens(r, n, e);
}

static int read_key(struct reader *r, const struct px_yaml *n, struct px_err *e)
{
    const struct field *f = fields;
    while (f->key && !px_equal(f->key, n->key))
        f++;
    if (!f->key)
        return wrong(r, n, "is no key that is known here", e);
    if (n->kind != f->kind)
        return wrong(r, n, f->kind == PX_YAML_LIST ? "must be a list" : "must be a single value", e);
    if (f->read(r, n, (char *)r->tasks + f->at, e) < 0)
        return -1;
    return r->usual ? judge(r, f, n, e) : 0;
}

static int set_defaults(struct px_tasks *tasks, struct px_err *e)
{
    static const char *const usual[] = {"ast-grep", "sg", "python", "pytest"};
    tasks->config = (struct px_tasks_config){
        .timeout_msec = 30000, .cpu_time_msec = 20000, .memory_bytes = (uint64_t)4096 << 20, .log_bytes_max = 64 << 20, .overlay = true,
        .jail = true};
    tasks->work_root = strdup(".sandbox");
    tasks->logs_dir = strdup("logs/sandbox");
    bool all = tasks->work_root && tasks->logs_dir;
    for (size_t i = 0; i < PX_COUNT_OF(usual); i++)
        all = (tasks->allowed[i] = strdup(usual[i])) && all;
    return all ? 0 : px_no_memory(e);
}

static void publish(struct px_tasks *tasks)
{
    tasks->config.work_root = tasks->work_root;
    tasks->config.logs_dir = tasks->logs_dir;
    tasks->config.base = tasks->base;
    tasks->config.project = tasks->project;
    tasks->config.allowed = (const char *const *)tasks->allowed;
    tasks->config.path = (const char *const *)tasks->path;
    tasks->config.binds = (const char *const *)tasks->binds;
    tasks->config.env = (const char *const *)tasks->env;
}

static int parse(struct reader *r, const char *data, size_t len, struct px_err *e)
{
    struct px_yaml *root = NULL;
    struct px_err broken = {0};
    if (px_yaml_parse(r->name, data, len, &root, &broken) < 0) {
        px_fail(e, PX_E_TASK_CONFIG, 0, "%s", broken.what);
        return px_why(e, "%s", broken.why);
    }
    int done = root->kind == PX_YAML_MAP ? 0 : wrong(r, root, "must be a map", e);
    for (const struct px_yaml *n = root->first; n && done >= 0; n = n->next)
        done = read_key(r, n, e);
    px_yaml_free(root);
    return done;
}

int px_task_config_parse(struct px_tasks *tasks, const char *name, bool found, const char *data, size_t len,
                         struct px_err *e)
{
    px_auto_free struct px_tasks *usual = calloc(1, sizeof *usual);
    struct reader r = {tasks, name, found ? usual : NULL};
    tasks->found = found;
    if (!usual)
        return px_no_memory(e);
    int done = set_defaults(tasks, e) < 0 || set_defaults(usual, e) < 0 ? -1 : 0;
    if (done == 0 && len > 0)
        done = parse(&r, data, len, e);
    publish(tasks);
    if (done == 0 && tasks->base && !tasks->config.jail)
        done = px_fail(e, PX_E_TASK_CONFIG, 0, "%s: 'base' needs a box, and 'enable_jail' is false", name);
    px_task_config_done(usual);
    return done;
}

int px_task_config_read(struct px_tasks *tasks, const char *file, struct px_err *e)
{
    const char *path = file ? file : usual_file;
    px_auto_free char *data = malloc(PX_YAML_BYTES + 2);
    px_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT && !file)
        return px_task_config_parse(tasks, path, true, "", 0, e);
    ssize_t n = fd < 0 ? -errno : data ? px_read_full(fd, data, PX_YAML_BYTES + 1) : -ENOMEM;
    if (n < 0)
        return px_fail(e, PX_E_TASK_CONFIG, (int)n, "'%.200s' cannot be read", path);
    return px_task_config_parse(tasks, path, !file, data, (size_t)n, e);
}

void px_task_config_done(struct px_tasks *tasks)
{
    drop_list(tasks->allowed);
    drop_list(tasks->path);
    drop_list(tasks->binds);
    drop_list(tasks->env);
    free(tasks->work_root);
    free(tasks->logs_dir);
    free(tasks->base);
    free(tasks->project);
}
