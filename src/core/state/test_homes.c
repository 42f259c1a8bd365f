/* state/test_homes.c - homes of boxes: made, removed, swept after a kill; nothing else goes with them. */
#include "state/homes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

static int top;
static char tmp[64];

static void begin(void)
{
    char home[64];
    top = px_test_dir();
    (void)px_fmt(tmp, sizeof tmp, "/proc/self/fd/%d/tmp", top);
    (void)px_fmt(home, sizeof home, "/proc/self/fd/%d/home", top);
    ASSERT_OK(setenv("PX_HOME", home, 1));
    ASSERT_OK(mkdirat(top, "tmp", 0700));
}

static int names_in(const char *path)
{
    int count = 0;
    DIR *list = opendir(path);
    ASSERT(list != NULL);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    (void)closedir(list);
    return count;
}

static void make(char path[512], int *lock)
{
    struct px_err e = {0};
    ASSERT_PX(px_homes_make(tmp, true, path, 512, lock, &e), e);
}

static void put_file(const char *dir)
{
    char path[600];
    (void)px_fmt(path, sizeof path, "%s/file", dir);
    px_auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_OK(fd);
}

static void parent_of(const char *path, char out[512])
{
    (void)px_fmt(out, 512, "%.*s", (int)(strrchr(path, '/') - path), path);
}

TEST(made_and_removed)
{
    char a[512], b[512], homes[512];
    int locks[2];
    begin();
    make(a, &locks[0]);
    make(b, &locks[1]);
    parent_of(a, homes);
    ASSERT_EQ(names_in(homes), 2);
    put_file(a);
    px_homes_drop(a);
    ASSERT_EQ(names_in(homes), 1);
    px_homes_drop(b);
    ASSERT_EQ(names_in(tmp), 0);        /* nothing is left of px */
    (void)px_fd_close(locks[0]);
    (void)px_fd_close(locks[1]);
    (void)px_fd_close(top);
}

TEST(what_a_kill_leaves_is_swept_and_nothing_else)
{
    char left[512], held[512], now[512], homes[512], own[600];
    int lock, other, last;
    begin();
    ASSERT_OK(mkdirat(top, "tmp/px-backup", 0700));
    make(held, &other);
    make(left, &lock);
    put_file(left);
    put_file(held);
    parent_of(left, homes);
    (void)px_fmt(own, sizeof own, "%s/mine", homes);
    ASSERT_OK(mkdir(own, 0700));
    (void)px_fd_close(lock);            /* as a px that is killed */
    make(now, &last);
    ASSERT_EQ(access(left, F_OK), -1);
    ASSERT_EQ(access(held, F_OK), 0);
    ASSERT_EQ(access(own, F_OK), 0);
    ASSERT_OK(faccessat(top, "tmp/px-backup", F_OK, 0));
    (void)px_fd_close(other);
    (void)px_fd_close(last);
    (void)px_fd_close(top);
}

static void make_squatted(const char *how)
{
    char name[64], path[512];
    (void)px_fmt(name, sizeof name, "tmp/px-homes-%u", (unsigned)geteuid());
    if (px_equal(how, "link")) {
        ASSERT_OK(mkdirat(top, "elsewhere", 0700));
        ASSERT_OK(symlinkat("../elsewhere", top, name));
    } else {
        ASSERT_OK(mkdirat(top, name, px_equal(how, "writable") ? 0700 : 0755));
        (void)px_fmt(path, sizeof path, "%s/home-0000000000000000", name);
        ASSERT_OK(mkdirat(top, path, 0700));
        ASSERT_OK(fchmodat(top, name, px_equal(how, "writable") ? 0777 : 0755, 0));
    }
    if (px_equal(how, "owner") && geteuid() == 0)
        ASSERT_OK(fchownat(top, name, 1234, 1234, 0));
}

/* Somebody has the name already: homes come to be all the same, and are swept, and what was there is not touched. */
TEST(a_name_that_is_taken)
{
    static const char *const ways[] = {"link", "writable", "owner", "unmarked"};
    for (size_t i = 0; i < PX_COUNT_OF(ways); i++) {
        char left[512], now[512], homes[512], name[64];
        int lock, last;
        begin();
        make_squatted(ways[i]);
        make(left, &lock);
        (void)px_fd_close(lock);
        make(now, &last);
        ASSERT_EQ(access(left, F_OK), -1);
        parent_of(left, homes);
        ASSERT(strncmp(now, homes, strlen(homes)) == 0);
        px_homes_drop(now);
        ASSERT_EQ(names_in(tmp), 1);
        (void)px_fmt(name, sizeof name, "tmp/px-homes-%u/home-0000000000000000", (unsigned)geteuid());
        ASSERT(px_equal(ways[i], "link") || faccessat(top, name, F_OK, 0) == 0);
        (void)px_fd_close(last);
        (void)px_fd_close(top);
    }
}

TEST(without_a_key_there_is_a_home)
{
    char path[512];
    int lock;
    begin();
    ASSERT_OK(unsetenv("PX_HOME"));
    ASSERT_OK(unsetenv("HOME"));
    make(path, &lock);
    put_file(path);
    px_homes_drop(path);
    ASSERT_EQ(names_in(tmp), 0);
    (void)px_fd_close(lock);
    (void)px_fd_close(top);
}

/* Boxes come and go at the same time: the directory of all homes is removed and made again under their feet. */
TEST(many_at_once)
{
    enum { AT_ONCE = 6, TIMES = 60 };
    pid_t pids[AT_ONCE];
    begin();
    for (int i = 0; i < AT_ONCE; i++) {
        pids[i] = fork();
        ASSERT_OK(pids[i]);
        if (pids[i] == 0) {
            for (int k = 0; k < TIMES; k++) {
                char path[512];
                int lock;
                make(path, &lock);
                put_file(path);
                px_homes_drop(path);
                (void)px_fd_close(lock);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < AT_ONCE; i++) {
        int status = -1;
        ASSERT_EQ(waitpid(pids[i], &status, 0), pids[i]);
        ASSERT_EQ(status, 0);
    }
    ASSERT_EQ(names_in(tmp), 0);
    (void)px_fd_close(top);
}
