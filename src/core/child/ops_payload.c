/* Stage 2: the payload before its exec: it makes its network, sets its streams, then drops all privileges. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/pass.h"
#include "child/ops.h"
#include "init/payload.h"
#include "kernel/landlock.h"
#include "kernel/netns.h"
#include "kernel/notify.h"
#include "kernel/privs.h"
#include "kernel/seccomp.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

/* The network namespace takes longest to make, so it is made here, in parallel with the mounts of pid 1. Both still
 * share the descriptor table, so that pid 1 can enter it. */
int px_op_netns(struct px_child *c, const struct px_step *s)
{
    long r = px_sys(SYS_unshare, CLONE_NEWNET);
    if (r < 0)
        return (int)r;
    if (s->fd >= 0)
        px_netns_low_ports(s->fd);
    c->net_fd = (int)px_sys(SYS_openat, AT_FDCWD, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return c->net_fd < 0 ? c->net_fd : 0;
}

int px_op_loopback(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return px_netns_loopback_up();
}

/* The errors of a kernel without IPv6, or with IPv6 switched off: then there is nothing to set up. Every other error
 * is a failure. */
static int unless_absent(int r, const struct px_step *s)
{
    bool absent = r == -EAFNOSUPPORT || r == -EOPNOTSUPP || r == -EADDRNOTAVAIL || r == -EACCES || r == -ENODEV || r == -EINVAL;
    return absent && s->flags & PX_STEP_MAYBE ? 0 : r;
}

/* Sends the messages that the parent has built: routes and rules of the namespace. */
int px_op_netlink(struct px_child *c, const struct px_step *s)
{
    return unless_absent(px_netns_netlink((int)s->num, px_op_text(c, s->src), s->attr), s);
}

/* Makes a socket of the namespace for the network driver. num: its purpose (enum px_net_socket); num2: family and
 * type; attr: the port or, for netlink, the length of the messages that set it up. */
int px_op_socket(struct px_child *c, const struct px_step *s)
{
    int family = (int)(s->num2 >> 8), type = (int)(s->num2 & 0xff);
    int fd = family == AF_NETLINK ? px_netns_log(px_op_text(c, s->src), s->attr) : px_netns_socket(family, type, (uint16_t)s->attr);
    if (fd < 0)
        return unless_absent(fd, s);
    const char kind = (char)s->num;
    int r = px_pass_send(c->relay_fd, &kind, 1, &fd, 1, 0);
    (void)px_sys(SYS_close, fd);
    return r;
}

/* Passes the namespace to the network driver, which makes the device in it, and waits for its answer. */
int px_op_driver(struct px_child *c, const struct px_step *s)
{
    const char kind = (char)s->num;
    int32_t answer = 0;
    long r = px_pass_send(c->relay_fd, &kind, 1, &c->net_fd, 1, 0);
    if (r < 0)
        return (int)r;
    do
        r = px_sys(SYS_recvfrom, c->relay_fd, &answer, sizeof answer, 0, 0, 0);
    while (r == -EINTR);
    return r == sizeof answer ? answer : r < 0 ? (int)r : -EPIPE;
}

int px_op_join(struct px_child *c, const struct px_step *s)
{
    (void)s;
    px_op_signal(&c->joined);
    px_op_wait_while(&c->ready, 0);
    return 0;
}

int px_op_session(struct px_child *c, const struct px_step *s)
{
    (void)s;
    long r = px_sys(SYS_setsid);
    (void)px_sys(SYS_umask, 022);
    return r < 0 ? (int)r : px_op_die_with_parent(c);
}

int px_op_keyring(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    long r = px_sys(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, 0, 0, 0, 0);
    return r == -ENOSYS ? 0 : r < 0 ? (int)r : 0;       /* a kernel without keyrings has nothing to leak */
}

int px_op_bound(struct px_child *c, const struct px_step *s)
{
    (void)c;
    if (s->flags & PX_STEP_REAPER)      /* no namespace of our own, so no capabilities to drop: only no_new_privs */
        return (int)px_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return px_privs_bound();
}

int px_op_ids(struct px_child *c, const struct px_step *s)
{
    (void)c;
    return px_privs_drop((uint32_t)s->num, (uint32_t)s->num2, s->flags & PX_STEP_SETGROUPS, !(s->flags & PX_STEP_REAPER));
}

int px_op_stdio(struct px_child *c, const struct px_step *s)
{
    (void)s;
    for (int i = 0; i < 3; i++) {
        int fd = c->stdio[i];
        if (fd < 0)
            fd = (int)px_sys(SYS_openat, AT_FDCWD, "/dev/null", (i ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        long r = fd < 0 ? fd : px_sys(SYS_dup3, fd, i, 0);
        if (r < 0)
            return (int)r;
    }
    return 0;
}

int px_op_send_fd(int socket, int fd)
{
    return px_pass_send(socket, "t", 1, &fd, 1, 0);
}

/* Opens a terminal in the box's own devpts for the payload; the parent gets the master. */
int px_op_terminal(struct px_child *c, const struct px_step *s)
{
    int master = -1;
    int r = px_payload_terminal(px_op_text(c, s->src), c->rows, c->cols, &master);
    return r < 0 ? r : px_op_send_fd(c->control_fd, master);
}

int px_op_chdir(struct px_child *c, const struct px_step *s)
{
    char where[4096];           /* filled by the kernel; only its first byte is checked */
    where[0] = '\0';
    long r = px_sys(SYS_chdir, px_op_text(c, s->dst));
    if (r < 0)
        return (int)r;
    r = px_sys(SYS_getcwd, where, sizeof where);
    return r < 0 ? (int)r : where[0] == '/' ? 0 : -ENOENT;     /* "(unreachable)": outside of our root */
}

int px_op_off(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return 0;
}

int px_op_apparmor(struct px_child *c, const struct px_step *s)
{
    return px_payload_apparmor(px_op_text(c, s->src));
}

int px_op_landlock(struct px_child *c, const struct px_step *s)
{
    c->ruleset_fd = px_landlock_new((int)s->num);
    return c->ruleset_fd < 0 ? c->ruleset_fd : 0;
}

int px_op_allow(struct px_child *c, const struct px_step *s)
{
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, px_op_text(c, s->dst), O_PATH | O_CLOEXEC);
    if (fd < 0)
        return s->flags & PX_STEP_MAYBE ? 0 : fd;
    int r = px_landlock_allow(c->ruleset_fd, c->plan->landlock_abi, fd, s->num);
    (void)px_sys(SYS_close, fd);
    return r;
}

int px_op_enforce(struct px_child *c, const struct px_step *s)
{
    (void)s;
    return px_landlock_enforce(c->ruleset_fd);
}

int px_op_rlimit(struct px_child *c, const struct px_step *s)
{
    (void)c;
    return px_payload_lower(s->attr, s->num, s->num2);
}

/* The kernel's layout, which differs from libc's struct. */
struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

int px_op_signals(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    const struct kernel_sigaction normal = {0};
    for (int i = 1; i <= 64; i++)
        if (i != SIGKILL && i != SIGSTOP)
            (void)px_sys(SYS_rt_sigaction, i, &normal, 0, 8);
    const struct itimerval off = {0};
    return (int)px_sys(SYS_setitimer, ITIMER_REAL, &off, 0);
}

/* Pid 1 shares the table until the exec, which gives the payload a table of its own and closes in it all that is
 * marked close-on-exec here. Only the filter's listener is opened after this, and the kernel opens it with that
 * mark. Number 3 is left free for it, so that RLIMIT_NOFILE, which is set by now, cannot prevent it. */
int px_op_close(struct px_child *c, const struct px_step *s)
{
    (void)s;
    enum { FIRST = 3 };
    int *const ours[] = {&c->control_fd, &c->init_fd, &c->parent_fd, &c->payload_fd, &c->net_fd, &c->filter_fd};
    int r = px_op_die_with_parent(c);   /* without a pid namespace only this ends the payload with px-init */
    for (unsigned i = 0; r >= 0 && i < sizeof ours / sizeof ours[0]; i++)
        if (*ours[i] == FIRST)
            r = *ours[i] = (int)px_sys(SYS_fcntl, FIRST, F_DUPFD_CLOEXEC, FIRST + 1);
    if (r < 0)
        return r;
    (void)px_sys(SYS_close, FIRST);
    return (int)px_sys(SYS_close_range, FIRST, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* After CLOSE: a descriptor that the payload's program gets, as number `num` or (0) under its present number. Pid 1
 * shares the table until the exec, but keeps none of it for px-init. */
int px_op_inherit(struct px_child *c, const struct px_step *s)
{
    (void)c;
    return (int)(s->num ? px_sys(SYS_dup3, s->fd, s->num, 0) : px_sys(SYS_fcntl, s->fd, F_SETFD, 0));
}

/* Loads a filter with a listener. The listener is in the descriptor table that pid 1 still shares: pid 1 sends it to
 * the parent. */
int px_op_seccomp(struct px_child *c, const struct px_step *s)
{
    uint16_t length = (uint16_t)s->num2;
    const struct sock_filter *program =
        length ? (const void *)px_op_text(c, s->src) : px_seccomp_program((enum px_filter)s->num, &length);
    if (!(s->flags & PX_STEP_LISTEN))
        return px_seccomp_load(program, length);
    c->listener_fd = px_notify_load(program, length);
    return c->listener_fd < 0 ? c->listener_fd : 0;
}

/* src holds num candidates, one after the other: the results of a search in PATH, which the parent made. */
int px_op_exec(struct px_child *c, const struct px_step *s)
{
    const uint64_t none = 0;    /* signals were blocked until now, as the handlers and the memory were the parent's */
    int answer = (int)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    if (answer < 0)
        return answer;
    return px_payload_exec(px_op_text(c, s->src), s->num, c->plan->argv, c->plan->envp, &c->payload_report.found);
}
