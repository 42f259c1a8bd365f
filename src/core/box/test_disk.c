#include "box/disk.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pass.h"
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

/* ---- what cannot be seen by a descriptor of the process ---- */

static int the_dir, the_ends[2];

static void hide_in_mapping(void)
{
    int fd = write_file(the_dir, "held", 256 << 10);
    (void)unlinkat(the_dir, "held", 0);
    (void)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}

static void hide_in_socket(void)
{
    int fd = write_file(the_dir, "held", 256 << 10);
    (void)unlinkat(the_dir, "held", 0);
    (void)px_pass_send(the_ends[0], "x", 1, &fd, 1, 0);
    close(fd);
}

static int hold_in_thread(void *unused)
{
    (void)unused;
    (void)write_file(the_dir, "held", 256 << 10);
    (void)unlinkat(the_dir, "held", 0);
    close(the_ends[0]);         /* of this thread's own table: the other end hears it */
    return pause();
}

static void hide_in_thread(void)
{
    static char stack[64 << 10];
    char byte;
    (void)clone(hold_in_thread, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
    close(the_ends[0]);
    (void)!read(the_ends[1], &byte, 1);
}

static void hold_nothing(void)
{
}

/* More children than 4096 bytes have numbers of; the last one holds the file. */
static void hide_among_many(void)
{
    for (int i = 0; i < 700; i++)
        if (fork() == 0) {
            close(the_ends[0]);
            (void)pause();
            _exit(0);
        }
    char byte;
    if (fork() == 0) {
        (void)write_file(the_dir, "held", 256 << 10);
        (void)unlinkat(the_dir, "held", 0);
        close(the_ends[0]);
        (void)pause();
        _exit(0);
    }
    close(the_ends[0]);
    (void)!read(the_ends[1], &byte, 1);
}

/* A child that hides a file of 256 KiB, and what is found while it lives. */
static struct px_disk_held held_by(void (*hide)(void))
{
    int ready[2];
    char byte;
    struct px_disk_held held = {0};

    the_dir = px_test_dir();
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, the_ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        hide();
        (void)!write(ready[1], "r", 1);
        (void)pause();
        _exit(0);
    }
    close(the_ends[0]);
    close(the_ends[1]);
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    px_disk_held(&the_dir, 1, getpid(), &held);
    ASSERT_EQ(kill(-pid, SIGKILL), 0);
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    close(ready[0]);
    close(ready[1]);
    close(the_dir);
    return held;
}

TEST(a_file_that_is_only_mapped_is_found)
{
    struct px_disk_held held = held_by(hide_in_mapping);
    if (geteuid() == 0)
        ASSERT(held.bytes >= 256 << 10 && held.files == 1);
    ASSERT(held.bytes >= 256 << 10 || held.blind);      /* who may not ask for the file knows that there is one */
}

TEST(a_thread_with_descriptors_of_its_own_is_looked_at)
{
    struct px_disk_held held = held_by(hide_in_thread);
    ASSERT(held.bytes >= 256 << 10);
    ASSERT_EQ(held.files, 1);
}

TEST(a_long_list_of_children_is_read_to_its_end)
{
    struct px_disk_held held = held_by(hide_among_many);
    ASSERT(held.bytes >= 256 << 10);
}

TEST(descriptors_on_their_way_are_known_to_be_there)
{
    struct px_disk_held held = held_by(hide_in_socket);
    ASSERT(held.blind);
    ASSERT_EQ(held.files, 0);
    held = held_by(hold_nothing);       /* has sockets as well, and nothing in them */
    ASSERT(!held.blind);
}

/* The space of the file system is set here: what others do to the real one must not decide. */
static int looks_until_over(void (*hide)(void), uint64_t free_before)
{
    char byte;
    int ready[2], looks = 0;
    struct px_disk disk;

    the_dir = px_test_dir();
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, the_ends), 0);
    px_disk_start(&disk, &the_dir, 1, 64 << 10, 10);
    disk.free_before = free_before;
    disk.nodes_before = 0;
    pid_t pid = fork();
    if (pid == 0) {
        hide();
        (void)!write(ready[1], "r", 1);
        (void)pause();
        _exit(0);
    }
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    for (bool over = false; !over && looks < 10; looks++) {
        disk.looked_nsec = disk.cost_nsec = 0;
        over = px_disk_over(&disk, &the_dir, 1, getpid(), px_now_nsec());
    }
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    close(the_ends[0]);
    close(the_ends[1]);
    close(ready[0]);
    close(ready[1]);
    close(the_dir);
    return looks;
}

TEST(a_loss_that_only_the_box_explains_is_its_own)
{
    ASSERT_EQ(looks_until_over(hide_in_socket, UINT64_MAX / 2), 3);
}

TEST(a_loss_beside_the_box_is_not)
{
    ASSERT_EQ(looks_until_over(hold_nothing, UINT64_MAX / 2), 10);      /* a neighbour fills the disk */
    ASSERT_EQ(looks_until_over(hide_in_socket, 0), 10);                 /* a descriptor on its way, and the disk has room */
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
