/* base/test_fd.c - owned descriptors, whole reads and writes. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void make_file(int dir, const char *name, const char *text)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    ASSERT(fd >= 0);
    ASSERT_OK(px_write_full(fd, text, strlen(text)));
}

TEST(scope_closes)
{
    int seen;
    {
        px_auto_fd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        px_auto_fd int empty = -EBADF;

        seen = fd;
        ASSERT(is_open(seen));
        ASSERT_EQ(empty, -EBADF);
    }
    ASSERT(!is_open(seen));
}

TEST(close_keeps_errno_and_gives_the_empty_fd)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    errno = 1234;
    fd = px_fd_close(fd);
    ASSERT_EQ(fd, -EBADF);
    ASSERT_EQ(px_fd_close(fd), -EBADF);
    ASSERT_EQ(px_fd_close(1000), -EBADF);       /* not open: no error to see */
    ASSERT_EQ(errno, 1234);
}

TEST(take_empties)
{
    px_auto_fd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    px_auto_fd int other = px_fd_take(&fd);

    ASSERT_EQ(fd, -EBADF);
    ASSERT(is_open(other));

    px_auto_free char *a = strdup("x");
    px_auto_free char *b = px_take(&a);
    ASSERT(a == NULL);
    ASSERT_STR(b, "x");
}

TEST(pipe_is_close_on_exec)
{
    int ends[2] = {-7, -7};

    ASSERT_OK(px_pipe(ends));
    ASSERT_EQ(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
    ASSERT_EQ(fcntl(ends[1], F_GETFD), FD_CLOEXEC);
    px_fd_done(&ends[0]);
    px_fd_done(&ends[1]);
    ASSERT_EQ(ends[0], -EBADF);
}

TEST(errors_are_returned_not_set)
{
    char byte;

    errno = 1234;
    ASSERT_EQ(px_read_some(-1, &byte, 1), -EBADF);
    ASSERT_EQ(px_read_full(-1, &byte, 1), -EBADF);
    ASSERT_EQ(px_write_full(-1, "x", 1), -EBADF);
    ASSERT_EQ(px_write_full(-1, "x", 0), 0);
    ASSERT_EQ(px_read_file(AT_FDCWD, "/nonexistent", &byte, 1), -ENOENT);
    ASSERT_EQ(px_write_file(AT_FDCWD, "/nonexistent", "x"), -ENOENT);
    ASSERT_EQ(errno, 1234);
}

TEST(full_write_and_read_through_a_small_pipe)
{
    enum { SIZE = 1 << 20 };
    int ends[2];
    char *data = malloc(SIZE), *back = malloc(SIZE);

    ASSERT(data && back);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 7 + i / 256);
    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    if (pid == 0)
        _exit(px_write_full(ends[1], data, SIZE) == 0 ? 0 : 1);
    px_fd_done(&ends[1]);
    ASSERT_EQ(px_read_full(ends[0], back, SIZE), SIZE);
    ASSERT_EQ(memcmp(data, back, SIZE), 0);
    ASSERT_EQ(px_read_full(ends[0], back, SIZE), 0);    /* end of file */
    int status;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    px_fd_done(&ends[0]);
    free(data);
    free(back);
}

TEST(read_full_stops_at_the_end)
{
    int ends[2];
    char out[10] = {0};

    ASSERT_OK(px_pipe(ends));
    ASSERT_OK(px_write_full(ends[1], "abc", 3));
    px_fd_done(&ends[1]);
    ASSERT_EQ(px_read_full(ends[0], out, sizeof out), 3);
    ASSERT_STR(out, "abc");
    px_fd_done(&ends[0]);
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* The writer interrupts the reader's blocking read by a signal before it sends the byte. */
TEST(interrupted_reads_go_on)
{
    struct sigaction action = {.sa_handler = on_alarm};         /* no SA_RESTART */
    int ends[2];
    char byte = 0;
    pid_t reader = getpid();

    ASSERT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 20; i++) {
            usleep(2000);
            (void)kill(reader, SIGUSR1);
        }
        _exit(px_write_full(ends[1], "z", 1) == 0 ? 0 : 1);
    }
    ASSERT_EQ(px_read_some(ends[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'z');
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    px_fd_done(&ends[0]);
    px_fd_done(&ends[1]);
}

TEST(broken_pipe_is_an_error)
{
    int ends[2];

    (void)signal(SIGPIPE, SIG_IGN);
    ASSERT_OK(px_pipe(ends));
    px_fd_done(&ends[0]);
    ASSERT_EQ(px_write_full(ends[1], "x", 1), -EPIPE);
    px_fd_done(&ends[1]);
}

TEST(read_file_and_its_limit)
{
    px_auto_fd int dir = px_test_dir();
    char out[6];

    make_file(dir, "empty", "");
    make_file(dir, "five", "12345");
    make_file(dir, "six", "123456");
    memset(out, 'x', sizeof out);
    ASSERT_EQ(px_read_file(dir, "empty", out, sizeof out), 0);
    ASSERT_STR(out, "");
    ASSERT_EQ(px_read_file(dir, "five", out, sizeof out), 5);
    ASSERT_STR(out, "12345");
    ASSERT_EQ(px_read_file(dir, "six", out, sizeof out), -EFBIG);
    ASSERT_STR(out, "");
    ASSERT_EQ(px_read_file(dir, "five", out, 0), -EINVAL);
    ASSERT_EQ(px_read_file(dir, "five", out, 1), -EFBIG);
    ASSERT_EQ(px_read_file(dir, "empty", out, 1), 0);
    ASSERT_EQ(px_read_file(dir, ".", out, sizeof out), -EISDIR);
    ASSERT_EQ(px_read_file(dir, "none", out, sizeof out), -ENOENT);
}

TEST(files_of_a_directory_are_not_reached_by_links_or_pipes)
{
    px_auto_fd int dir = px_test_dir();
    char out[16], path[300];

    make_file(dir, "file", "text");
    ASSERT_EQ(symlinkat("file", dir, "link"), 0);
    ASSERT_EQ(mkfifoat(dir, "pipe", 0600), 0);
    ASSERT_EQ(px_read_file(dir, "link", out, sizeof out), -ELOOP);
    ASSERT_EQ(px_write_file(dir, "link", "other"), -ELOOP);
    ASSERT_EQ(px_read_file(dir, "pipe", out, sizeof out), 0);
    ASSERT_EQ(px_write_file(dir, "pipe", "other"), -ENXIO);
    ASSERT(snprintf(path, sizeof path, "%s/link", px_test_dir_path()) > 0);
    ASSERT_EQ(px_read_file(AT_FDCWD, path, out, sizeof out), 4);
}

TEST(read_file_of_proc)
{
    char out[4096];

    ASSERT(px_read_file(AT_FDCWD, "/proc/self/status", out, sizeof out) > 0);
    ASSERT_EQ(strncmp(out, "Name:", 5), 0);
}

TEST(write_file_writes_only_what_exists)
{
    px_auto_fd int dir = px_test_dir();
    char out[16];

    make_file(dir, "f", "");
    ASSERT_OK(px_write_file(dir, "f", "text"));
    ASSERT_EQ(px_read_file(dir, "f", out, sizeof out), 4);
    ASSERT_STR(out, "text");
    ASSERT_EQ(px_write_file(dir, "g", "text"), -ENOENT);
    ASSERT_EQ(px_write_file(dir, ".", "text"), -EISDIR);
    ASSERT_EQ(px_write_file(AT_FDCWD, "/dev/full", "text"), -ENOSPC);
}
