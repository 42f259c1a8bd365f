#include "task/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <px/task.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"

enum { CHUNK = 64 << 10, LINE_MAX_BYTES = 64 << 20, TASKS_MAX = 1 << 17 };

/* ---- lists ---- */

static void *grown(void *items, size_t count, size_t *room, size_t size, size_t most)
{
    if (count < *room)
        return items;
    size_t more = *room ? 2 * *room : 256;
    void *bigger = count < most ? realloc(items, more * size) : NULL;
    if (bigger)
        *room = more;
    return bigger;
}

/* The file is named after the task; usually it is the last known one. */
static int task_of(struct px_report *r, const char *name, size_t *ret)
{
    for (size_t i = r->tasks_count; i-- > 0;)
        if (px_equal(r->tasks[i].name, name)) {
            *ret = i;
            return 0;
        }
    struct px_report_task *more = grown(r->tasks, r->tasks_count, &r->tasks_room, sizeof *more, TASKS_MAX);
    if (!more)
        return -E2BIG;
    r->tasks = more;
    r->tasks[r->tasks_count] = (struct px_report_task){.name = strdup(name)};
    if (!r->tasks[r->tasks_count].name)
        return -ENOMEM;
    *ret = r->tasks_count++;
    return 0;
}

/* ---- lines ---- */

static void count_action(struct px_report *r, const struct px_report_action *a)
{
    bool timeout = px_equal(a->error, "timeout"), refused = px_equal(a->error, "not_allowed") || px_equal(a->error, "invalid_command");
    r->all++;
    r->ok += a->exit_code == 0 && !a->error;
    r->timeouts += timeout;
    r->refused += refused;
    r->nonzero += !timeout && !refused && (a->exit_code != 0 || a->error);
    r->seconds += a->seconds;
    r->longest = a->seconds > r->longest ? a->seconds : r->longest;
    r->tasks[a->task].actions++;
    r->tasks[a->task].failed += a->exit_code != 0 || a->error;
    r->tasks[a->task].seconds += a->seconds;
}

static int take_action(struct px_report *r, size_t task, json_t *line)
{
    struct px_report_action a = {
        .task = task,
        .seconds = json_number_value(json_object_get(line, "duration_sec")),
        .exit_code = (int)json_integer_value(json_object_get(line, "exit_code")),
        .error = json_string_value(json_object_get(line, "error")),
        .key = json_string_value(json_object_get(line, "action")),
    };
    a.begin = json_number_value(json_object_get(line, "timestamp")) - a.seconds;
    count_action(r, &a);
    struct px_report_action *more = grown(r->actions, r->count, &r->room, sizeof *more, PX_REPORT_ACTIONS);
    if (!more)
        return 0; /* counted, not shown */
    a.line = json_incref(line);
    r->actions = more;
    r->actions[r->count++] = a;
    return 0;
}

/* A result of `px task run` that was saved next to the journals has the diff. */
static void take_diff(struct px_report *r, const json_t *line)
{
    const json_t *diff = json_object_get(line, "diff");
    const char *key = json_string_value(json_object_get(line, "action"));
    size_t len = json_string_length(diff);
    if (!key || len == 0 || len > PX_REPORT_DIFF || r->diffs_bytes + len > PX_REPORT_DIFFS)
        return;
    r->diffs_bytes += len;
    (void)json_object_set(r->diffs, key, (json_t *)(uintptr_t)diff);
}

static int take_line(struct px_report *r, size_t task, const char *text, size_t len)
{
    json_t *line = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
    const char *event = json_string_value(json_object_get(line, "event"));
    int done = 0;
    if (!json_is_object(line))
        r->broken++;
    else if (px_equal(event, "apply_action"))
        done = take_action(r, task, line);
    else if (!event)
        take_diff(r, line);
    r->tasks[task].seen = r->tasks[task].seen || event;
    r->prepared += px_equal(event, "prepare_workspace");
    r->forked += px_equal(event, "fork");
    r->cleaned += px_equal(event, "cleanup");
    json_decref(line);
    return done;
}

static int read_lines(struct px_report *r, size_t task, int fd)
{
    px_auto_free char *room = malloc(CHUNK);
    px_auto_buf struct px_buf rest = PX_BUF(LINE_MAX_BYTES);
    int done = room ? 0 : -ENOMEM;
    for (ssize_t n; done >= 0 && (n = px_read_some(fd, room, CHUNK)) != 0;) {
        const char *p = room, *end = n > 0 ? room + n : room;
        done = n < 0 ? (int)n : 0;
        while (p < end && done >= 0) {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            done = px_buf_add(&rest, p, (size_t)((newline ? newline : end) - p));
            if (done >= 0 && newline) {
                done = take_line(r, task, px_buf_text(&rest), rest.len);
                rest.len = 0;
            }
            p = newline ? newline + 1 : end;
        }
    }
    return done;
}

/* ---- files ---- */

