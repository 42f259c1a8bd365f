/* tests/platform/mount.c - what px relies on when it changes the root. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

enum { MOVE_FROM_FD = 4, CLONE_TREE = 1, TREE_CLOEXEC = 02000000, RECURSIVE = 0x8000, EMPTY_PATH = 0x1000 };

struct attr {
    unsigned long long set, clear, propagation, userns_fd;
};

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    ASSERT(fd >= 0);
    ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

/* Runs fn in a child that is root of user and mount namespaces of its own. */
static void in_namespaces(void (*fn)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        char map[64];
        uid_t uid = geteuid();
        gid_t gid = getegid();
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
            SKIP("no namespaces can be made here");
        write_text("/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof map, "0 %u 1", uid);
        write_text("/proc/self/uid_map", map);
        (void)snprintf(map, sizeof map, "0 %u 1", gid);
        write_text("/proc/self/gid_map", map);
        ASSERT_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        fn();
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

static int new_tmpfs(void)
{
    int fs = (int)syscall(430, "tmpfs", 1);
    ASSERT(fs >= 0);
    ASSERT_EQ(syscall(431, fs, 6, NULL, NULL, 0), 0);
    int tree = (int)syscall(432, fs, 1, 0);
    ASSERT(tree >= 0);
    (void)close(fs);
    return tree;
}

/* A tree attached on "/" does not change what absolute paths mean, so the host stays in reach while a root is built. */
static void check_root_on_root(void)
{
    int tree = new_tmpfs();

    ASSERT_EQ(syscall(429, tree, "", AT_FDCWD, "/", MOVE_FROM_FD), 0);
    ASSERT_EQ(access("/usr", F_OK), 0); /* our root is the mount below */
    ASSERT_EQ(fchdir(tree), 0);
    (void)close(tree);
    ASSERT_EQ(mkdir("mark", 0755), 0);
    ASSERT_EQ(access("/mark", F_OK), -1);
    ASSERT_EQ(syscall(SYS_pivot_root, ".", "."), 0);
    ASSERT_EQ(umount2(".", MNT_DETACH), 0);
    ASSERT_EQ(chdir("/"), 0);
    ASSERT_EQ(access("/mark", F_OK), 0);
    ASSERT_EQ(access("/usr", F_OK), -1);
    ASSERT_EQ(access("/../usr", F_OK), -1);
}

TEST(a_tree_on_the_root_then_pivot)
{
    in_namespaces(check_root_on_root);
}

/* Attributes are set on a detached tree with all its submounts at once. */
static void check_setattr(void)
{
    struct attr attr = {.set = 1 /* read-only */};
    int dir = px_test_dir();

    ASSERT_EQ(fchdir(dir), 0);
    ASSERT_EQ(mkdir("a", 0755), 0);
    ASSERT_EQ(mount("none", "a", "tmpfs", 0, NULL), 0);
    ASSERT_EQ(mkdir("a/b", 0755), 0);
    ASSERT_EQ(mount("none", "a/b", "tmpfs", 0, NULL), 0);
    int tree = (int)syscall(428, AT_FDCWD, "a", CLONE_TREE | TREE_CLOEXEC | RECURSIVE);
    ASSERT(tree >= 0);
    ASSERT_EQ(syscall(442, tree, "", EMPTY_PATH | RECURSIVE, &attr, sizeof attr), 0);
    ASSERT_EQ(mkdirat(tree, "x", 0755), -1);
    ASSERT_EQ(errno, EROFS);
    ASSERT_EQ(mkdirat(tree, "b/x", 0755), -1);
    ASSERT_EQ(errno, EROFS);
    ASSERT_EQ(mkdir("a/b/x", 0755), 0);
    (void)close(tree);
    (void)close(dir);
}

TEST(attributes_before_a_tree_is_visible)
{
    in_namespaces(check_setattr);
}

/* What an outer owner has locked cannot be unlocked in a namespace below: a read-only mount stays so. */
static void check_locked(void)
{
    struct attr attr = {.clear = 1};
    int dir = px_test_dir(), status;

    ASSERT_EQ(fchdir(dir), 0);
    ASSERT_EQ(mkdir("a", 0755), 0);
    ASSERT_EQ(mount("none", "a", "tmpfs", MS_RDONLY, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
            SKIP("no nested namespaces can be made here");
        int a = open("a", O_PATH | O_DIRECTORY | O_CLOEXEC);
        ASSERT(syscall(442, a, "", EMPTY_PATH, &attr, sizeof attr) < 0);
        ASSERT_EQ(errno, EPERM);
        ASSERT_EQ(umount2("a", MNT_DETACH), -1);
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    (void)close(dir);
}

TEST(attributes_of_an_outer_owner_stay)
{
    in_namespaces(check_locked);
}
