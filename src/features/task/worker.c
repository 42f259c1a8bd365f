/* task/worker.c - one worker of a run: takes lines, runs them, reports the results. One poll for all its boxes. */
#include <errno.h>
#include <poll.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "task/batch.h"

static int tell_error(struct px_batch *b, const struct px_batch_job *job, const struct px_err *why, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(PX_BATCH_ERROR_MAX);
    px_task_batch_error(&out, job->number, job, why);
    return px_task_batch_tell(b, &out, &b->count.failed, e);
}

static int tell_prepared(struct px_batch *b, const struct px_batch_job *job, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(64 << 10);
    struct px_json j;
    px_task_batch_begin(&j, &out, job->number, job->line.id);
    px_json_text(&j, "task", job->line.task);
    px_json_int(&j, "exit_code", 0);
    px_json_null(&j, "error");
    px_json_uint(&j, "files", job->line.files_count);
    px_json_end(&j);
    return px_task_batch_tell(b, &out, &b->count.ok, e);
}

static int tell_result(struct px_batch *b, const struct px_batch_job *job, struct px_err *e)
{
    px_auto_free char *json = NULL;
    px_auto_buf struct px_buf out = PX_BUF((size_t)300 << 20);
    struct px_json j;
    if (px_task_json(job->run, &json, e) < 0)
        return -1;
    px_task_batch_begin(&j, &out, job->number, job->line.id);
    px_buf_putc(&out, ',');
    px_buf_puts(&out, json + 1);
    return px_task_batch_tell(b, &out, px_task_result(job->run)->exit_code == 0 ? &b->count.ok : &b->count.nonzero, e);
}

/* ---- one line ---- */

/* Reports the result and ends the job. */
static int finish(struct px_batch *b, struct px_batch_job *job, bool cleanup, int told, struct px_err *e)
{
    struct px_err why = {0};
    px_task_run_free(job->run);
    job->run = NULL;
    if (told >= 0 && cleanup && px_task_cleanup_as(b->tasks, job->line.task, job->keys[PX_BATCH_CLEANUP], &why) < 0)
        told = tell_error(b, job, &why, e);
    (void)pthread_mutex_lock(&b->lock);
    px_task_batch_over(b, job);
    px_task_batch_wake(b);
    (void)pthread_mutex_unlock(&b->lock);
    px_task_batch_free_job(job);
    return told;
}

static int was_done(struct px_batch *b, const struct px_batch_job *job, enum px_batch_part part, struct px_err *e)
{
    (void)pthread_mutex_lock(&b->lock);
    int r = px_task_done_has(&b->done, job->line.task, job->keys[part], e);
    (void)pthread_mutex_unlock(&b->lock);
    return r;
}

/* The remaining parts of a line. */
enum rest { NOTHING, ONLY_CLEANUP, ALL };

static int what_is_left(struct px_batch *b, const struct px_batch_job *job, struct px_err *e)
{
    const struct px_task_line *l = &job->line;
    int cleaned = l->cleanup ? was_done(b, job, PX_BATCH_CLEANUP, e) : 0;
    int run = cleaned == 0 && l->has_command ? was_done(b, job, PX_BATCH_COMMAND, e) : 0;
    int put = cleaned == 0 && !l->has_command && l->files ? was_done(b, job, PX_BATCH_FILES, e) : 0;
    if (cleaned < 0 || run < 0 || put < 0)
        return -1;
    return cleaned || ((run || put) && !l->cleanup) ? NOTHING : run || put ? ONLY_CLEANUP : ALL;
}

static int branch_off(struct px_batch *b, struct px_batch_job *job, struct px_err *e)
{
    const struct px_task_line *l = &job->line;
    if (!l->from)
        return 0;
    int r = px_workspace_exists(&b->tasks->root, l->task) ? 0 : px_task_fork(b->tasks, l->from, l->task, e);
    (void)pthread_mutex_lock(&b->lock);
    job->from = NULL;
    px_task_batch_wake(b);
    (void)pthread_mutex_unlock(&b->lock);
    return r;
}

static int make_ready(struct px_batch *b, struct px_batch_job *job, struct px_err *e)
{
    const struct px_task_line *l = &job->line;
    if (branch_off(b, job, e) < 0)
        return -1;
    int put = l->files ? was_done(b, job, PX_BATCH_FILES, e) : 1;
    if (put < 0)
        return -1;
    return put ? 0 : px_task_prepare_as(b->tasks, l->task, l->files, l->files_count, NULL, job->keys[PX_BATCH_FILES], e);
}

