#include <px/engine.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/test.h"

/* px lies one directory above the tests of a build. */
static const char *program(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    ASSERT(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    strcpy(strrchr(path, '/'), "/px");
    return path;
}

static struct px_policy *policy_of(const char *field, const char *value)
{
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "net", "none", &e) < 0 ||
        (field && px_policy_set(policy, field, value, &e) < 0))
        FAIL("%s", e.what);
    return policy;
}

static void open_pool(struct px_policy *policy, unsigned ready, struct px_engine **engine, struct px_pool **pool)
{
    struct px_err e = {0};
    if (px_engine_new(program(), engine, &e) < 0 || px_pool_new(*engine, policy, ready, pool, &e) < 0)
        FAIL("%s: %s", e.what, e.why);
}

static void close_pool(struct px_policy *policy, struct px_engine *engine, struct px_pool *pool)
{
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
}

static struct px_box *run(struct px_pool *pool, const char *text)
{
    const char *argv[] = {"/bin/sh", "-c", text, NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    if (px_pool_box(pool, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
        FAIL("%s: %s", e.what, e.why);
    return box;
}

TEST(each_command_has_a_box_of_its_own)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, 2, &engine, &pool);
    for (int i = 0; i < 5; i++) {
        struct px_box *box = run(pool, "ls /tmp; echo left >/tmp/left; echo $$; exit 4");
        ASSERT_STR(px_box_result(box)->out.data, "2\n");
        ASSERT_EQ(px_box_result(box)->exit_code, 4);
        ASSERT_STR(px_box_result(box)->tier, "full");
        px_box_free(box);
    }
    close_pool(policy, engine, pool);
}

TEST(what_was_said_of_the_policy_holds)
{
    char here[4096];
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    int dir = px_test_dir();

    ASSERT(getcwd(here, sizeof here) != NULL);
    ASSERT_EQ(fchmod(dir, 0755), 0);
    ASSERT_EQ(fchdir(dir), 0);
    close(dir);
    setenv("PX_TEST_WORD", "passed on", 1);
    struct px_policy *policy = policy_of("bind", "./file:/it:ro");
    int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(write(fd, "bound\n", 6), 6);
    close(fd);
    ASSERT_EQ(px_policy_set(policy, "env", "PX_TEST_WORD", NULL), 0);
    ASSERT_EQ(px_policy_set(policy, "env", "NOT_THERE_AT_ALL", NULL), 0);
    ASSERT_EQ(px_policy_set(policy, "timeout", "20s", NULL), 0);
    ASSERT_EQ(chdir(here), 0);  /* relative to where it was said */
    open_pool(policy, 1, &engine, &pool);
    struct px_box *box = run(pool, "cat /it; echo $PX_TEST_WORD; hostname");
    ASSERT_STR(px_box_result(box)->out.data, "bound\npassed on\nsandbox\n");
    px_box_free(box);
    close_pool(policy, engine, pool);
}

/* All of it, for there is nobody else in the box. */
TEST(a_command_is_told_what_it_was_refused)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, 1, &engine, &pool);
    struct px_box *box = run(pool, "unshare -U true; setsid -f sh -c 'sh -c \"unshare -U true; echo >/tmp/done\" &';"
                                   "until [ -e /tmp/done ]; do sleep 0.02; done; exit 3");
    ASSERT_EQ(px_box_result(box)->exit_code, 3);
    ASSERT_EQ(px_box_result(box)->denials_count, 1u);
    ASSERT_STR(px_box_result(box)->denials[0].target, "unshare");
    ASSERT_EQ(px_box_result(box)->denials[0].count, 2u);
    px_box_free(box);
    box = run(pool, "true");
    ASSERT_EQ(px_box_result(box)->denials_count, 0u);
    px_box_free(box);
    close_pool(policy, engine, pool);
}

TEST(a_box_of_a_pool_can_stay)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *home = NULL, *box = NULL;
    struct px_err e = {0};
    const char *write_it[] = {"/bin/sh", "-c", "echo kept >/tmp/f", NULL}, *read_it[] = {"cat", "/tmp/f", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_EQ(px_pool_stay(pool, &home, &e), 0);
    ASSERT_EQ(px_box_exec(home, policy, write_it, NULL, &box, &e), 0);
    ASSERT_EQ(px_box_wait(box, &e), 0);
    px_box_free(box);
    ASSERT_EQ(px_box_exec(home, policy, read_it, NULL, &box, &e), 0);
    ASSERT_EQ(px_box_wait(box, &e), 0);
    ASSERT_STR(px_box_result(box)->out.data, "kept\n");
    px_box_free(box);
    px_box_free(home);
    close_pool(policy, engine, pool);
}

