/* tests/leaks.c - `leaks [BOXES [AT_ONCE]]`: many boxes from one process, which must be afterwards as it was before.
 *
 * Why:     a service makes its boxes through the library; a descriptor, a child or a byte lost with each of them adds up there
 *          and nowhere else. What is left on the machine (mounts, groups, files) is looked at from outside, by leaks.py.
 *
 * Prints `ok NAME` or `not ok NAME: why` and last "N passed, N failed, N skipped". */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <px/px.h>

enum { THREADS = 4, WARM_UP = 50, GROWTH_KIB_MAX = 512, AT_ONCE_MAX = 1000 };

static int passed, failed;

static void check(const char *name, bool good, const char *fmt, long a, long b)
{
    if (good) {
        passed++;
        printf("ok %s\n", name);
        return;
    }
    failed++;
    printf("not ok %s: ", name);
    printf(fmt, a, b);
    printf("\n");
}

/* ---- what this process holds ---- */

static long count_entries(const char *path)
{
    DIR *dir = opendir(path);
    long n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n;
}

static long memory_kib(void)
{
    char line[256];
    long kib = -1;
    (void)malloc_trim(0);       /* what was freed but not given back is no leak */
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "Private_Dirty:", 14) == 0)
            kib = strtol(line + 14, NULL, 10);
    if (f)
        (void)fclose(f);
    return kib;
}

struct state {
    long fds, memory_kib, threads;
};

static struct state look(void)
{
    return (struct state){count_entries("/proc/self/fd"), memory_kib(), count_entries("/proc/self/task")};
}

static void check_state(const char *what, const struct state *before)
{
    char name[64];
    struct state now = look();
    (void)snprintf(name, sizeof name, "%s leave no descriptor", what);
    check(name, now.fds == before->fds, "%ld entries in /proc/self/fd, there were %ld", now.fds, before->fds);
    (void)snprintf(name, sizeof name, "%s leave no thread", what);
    check(name, now.threads == before->threads, "%ld threads, there were %ld", now.threads, before->threads);
    (void)snprintf(name, sizeof name, "%s leave memory flat", what);
    check(name, now.memory_kib <= before->memory_kib + GROWTH_KIB_MAX, "%ld KiB, there were %ld", now.memory_kib, before->memory_kib);
    (void)snprintf(name, sizeof name, "%s leave no child", what);
    check(name, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child is left (%ld %ld)", 0, 0);
}

/* ---- boxes ---- */

static struct px_policy *make_policy(void)
{
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "timeout", "60s", &e) < 0) {
        printf("not ok policy: PX%03d %s\n0 passed, 1 failed, 0 skipped\n", e.code, e.what);
        exit(1);
    }
    return policy;
}

static bool complain(const char *where, const struct px_err *e)
{
    printf("# %s: PX%03d %s: %s\n", where, e->code, e->what, e->why);
    return false;
}

/* Every third box ends badly: the ways out of a failure leak more easily than the way through. */
static bool run_one(struct px_policy *policy, long number)
{
    const char *const good[] = {"/bin/echo", "hello", NULL};
    const char *const absent[] = {"/no/such/program", NULL};
    const char *const killed[] = {"/bin/sh", "-c", "kill -9 $$", NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    if (number % 3 == 1)
        return px_box_start(policy, absent, NULL, &box, &e) < 0 && e.code == 31 ? true : complain("a missing program", &e);
    if (px_box_start(policy, number % 3 == 2 ? killed : good, NULL, &box, &e) < 0)
        return complain("start", &e);
    if (px_box_wait(box, &e) < 0) {
        px_box_free(box);
        return complain("wait", &e);
    }
    const struct px_result *r = px_box_result(box);
    bool right = number % 3 == 2 ? r->exit_code == 137 : r->exit_code == 0 && r->out.len == 6;
    px_box_free(box);
    return right;
}

static long run_many(long from, long to)
{
    struct px_policy *policy = make_policy();
    long right = 0;
    for (long i = from; i < to; i++)
        right += run_one(policy, i);
    px_policy_free(policy);
    return right;
}

struct share {
    pthread_t thread;
    long from, to, right;
};

static void *run_share(void *arg)
{
    struct share *s = arg;
    s->right = run_many(s->from, s->to);
    return NULL;
}

static long run_threads(long boxes)
{
    struct share shares[THREADS];
    long right = 0;
    for (int i = 0; i < THREADS; i++) {
        shares[i] = (struct share){.from = boxes * i / THREADS, .to = boxes * (i + 1) / THREADS};
        if (pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) != 0)
            return -1;
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(shares[i].thread, NULL);
        right += shares[i].right;
    }
    return right;
}

/* All alive at the same time; half of them end by themselves, half are freed while they run. */
static long run_at_once(long boxes)
{
    static struct px_box *all[AT_ONCE_MAX];
    const char *const short_one[] = {"/bin/sh", "-c", "sleep 0.2", NULL};
    const char *const long_one[] = {"/bin/sleep", "600", NULL};
    struct px_policy *policy = make_policy();
    struct px_err e = {0};
    long right = 0;
    for (long i = 0; i < boxes; i++)
        if (px_box_start(policy, i % 2 ? long_one : short_one, NULL, &all[i], &e) < 0)
            (void)complain("start at once", &e);
    for (long i = 0; i < boxes; i++) {
        if (all[i])
            right += i % 2 ? 1 : px_box_wait(all[i], &e) == 0 && px_box_result(all[i])->exit_code == 0;
        px_box_free(all[i]);
        all[i] = NULL;
    }
    px_policy_free(policy);
    return right;
}

int main(int argc, char **argv)
{
    long boxes = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    long at_once = argc > 2 ? strtol(argv[2], NULL, 10) : 100;
    if (boxes < 1 || at_once < 1 || at_once > AT_ONCE_MAX)
        return 2;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    /* Buffers of the allocator and the first use of everything belong to the state before. */
    (void)run_many(0, WARM_UP);
    (void)run_threads(WARM_UP);
    struct state before = look();

    long right = run_many(0, boxes);
    check("boxes one after another", right == boxes, "%ld of %ld ended as they should", right, boxes);
    check_state("boxes one after another", &before);

    right = run_threads(boxes / 2);
    check("boxes of four threads", right == boxes / 2, "%ld of %ld ended as they should", right, boxes / 2);
    check_state("boxes of four threads", &before);

    right = run_at_once(at_once);
    check("boxes at once", right == at_once, "%ld of %ld ended as they should", right, at_once);
    check_state("boxes at once", &before);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
