/* kernel/test_join.c - a child of ours that is born in somebody else's namespaces. */
#include "kernel/join.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "harness/test.h"
#include "kernel/clone.h"
#include "kernel/pidfd.h"

enum { STACK = 32 * 1024 };

static void sleep_on(void *arg)
{
    (void)arg;
    for (;;)
        (void)px_sys(SYS_pause);
}

/* A process in a user and a network namespace of its own; or only (flags 0) in ours. */
static long other(uint64_t flags, char *stack, int *ret_pidfd)
{
    struct px_clone_args args = {.flags = flags | PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)ret_pidfd};
    return px_clone_run(&args, stack, STACK, sleep_on, NULL);
}

static ino_t namespace_of(long pid, const char *kind)
{
    char path[64];
    struct stat st = {0};
    (void)snprintf(path, sizeof path, "/proc/%ld/ns/%s", pid, kind);
    ASSERT_OK(stat(path, &st));
    return st.st_ino;
}

static void end(int pidfd)
{
    int status;
    (void)px_pidfd_signal(pidfd, SIGKILL);
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);       /* our own child, whoever has made it */
}

TEST(born_there_and_ours)
{
    static char stacks[2][STACK] __attribute__((aligned(16)));
    px_auto_fd int target = -EBADF, pidfd = -EBADF;
    long there = other(PX_CLONE_NEWUSER | PX_CLONE_NEWNET, stacks[0], &target);
    if (there == -EPERM || there == -ENOSPC)
        SKIP("no user namespace can be made");
    ASSERT_OK(there);
    struct px_clone_args args = {.flags = PX_CLONE_NEWPID | PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND,
                                 .pidfd = (uintptr_t)&pidfd};
    long pid = px_join_clone(target, &args, stacks[1], STACK, sleep_on, NULL);
    ASSERT_OK(pid);
    ASSERT_EQ(namespace_of(pid, "user"), namespace_of(there, "user"));
    ASSERT_EQ(namespace_of(pid, "net"), namespace_of(there, "net"));
    ASSERT(namespace_of(pid, "pid") != namespace_of(there, "pid"));
    ASSERT_EQ(namespace_of(getpid(), "net"), namespace_of(getppid(), "net"));
    end(pidfd);
    end(target);
}

TEST(refused_for_our_own_and_the_dead)
{
    static char stacks[2][STACK] __attribute__((aligned(16)));
    px_auto_fd int target = -EBADF, pidfd = -EBADF;
    struct px_clone_args args = {.flags = PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&pidfd};
    ASSERT_OK(other(0, stacks[0], &target));
    ASSERT(px_join_clone(target, &args, stacks[1], STACK, sleep_on, NULL) < 0);
    end(target);
    ASSERT_EQ(px_join_clone(target, &args, stacks[1], STACK, sleep_on, NULL), -ESRCH);
    ASSERT_EQ(pidfd, -EBADF);
}
