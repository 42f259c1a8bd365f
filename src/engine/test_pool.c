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
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
}

TEST(what_was_said_of_the_policy_holds)
{
    char here[4096];
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    char dir[] = "/tmp/px-pool-XXXXXX";

    ASSERT(getcwd(here, sizeof here) != NULL);
    ASSERT(mkdtemp(dir) != NULL);
    ASSERT_EQ(chmod(dir, 0755), 0);
    ASSERT_EQ(chdir(dir), 0);
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
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
    char path[64];
    snprintf(path, sizeof path, "%s/file", dir);
    ASSERT_EQ(unlink(path), 0);
    ASSERT_EQ(rmdir(dir), 0);
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
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
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
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
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
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
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
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
}
