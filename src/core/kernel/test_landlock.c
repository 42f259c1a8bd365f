/* kernel/test_landlock.c - what a ruleset allows and what it refuses, in a child each time. */
#include "kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "harness/test.h"
#include "kernel/abi.h"

struct place {
    int dir; /* a directory with "in" and "out", each with a file "file" */
    int in, out;
};

static int need_abi(void)
{
    int abi = px_landlock_abi();

    if (abi < 1)
        SKIP("this kernel has no Landlock");
    return abi;
}

static int opened(int dir, const char *name, int flags)
{
    int fd = openat(dir, name, flags | O_CLOEXEC, 0600);

    if (fd < 0)
        return -errno;
    (void)close(fd);
    return 0;
}

static struct place make_place(void)
{
    struct place p = {.dir = px_test_dir()};

    ASSERT_EQ(mkdirat(p.dir, "in", 0755), 0);
    ASSERT_EQ(mkdirat(p.dir, "out", 0755), 0);
    p.in = openat(p.dir, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    p.out = openat(p.dir, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(opened(p.in, "file", O_WRONLY | O_CREAT));
    ASSERT_OK(opened(p.out, "file", O_WRONLY | O_CREAT));
    return p;
}

static void drop_place(struct place *p)
{
    (void)close(p->dir);
    (void)close(p->in);
    (void)close(p->out);
}

/* Restricts this process to `access` below fd. */
static void restrict_to(int abi, int fd, uint64_t access)
{
    px_auto_fd int rules = px_landlock_new(abi);

    ASSERT_OK(rules);
    ASSERT_OK(px_landlock_allow(rules, abi, fd, access));
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(px_landlock_enforce(rules), 0);
}

static void in_child(void (*fn)(struct place *p, int abi))
{
    int abi = need_abi(), status;
    struct place p = make_place();
    pid_t pid = fork();

    if (pid == 0) {
        fn(&p, abi);
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    drop_place(&p);
}

static void check_read(struct place *p, int abi)
{
    restrict_to(abi, p->in, px_landlock_read());
    ASSERT_EQ(opened(p->in, "file", O_RDONLY), 0);
    ASSERT_EQ(opened(p->dir, "in", O_RDONLY | O_DIRECTORY), 0);
    ASSERT_EQ(opened(p->in, "file", O_WRONLY), -EACCES);
    ASSERT_EQ(opened(p->in, "new", O_WRONLY | O_CREAT), -EACCES);
    ASSERT_EQ(opened(p->out, "file", O_RDONLY), -EACCES);
    ASSERT_EQ(opened(p->dir, "out", O_RDONLY | O_DIRECTORY), -EACCES);
    ASSERT_EQ(opened(AT_FDCWD, "/etc/passwd", O_RDONLY), -EACCES);
    ASSERT_EQ(unlinkat(p->in, "file", 0), -1);
    ASSERT_EQ(errno, EACCES);
    if (abi >= 3) {
        px_auto_fd int path = openat(p->in, "file", O_PATH | O_CLOEXEC);
        char name[64];
        (void)snprintf(name, sizeof name, "/proc/self/fd/%d", path);
        ASSERT_EQ(truncate(name, 0), -1);
        ASSERT_EQ(errno, EACCES);
    }
}

TEST(reading)
{
    in_child(check_read);
}

static void check_write(struct place *p, int abi)
{
    restrict_to(abi, p->in, px_landlock_write());
    ASSERT_EQ(opened(p->in, "file", O_RDWR | O_TRUNC), 0);
    ASSERT_EQ(opened(p->in, "new", O_WRONLY | O_CREAT), 0);
    ASSERT_EQ(mkdirat(p->in, "d", 0755), 0);
    ASSERT_EQ(renameat(p->in, "new", p->in, "d/moved"), 0);
    ASSERT_EQ(symlinkat("file", p->in, "link"), 0);
    ASSERT_EQ(mkfifoat(p->in, "pipe", 0600), 0);
    ASSERT_EQ(unlinkat(p->in, "d/moved", 0), 0);
    ASSERT_EQ(unlinkat(p->in, "d", AT_REMOVEDIR), 0);
    ASSERT_EQ(opened(p->out, "file", O_WRONLY), -EACCES);
    ASSERT_EQ(renameat(p->in, "file", p->out, "stolen"), -1);
    ASSERT(errno == EACCES || errno == EXDEV);
    ASSERT_EQ(linkat(p->out, "file", p->in, "stolen", 0), -1);
    ASSERT(errno == EACCES || errno == EXDEV);
    ASSERT_EQ(mknodat(p->in, "null", S_IFCHR | 0666, makedev(1, 3)),
              -1); /* as root it is Landlock that says no */
    ASSERT(errno == EACCES || errno == EPERM);
}

TEST(writing)
{
    in_child(check_write);
}

static void check_file_rule(struct place *p, int abi)
{
    px_auto_fd int file = openat(p->in, "file", O_PATH | O_CLOEXEC);

    /* Rights that only a directory can have are left out, or the kernel would refuse the rule. */
    restrict_to(abi, file, px_landlock_write());
    ASSERT_EQ(opened(p->in, "file", O_RDWR), 0);
    ASSERT_EQ(opened(p->in, "new", O_WRONLY | O_CREAT), -EACCES);
    ASSERT_EQ(opened(p->dir, "in", O_RDONLY | O_DIRECTORY), -EACCES);
}

TEST(a_rule_for_one_file)
{
    in_child(check_file_rule);
}

static void check_device(struct place *p, int abi)
{
    px_auto_fd int null = open("/dev/null", O_PATH | O_CLOEXEC);

    (void)p;
    restrict_to(abi, null, px_landlock_device());
    ASSERT_EQ(opened(AT_FDCWD, "/dev/null", O_RDWR), 0);
    ASSERT_EQ(opened(AT_FDCWD, "/dev/zero", O_RDONLY), -EACCES);
}

TEST(devices)
{
    in_child(check_device);
}

static void check_nothing(struct place *p, int abi)
{
    px_auto_fd int rules = px_landlock_new(abi);

    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(px_landlock_enforce(rules), 0);
    ASSERT_EQ(opened(p->in, "file", O_RDONLY), -EACCES);
    (void)execl("/bin/true", "true", (char *)NULL);
    ASSERT_EQ(errno, EACCES);
}

TEST(an_empty_ruleset_refuses_all)
{
    in_child(check_nothing);
}

static void check_inherited(struct place *p, int abi)
{
    int status;

    restrict_to(abi, p->in, px_landlock_read());
    pid_t pid = fork();
    if (pid == 0)
        _exit(opened(p->out, "file", O_RDONLY) == -EACCES && opened(p->in, "file", O_RDONLY) == 0 ? 0 : 1);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

TEST(children_inherit_it)
{
    in_child(check_inherited);
}

static void check_mount(struct place *p, int abi)
{
    if (geteuid() != 0)
        SKIP("only root could mount at all");
    restrict_to(abi, p->dir, px_landlock_write());
    ASSERT_EQ(mount("none", "/tmp", "tmpfs", 0, NULL), -1);
    ASSERT_EQ(errno, EPERM);
}

TEST(no_mounting)
{
    in_child(check_mount);
}

static void check_scope(struct place *p, int abi)
{
    pid_t parent = getppid();

    if (abi < 6)
        SKIP("Landlock ABI %d knows no scopes", abi);
    restrict_to(abi, p->dir, px_landlock_write());
    ASSERT_EQ(kill(parent, 0), -1);
    ASSERT_EQ(errno, EPERM);
    ASSERT_EQ(kill(getpid(), 0), 0);
}

TEST(no_signals_out_of_the_domain)
{
    in_child(check_scope);
}

/* A kernel with a newer ABI must accept what an older one knew: each number makes a ruleset and takes every set of rights. */
TEST(every_older_abi_works)
{
    int abi = need_abi();
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int null = open("/dev/null", O_PATH | O_CLOEXEC);

    for (int i = 1; i <= abi; i++) {
        px_auto_fd int rules = px_landlock_new(i);
        ASSERT_OK(rules);
        ASSERT_EQ(fcntl(rules, F_GETFD), FD_CLOEXEC);
        ASSERT_OK(px_landlock_allow(rules, i, dir, px_landlock_read()));
        ASSERT_OK(px_landlock_allow(rules, i, dir, px_landlock_write()));
        ASSERT_OK(px_landlock_allow(rules, i, null, px_landlock_device()));
    }
}

TEST(sets_of_rights)
{
    ASSERT_EQ(px_landlock_read() & (PX_LL_WRITE_FILE | PX_LL_MAKE_REG | PX_LL_TRUNCATE | PX_LL_REMOVE_FILE),
              0);
    ASSERT_EQ(px_landlock_write() & (PX_LL_MAKE_CHAR | PX_LL_MAKE_BLOCK | PX_LL_IOCTL_DEV), 0);
    ASSERT_EQ(px_landlock_write() & px_landlock_read(), px_landlock_read());
    ASSERT(px_landlock_write() & PX_LL_TRUNCATE);
    ASSERT_EQ(px_landlock_device() & (PX_LL_EXECUTE | PX_LL_MAKE_CHAR | PX_LL_MAKE_REG | PX_LL_REMOVE_FILE),
              0);
}

TEST(errors)
{
    int abi = need_abi();
    px_auto_fd int rules = px_landlock_new(abi);

    ASSERT_EQ(px_landlock_allow(rules, abi, -1, px_landlock_read()), -EBADF);
    ASSERT(px_landlock_allow(-1, abi, AT_FDCWD, px_landlock_read()) < 0);
    ASSERT(px_landlock_enforce(-1) < 0);
}

TEST(needs_no_new_privs)
{
    int abi = need_abi(), status;
    px_auto_fd int rules = px_landlock_new(abi);
    pid_t pid = fork();

    if (pid == 0) {
        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresuid(1200, 1200, 1200) < 0))
            _exit(2);
        _exit(px_landlock_enforce(rules) == -EPERM ? 0 : 1);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}
