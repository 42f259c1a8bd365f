/* tests/platform/userns.c - what px relies on in user namespaces: counting, limits that stay, files that open. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

enum { INNER = 1000 };

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    int r = n < 0 ? -errno : 0;

    if (fd >= 0)
        (void)close(fd);
    return r;
}

/* A user namespace (and `more`) with one id in it, which is the caller outside. As root the caller is `outside` first. */
static void enter_userns(unsigned long more, unsigned outside)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (uid == 0) { /* limits on processes do not hold for root, so become somebody */
        if (setresgid(outside, outside, outside) < 0 || setresuid(outside, outside, outside) < 0)
            SKIP("ids cannot be changed here");
        uid = outside;
        gid = outside;
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* or /proc/self would be root's */
    }
    if (unshare((int)(CLONE_NEWUSER | more)) < 0)
        SKIP("no user namespace can be made here");
    (void)snprintf(map, sizeof map, "%d %u 1", INNER, uid);
    ASSERT_EQ(write_text("/proc/self/setgroups", "deny"), 0);
    ASSERT_EQ(write_text("/proc/self/uid_map", map), 0);
    (void)snprintf(map, sizeof map, "%d %u 1", INNER, gid);
    ASSERT_EQ(write_text("/proc/self/gid_map", map), 0);
}

static int forks_possible(int wanted)
{
    int made = 0;
    pid_t pids[64];

    while (made < wanted && (pids[made] = fork()) >= 0) {
        if (pids[made] == 0) {
            (void)pause();
            _exit(0);
        }
        made++;
    }
    for (int i = 0; i < made; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    return made;
}

static pid_t run_limited(int *ret_go, int *ret_answer)
{
    int go[2], answer[2];

    ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(answer, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit limit = {5, 5};
        (void)close(go[1]);
        enter_userns(0, 61234);
        ASSERT_EQ(setrlimit(RLIMIT_NPROC, &limit), 0);
        /* Privileges over the namespace lift the limit; px gives them up before it matters, and so do we. */
        struct {
            unsigned version;
            int pid;
        } header = {0x20080522, 0};
        struct {
            unsigned e, p, i;
        } none[2] = {{0}};
        ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
        char made = (char)forks_possible(20);
        ASSERT_EQ(write(answer[1], &made, 1), 1);
        (void)!read(go[0], &made, 1);
        _exit(0);
    }
    (void)close(go[0]);
    (void)close(answer[1]);
    *ret_go = go[1];
    *ret_answer = answer[0];
    return pid;
}

/* RLIMIT_NPROC set inside counts the processes of that namespace only: two boxes of one user do not eat each other's. */
TEST(process_limits_count_per_user_namespace)
{
    int go[2], answer[2], status;
    pid_t pids[2];
    char made[2] = {0};

    for (int i = 0; i < 2; i++) { /* the first still lives, with its limit, while the second counts */
        pids[i] = run_limited(&go[i], &answer[i]);
        if (read(answer[i], &made[i], 1) != 1)
            made[i] = -1;
    }
    for (int i = 0; i < 2; i++) {
        (void)!write(go[i], "g",
                     1); /* a byte, not the end: the second child holds a copy of the first's pipe */
        (void)close(go[i]);
        (void)close(answer[i]);
        ASSERT_EQ(waitpid(pids[i], &status, 0), pids[i]);
    }
    ASSERT_EQ(made[0], 4); /* itself is the fifth */
    ASSERT_EQ(made[1], 4);
}

/* The owner of a namespace may forbid further ones below it, and an unprivileged process there cannot undo it. */
TEST(no_user_namespaces_below_once_the_limit_is_zero)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        enter_userns(0, 61234);
        ASSERT_EQ(write_text("/proc/sys/user/max_user_namespaces", "0"), 0);
        pid_t inner = fork();
        if (inner == 0) {
            ASSERT_EQ(unshare(CLONE_NEWUSER), -1);
            ASSERT_EQ(errno, ENOSPC);
            _exit(0);
        }
        ASSERT_EQ(waitpid(inner, &status, 0), inner);
        struct {
            unsigned version;
            int pid;
        } header = {0x20080522, 0};
        struct {
            unsigned e, p, i;
        } none[2] = {{0}};
        ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
        ASSERT_EQ(write_text("/proc/sys/user/max_user_namespaces", "100"), -EACCES);
        _exit(status);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

static bool shows(const char *proc, pid_t pid)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%d/stat", proc, (int)pid);
    return access(path, F_OK) == 0;
}

/* hidepid=ptraceable is a string option of a new procfs, allowed in a user namespace, and hides what may not be traced. */
TEST(hidepid_in_a_user_namespace)
{
    int dir = px_test_dir(), status;
    ASSERT_EQ(fchmod(dir, 0755), 0);
    (void)close(dir);
    pid_t pid = fork();

    if (pid == 0) {
        enter_userns(CLONE_NEWNS | CLONE_NEWPID, 61234);
        pid_t first = fork(); /* pid 1 of the namespace */
        if (first == 0) {
            int fs = (int)syscall(430 /* fsopen */, "proc", 1);
            if (fs < 0 || syscall(431 /* fsconfig */, fs, 1, "hidepid", "ptraceable", 0) < 0)
                FAIL("this kernel has no hidepid=ptraceable");
            if (syscall(431, fs, 6, NULL, NULL, 0) < 0)
                SKIP("the outer /proc is covered, so a namespace may not mount one");
            int tree = (int)syscall(432 /* fsmount */, fs, 1, 0xe);
            ASSERT(tree >= 0);
            ASSERT_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
            ASSERT_EQ(syscall(429 /* move_mount */, tree, "", AT_FDCWD, px_test_dir_path(), 4), 0);
            ASSERT(shows(px_test_dir_path(), 1));
            pid_t other = fork();
            if (other == 0) {
                struct {
                    unsigned version;
                    int pid;
                } header = {0x20080522, 0};
                struct {
                    unsigned e, p, i;
                } none[2] = {{0}};
                ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
                ASSERT(shows(px_test_dir_path(), getpid()));
                ASSERT(!shows(px_test_dir_path(), 1)); /* pid 1 has more privileges than we now */
                _exit(0);
            }
            ASSERT_EQ(waitpid(other, &status, 0), other);
            _exit(status ? 1 : 0);
        }
        ASSERT_EQ(waitpid(first, &status, 0), first);
        _exit(status ? 1 : 0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

/* A new user namespace gives every privilege over it, and an exec without an id in the map takes them away again. */
TEST(privileges_in_a_new_user_namespace)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        enter_userns(CLONE_NEWUTS, 61234);
        ASSERT_EQ(sethostname("inside", 6), 0);
        ASSERT_EQ(mount("none", "/", "tmpfs", 0, NULL), -1); /* not over the mounts of another namespace */
        ASSERT_EQ(errno, EPERM);
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}
