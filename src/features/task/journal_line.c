/* Lines of a task's journal: the event's own fields first, then time and task. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "task/journal.h"
#include "task/task.h"

enum { CHUNK = 64 << 10 };

void px_task_line_begin(struct px_json *j, struct px_buf *out, const char *event)
{
    *j = (struct px_json){.out = out};
    px_json_object(j, NULL);
    px_json_text(j, "event", event);
}

void px_task_line_end(struct px_json *j, const char *id, const char *key)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    px_json_decimal(j, "timestamp", (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000, 6);
    px_json_text(j, "task_id", id);
    if (key)
        px_json_text(j, "action", key);
    px_json_end(j);
}

int px_task_line_write(const struct px_tasks *tasks, const char *id, struct px_buf *line, struct px_err *e)
{
    int r = line->err < 0 ? line->err
                          : px_journal_append(tasks->root.logs, id, line->data, line->len, tasks->config.log_bytes_max);
    return r < 0 ? px_fail(e, PX_E_TASK_STATE, r, "the journal of '%s' cannot be written", id) : 0;
}

/* ---- reading ---- */

struct lines {
    int (*each)(void *user, const char *line, size_t len);
    void *user;
    struct px_buf rest; /* the beginning of a line */
};

static int take(struct lines *l, const char *data, size_t len)
{
    int r = 0;
    for (const char *p = data, *end = data + len; p < end && r >= 0;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        px_buf_add(&l->rest, p, newline ? (size_t)(newline - p) : (size_t)(end - p));
        if (!newline || l->rest.err < 0)
            return l->rest.err;
        r = l->each(l->user, px_buf_text(&l->rest), l->rest.len);
        l->rest.len = 0;
        p = newline + 1;
    }
    return r;
}

/* The text after the last newline is incomplete. */
static int read_part(int fd, struct lines *l)
{
    px_auto_free char *room = malloc(CHUNK);
    int r = room ? 0 : -ENOMEM;
    for (ssize_t n; r >= 0 && (n = px_read_some(fd, room, CHUNK)) != 0;)
        r = n < 0 ? (int)n : take(l, room, (size_t)n);
    return r;
}

PX_API int px_task_log(const struct px_tasks *tasks, const char *id, int (*each)(void *user, const char *line, size_t len),
                       void *user, struct px_err *e)
{
    PX_ERR(e);
    bool any = false;
    int r = 0;
    if (px_workspace_check_id(id, e) < 0)
        return -1;
    for (int part = PX_JOURNAL_PARTS; part >= 0 && r >= 0; part--) {
        struct lines lines = {each, user, PX_BUF(PX_TASK_LINE_MAX)};
        px_auto_fd int fd = px_journal_open(tasks->root.logs, id, part);
        if (fd == -ENOENT)
            continue;
        any = true;
        r = fd < 0 ? fd : read_part(fd, &lines);
        px_buf_done(&lines.rest);
    }
    if (r < 0)
        return px_fail(e, PX_E_TASK_STATE, r, "the journal of '%s' cannot be read", id);
    return any ? 0 : px_fail(e, PX_E_NO_TASK, 0, "there is no journal of '%s'", id);
}
