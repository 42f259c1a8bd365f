/* engine/task_batch.c - many actions, so many boxes at once: one thread, one poll.
 *
 * Lines wait in a window, the oldest first. One is started as soon as neither its workspace nor the one it is forked from
 * is in use: lines of one task keep their order. What is done stands in the journals (engine/task_done.h). */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "engine/task_done.h"
#include "engine/task_line.h"

enum { JOBS_MAX = 1024, WINDOW_MIN = 64, WINDOW_BYTES = 64 << 20, CHUNK = 64 << 10, COULD_NOT = 125 };

/* The parts of a line, each of which the journal has once. */
enum part { FILES, COMMAND, CLEANUP };

struct job {
    struct job *next;
    uint64_t number;
    size_t bytes;
    struct px_task_line line;
    char keys[3][PX_TASK_KEY];  /* of its parts in the journal */
    struct px_task_run *run;    /* while it runs */
};

struct batch {
    const struct px_tasks *tasks;
    const struct px_tasks_batch *ask;
    struct px_task_done done;
    struct job *first, **last;  /* waiting */
    size_t waiting, waiting_bytes;
    struct job *running[JOBS_MAX];
    size_t running_count;
    struct px_buf rest;         /* the beginning of a line */
    char *chunk;
    size_t chunk_at, chunk_len;
    bool eof;
    uint64_t total;
    struct px_tasks_count count;
};

static void free_job(struct job *job)
{
    px_task_run_free(job->run);
    px_task_line_done(&job->line);
    free(job);
}

/* ---- results ---- */

static void progress(struct batch *b)
{
    if (b->ask->progress)
        b->ask->progress(b->ask->user, "actions", b->count.ok + b->count.nonzero + b->count.failed + b->count.skipped, b->total);
}

static int hand_on(struct batch *b, struct px_buf *out, struct px_err *e)
{
    progress(b);
    if (out->err < 0)
        return px_fail(e, PX_E_MEMORY, out->err, "a result is too large");
    return b->ask->each(b->ask->user, out->data, out->len) < 0 ? px_fail(e, PX_E_IO, 0, "a result could not be handed on") : 0;
}

static void begin(struct px_json *j, struct px_buf *out, uint64_t number, const json_t *id)
{
    *j = (struct px_json){.out = out};
    px_json_object(j, NULL);
    px_json_uint(j, "line", number);
    if (json_is_string(id))
        px_json_bytes(j, "id", json_string_value(id), json_string_length(id));
    else if (json_is_integer(id))
        px_json_int(j, "id", json_integer_value(id));
}

/* What could not be run. */
static int tell_error(struct batch *b, uint64_t number, const struct job *job, const struct px_err *why, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(64 << 10);
    struct px_json j;
    char code[8];
    b->count.failed++;
    (void)px_fmt(code, sizeof code, "PX%03d", why->code);
    begin(&j, &out, number, job ? job->line.id : NULL);
    px_json_text(&j, "task", job ? job->line.task : NULL);
    px_json_int(&j, "exit_code", COULD_NOT);
    px_json_text(&j, "error", code);
    px_json_bytes(&j, "message", why->what, strlen(why->what));
    px_json_text(&j, "why", why->why);
    px_json_text(&j, "fix", why->fix);
    px_json_end(&j);
    return hand_on(b, &out, e);
}

static int tell_prepared(struct batch *b, const struct job *job, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(64 << 10);
    struct px_json j;
    b->count.ok++;
    begin(&j, &out, job->number, job->line.id);
    px_json_text(&j, "task", job->line.task);
    px_json_int(&j, "exit_code", 0);
    px_json_null(&j, "error");
    px_json_uint(&j, "files", job->line.files_count);
    px_json_end(&j);
    return hand_on(b, &out, e);
}

static int tell_result(struct batch *b, const struct job *job, struct px_err *e)
{
    px_auto_free char *json = NULL;
    px_auto_buf struct px_buf out = PX_BUF((size_t)300 << 20);
    struct px_json j;
    if (px_task_json(job->run, &json, e) < 0)
        return -1;
    if (px_task_result(job->run)->exit_code == 0)
        b->count.ok++;
    else
        b->count.nonzero++;
    begin(&j, &out, job->number, job->line.id);
    px_buf_putc(&out, ',');
    px_buf_puts(&out, json + 1);
    return hand_on(b, &out, e);
}

/* ---- one line ---- */

static bool in_use(const struct batch *b, const char *task)
{
    for (size_t i = 0; task && i < b->running_count; i++)
        if (px_equal(b->running[i]->line.task, task))
            return true;
    return false;
}

static int finish_job(struct batch *b, struct job *job, int told, struct px_err *e)
{
    struct px_err why = {0};
    px_task_run_free(job->run);
    job->run = NULL;
    if (told >= 0 && job->line.cleanup && px_task_cleanup_as(b->tasks, job->line.task, job->keys[CLEANUP], &why) < 0)
        told = tell_error(b, job->number, job, &why, e);
    free_job(job);
    return told;
}