TEST(errors_come_through)
{
    struct px_policy *policy = policy_of(NULL, NULL), *bad = policy_of("bind", "/nonexistent/place:/it");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL, *other = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *missing[] = {"no-such-program", NULL}, *fine[] = {"true", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT(px_pool_box(pool, missing, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, 31);
    ASSERT_EQ(px_pool_new(engine, bad, 1, &other, &e), 0);
    ASSERT(px_pool_box(other, fine, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, 33);
    ASSERT(strstr(e.what, "/nonexistent/place") != NULL);
    px_pool_free(other);
    ASSERT(px_pool_new(engine, policy, 0, &other, &e) < 0);
    ASSERT(px_pool_new(engine, policy, 1000, &other, &e) < 0);
    box = run(pool, "echo still");
    ASSERT_STR(px_box_result(box)->out.data, "still\n");
    px_box_free(box);
    struct px_engine *none = NULL;
    ASSERT(px_engine_new("/nonexistent/px", &none, &e) < 0);
    close_pool(policy, engine, pool);
    px_policy_free(bad);
}

static void *use_pool(void *arg)
{
    for (int i = 0; i < 10; i++) {
        const char *argv[] = {"/bin/sh", "-c", "echo $$ $((6 * 7))", NULL};
        struct px_box *box = NULL;
        struct px_err e = {0};
        bool ok = px_pool_box(arg, argv, NULL, &box, &e) == 0 && px_box_wait(box, &e) == 0 &&
                  strcmp(px_box_result(box)->out.data, "2 42\n") == 0;
        px_box_free(box);
        if (!ok)
            return (void *)"failed";
    }
    return NULL;
}

TEST(threads_share_a_pool)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    pthread_t threads[4];

    open_pool(policy, 3, &engine, &pool);
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, use_pool, pool), 0);
    for (int i = 0; i < 4; i++) {
        void *answer = NULL;
        ASSERT_EQ(pthread_join(threads[i], &answer), 0);
        ASSERT(answer == NULL);
    }
    close_pool(policy, engine, pool);
}

/* The pid of the one child of this process: the engine. */
static int only_child(void)
{
    char text[256];
    FILE *f = fopen("/proc/thread-self/children", "r");
    int pid = f && fgets(text, sizeof text, f) ? atoi(text) : 0;
    if (f)
        fclose(f);
    return pid;
}

TEST(an_engine_that_dies_takes_its_boxes_along_and_says_so)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"sleep", "1000", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_EQ(px_pool_box(pool, argv, NULL, &box, &e), 0);
    int pid = only_child();
    ASSERT(pid > 1);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_EQ(px_box_wait(box, &e), 0);
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_INTERNAL);
    px_box_free(box);
    for (int i = 0; i < 3; i++)         /* one may still lie in the queue, dead */
        if (px_pool_box(pool, argv, NULL, &box, &e) == 0)
            FAIL("a box of a dead engine");
    ASSERT_EQ(e.code, 40);
    close_pool(policy, engine, pool);
}

/* The engine holds the groups; whose command met the limit is still told. */
TEST(the_memory_limit_is_told_of)
{
    struct px_policy *policy = policy_of("memory", "32m");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"/bin/sh", "-c", "head -c 100m /dev/zero | tail -n 1", NULL}, *fine[] = {"true", NULL};

    open_pool(policy, 1, &engine, &pool);
    if (px_pool_box(pool, fine, NULL, &box, &e) < 0)
        SKIP("no such box can be made here: %s", e.what);
    px_box_free(box);
    for (int i = 0; i < 2; i++) {
        ASSERT_PX(px_pool_box(pool, argv, NULL, &box, &e), e);
        ASSERT_PX(px_box_wait(box, &e), e);
        ASSERT_STR(px_status_name(px_box_result(box)->status), "memory");
        ASSERT(px_box_result(box)->oom_killed);
        ASSERT(strstr(px_box_result(box)->memory_source, "cgroup") != NULL);
        px_box_free(box);
    }
    close_pool(policy, engine, pool);
}

/* ---- what is ready ---- */

static int children(int pid, int *ret_pids, int max)
{
    char path[64];
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "re");
    while (f && n < max && fscanf(f, "%d", &ret_pids[n]) == 1)
        n++;
    if (f)
        fclose(f);
    return n;
}

/* Until the deadline of the test. */
static void wait_for_children(int pid, int count)
{
    int pids[300];
    while (children(pid, pids, 300) != count)
        usleep(5000);
}

TEST_DEADLINE(as_many_are_ready_as_were_asked_for, 120)
{
    enum { READY = 200 };       /* more than fit into a queue at once, at the sizes that most systems allow */
    struct px_policy *policy = policy_of("net", "host");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, READY, &engine, &pool);
    int pid = only_child();
    wait_for_children(pid, READY);
    for (int i = 0; i < READY + 20; i++) {
        struct px_box *box = run(pool, "echo one of many");
        ASSERT_STR(px_box_result(box)->out.data, "one of many\n");
        px_box_free(box);
    }
    wait_for_children(pid, READY);
    px_pool_free(pool);
    wait_for_children(pid, 0);
    px_engine_free(engine);
    px_policy_free(policy);
}

