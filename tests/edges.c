/* tests/edges.c - `edges [FIELD]`: every limit, or that one, at its edges, from one process with 200 MB of memory, which must live on.
 *
 * Why:     until it has executed its program a new process of a box shares the memory of its caller, and when a group is out of
 *          memory the kernel ends all that share it. A value that is too small, too large or not a number has to come back as an
 *          error with words, or as a right result.
 *
 * Prints `ok NAME` or `not ok NAME: why` and last "N passed, N failed, N skipped". */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <px/px.h>

enum { CALLER_BYTES = 200 << 20, HOGS = 8, THREADS = 4, VALUE = 2, NO_CGROUP = 13 };

#define HUGE "18446744073709551614"     /* one less than "no limit" */
#define OVER "18446744073709551616"
#define EATS "exec tail /dev/zero"
#define SAYS "echo here"

enum verdict { REFUSED, RUNS, ENDS };   /* PX002; "here" and exit 0; any result but an internal error */

struct edge {
    const char *field, *value, *text;
    enum verdict verdict;
    enum px_status status;      /* of ENDS, where it has to be one; PX_STATUS_OK: any */
};

// clang-format off
static const struct edge edges[] = {
    {"memory", "-1", SAYS, REFUSED, 0},      {"memory", "0", SAYS, REFUSED, 0},         {"memory", "1", SAYS, REFUSED, 0},
    {"memory", "64", SAYS, REFUSED, 0},      {"memory", "256k", SAYS, REFUSED, 0},      {"memory", "4194303", SAYS, REFUSED, 0},
    {"memory", "4m", SAYS, ENDS, 0},         {"memory", "4m", EATS, ENDS, PX_STATUS_MEMORY},
    {"memory", "8m", EATS, ENDS, PX_STATUS_MEMORY},
    {"memory", "64m", SAYS, RUNS, 0},        {"memory", HUGE, SAYS, RUNS, 0},           {"memory", OVER, SAYS, REFUSED, 0},
    {"cpus", "-1", SAYS, REFUSED, 0},        {"cpus", "0", SAYS, REFUSED, 0},           {"cpus", "0.009", SAYS, REFUSED, 0},
    {"cpus", "0.01", SAYS, RUNS, 0},         {"cpus", "18446744073709551", SAYS, RUNS, 0}, {"cpus", OVER, SAYS, REFUSED, 0},
    {"pids", "-1", SAYS, REFUSED, 0},        {"pids", "0", SAYS, REFUSED, 0},           {"pids", "1", SAYS, RUNS, 0},
    {"pids", "1", "echo no | cat", ENDS, 0}, {"pids", "4194305", SAYS, RUNS, 0},        {"pids", HUGE, "echo here | cat", RUNS, 0},
    {"pids", OVER, SAYS, REFUSED, 0},
    {"nofile", "-1", SAYS, REFUSED, 0},      {"nofile", "0", SAYS, REFUSED, 0},         {"nofile", "1", SAYS, ENDS, 0},
    {"nofile", "3", SAYS, ENDS, 0},          {"nofile", "4", SAYS, ENDS, 0},            {"nofile", HUGE, SAYS, RUNS, 0},
    {"nofile", OVER, SAYS, REFUSED, 0},
    {"file-size", "-1", SAYS, REFUSED, 0},   {"file-size", "0", SAYS, REFUSED, 0},      {"file-size", "1", SAYS, RUNS, 0},
    {"file-size", "1", "echo no > /tmp/f", ENDS, 0}, {"file-size", HUGE, SAYS, RUNS, 0}, {"file-size", OVER, SAYS, REFUSED, 0},
    {"disk", "-1", SAYS, REFUSED, 0},        {"disk", "0", SAYS, REFUSED, 0},           {"disk", "1", SAYS, RUNS, 0},
    {"disk", "1", "head -c 1m /dev/zero > /tmp/f", ENDS, PX_STATUS_DISK}, {"disk", HUGE, SAYS, RUNS, 0}, {"disk", OVER, SAYS, REFUSED, 0},
    {"timeout", "-1", SAYS, REFUSED, 0},     {"timeout", "0", SAYS, REFUSED, 0},        {"timeout", "1ms", "sleep 60", ENDS, 0},
    {"timeout", "9000000000s", SAYS, RUNS, 0}, {"timeout", HUGE, SAYS, REFUSED, 0},
    {"cpu-time", "0", SAYS, REFUSED, 0},     {"cpu-time", "1ms", SAYS, RUNS, 0},        {"cpu-time", "9000000000s", SAYS, RUNS, 0},
    {"output-limit", "0", SAYS, REFUSED, 0}, {"output-limit", "1", SAYS, ENDS, 0},      {"output-limit", HUGE, SAYS, RUNS, 0},
};
// clang-format on

