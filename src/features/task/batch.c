/* task/batch.c - runs many actions, several boxes at a time: the waiting lines, and the workers that take them.
 *
 * Lines wait in a window, the oldest first. One is taken as soon as neither its workspace nor the one it is forked
 * from is in use, or will be by an older line: lines of one task keep their order, and a branch includes the lines
 * above it. Finished lines are in the journals (task/done.h). */
#include "task/batch.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

enum { WORKERS_MAX = 64, WINDOW_MIN = 64, WINDOW_BYTES = 64 << 20, CHUNK = 64 << 10, COULD_NOT = 125 };

void px_task_batch_free_job(struct px_batch_job *job)
{
    px_task_run_free(job->run);
    px_task_line_done(&job->line);
    free(job);
}

/* ---- results ---- */

static int hand_on(struct px_batch *b, const struct px_buf *out, uint64_t *count, struct px_err *e)
{
    const struct px_tasks_batch *ask = b->ask;
    (*count)++;
    if (ask->progress)
        ask->progress(ask->user, "actions", b->count.ok + b->count.nonzero + b->count.failed + b->count.skipped, b->total);
    if (out->err < 0)
        return px_fail(e, PX_E_MEMORY, out->err, "a result is too large");
    return out->len && ask->each(ask->user, out->data, out->len) < 0 ? px_fail(e, PX_E_IO, 0, "a result could not be handed on") : 0;
}

int px_task_batch_tell(struct px_batch *b, const struct px_buf *out, uint64_t *count, struct px_err *e)
{
    (void)pthread_mutex_lock(&b->lock);
    int r = hand_on(b, out, count, e);
    (void)pthread_mutex_unlock(&b->lock);
    return r;
}

void px_task_batch_begin(struct px_json *j, struct px_buf *out, uint64_t number, const json_t *id)
{
    *j = (struct px_json){.out = out};
    px_json_object(j, NULL);
    px_json_uint(j, "line", number);
    if (json_is_string(id))
        px_json_bytes(j, "id", json_string_value(id), json_string_length(id));
    else if (json_is_integer(id))
        px_json_int(j, "id", json_integer_value(id));
}

void px_task_batch_error(struct px_buf *out, uint64_t number, const struct px_batch_job *job, const struct px_err *why)
{
    struct px_json j;
    char code[8];
    (void)px_fmt(code, sizeof code, "PX%03d", why->code);
    px_task_batch_begin(&j, out, number, job->line.id);
    px_json_text(&j, "task", job->line.task);
    px_json_int(&j, "exit_code", COULD_NOT);
    px_json_text(&j, "error", code);
    px_json_bytes(&j, "message", why->what, strlen(why->what));
    px_json_text(&j, "why", why->why);
    px_json_text(&j, "fix", why->fix);
    px_json_end(&j);
}

/* ---- reading ---- */

static int add_line(struct px_batch *b, const char *text, size_t len, struct px_err *e)
{
    struct px_err why = {0};
    uint64_t number = ++b->count.lines;
    if (strspn(text, " \t\r") == len)
        return 0;
    struct px_batch_job *job = calloc(1, sizeof *job);
    if (!job)
        return px_no_memory(e);
    if (px_task_line_read(text, len, number, &job->line, &why) < 0) {
        px_auto_buf struct px_buf out = PX_BUF(PX_BATCH_ERROR_MAX);
        px_task_batch_error(&out, number, job, &why);
        px_task_line_done(&job->line);
        free(job);
        return hand_on(b, &out, &b->count.failed, e);
    }
    job->number = number;
    job->bytes = len;
    for (int part = 0; part < PX_BATCH_PARTS; part++)
        px_task_done_key(&b->done, (char)('0' + part), number, text, len, job->keys[part]);
    *b->last = job;
    b->last = &job->next;
    b->waiting++;
    b->waiting_bytes += len;
    return 0;
}

/* Never blocks here: the writer of the actions may wait for a result before it writes the next. */
static bool has_input(const struct px_batch *b)
{
    struct pollfd in = {.fd = b->ask->actions, .events = POLLIN};
    return poll(&in, 1, 0) != 0;
}

/* Adds one line to the window; the last one needs no newline. 1: none available now. */
static int read_line(struct px_batch *b, struct px_err *e)
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

bool px_task_batch_has_room(const struct px_batch *b)
{
    size_t window = (size_t)4 * b->ask->jobs > WINDOW_MIN ? (size_t)4 * b->ask->jobs : WINDOW_MIN;
    return !b->eof && b->waiting < window && b->waiting_bytes < WINDOW_BYTES;
}

int px_task_batch_fill(struct px_batch *b, struct px_err *e)
{
    int r = 0;
    while (r == 0 && px_task_batch_has_room(b))
        r = read_line(b, e);
    return r < 0 ? -1 : 0;
}

/* ---- taking ---- */

static bool is_same(const char *task, const char *other)
{
    return task && other && px_equal(task, other);
}

static bool in_use(const struct px_batch *b, const char *task)
{
    for (size_t i = 0; task && i < b->busy_count; i++)
        if (px_equal(b->busy[i]->line.task, task) || is_same(b->busy[i]->from, task))
            return true;
    return false;
}