static int was_done(struct batch *b, const struct job *job, enum part part, struct px_err *e)
{
    return px_task_done_has(&b->done, job->line.task, job->keys[part], e);
}

/* What is still to be done of a line. */
enum rest { NOTHING, ONLY_CLEANUP, ALL };

static int what_is_left(struct batch *b, const struct job *job, struct px_err *e)
{
    const struct px_task_line *l = &job->line;
    int cleaned = l->cleanup ? was_done(b, job, CLEANUP, e) : 0;
    int run = cleaned == 0 && l->has_command ? was_done(b, job, COMMAND, e) : 0;
    int put = cleaned == 0 && !l->has_command && l->files ? was_done(b, job, FILES, e) : 0;
    if (cleaned < 0 || run < 0 || put < 0)
        return -1;
    return cleaned || ((run || put) && !l->cleanup) ? NOTHING : run || put ? ONLY_CLEANUP : ALL;
}

static int make_ready(struct batch *b, const struct job *job, struct px_err *e)
{
    const struct px_task_line *l = &job->line;
    if (l->from && !px_space_exists(&b->tasks->root, l->task) && px_task_fork(b->tasks, l->from, l->task, e) < 0)
        return -1;
    int put = l->files ? was_done(b, job, FILES, e) : 1;
    if (put < 0)
        return -1;
    return put ? 0 : px_task_prepare_as(b->tasks, l->task, l->files, l->files_count, NULL, job->keys[FILES], e);
}

static int skip_job(struct batch *b, struct job *job, int left, struct px_err *e)
{
    b->count.skipped++;
    progress(b);
    if (left == ONLY_CLEANUP)
        return finish_job(b, job, 0, e);
    free_job(job);
    return 0;
}

/* Takes the job: it runs afterwards, or is told and over. */
static int start_job(struct batch *b, struct job *job, struct px_err *e)
{
    struct px_err why = {0};
    int left = px_space_check_id(job->line.task, &why) < 0 ? -1 : what_is_left(b, job, &why);
    if (left == NOTHING || left == ONLY_CLEANUP)
        return skip_job(b, job, left, e);
    int r = left < 0 ? -1 : make_ready(b, job, &why);
    if (r >= 0 && !job->line.has_command)
        return finish_job(b, job, tell_prepared(b, job, e), e);
    job->line.action.key = job->keys[COMMAND];
    if (r >= 0)
        r = px_task_start(b->tasks, job->line.task, &job->line.action, &job->run, &why);
    if (r < 0) {
        r = tell_error(b, job->number, job, &why, e);
        free_job(job);
        return r;
    }
    b->running[b->running_count++] = job;
    return 0;
}

