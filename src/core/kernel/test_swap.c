/* kernel/test_swap.c - trees whose directories and files become symbolic links while they are walked, as a box that has
 * the tree as a writable bind can make them. What the links lead to must keep its mode and its content.
 *
 * Each test swaps for a bounded time and asserts nothing about how often it hit. No directory of an overlay is swapped:
 * Linux 6.18 leaves a lock behind then, and every rename of the file system waits for ever. */
#include "kernel/tree.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "harness/test.h"

enum { NOBODY = 1200, PAIRS = 24, EXCHANGE = 2, SWAP_MSEC = 700 };

static int64_t now_msec(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Permissions stop only a caller who is not root, and closed directories are his matter. */
static void be_nobody(void)
{
    if (geteuid() == 0)
        ASSERT(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
               setresuid(NOBODY, NOBODY, NOBODY) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

static void put_file(int dir, const char *name, mode_t mode)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ASSERT(fd >= 0);
    ASSERT_EQ(write(fd, "kept", 4), 4);
    ASSERT_OK(fchmod(fd, mode));
}

/* A directory and a file outside of the tree, and their path. */
static int make_victim(char path[300])
{
    int victim = px_test_dir();
    (void)snprintf(path, 300, "%s", px_test_dir_path());
    ASSERT_OK(fchmod(victim, 0755));
    put_file(victim, "file", 04755);
    return victim;
}

static void check_victim(int victim)
{
    struct stat st;
    char text[8] = "";
    ASSERT_OK(fstat(victim, &st));
    ASSERT_EQ(st.st_mode & 07777, 0755);
    ASSERT_OK(fstatat(victim, "file", &st, AT_SYMLINK_NOFOLLOW));
    ASSERT_EQ(st.st_mode & 07777, 04755);
    ASSERT_EQ(px_read_file(victim, "file", text, sizeof text), 4);
    ASSERT_STR(text, "kept");
}

static int make_dir(int dir, const char *name, mode_t mode)
{
    ASSERT_OK(mkdirat(dir, name, 0700));
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(fd);
    ASSERT_OK(fchmod(fd, mode));
    return fd;
}

/* In tree: directories d0, d1, ... with a set-id file in each, and set-id files f0, f1, ...; in links, which is not
 * walked, a link of the same name that leads outside. To move a directory its owner has to have the right to write it.
 * */
static void plant(int tree, int links, const char *victim, mode_t mode)
{
    char name[16], target[320];
    for (int i = 0; i < PAIRS; i++) {
        (void)snprintf(name, sizeof name, "d%d", i);
        px_auto_fd int sub = make_dir(tree, name, 0700);
        put_file(sub, "file", 04755);
        ASSERT_OK(fchmod(sub, mode));
        ASSERT_OK(symlinkat(victim, links, name));
        (void)snprintf(name, sizeof name, "f%d", i);
        put_file(tree, name, 04755);
        (void)snprintf(target, sizeof target, "%s/file", victim);
        ASSERT_OK(symlinkat(target, links, name));
    }
}

/* The neighbour: exchanges each with its link, over and over, until it is killed. It has begun when this returns. */
static pid_t start_swapping(int tree, int links)
{
    int ends[2];
    char byte = 0;
    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    ASSERT(pid >= 0);
    if (pid > 0) {
        (void)px_fd_close(ends[1]);
        ASSERT_EQ(px_read_full(ends[0], &byte, 1), 1);
        (void)px_fd_close(ends[0]);
        return pid;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned n = 0;; n++) {
        if (n == PAIRS)
            (void)!write(ends[1], &byte, 1);
        char name[16];
        (void)snprintf(name, sizeof name, "%c%u", n & 1 ? 'f' : 'd', n / 2 % PAIRS);
        (void)px_sys(SYS_renameat2, tree, name, links, name, EXCHANGE);
    }
}

static int strip_all(int dir)
{
    return px_kernel_tree_strip(dir, 0);
}

static void swap_while(int (*walk)(int dir), mode_t mode)
{
    char path[300];
    px_auto_fd int victim = make_victim(path);
    px_auto_fd int dir = px_test_dir();
    for (int64_t end = now_msec() + SWAP_MSEC; now_msec() < end;) {
        px_auto_fd int tree = make_dir(dir, "tree", 0755), links = make_dir(dir, "links", 0755);
        plant(tree, links, path, mode);
        pid_t pid = start_swapping(tree, links);
        (void)walk(tree);
        (void)kill(pid, SIGKILL);
        ASSERT_EQ(waitpid(pid, NULL, 0), pid);
        check_victim(victim);
        ASSERT_OK(px_kernel_tree_empty(dir));
    }
}

TEST(empty_while_directories_become_links)
{
    swap_while(px_kernel_tree_empty, 0300);
}

TEST(empty_while_directories_become_links_as_a_user)
{
    be_nobody();
    swap_while(px_kernel_tree_empty, 0300);
}

TEST(strip_while_directories_and_files_become_links)
{
    swap_while(strip_all, 0355);
}

TEST(strip_while_directories_and_files_become_links_as_a_user)
{
    be_nobody();
    swap_while(strip_all, 0355);
}
