#include "kernel/notify.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/test.h"
#include "kernel/sysname.h"

/* Refuses getppid with EPERM, socket with EAFNOSUPPORT and sched_yield with ENOSYS; allows the rest. */
static void make_program(struct sock_filter code[8])
{
    const struct sock_filter program[8] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 3, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
    for (int i = 0; i < 8; i++)
        code[i] = program[i];
}

TEST(only_plain_refusals_become_notifications)
{
    struct sock_filter code[8];

    make_program(code);
    px_notify_patch(code, 8, true);
    ASSERT_EQ(code[4].k, SECCOMP_RET_ALLOW);
    ASSERT_EQ(code[5].k, SECCOMP_RET_USER_NOTIF);
    ASSERT_EQ(code[6].k, SECCOMP_RET_USER_NOTIF);
    ASSERT_EQ(code[7].k, SECCOMP_RET_ERRNO | ENOSYS);
    make_program(code);
    px_notify_patch(code, 8, false);
    ASSERT_EQ(code[5].k, SECCOMP_RET_USER_NOTIF);
    ASSERT_EQ(code[6].k, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

/* The child shares its descriptors with us, as the payload does with pid 1 of a box. */
struct child {
    int listener, ppid, socket, yield;
};

static int child_main(struct child *c)
{
    struct sock_filter code[8];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return 1;
    make_program(code);
    px_notify_patch(code, 8, true);
    __atomic_store_n(&c->listener, px_notify_load(code, 8), __ATOMIC_RELEASE);
    c->ppid = (int)px_sys(SYS_getppid);
    c->socket = (int)px_sys(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
    c->yield = (int)px_sys(SYS_sched_yield);
    return 0;
}

TEST(a_refused_call_is_told_and_answered)
{
    struct child *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int expected[] = {SYS_getppid, SYS_socket};

    ASSERT(c != MAP_FAILED);
    c->listener = -1;
    int pid = (int)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(child_main(c));
    ASSERT(pid > 0);
    for (int i = 0; i < 30000 && __atomic_load_n(&c->listener, __ATOMIC_ACQUIRE) < 0; i++)
        poll(NULL, 0, 1);
    ASSERT(c->listener >= 0);
    for (int i = 0; i < 2; i++) {
        struct pollfd ready = {.fd = c->listener, .events = POLLIN};
        ASSERT_EQ(poll(&ready, 1, 30000), 1);
        ASSERT(ready.revents & POLLIN);
        ASSERT_EQ(px_notify_take(c->listener, true), expected[i]);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(c->ppid, -EPERM);
    ASSERT_EQ(c->socket, -EAFNOSUPPORT);
    ASSERT_EQ(c->yield, -ENOSYS);
    struct pollfd gone = {.fd = c->listener, .events = POLLIN};
    ASSERT_EQ(poll(&gone, 1, 30000), 1);
    ASSERT(gone.revents & POLLHUP);
    close(c->listener);
    munmap(c, sizeof *c);
}

TEST(without_no_new_privs_nothing_is_loaded)
{
    struct sock_filter code[8];

    make_program(code);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        SKIP("this process has no_new_privs already");
    ASSERT_EQ(px_notify_load(code, 8), -EPERM);
}

TEST(names_and_numbers_belong_together)
{
    ASSERT_STR(px_sysname_name(SYS_mount), "mount");
    ASSERT_EQ(px_sysname_number("ptrace"), SYS_ptrace);
    ASSERT_EQ(px_sysname_number("no such call"), -1);
    ASSERT(px_sysname_name(100000) == NULL);
    ASSERT(px_sysname_grant(SYS_mount, false) == NULL);
    ASSERT(px_sysname_grant(SYS_chmod, false) == NULL);         /* the set-id bits, which the floor refuses too */
    ASSERT_STR(px_sysname_grant(SYS_ptrace, false), "--seccomp FILE");
    ASSERT_STR(px_sysname_grant(SYS_shmget, true), "--seccomp default");
    for (int i = 0; i < 1024; i++)
        if (px_sysname_name(i))
            ASSERT_EQ(px_sysname_number(px_sysname_name(i)), i);
}