TEST(a_ready_box_outlasts_the_timeout_of_its_command)
{
    struct px_policy *policy = policy_of("timeout", "500ms");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"sleep", "1000", NULL};

    open_pool(policy, 1, &engine, &pool);
    wait_for_children(only_child(), 1);
    usleep(700000);
    ASSERT_PX(px_pool_box(pool, argv, NULL, &box, &e), e);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_TIMEOUT);
    px_box_free(box);
    close_pool(policy, engine, pool);
}

TEST(one_thread_may_use_more_at_once_than_are_ready)
{
    enum { COUNT = 6 };
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *boxes[COUNT] = {0};
    struct px_err e = {0};
    const char *argv[] = {"/bin/sh", "-c", "read line; echo $line", NULL};
    int ends[2];

    open_pool(policy, 1, &engine, &pool);
    ASSERT_EQ(pipe(ends), 0);
    const struct px_io io = {.use_in = true, .in = ends[0]};
    for (int i = 0; i < COUNT; i++)
        ASSERT_PX(px_pool_box(pool, argv, &io, &boxes[i], &e), e);
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < COUNT; i++) {
        ASSERT_PX(px_box_wait(boxes[i], &e), e);
        px_box_free(boxes[i]);
    }
    wait_for_children(only_child(), 1);         /* and no more than that are kept afterwards */
    close_pool(policy, engine, pool);
}

TEST(boxes_may_outlive_their_pool_and_its_engine)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL, *home = NULL;
    struct px_err e = {0};
    const char *argv[] = {"/bin/sh", "-c", "read line; echo $line", NULL};
    int ends[2];

    open_pool(policy, 3, &engine, &pool);
    ASSERT_EQ(pipe(ends), 0);
    const struct px_io io = {.use_in = true, .in = ends[0]};
    ASSERT_PX(px_pool_box(pool, argv, &io, &box, &e), e);
    ASSERT_PX(px_pool_stay(pool, &home, &e), e);
    px_pool_free(pool);
    wait_for_children(only_child(), 2);         /* those that were ready are gone */
    ASSERT_EQ(write(ends[1], "said\n", 5), 5);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_STR(px_box_result(box)->out.data, "said\n");
    px_box_free(box);
    px_engine_free(engine);
    ASSERT_PX(px_box_wait(home, &e), e);        /* its box went with the engine */
    px_box_free(home);
    close(ends[0]);
    close(ends[1]);
    px_policy_free(policy);
}

TEST(a_home_of_a_pool_can_be_killed_and_waited_for)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL, *home = NULL;
    struct px_err e = {0};
    const char *argv[] = {"sleep", "1000", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_PX(px_pool_stay(pool, &home, &e), e);
    ASSERT_EQ(px_box_step(home, &e), 1);
    ASSERT_PX(px_box_exec(home, policy, argv, NULL, &box, &e), e);
    ASSERT_EQ(px_box_kill(home, &e), 0);
    ASSERT_PX(px_box_wait(home, &e), e);
    ASSERT_STR(px_box_result(home)->reason, "killed by the caller");
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_INTERNAL);
    px_box_free(box);
    ASSERT(px_box_exec(home, policy, argv, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, 40);
    px_box_free(home);
    close_pool(policy, engine, pool);
}

TEST(what_died_while_it_was_ready_is_not_handed_out)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"echo", "fresh", NULL};
    int pids[300];

    open_pool(policy, 3, &engine, &pool);
    int pid = only_child();
    wait_for_children(pid, 3);
    for (int n = children(pid, pids, 300); n > 0; n--)
        ASSERT_EQ(kill(pids[n - 1], SIGKILL), 0);
    wait_for_children(pid, 0);
    int r = px_pool_box(pool, argv, NULL, &box, &e);
    if (r < 0 && e.code == 19)          /* the last of them was not ready yet: that it failed is told once */
        r = px_pool_box(pool, argv, NULL, &box, &e);
    ASSERT_PX(r, e);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_STR(px_box_result(box)->out.data, "fresh\n");
    px_box_free(box);
    wait_for_children(pid, 3);
    close_pool(policy, engine, pool);
}

TEST(each_pool_has_its_turn)
{
    struct px_policy *policy = policy_of(NULL, NULL), *bad = policy_of("bind", "/nonexistent/place:/it");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL, *other = NULL;
    struct px_err e = {0};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_PX(px_pool_new(engine, bad, 256, &other, &e), e);     /* always has work, and none of it succeeds */
    for (int i = 0; i < 5; i++)
        px_box_free(run(pool, "true"));
    px_pool_free(other);
    close_pool(policy, engine, pool);
    px_policy_free(bad);
}