static bool must_wait(const struct px_batch *b, const struct px_batch_job *job)
{
    const struct px_task_line *l = &job->line;
    bool wait = in_use(b, l->task) || in_use(b, l->from);
    for (const struct px_batch_job *before = b->first; !wait && before != job; before = before->next)
        wait = is_same(before->line.task, l->task) || is_same(before->line.task, l->from) || is_same(before->line.from, l->task);
    return wait;
}

struct px_batch_job *px_task_batch_take(struct px_batch *b)
{
    for (struct px_batch_job **at = &b->first; *at && b->busy_count < b->ask->jobs; at = &(*at)->next) {
        struct px_batch_job *job = *at;
        if (must_wait(b, job))
            continue;
        *at = job->next;
        if (b->last == &job->next)
            b->last = at;
        b->waiting--;
        b->waiting_bytes -= job->bytes;
        b->busy[b->busy_count++] = job;
        job->from = job->line.from;
        return job;
    }
    return NULL;
}

void px_task_batch_over(struct px_batch *b, const struct px_batch_job *job)
{
    size_t at = 0;
    while (at < b->busy_count && b->busy[at] != job)
        at++;
    if (at < b->busy_count)
        b->busy[at] = b->busy[--b->busy_count];
}

void px_task_batch_wake(const struct px_batch *b)
{
    const uint64_t one = 1;
    for (size_t i = 0; i < b->workers_count; i++)
        if (b->workers[i].idle || b->failed)
            (void)px_sys(SYS_write, b->workers[i].wake, &one, sizeof one);
}

/* ---- the run ---- */

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

/* One for each processor that we may use. */
static size_t how_many(unsigned jobs)
{
    cpu_set_t set;
    size_t count = sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
    count = count < WORKERS_MAX ? count : WORKERS_MAX;
    return count < jobs ? count : jobs;
}

/* The first worker is the caller's thread. Signals are handled by the caller's thread. */
static int work_together(struct px_batch *b, size_t wanted)
{
    const uint64_t all = ~0ull;
    uint64_t before = 0;
    for (; b->workers_count < wanted; b->workers_count++) {
        struct px_batch_worker *w = &b->workers[b->workers_count];
        *w = (struct px_batch_worker){.batch = b, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
        if (w->wake < 0)
            break;
    }
    if (b->workers_count == 0)
        return -EMFILE;
    (void)pthread_mutex_lock(&b->lock);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    size_t made = 1;
    while (made < b->workers_count &&
           pthread_create(&b->workers[made].thread, NULL, px_task_worker_run, &b->workers[made]) == 0)  /* banned: px/task.h says so */
        made++;
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    b->each_most = (b->ask->jobs + made - 1) / made;
    (void)pthread_mutex_unlock(&b->lock);
    (void)px_task_worker_run(&b->workers[0]);
    for (size_t i = 1; i < made; i++)
        (void)pthread_join(b->workers[i].thread, NULL);
    return 0;
}

static int run_all(struct px_batch *b, struct px_err *e)
{
    size_t wanted = how_many(b->ask->jobs);
    b->workers = calloc(wanted, sizeof *b->workers);
    int r = b->workers ? work_together(b, wanted) : -ENOMEM;
    for (size_t i = 0; i < b->workers_count; i++)
        (void)px_fd_close(b->workers[i].wake);
    free(b->workers);
    if (r < 0)
        return px_fail(e, PX_E_MEMORY, r, "actions");
    if (!b->failed)
        return 0;
    *e = b->why;
    return -1;
}

static void free_batch(struct px_batch *b)
{
    for (struct px_batch_job *job = b->first, *next; job; job = next) {
        next = job->next;
        px_task_batch_free_job(job);
    }
    px_task_done_free(&b->done);
    px_buf_done(&b->rest);
    (void)pthread_mutex_destroy(&b->lock);
    free(b->chunk);
    free(b);
}

PX_API int px_tasks_run(const struct px_tasks *tasks, const struct px_tasks_batch *batch, struct px_tasks_count *ret_count,
                        struct px_err *e)
{
    PX_ERR(e);
    if (batch->jobs == 0 || batch->jobs > PX_BATCH_JOBS_MAX)
        return px_fail(e, PX_E_VALUE, 0, "%u is no number of boxes: 1 to %d", batch->jobs, PX_BATCH_JOBS_MAX);
    struct px_batch *b = calloc(1, sizeof *b);
    char *chunk = malloc(CHUNK);
    if (!b || !chunk) {
        free(b);
        free(chunk);
        return px_no_memory(e);
    }
    *b = (struct px_batch){.tasks = tasks, .ask = batch, .lock = PTHREAD_MUTEX_INITIALIZER, .last = &b->first,
                           .rest = PX_BUF(PX_TASK_JSON_MAX), .chunk = chunk};
    px_task_done_init(&b->done, tasks, batch->name);
    b->total = count_lines(batch->actions, chunk);
    int r = run_all(b, e);
    *ret_count = b->count;
    free_batch(b);
    return r;
}
