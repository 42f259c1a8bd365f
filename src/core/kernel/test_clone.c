/* kernel/test_clone.c - a function on another stack, in another process, in the same memory. */
#include "kernel/clone.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "harness/test.h"
#include "kernel/pidfd.h"

enum { STACK = 32 * 1024 };

struct job {
    volatile int value;
    volatile int pid;
    const char *volatile stack_at;
    uint32_t alive;
    int exit_status;
};

static void work(void *arg)
{
    struct job *job = arg;
    char here;

    job->value = 42;
    job->pid = (int)px_sys(SYS_getpid);
    job->stack_at = &here;
    for (;;)
        (void)px_sys(SYS_exit_group, job->exit_status);
}

static int reap(int pidfd)
{
    int status = -1;

    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
    return status;
}

TEST(shared_memory_own_stack)
{
    char stack[STACK] __attribute__((aligned(16)));
    struct job job = {.value = 1, .exit_status = 5};
    px_auto_fd int pidfd = -EBADF;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&pidfd,
    };

    errno = 1234;
    long pid = px_clone_run(&args, stack, sizeof stack, work, &job);
    ASSERT_OK(pid);
    ASSERT_EQ(WEXITSTATUS(reap(pidfd)), 5);
    ASSERT_EQ(job.value, 42);
    ASSERT_EQ(job.pid, pid);
    ASSERT(job.stack_at > stack && job.stack_at < stack + sizeof stack);
    ASSERT_EQ(errno, 1234);
}

TEST(copied_memory_stays_ours)
{
    static char stack[STACK] __attribute__((aligned(16)));
    struct job job = {.value = 1, .exit_status = 6};
    px_auto_fd int pidfd = -EBADF;
    struct px_clone_args args = {.flags = PX_CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};

    ASSERT_OK(px_clone_run(&args, stack, sizeof stack, work, &job));
    ASSERT_EQ(WEXITSTATUS(reap(pidfd)), 6);
    ASSERT_EQ(job.value, 1);
}

TEST(vfork_waits)
{
    char stack[STACK] __attribute__((aligned(16)));
    struct job job = {0};
    px_auto_fd int pidfd = -EBADF;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_VFORK | PX_CLONE_PIDFD,
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };

    ASSERT_OK(px_clone_run(&args, stack, sizeof stack, work, &job));
    ASSERT_EQ(job.value, 42); /* already: the parent went on only after the child was gone */
    (void)reap(pidfd);
}

TEST(the_kernel_clears_the_word)
{
    char stack[STACK] __attribute__((aligned(16)));
    struct job job = {.alive = 1};
    px_auto_fd int pidfd = -EBADF;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CHILD_CLEARTID,
        .pidfd = (uintptr_t)&pidfd,
        .child_tid = (uintptr_t)&job.alive,
    };

    ASSERT_OK(px_clone_run(&args, stack, sizeof stack, work, &job));
    while (__atomic_load_n(&job.alive, __ATOMIC_ACQUIRE) != 0)
        (void)px_sys(SYS_futex, &job.alive, FUTEX_WAIT, 1, 0, 0, 0);
    ASSERT_EQ(job.value, 42);
    (void)reap(pidfd);
}

/* Without an exit signal the child is hidden from a plain waitpid(-1) of the program that uses us. */
TEST(no_exit_signal_no_plain_wait)
{
    char stack[STACK] __attribute__((aligned(16)));
    struct job job = {.alive = 1};
    px_auto_fd int pidfd = -EBADF;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CHILD_CLEARTID,
        .pidfd = (uintptr_t)&pidfd,
        .child_tid = (uintptr_t)&job.alive,
    };

    ASSERT_OK(px_clone_run(&args, stack, sizeof stack, work, &job));
    while (__atomic_load_n(&job.alive, __ATOMIC_ACQUIRE) != 0)
        (void)px_sys(SYS_futex, &job.alive, FUTEX_WAIT, 1, 0, 0, 0);
    ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1);
    ASSERT_EQ(errno, ECHILD);
    (void)reap(pidfd);
}

TEST(refusals_are_errors)
{
    char stack[STACK] __attribute__((aligned(16)));
    struct job job = {.value = 1};
    struct px_clone_args args = {.flags = PX_CLONE_VM, .exit_signal = 1000};

    errno = 1234;
    ASSERT_EQ(px_clone_run(&args, stack, sizeof stack, work, &job), -EINVAL);
    ASSERT_EQ(errno, 1234);
    args = (struct px_clone_args){.flags = PX_CLONE_VM};
    ASSERT_EQ(px_clone_run(&args, stack, 0, work, &job), -EINVAL);
    ASSERT_EQ(job.value, 1);
}

static void touch_stack(void *arg)
{
    struct job *job = arg;
    volatile char room[16 * 1024];

    for (size_t i = 0; i < sizeof room; i += 64)
        room[i] = (char)i;
    job->value = room[64] == 64 ? 43 : 0;
    for (;;)
        (void)px_sys(SYS_exit_group, 0);
}

/* What lies around the stack that was given is not touched: the whole of it is, the rest is the caller's. */
TEST(stays_within_its_stack)
{
    static char block[3 * STACK] __attribute__((aligned(16)));
    struct job job = {0};
    px_auto_fd int pidfd = -EBADF;
    struct px_clone_args args = {.flags = PX_CLONE_VM | PX_CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd};

    memset(block, 0x5a, sizeof block);
    ASSERT_OK(px_clone_run(&args, block + STACK, STACK, touch_stack, &job));
    (void)reap(pidfd);
    ASSERT_EQ(job.value, 43);
    for (size_t i = 0; i < STACK; i++)
        if (block[i] != 0x5a || block[2 * STACK + i] != 0x5a)
            FAIL("byte %zu beside the stack was written", i);
}