/* Takes the job: starts it, or reports its error. */
static int start(struct px_batch_worker *w, struct px_batch_job *job, struct px_err *e)
{
    struct px_batch *b = w->batch;
    struct px_err why = {0};
    int left = px_workspace_check_id(job->line.task, &why) < 0 ? -1 : what_is_left(b, job, &why);
    if (left == NOTHING || left == ONLY_CLEANUP)
        return finish(b, job, left == ONLY_CLEANUP, px_task_batch_tell(b, &PX_BUF(0), &b->count.skipped, e), e);
    int r = left < 0 ? -1 : make_ready(b, job, &why);
    if (r >= 0 && !job->line.has_command)
        return finish(b, job, job->line.cleanup, tell_prepared(b, job, e), e);
    job->line.action.key = job->keys[PX_BATCH_COMMAND];
    if (r >= 0)
        r = px_task_start(b->tasks, job->line.task, &job->line.action, &job->run, &why);
    if (r < 0)
        return finish(b, job, false, tell_error(b, job, &why, e), e);
    w->running[w->count++] = job;
    return 0;
}

/* ---- the loop ---- */

static int step_all(struct px_batch_worker *w, const struct pollfd *polled, struct px_err *e)
{
    for (size_t i = w->count; i-- > 0;) {
        struct px_err why = {0};
        struct px_batch_job *job = w->running[i];
        int stepped = polled[i].fd < 0 || polled[i].revents ? px_task_step(job->run, &why) : 1;
        if (stepped > 0)
            continue;
        w->running[i] = w->running[--w->count];
        int told = stepped < 0 ? tell_error(w->batch, job, &why, e) : tell_result(w->batch, job, e);
        if (finish(w->batch, job, job->line.cleanup, told, e) < 0)
            return -1;
    }
    return 0;
}

static int wait_and_step(struct px_batch_worker *w, bool reads, struct px_err *e)
{
    struct pollfd polled[PX_BATCH_JOBS_MAX + 2];
    size_t count = w->count;
    uint64_t told;
    bool over = false;
    for (size_t i = 0; i < w->count; i++) {
        polled[i] = (struct pollfd){.fd = px_task_fd(w->running[i]->run), .events = POLLIN};
        over = over || polled[i].fd < 0;
    }
    polled[count++] = (struct pollfd){.fd = w->wake, .events = POLLIN};
    if (reads)
        polled[count++] = (struct pollfd){.fd = w->batch->ask->actions, .events = POLLIN};
    if (poll(polled, count, over ? 0 : -1) < 0 && errno != EINTR)
        return px_fail(e, PX_E_IO, errno, "cannot wait for the boxes");
    (void)px_sys(SYS_read, w->wake, &told, sizeof told);
    return step_all(w, polled, e);
}

/* One iteration, with the lock held; 1: there is more to do. */
static int turn(struct px_batch_worker *w, struct px_err *e)
{
    struct px_batch *b = w->batch;
    uint64_t lines = b->count.lines;
    int r = px_task_batch_fill(b, e);
    struct px_batch_job *job = r >= 0 && !b->failed && w->count < b->each_most ? px_task_batch_take(b) : NULL;
    if (r < 0 || b->failed || (!job && w->count == 0 && b->eof && !b->first))
        return r;
    if (b->count.lines > lines)
        px_task_batch_wake(b);
    w->idle = !job && w->count < b->each_most;
    bool reads = px_task_batch_has_room(b);
    (void)pthread_mutex_unlock(&b->lock);
    r = job ? start(w, job, e) : wait_and_step(w, reads, e);
    (void)pthread_mutex_lock(&b->lock);
    w->idle = false;
    return r < 0 ? -1 : 1;
}

void *px_task_worker_run(void *worker)
{
    struct px_batch_worker *w = worker;
    struct px_batch *b = w->batch;
    struct px_err e = {0};
    int r;
    (void)pthread_mutex_lock(&b->lock);
    while ((r = turn(w, &e)) > 0)
        ;
    if (r < 0 && !b->failed) {
        b->failed = true;
        b->why = e;
    }
    px_task_batch_wake(b);
    (void)pthread_mutex_unlock(&b->lock);
    while (w->count > 0)
        px_task_batch_free_job(w->running[--w->count]);
    return NULL;
}
