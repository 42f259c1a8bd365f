/* tests/platform/lock.c - what px relies on in file locks: they belong to the open file and die with its last holder. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

static int open_file(int dir)
{
    int fd = openat(dir, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ASSERT(fd >= 0);
    return fd;
}

static bool take(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Two descriptions in one process exclude each other, byte by byte: threads are told apart as processes are. */
TEST(byte_locks_belong_to_the_open_file)
{
    int dir = px_test_dir();
    int a = open_file(dir), b = open_file(dir);

    ASSERT(take(a, 5));
    ASSERT(!take(b, 5));
    ASSERT(errno == EAGAIN || errno == EACCES);
    ASSERT(take(b, 6));
    ASSERT(!take(a, 6));
    int c = open_file(dir);
    (void)close(c); /* a POSIX lock would be gone now */
    ASSERT(!take(b, 5));
    (void)close(a);
    ASSERT(take(b, 5));
    (void)close(b);
    (void)close(dir);
}

TEST(a_lock_lives_as_long_as_its_last_holder)
{
    int dir = px_test_dir(), status, ends[2];
    int a = open_file(dir), b = open_file(dir);
    char byte;

    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT(take(a, 0));
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[1]);
        (void)!read(ends[0], &byte, 1);
        _exit(0);
    }
    (void)close(ends[0]);
    (void)close(a);
    ASSERT(!take(b, 0)); /* the child still has the description */
    (void)close(ends[1]);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT(take(b, 0)); /* and nobody had to unlock */
    (void)close(b);
    (void)close(dir);
}

/* flock works on directories, so that a directory can say that it is in use. */
TEST(directories_can_be_locked)
{
    int dir = px_test_dir();
    int a = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        b = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT_EQ(flock(a, LOCK_EX | LOCK_NB), 0);
    ASSERT_EQ(flock(b, LOCK_EX | LOCK_NB), -1);
    ASSERT_EQ(errno, EWOULDBLOCK);
    (void)close(a);
    ASSERT_EQ(flock(b, LOCK_EX | LOCK_NB), 0);
    (void)close(b);
    (void)close(dir);
}
