/* tests/platform/exec.c - what px relies on between clone and exec. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/test.h"
#include "kernel/clone.h"
#include "kernel/pidfd.h"

enum { STACK = 64 * 1024 };

struct job {
    const char *program;
    char *const *argv;
    int fd; /* execveat of this where there is no program */
    uint32_t alive;
    volatile int sets_dumpable;
};

static char *const no_environment[] = {NULL};

static void run_program(void *arg)
{
    struct job *job = arg;

    if (job->sets_dumpable)
        (void)px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (job->program)
        (void)px_sys(SYS_execve, job->program, job->argv, no_environment);
    else
        (void)px_sys(SYS_execveat, job->fd, "", job->argv, no_environment, AT_EMPTY_PATH);
    for (;;)
        (void)px_sys(SYS_exit_group, 127);
}

static int start(struct job *job, char *stack)
{
    int pidfd = -1;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CHILD_CLEARTID | PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&pidfd,
        .child_tid = (uintptr_t)&job->alive,
    };

    job->alive = 1;
    ASSERT_OK(px_clone_run(&args, stack, STACK, run_program, job));
    return pidfd;
}

static void wait_until_gone(struct job *job)
{
    while (__atomic_load_n(&job->alive, __ATOMIC_ACQUIRE) != 0)
        (void)px_sys(SYS_futex, &job->alive, FUTEX_WAIT, 1, 0, 0, 0);
}

static int reap(int pidfd)
{
    int status = -1;

    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
    (void)close(pidfd);
    return status;
}

/* The kernel clears the word and wakes the futex when the child leaves our memory, be it by exec: the child lives on. */
TEST(the_word_is_cleared_by_exec)
{
    char stack[STACK] __attribute__((aligned(16)));
    char *const argv[] = {"sleep", "1000", NULL};
    struct job job = {.program = "/bin/sleep", .argv = argv};
    int status, pidfd = start(&job, stack);

    wait_until_gone(&job);
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), 0);
    ASSERT_EQ(px_pidfd_signal(pidfd, SIGKILL), 0);
    ASSERT_EQ(WTERMSIG(reap(pidfd)), SIGKILL);
}

TEST(the_word_is_cleared_by_death)
{
    char stack[STACK] __attribute__((aligned(16)));
    char *const argv[] = {"nothing", NULL};
    struct job job = {.program = "/no/such/program", .argv = argv};
    int pidfd = start(&job, stack);

    wait_until_gone(&job);
    ASSERT_EQ(WEXITSTATUS(reap(pidfd)), 127);
}

/* A child without an exit signal gets SIGCHLD as its exit signal at exec, and then anybody's waitpid(-1) sees it. */
TEST(exec_makes_it_an_ordinary_child)
{
    char stack[STACK] __attribute__((aligned(16)));
    char *const argv[] = {"true", NULL};
    struct job job = {.program = "/bin/true", .argv = argv};
    int status = -1, pidfd = start(&job, stack);

    wait_until_gone(&job);
    ASSERT(waitpid(-1, &status, 0) > 0);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), -ECHILD);
    (void)close(pidfd);
}

/* "Dumpable" is a mark of the memory, so a child that shares ours marks us; exec gives it a memory and a mark of its own. */
TEST(dumpable_is_shared_with_the_memory)
{
    char stack[STACK] __attribute__((aligned(16)));
    char *const argv[] = {"true", NULL};
    struct job job = {.program = "/bin/true", .argv = argv, .sets_dumpable = 1};

    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    int pidfd = start(&job, stack);
    wait_until_gone(&job);
    ASSERT_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    ASSERT_EQ(WEXITSTATUS(reap(pidfd)), 0);
    ASSERT_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
}

static int copy_to_memory(const char *path, unsigned flags)
{
    char block[65536];
    ssize_t n;
    int from = open(path, O_RDONLY | O_CLOEXEC), to = (int)px_sys(SYS_memfd_create, "program", flags);

    ASSERT(from >= 0);
    ASSERT_OK(to);
    while ((n = read(from, block, sizeof block)) > 0)
        ASSERT_EQ(write(to, block, (size_t)n), n);
    (void)close(from);
    return to;
}

/* A program can be run from sealed memory, and the seals hold against a write through the running image too. */
TEST(a_sealed_memory_file_runs)
{
    char stack[STACK] __attribute__((aligned(16)));
    char *const argv[] = {"sleep", "1000", NULL};
    int fd = copy_to_memory("/bin/sleep", 3 /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
    struct job job = {.argv = argv, .fd = fd};

    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    int status, pidfd = start(&job, stack);
    wait_until_gone(&job);
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), 0);
    ASSERT_EQ(write(fd, "x", 1), -1);
    ASSERT(errno == EPERM || errno == ETXTBSY);
    ASSERT_EQ(ftruncate(fd, 0), -1);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), -1);
    (void)close(fd);
    ASSERT_EQ(px_pidfd_signal(pidfd, SIGKILL), 0);
    (void)reap(pidfd);
}

/* A close-on-exec script cannot be run by descriptor: its interpreter would find nothing. A binary can. */
TEST(close_on_exec_descriptors_run_binaries)
{
    char stack[STACK] __attribute__((aligned(16)));
    char *const argv[] = {"true", NULL};
    int fd = open("/bin/true", O_PATH | O_CLOEXEC);
    struct job job = {.argv = argv, .fd = fd};
    int pidfd = start(&job, stack);

    ASSERT_EQ(WEXITSTATUS(reap(pidfd)), 0);
    (void)close(fd);
}

/* CLONE_CLEAR_SIGHAND: no handler of ours exists in the child, and what we ignore stays ignored until px resets it. */
static volatile int handled;

static void on_signal(int number)
{
    handled = number;
}

static void raise_usr1(void *arg)
{
    (void)arg;
    (void)px_sys(SYS_kill, px_sys(SYS_getpid), SIGUSR1);
    for (;;)
        (void)px_sys(SYS_exit_group, 0);
}

TEST(no_handler_in_the_child)
{
    char stack[STACK] __attribute__((aligned(16)));
    int pidfd = -1, status = 0;
    struct sigaction action = {.sa_handler = on_signal};
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&pidfd,
    };

    ASSERT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    ASSERT_OK(px_clone_run(&args, stack, sizeof stack, raise_usr1, NULL));
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
    (void)close(pidfd);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGUSR1);
    ASSERT_EQ(handled, 0);
}
