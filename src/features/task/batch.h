/* task/batch.h - the actions of one run: waiting lines, running ones, and workers.
 *
 * Why:     starting a box blocks its thread, so each processor needs one worker. Workers share the window of waiting
 *          lines; each handles its boxes until they end.
 * Owns:    the lines and the count, under one lock.
 * Mustn't: call two callbacks at once, or leave a thread behind. */
#pragma once

#include <pthread.h>

#include "task/done.h"
#include "task/line.h"

enum { PX_BATCH_JOBS_MAX = 1024, PX_BATCH_ERROR_MAX = 64 << 10 };

/* The parts of a line; each is in the journal once. */
enum px_batch_part { PX_BATCH_FILES, PX_BATCH_COMMAND, PX_BATCH_CLEANUP, PX_BATCH_PARTS };

struct px_batch_job {
    struct px_batch_job *next;
    uint64_t number;
    size_t bytes;
    struct px_task_line line;
    char keys[PX_BATCH_PARTS][PX_TASK_KEY]; /* of its parts in the journal */
    const char *from;                       /* a workspace that it still has to branch off */
    struct px_task_run *run;                /* while it runs */
};

struct px_batch_worker {
    struct px_batch *batch;
    pthread_t thread;
    int wake;                   /* woken when there may be work */
    bool idle;                  /* idle: could run more */
    struct px_batch_job *running[PX_BATCH_JOBS_MAX];
    size_t count;
};

struct px_batch {
    const struct px_tasks *tasks;
    const struct px_tasks_batch *ask;
    struct px_batch_worker *workers;
    size_t workers_count, each_most;            /* boxes of one worker */
    pthread_mutex_t lock;                       /* of all below */
    struct px_task_done done;
    struct px_batch_job *first, **last;         /* waiting */
    size_t waiting, waiting_bytes;
    struct px_batch_job *busy[PX_BATCH_JOBS_MAX];
    size_t busy_count;
    struct px_buf rest;                         /* the beginning of a line */
    char *chunk;
    size_t chunk_at, chunk_len;
    bool eof;
    uint64_t total;
    struct px_tasks_count count;
    bool failed;
    struct px_err why;
};

/* task/batch.c, with the lock. */
/* Reads as many lines as are available and fit. */
int px_task_batch_fill(struct px_batch *b, struct px_err *e);
bool px_task_batch_has_room(const struct px_batch *b);
/* The oldest line that may run now; NULL: none. Its workspaces are busy until it is finished. */
struct px_batch_job *px_task_batch_take(struct px_batch *b);
void px_task_batch_over(struct px_batch *b, const struct px_batch_job *job);
void px_task_batch_wake(const struct px_batch *b);   /* wakes idle workers, or all after a failure */

/* task/batch.c, without it. */
void px_task_batch_free_job(struct px_batch_job *job);
/* Increments a counter, and passes on a result if there is one. */
int px_task_batch_tell(struct px_batch *b, const struct px_buf *out, uint64_t *count, struct px_err *e);
/* The beginning of a result, and the whole result of an action that could not run. */
void px_task_batch_begin(struct px_json *j, struct px_buf *out, uint64_t number, const json_t *id);
void px_task_batch_error(struct px_buf *out, uint64_t number, const struct px_batch_job *job, const struct px_err *why);

/* task/worker.c: runs until nothing is left to do. */
void *px_task_worker_run(void *worker);
