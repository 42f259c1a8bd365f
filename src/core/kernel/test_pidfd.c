/* kernel/test_pidfd.c - signalling and reaping by descriptor. */
#include "kernel/pidfd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "harness/test.h"

/* A child that waits for a byte and then exits with `status`. */
static pid_t start(int status, int *ret_pidfd, int *ret_go)
{
    int ends[2];

    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    ASSERT(pid >= 0);
    if (pid == 0) {
        char byte;
        (void)close(ends[1]);
        (void)!read(ends[0], &byte, 1);
        _exit(status);
    }
    (void)close(ends[0]);
    *ret_go = ends[1];
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    ASSERT(*ret_pidfd >= 0);
    return pid;
}

static void check_exit(int code)
{
    int go, status = -1;
    px_auto_fd int pidfd = -EBADF;

    (void)start(code, &pidfd, &go);
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), 0);
    ASSERT_EQ(status, -1); /* written only when somebody was reaped */
    (void)close(go);
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
    ASSERT(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), code);
}

TEST(exit_codes)
{
    static const int codes[] = {0, 1, 42, 127, 128, 255};

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        check_exit(codes[i]);
}

TEST(signals)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGUSR1, SIGSYS, 34, 64};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        int go, status = -1;
        px_auto_fd int pidfd = -EBADF;

        (void)start(0, &pidfd, &go);
        ASSERT_EQ(px_pidfd_signal(pidfd, signals[i]), 0);
        ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
        ASSERT(WIFSIGNALED(status));
        ASSERT_EQ(WTERMSIG(status), signals[i]);
        (void)close(go);
    }
}

/* A leader and a child of its group; the group is told, not only the leader. */
TEST(a_whole_group)
{
    int ends[2], status = -1;
    char byte;
    px_auto_fd int pidfd = -EBADF;

    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        (void)close(ends[0]);
        (void)fork(); /* both hold the write end, and both are told */
        (void)!write(ends[1], "r", 1);
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    ASSERT_EQ(px_pidfd_signal_group(pidfd, SIGUSR1), 0);
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
    ASSERT_EQ(WTERMSIG(status), SIGUSR1);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    int gone = poll(&end, 1, 2000);
    if (gone == 0)
        (void)kill(-pid, SIGKILL);
    (void)close(ends[0]);
    if (gone == 0)
        SKIP("before Linux 6.9 only the leader is told");
}

TEST(a_stopped_process_is_not_a_dead_one)
{
    int go, status = -1;
    px_auto_fd int pidfd = -EBADF;
    pid_t pid = start(7, &pidfd, &go);

    ASSERT_EQ(px_pidfd_signal(pidfd, SIGSTOP), 0);
    ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
    ASSERT(WIFSTOPPED(status));
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), 0);
    ASSERT_EQ(px_pidfd_signal(pidfd, SIGCONT), 0);
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), 0);
    (void)close(go);
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
    ASSERT_EQ(WEXITSTATUS(status), 7);
}

TEST(after_the_end)
{
    int go, status = -1;
    px_auto_fd int pidfd = -EBADF;
    pid_t pid = start(3, &pidfd, &go);

    (void)close(go);
    ASSERT_EQ(waitpid(pid, &status, 0), pid); /* somebody else was faster */
    status = -1;
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), -ECHILD);
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), -ECHILD);
    ASSERT_EQ(status, -1);
    ASSERT_EQ(px_pidfd_signal(pidfd, SIGKILL), -ESRCH);
    ASSERT_EQ(px_pidfd_signal(pidfd, 0), -ESRCH);
}

TEST(usage_is_the_childs)
{
    int status = -1;
    struct rusage usage = {0};
    pid_t pid = fork();

    if (pid == 0) {
        struct rusage own;
        do
            (void)getrusage(RUSAGE_SELF, &own);
        while (own.ru_utime.tv_sec * 1000000 + own.ru_utime.tv_usec < 30000);
        _exit(0);
    }
    px_auto_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, &usage), 1);
    ASSERT(usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec >= 30000);
    ASSERT(usage.ru_maxrss > 0);
}

TEST(not_a_pidfd)
{
    int status = -1;
    px_auto_fd int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

    ASSERT_EQ(px_pidfd_wait(-1, true, &status, NULL), -EINVAL);
    ASSERT_EQ(px_pidfd_wait(0, true, &status, NULL), -EBADF);
    ASSERT_EQ(px_pidfd_wait(pidfd, true, &status, NULL), -ECHILD); /* a process, but not ours to reap */
    ASSERT_EQ(px_pidfd_signal(-1, SIGKILL), -EBADF);
    ASSERT_EQ(px_pidfd_signal(pidfd, 65), -EINVAL);
}

static void on_signal(int number)
{
    (void)number;
}

/* A handler that interrupts the wait must not end it. */
TEST(interrupted_wait_goes_on)
{
    int go, status = -1;
    px_auto_fd int pidfd = -EBADF;
    pid_t parent = getpid();
    struct sigaction action = {.sa_handler = on_signal};

    ASSERT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    pid_t pid = start(9, &pidfd, &go);
    pid_t pest = fork();
    if (pest == 0) {
        for (int i = 0; i < 20; i++) {
            (void)poll(NULL, 0, 2);
            (void)kill(parent, SIGUSR1);
        }
        (void)kill(pid, SIGKILL);
        _exit(0);
    }
    ASSERT_EQ(px_pidfd_wait(pidfd, false, &status, NULL), 1);
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ASSERT_EQ(waitpid(pest, &status, 0), pest);
    (void)close(go);
}