static int passed, failed, skipped;

static void report(const struct edge *edge, const char *why, const struct px_err *e, const struct px_result *r)
{
    if (!why) {
        passed++;
        printf("ok %s %s: %s\n", edge->field, edge->value, edge->text);
        return;
    }
    failed++;
    printf("not ok %s %s: %s: %s (PX%03d %s; %s, exit %d)\n", edge->field, edge->value, edge->text, why, e->code, e->what,
           r ? px_status_name(r->status) : "no result", r ? r->exit_code : -1);
}

static const char *judge_result(const struct edge *edge, const struct px_result *r)
{
    if (r->status == PX_STATUS_INTERNAL)
        return "the box was lost";
    if (edge->verdict == RUNS && (r->exit_code != 0 || !strstr(r->out.data, "here")))
        return "it did not run";
    return edge->status && r->status != edge->status ? "it ended in another way" : NULL;
}

static bool has_words(const struct px_err *e, int code)
{
    return e->code == code && e->what[0] && e->fix[0];
}

static void try_edge(const struct edge *edge)
{
    const char *const argv[] = {"sh", "-c", edge->text, NULL};
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    if (px_policy_new("default", &policy, &e) < 0) {
        report(edge, "there is no policy", &e, NULL);
        return;
    }
    if (px_policy_set(policy, edge->field, edge->value, &e) < 0)
        report(edge, edge->verdict == REFUSED && has_words(&e, VALUE) ? NULL : "the value was refused", &e, NULL);
    else if (edge->verdict == REFUSED)
        report(edge, "the value was taken", &e, NULL);
    else if (px_box_start(policy, argv, NULL, &box, &e) < 0 && e.code == NO_CGROUP && has_words(&e, NO_CGROUP)) {
        skipped++;
        printf("skip %s %s: there is no cgroup to be had here\n", edge->field, edge->value);
    } else if (!box || px_box_wait(box, &e) < 0)
        report(edge, edge->verdict == ENDS && e.code && e.what[0] && e.why[0] ? NULL : "it failed", &e, NULL);
    else
        report(edge, judge_result(edge, px_box_result(box)), &e, px_box_result(box));
    px_box_free(box);
    px_policy_free(policy);
}

/* The moment in which a process of a box shares our memory is short: several boxes at once that eat all they get meet it. */
static void *start_hogs(void *arg)
{
    static const char *const argv[] = {"tail", "/dev/zero", NULL};
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    long *right = arg;
    for (int i = 0; i < HOGS; i++) {
        struct px_box *box = NULL;
        if (px_policy_new("default", &policy, &e) == 0 && px_policy_set(policy, "memory", "6m", &e) == 0 &&
            px_box_start(policy, argv, NULL, &box, &e) == 0 && px_box_wait(box, &e) == 0)
            *right += px_box_result(box)->status == PX_STATUS_MEMORY;
        else
            *right += e.code == NO_CGROUP;
        px_box_free(box);
        px_policy_free(policy);
        policy = NULL;
    }
    return NULL;
}

static void try_many(void)
{
    pthread_t threads[THREADS];
    long right[THREADS] = {0}, all = 0;
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, start_hogs, &right[started]) == 0)
        started++;
    for (int i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
        all += right[i];
    }
    bool good = started == THREADS && all == (long)THREADS * HOGS;
    passed += good;
    failed += !good;
    printf("%s many: %ld of %d boxes ended by their memory limit\n", good ? "ok" : "not ok", all, THREADS * HOGS);
}

static int caller(const char *only)
{
    char *memory = malloc(CALLER_BYTES);
    if (!memory)
        return 1;
    memset(memory, 0x5a, CALLER_BYTES);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        if (!only || strcmp(only, edges[i].field) == 0)
            try_edge(&edges[i]);
    if (!only)
        try_many();
    for (size_t i = 0; i < CALLER_BYTES; i += 4096)
        failed += memory[i] != 0x5a;
    free(memory);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(caller(argc > 1 ? argv[1] : NULL));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    printf("not ok caller: it was ended by signal %d\n0 passed, 1 failed, 0 skipped\n", WTERMSIG(status));
    return 1;
}