/* "t1.jsonl" and "t1.jsonl.2" are both of t1. */
static bool is_journal(const char *name, char task[256])
{
    const char *end = strstr(name, ".jsonl");
    for (const char *next = end; next; next = strstr(next + 1, ".jsonl"))
        end = next;
    if (!end || end == name || !(end[6] == '\0' || (end[6] == '.' && end[7] >= '1' && end[7] <= '9' && end[8] == '\0')))
        return false;
    return px_fmt(task, 256, "%.*s", (int)(end - name), name) >= 0;
}

static int read_journal(struct px_report *r, int dir, const char *name)
{
    char task[256];
    struct stat st;
    size_t index;
    if (!is_journal(name, task))
        return 0;
    px_auto_fd int fd = px_open_in_root(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    int done = task_of(r, task, &index);
    return done < 0 ? done : read_lines(r, index, fd);
}

static int compare_actions(const void *a, const void *b)
{
    const struct px_report_action *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int read_all(struct px_report *r, const char *dir)
{
    int done = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        done = -errno;
        (void)px_fd_close(fd);
        return done;
    }
    for (struct dirent *entry; done >= 0 && (entry = readdir(list));)
        done = read_journal(r, dirfd(list), entry->d_name);
    (void)closedir(list);
    if (r->count)
        qsort(r->actions, r->count, sizeof *r->actions, compare_actions);
    return done;
}

int px_task_report_read(const char *dir, struct px_report *ret, struct px_err *e)
{
    struct px_report r = {.diffs = json_object()};
    int done = r.diffs ? read_all(&r, dir) : -ENOMEM;
    if (done < 0) {
        px_task_report_done(&r);
        return px_fail(e, PX_E_IO, done, "the journals in '%.300s' cannot be read", dir);
    }
    *ret = r;
    return 0;
}

void px_task_report_done(struct px_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        json_decref(report->actions[i].line);
    for (size_t i = 0; i < report->tasks_count; i++)
        free(report->tasks[i].name);
    free(report->actions);
    free(report->tasks);
    json_decref(report->diffs);
    *report = (struct px_report){0};
}

uint64_t px_task_report_tasks(const struct px_report *report)
{
    uint64_t count = 0;
    for (size_t i = 0; i < report->tasks_count; i++)
        count += report->tasks[i].seen;
    return count;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double px_task_report_quantile(const struct px_report *report, double rank)
{
    px_auto_free double *all = calloc(report->count + 1, sizeof *all);
    if (!all || report->count == 0)
        return 0;
    for (size_t i = 0; i < report->count; i++)
        all[i] = report->actions[i].seconds;
    qsort(all, report->count, sizeof *all, compare_seconds);
    return all[(size_t)(rank * (double)(report->count - 1) + 0.5)];
}

/* ---- the answer ---- */

static uint64_t microseconds(double seconds)
{
    return seconds > 0 && seconds < 1e12 ? (uint64_t)(seconds * 1e6) : 0;
}

static void print_report(struct px_json *j, const struct px_report *r)
{
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"actions", r->all},       {"ok", r->ok},         {"failed", r->nonzero},    {"timeouts", r->timeouts},
                  {"refused", r->refused},   {"prepared", r->prepared}, {"forked", r->forked}, {"cleaned", r->cleaned},
                  {"broken_lines", r->broken}};
    px_json_object(j, NULL);
    px_json_int(j, "schema", 1);
    px_json_uint(j, "tasks", px_task_report_tasks(r));
    for (size_t i = 0; i < PX_COUNT_OF(counts); i++)
        px_json_uint(j, counts[i].name, counts[i].value);
    px_json_object(j, "duration_sec");
    px_json_decimal(j, "sum", microseconds(r->seconds), 6);
    px_json_decimal(j, "p50", microseconds(px_task_report_quantile(r, 0.5)), 6);
    px_json_decimal(j, "p95", microseconds(px_task_report_quantile(r, 0.95)), 6);
    px_json_decimal(j, "max", microseconds(r->longest), 6);
    px_json_end(j);
    px_json_end(j);
}

PX_API int px_tasks_report(const char *logs_dir, char **ret_json, char **ret_html, struct px_err *e)
{
    PX_ERR(e);
    struct px_report r;
    px_auto_buf struct px_buf json = PX_BUF(1 << 20), html = PX_BUF((size_t)256 << 20);
    struct px_json j = {.out = &json};
    if (px_task_report_read(logs_dir, &r, e) < 0)
        return -1;
    print_report(&j, &r);
    int done = ret_html ? px_task_report_html(&r, &html) : 0;
    px_task_report_done(&r);
    if (json.err < 0 || done < 0)
        return px_fail(e, PX_E_LIMIT, json.err < 0 ? json.err : done, "the report is too large");
    *ret_json = px_buf_take(&json);
    if (ret_html)
        *ret_html = px_buf_take(&html);
    return 0;
}
