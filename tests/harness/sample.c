/* tests/harness/sample.c - tests that misbehave in every way the harness must notice; selftest.py runs and judges them. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

TEST(passes)
{
    ASSERT(1);
    ASSERT_EQ(UINT64_MAX, UINT64_MAX);
    ASSERT_EQ(-1, -1LL);
    ASSERT_STR("a", "a");
    ASSERT_STR(NULL, NULL);
    ASSERT_OK(3);
}

TEST(fails_condition)
{
    (void)printf("output is shown\n");
    ASSERT(1 == 2);
}

TEST(fails_integers_of_other_sign)
{
    ASSERT_EQ(-1, UINT64_MAX);
}

TEST(fails_text)
{
    ASSERT_STR("a", NULL);
}

TEST(fails_errno)
{
    ASSERT_OK(-2);
}

TEST(fails_in_child)
{
    if (fork() == 0)
        ASSERT_EQ(1, 2);
    (void)wait(NULL);
}

TEST(fails_descriptor)
{
    (void)!open("/dev/null", O_RDONLY);
}

TEST(fails_closed_descriptor)
{
    (void)close(0);
}

TEST(fails_zombie)
{
    siginfo_t info;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    (void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
}

TEST(fails_child)
{
    if (fork() == 0)
        for (;;)
            (void)pause();
}

/* Two generations that left the test's session: they come back to the runner, one after the other. */
TEST(fails_orphan)
{
    if (fork() == 0) {
        if (fork() == 0) {
            (void)setsid();
            (void)fork();
            for (;;)
                (void)pause();
        }
        _exit(0);
    }
    (void)wait(NULL);
}

TEST(fails_exit)
{
    exit(0);
}

TEST(fails_crash)
{
    (void)raise(SIGKILL);
}

TEST_DEADLINE(fails_deadline, 1)
{
    for (;;)
        (void)pause();
}

TEST(skips)
{
    SKIP("no %s here", "luck");
}

TEST(passes_and_leaves_files)
{
    int dir = px_test_dir();

    (void)fprintf(stderr, "output is not shown\n");
    ASSERT_EQ(mkdirat(dir, "a", 0700), 0);
    ASSERT_EQ(mkdirat(dir, "a/b", 0700), 0);
    ASSERT_EQ(symlinkat("/", dir, "a/b/link"), 0);
    ASSERT_EQ(close(openat(dir, "a/b/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0)), 0);
    ASSERT_EQ(access(px_test_dir_path(), F_OK), 0);
    (void)close(dir);
}

TEST(passes_without_memory)
{
    px_test_fail_alloc(2);
    void *volatile first = malloc(10);
    void *volatile second = malloc(10);
    void *volatile third = malloc(10);

    ASSERT(first && !second && third);
    ASSERT(px_test_alloc_failed());
    free(first);
    free(third);
}