static int start_some(struct batch *b, struct px_err *e)
{
    for (struct job **at = &b->first; *at && b->running_count < b->ask->jobs;) {
        struct job *job = *at;
        if (in_use(b, job->line.task) || in_use(b, job->line.from)) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        if (b->last == &job->next)
            b->last = at;
        b->waiting--;
        b->waiting_bytes -= job->bytes;
        if (start_job(b, job, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- reading ---- */

static int add_line(struct batch *b, const char *text, size_t len, struct px_err *e)
{
    struct px_err why = {0};
    uint64_t number = ++b->count.lines;
    if (strspn(text, " \t\r") == len)
        return 0;
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "actions");
    if (px_task_line_read(text, len, number, &job->line, &why) < 0) {
        free(job);
        return tell_error(b, number, NULL, &why, e);
    }
    job->number = number;
    job->bytes = len;
    for (int part = FILES; part <= CLEANUP; part++)
        px_task_done_key(&b->done, (char)('0' + part), number, text, len, job->keys[part]);
    *b->last = job;
    b->last = &job->next;
    b->waiting++;
    b->waiting_bytes += len;
    return 0;
}

/* Who writes the actions may wait for a result before the next one. */
static bool has_input(const struct batch *b)
{
    struct pollfd in = {.fd = b->ask->actions, .events = POLLIN};
    return poll(&in, 1, 0) != 0;
}

/* One more line into the window; the last one needs no newline. 1: there is none now. */
static int read_line(struct batch *b, struct px_err *e)
{
    for (;;) {
        if (b->chunk_at == b->chunk_len) {
            if (!has_input(b))
                return 1;
            ssize_t n = px_read_some(b->ask->actions, b->chunk, CHUNK);
            if (n < 0)
                return px_fail(e, PX_E_IO, (int)n, "the actions cannot be read");
            b->eof = n == 0;
            b->chunk_at = 0;
            b->chunk_len = (size_t)n;
        }
        const char *from = b->chunk + b->chunk_at;
        const char *newline = b->eof ? NULL : memchr(from, '\n', b->chunk_len - b->chunk_at);
        size_t n = newline ? (size_t)(newline - from) : b->chunk_len - b->chunk_at;
        px_buf_add(&b->rest, from, n);
        b->chunk_at += n + (newline != NULL);
        if (b->rest.err < 0)
            return px_fail(e, PX_E_ACTIONS, 0, "line %llu is longer than %d bytes", (unsigned long long)b->count.lines + 1,
                           PX_TASK_JSON_MAX);
        if (!newline && !b->eof)
            continue;
        int r = b->eof && b->rest.len == 0 ? 0 : add_line(b, px_buf_text(&b->rest), b->rest.len, e);
        b->rest.len = 0;
        return r;
    }
}

static bool has_room(const struct batch *b)
{
    size_t window = (size_t)4 * b->ask->jobs > WINDOW_MIN ? (size_t)4 * b->ask->jobs : WINDOW_MIN;
    return !b->eof && b->waiting < window && b->waiting_bytes < WINDOW_BYTES;
}

static int fill_window(struct batch *b, struct px_err *e)
{
    int r = 0;
    while (r == 0 && has_room(b))
        r = read_line(b, e);
    return r < 0 ? -1 : 0;
}

/* ---- the loop ---- */

/* The job at `index` has ended, well or not. */
static int end_job(struct batch *b, size_t index, int stepped, const struct px_err *why, struct px_err *e)
{
    struct job *job = b->running[index];
    b->running[index] = b->running[--b->running_count];
    int told = stepped < 0 ? tell_error(b, job->number, job, why, e) : tell_result(b, job, e);
    return finish_job(b, job, told, e);
}

static int step_all(struct batch *b, const struct pollfd *polled, struct px_err *e)
{
    for (size_t i = b->running_count; i-- > 0;) {
        struct px_err why = {0};
        int stepped = polled[i].fd < 0 || polled[i].revents ? px_task_step(b->running[i]->run, &why) : 1;
        if (stepped <= 0 && end_job(b, i, stepped, &why, e) < 0)
            return -1;
    }
    return 0;
}

static int wait_and_step(struct batch *b, struct px_err *e)
{
    struct pollfd polled[JOBS_MAX + 1];
    size_t count = b->running_count;
    bool over = false;
    for (size_t i = 0; i < b->running_count; i++) {
        polled[i] = (struct pollfd){.fd = px_task_fd(b->running[i]->run), .events = POLLIN};
        over = over || polled[i].fd < 0;
    }
    if (has_room(b))
        polled[count++] = (struct pollfd){.fd = b->ask->actions, .events = POLLIN};
    if (poll(polled, count, over ? 0 : -1) < 0 && errno != EINTR)
        return px_fail(e, PX_E_IO, errno, "cannot wait for the boxes");
    return step_all(b, polled, e);
}

/* For the progress: how many lines a regular file has. */
static uint64_t count_lines(int fd, char *room)
{
    struct stat st;
    uint64_t count = 0;
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || at < 0)
        return 0;
    for (ssize_t n; (n = pread(fd, room, CHUNK, at)) > 0; at += n)
        for (const char *p = room, *end = room + n; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
            count++;
    return count;
}

static int run_all(struct batch *b, struct px_err *e)
{
    for (;;) {
        if (fill_window(b, e) < 0 || start_some(b, e) < 0)
            return -1;
        if (b->running_count == 0 && b->eof && !b->first)
            return 0;
        if (wait_and_step(b, e) < 0)
            return -1;
    }
}

PX_API int px_tasks_run(const struct px_tasks *tasks, const struct px_tasks_batch *batch, struct px_tasks_count *ret_count,
                        struct px_err *e)
{
    if (batch->jobs == 0 || batch->jobs > JOBS_MAX)
        return px_fail(e, PX_E_VALUE, 0, "%u is no number of boxes: 1 to %d", batch->jobs, JOBS_MAX);
    struct batch *b = calloc(1, sizeof *b);
    char *chunk = malloc(CHUNK);
    if (!b || !chunk) {
        free(b);
        free(chunk);
        return px_fail(e, PX_E_MEMORY, ENOMEM, "actions");
    }
    *b = (struct batch){.tasks = tasks, .ask = batch, .last = &b->first, .rest = PX_BUF(PX_TASK_JSON_MAX), .chunk = chunk};
    px_task_done_init(&b->done, tasks, batch->name);
    b->total = count_lines(batch->actions, chunk);
    int r = run_all(b, e);
    for (size_t i = 0; i < b->running_count; i++)
        free_job(b->running[i]);
    for (struct job *job = b->first, *next; job; job = next) {
        next = job->next;
        free_job(job);
    }
    *ret_count = b->count;
    px_task_done_free(&b->done);
    px_buf_done(&b->rest);
    free(chunk);
    free(b);
    return r;
}
