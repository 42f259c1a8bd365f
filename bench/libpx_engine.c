/* libpx_engine - times commands in boxes that are there already; requests as in bench.h.
 *
 *     libpx_engine pool|living|hold [-j THREADS] [-n BOXES] PX [FIELD=VALUE]... -- COMMAND ARG...
 *
 * pool: each run is a box of its own, made ahead by an engine (PX is its program), from px_pool_box to px_box_free.
 * living: each run is one more command in a box that stays; each thread has its own.
 * hold: BOXES boxes that stay, one command in each; prints how long making them took in nanoseconds and how many answered, and
 * keeps them until standard input ends.
 * With several threads a `for` is served by all of them, through the one engine. */
#define _GNU_SOURCE
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <px/engine.h>

enum { READY = 8, THREADS_MAX = 16 };

struct job {
    const char *mode, *px;
    unsigned threads;
    unsigned long boxes;
    struct px_policy *policy;
    struct px_engine *engine;
    struct px_pool *pool;
    const char *const *argv;
    struct px_err err;          /* of the last run that failed */
};

struct worker {
    pthread_t thread;
    struct job *job;
    struct px_box *home;        /* living */
    uint64_t msec, runs, failed, nsec;
};

static int run_once(void *arg)
{
    struct worker *w = arg;
    struct job *job = w->job;
    struct px_box *box = NULL;
    struct px_err e = {0};
    int status = 125;

    int r = w->home ? px_box_exec(w->home, job->policy, job->argv, NULL, &box, &e)
                    : px_pool_box(job->pool, job->argv, NULL, &box, &e);
    if (r == 0 && px_box_wait(box, &e) == 0)
        status = px_box_result(box)->exit_code;
    px_box_free(box);
    if (e.code != 0)
        job->err = e;
    return status;
}

/* ---- several threads ---- */

static void *work(void *arg)
{
    struct worker *w = arg;
    uint64_t start = now_nsec(), end = start + w->msec * 1000000u;

    for (w->runs = w->failed = 0; now_nsec() < end; w->runs++)
        w->failed += run_once(w) != 0;
    w->nsec = now_nsec() - start;
    return NULL;
}

static int answer_threads(struct worker *workers, unsigned count, uint64_t msec)
{
    uint64_t runs = 0, failed = 0, nsec = 0;
    for (unsigned i = 0; i < count; i++) {
        workers[i].msec = msec;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return -1;
    }
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        runs += workers[i].runs;
        failed += workers[i].failed;
        nsec = workers[i].nsec > nsec ? workers[i].nsec : nsec;
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", runs, failed, nsec);
    return fflush(stdout);
}

static int serve_threads(struct worker *workers, unsigned count)
{
    char line[64];
    uint64_t number;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %" SCNu64, &number) == 1)
            answer_run(number, run_once, &workers[0]);
        else if (sscanf(line, "for %" SCNu64, &number) != 1 || answer_threads(workers, count, number) != 0)
            return 2;
        (void)fflush(stdout);
    }
    return 0;
}

static int time_commands(struct job *job)
{
    struct worker workers[THREADS_MAX] = {0};
    int status = 0;
    for (unsigned i = 0; i < job->threads; i++) {
        workers[i].job = job;
        if (strcmp(job->mode, "living") == 0 && px_pool_stay(job->pool, &workers[i].home, &job->err) < 0)
            status = 1;
    }
    if (status == 0)
        status = job->threads == 1 ? serve(run_once, &workers[0]) : serve_threads(workers, job->threads);
    for (unsigned i = 0; i < job->threads; i++)
        px_box_free(workers[i].home);
    return status;
}

/* ---- many boxes that stay ---- */

static int hold(struct job *job)
{
    struct px_box **homes = calloc(job->boxes, sizeof *homes);
    unsigned long made = 0, good = 0;
    uint64_t start = now_nsec();
    char byte;

    while (homes && made < job->boxes && px_pool_stay(job->pool, &homes[made], &job->err) == 0)
        made++;
    uint64_t nsec = now_nsec() - start;
    for (unsigned long i = 0; i < made; i++) {
        struct worker w = {.job = job, .home = homes[i]};
        good += run_once(&w) == 0;
    }
    printf("%" PRIu64 " %lu\n", nsec, good);
    (void)fflush(stdout);
    (void)!read(0, &byte, 1);
    for (unsigned long i = 0; i < made; i++)
        px_box_free(homes[i]);
    free(homes);
    return made == job->boxes ? 0 : 1;
}

/* ---- what was asked for ---- */

/* "net=host": the text is cut at the sign. */
static int set_field(struct px_policy *policy, char *field, struct px_err *e)
{
    char *value = strchr(field, '=');
    if (!value)
        return px_policy_set(policy, field, NULL, e);
    *value++ = '\0';
    return px_policy_set(policy, field, value, e);
}

static int read_words(char **word, struct job *job)
{
    job->mode = *word ? *word++ : "";
    for (; word[0] && word[1] && word[0][0] == '-'; word += 2) {
        if (strcmp(word[0], "-j") == 0)
            job->threads = (unsigned)strtoul(word[1], NULL, 10);
        if (strcmp(word[0], "-n") == 0)
            job->boxes = strtoul(word[1], NULL, 10);
    }
    job->px = *word ? *word++ : NULL;
    if (!job->px || job->threads < 1 || job->threads > THREADS_MAX || px_policy_new("default", &job->policy, &job->err) < 0)
        return -1;
    for (; *word && strcmp(*word, "--") != 0; word++)
        if (set_field(job->policy, *word, &job->err) < 0)
            return -1;
    job->argv = (const char *const *)(*word ? word + 1 : word);
    return job->argv[0] ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct job job = {.threads = 1, .boxes = 1};
    struct rlimit files;
    int status = 2;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (argc < 2 || read_words(argv + 1, &job) < 0)
        fprintf(stderr, "usage: libpx_engine pool|living|hold [-j N] [-n N] PX [FIELD=VALUE]... -- COMMAND ARG...\n%s\n",
                job.err.what);
    else if (px_engine_new(job.px, &job.engine, &job.err) == 0 &&
             px_pool_new(job.engine, job.policy, strcmp(job.mode, "hold") == 0 ? 1 : READY, &job.pool, &job.err) == 0)
        status = strcmp(job.mode, "hold") == 0 ? hold(&job) : time_commands(&job);
    if (job.err.code != 0)
        fprintf(stderr, "libpx_engine: %s\n", job.err.what);
    px_pool_free(job.pool);
    px_engine_free(job.engine);
    px_policy_free(job.policy);
    return status;
}
