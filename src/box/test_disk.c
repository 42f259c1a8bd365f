#include "box/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "harness/test.h"

static int write_file(int dir, const char *name, size_t bytes)
{
    static char block[4096] = {'x'};
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT(fd >= 0);
    for (size_t done = 0; done < bytes; done += sizeof block)
        ASSERT_EQ(write(fd, block, sizeof block), (ssize_t)sizeof block);
    ASSERT_EQ(fsync(fd), 0);            /* blocks are given out late */
    return fd;
}

TEST(what_was_there_before_does_not_count)
{
    int dir = px_test_dir();
    struct px_disk disk;

    close(write_file(dir, "old", 256 << 10));
    px_disk_start(&disk, &dir, 1, 64 << 10, 10);
    ASSERT(!px_disk_over(&disk, &dir, 1, 0, px_now_nsec()));
    close(write_file(dir, "new", 32 << 10));
    ASSERT(!px_disk_over(&disk, &dir, 1, 0, px_now_nsec()));
    close(write_file(dir, "more", 128 << 10));
    ASSERT(px_disk_over(&disk, &dir, 1, 0, px_now_nsec()));
    ASSERT(disk.bytes >= 160 << 10);
    close(dir);
}

TEST(many_small_files_count_too)
{
    char name[16];
    int dir = px_test_dir();
    struct px_disk disk;

    px_disk_start(&disk, &dir, 1, 1 << 30, 10);
    ASSERT_EQ(mkdirat(dir, "d", 0700), 0);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "d/%d", i);
        close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    ASSERT(px_disk_over(&disk, &dir, 1, 0, px_now_nsec()));
    ASSERT_EQ(disk.files, 11);
    close(dir);
}

TEST(removing_things_makes_room)
{
    int dir = px_test_dir();
    struct px_disk disk;

    px_disk_start(&disk, &dir, 1, 64 << 10, 10);
    close(write_file(dir, "big", 128 << 10));
    ASSERT(px_disk_over(&disk, &dir, 1, 0, px_now_nsec()));
    ASSERT_EQ(unlinkat(dir, "big", 0), 0);
    ASSERT(!px_disk_over(&disk, &dir, 1, 0, px_now_nsec()));
    close(dir);
}

/* The holder is a child of this process, as the processes of a box are of its pid 1. */
TEST(a_file_without_a_name_is_found_with_its_holder)
{
    char byte;
    int dir = px_test_dir(), ready[2], done[2];
    struct px_disk disk;

    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(done, O_CLOEXEC), 0);
    px_disk_start(&disk, &dir, 1, 64 << 10, 10);
    disk.cost_nsec = 0;
    pid_t pid = fork();
    if (pid == 0) {
        close(done[1]);
        (void)write_file(dir, "held", 256 << 10);
        (void)unlinkat(dir, "held", 0);
        (void)!write(ready[1], "r", 1);
        (void)!read(done[0], &byte, 1);
        _exit(0);
    }
    close(done[0]);
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    disk.looked_nsec = 0;       /* long ago */
    ASSERT(px_disk_over(&disk, &dir, 1, getpid(), px_now_nsec()));
    ASSERT(disk.bytes >= 256 << 10);
    close(done[1]);
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    ASSERT(!px_disk_over(&disk, &dir, 1, 0, px_now_nsec()));
    close(ready[0]);
    close(ready[1]);
    close(dir);
}

TEST(a_single_file_can_be_bound)
{
    int dir = px_test_dir();
    struct px_disk disk;

    int file = write_file(dir, "one", 4096);
    px_disk_start(&disk, &file, 1, 64 << 10, 10);
    ASSERT(!px_disk_over(&disk, &file, 1, 0, px_now_nsec()));
    close(write_file(dir, "one", 256 << 10));
    ASSERT(px_disk_over(&disk, &file, 1, 0, px_now_nsec()));
    close(file);
    close(dir);
}
