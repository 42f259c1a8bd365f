#include "box/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <termios.h>
#include <time.h>

#include "base/path.h"
#include "base/sys.h"
#include "box/plan.h"
#include "kernel/abi.h"
#include "kernel/clone.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/netns.h"
#include "kernel/privs.h"
#include "kernel/seccomp.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

typedef int step_fn(struct px_child *c, const struct px_step *s);

static const char *text(const struct px_child *c, uint32_t offset)
{
    return c->plan->text.data + offset;
}

/* Plan paths are absolute in the box; while the root is being built it is the working directory. */
static const char *below(const char *path)
{
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

static uint64_t now_nsec(void)
{
    struct timespec ts = {0};
    (void)px_sys(SYS_clock_gettime, CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Decimal digits without the C library; out must hold 21 bytes. */
static const char *digits(uint64_t value, char out[21])
{
    char *p = out + 20;
    *p = '\0';
    do
        *--p = (char)('0' + value % 10);
    while ((value /= 10));
    return p;
}

static const char *octal(unsigned value, char out[21])
{
    char *p = out + 20;
    *p = '\0';
    do
        *--p = (char)('0' + value % 8);
    while ((value /= 8));
    return p;
}

/* ---- stage 1: namespaces and mounts ---- */

static int op_hostname(struct px_child *c, const struct px_step *s)
{
    const char *name = text(c, s->src);
    long n = 0;
    while (name[n])
        n++;
    return (int)px_sys(SYS_sethostname, name, n);
}

static int op_private(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return px_mount_private();
}

static int op_wait(struct px_child *c, const struct px_step *s)
{
    uint32_t go;
    while ((go = __atomic_load_n(&c->go, __ATOMIC_ACQUIRE)) == PX_GO_WAIT)
        (void)px_sys(SYS_futex, &c->go, FUTEX_WAIT, PX_GO_WAIT, 0);
    if (go != PX_GO)
        return -ECANCELED;
    if (!(s->flags & PX_STEP_SETGROUPS))
        return 0;
    /* The caller's own id is not in the map: become the box's 0, which is nobody outside. */
    long r = px_sys(SYS_setgroups, 0, 0);
    if (r >= 0)
        r = px_sys(SYS_setresgid, 0, 0, 0);
    return (int)(r < 0 ? r : px_sys(SYS_setresuid, 0, 0, 0));
}

static int op_cgroupns(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return (int)px_sys(SYS_unshare, CLONE_NEWCGROUP);
}

static int op_no_userns(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, "/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    long r = px_sys(SYS_write, fd, "0", 1);
    (void)px_sys(SYS_close, fd);
    return r < 0 ? (int)r : 0;
}

/* Becomes the root to be: attached on top of "/", where absolute paths of the host still lead past it, and entered. */
static int enter_tree(int tree)
{
    long r = px_sys(SYS_move_mount, tree, "", AT_FDCWD, "/", PX_MOVE_MOUNT_F_EMPTY_PATH);
    if (r >= 0)
        r = px_sys(SYS_fchdir, tree);
    (void)px_sys(SYS_close, tree);
    return (int)r;
}

static int tmpfs_tree(const struct px_step *s, unsigned mode, uint32_t uid, uint32_t gid)
{
    char size[21], inodes[21], bits[21], u[21], g[21];
    const struct px_mount_option options[] = {
        {"size", digits(s->num, size)}, {"nr_inodes", digits(s->num2, inodes)}, {"mode", octal(mode, bits)},
        {"uid", digits(uid, u)},        {"gid", digits(gid, g)},                {NULL, NULL},
    };
    return px_mount_new("tmpfs", options, s->attr);
}

static void payload_ids(const struct px_child *c, uint32_t *uid, uint32_t *gid)
{
    for (uint32_t i = c->plan->payload_from; i < c->plan->init_at; i++)
        if (c->plan->steps[i].op == PX_OP_IDS) {
            *uid = (uint32_t)c->plan->steps[i].num;
            *gid = (uint32_t)c->plan->steps[i].num2;
        }
}

static int op_root(struct px_child *c, const struct px_step *s)
{
    (void)c;
    uint32_t uid = (uint32_t)px_sys(SYS_getuid), gid = (uint32_t)px_sys(SYS_getgid);
    int tree = tmpfs_tree(s, 0755, uid, gid);
    return tree < 0 ? tree : enter_tree(tree);
}

/* "/proc/self/fd/N" */
static void fd_path(int fd, char out[48])
{
    static const char prefix[] = "/proc/self/fd/";
    char number[21];
    const char *d = digits((uint64_t)fd, number);
    uint32_t n = 0;
    for (; prefix[n]; n++)
        out[n] = prefix[n];
    for (; *d && n < 47; d++)
        out[n++] = *d;
    out[n] = '\0';
}

/* Whether fd is what the parent saw: another object under the same name is an error, not a surprise. Closes it if not. */
static int check_source(const struct px_step *s, int fd)
{
    struct stat st;
    if (fd < 0)
        return fd;
    long r = px_sys(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
    if (r >= 0 && s->flags & PX_STEP_DEVICE)
        r = S_ISCHR(st.st_mode) && st.st_rdev == s->num ? 0 : -ENODEV;
    else if (r >= 0 && (st.st_dev != s->num || st.st_ino != s->num2))
        r = -ESTALE;
    if (r < 0) {
        (void)px_sys(SYS_close, fd);
        return (int)r;
    }
    return fd;
}

/* The given directory below a skeleton of ours (the working directory): mount points and /etc files lie on top and
 * nothing is ever created in the caller's tree. */
static int op_overlay(struct px_child *c, const struct px_step *s)
{
    char lower[2 * 48];
    int skeleton = (int)px_sys(SYS_openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int given = skeleton < 0 ? skeleton
                             : check_source(s, (int)px_sys(SYS_openat, AT_FDCWD, text(c, s->src), O_PATH | O_CLOEXEC));
    if (given < 0)
        return given;
    fd_path(skeleton, lower);
    uint32_t n = 0;
    while (lower[n])
        n++;
    lower[n++] = ':';
    fd_path(given, lower + n);
    const struct px_mount_option options[] = {{"lowerdir", lower}, {NULL, NULL}};
    int tree = px_mount_new("overlay", options, s->attr);
    (void)px_sys(SYS_close, given);
    (void)px_sys(SYS_close, skeleton);
    if (tree < 0)
        return tree;
    /* The overlay holds the skeleton by itself. Left attached it would be what the pivot detaches, and the host's root would
     * stay below ours, one ".." away. */
    long r = px_sys(SYS_umount2, ".", 2 /* MNT_DETACH */);
    return r < 0 ? (int)r : enter_tree(tree);
}

static int op_mkdir(struct px_child *c, const struct px_step *s)
{
    const char *path = below(text(c, s->dst));
    long r = px_sys(SYS_mkdirat, AT_FDCWD, path, s->attr);
    if (r == -EEXIST)
        return 0;
    if (r >= 0 && s->flags & PX_STEP_OWNED) {
        uint32_t uid = 0, gid = 0;
        payload_ids(c, &uid, &gid);
        r = px_sys(SYS_fchownat, AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
    }
    return (int)r;
}

static int op_symlink(struct px_child *c, const struct px_step *s)
{
    return (int)px_sys(SYS_symlinkat, text(c, s->src), AT_FDCWD, below(text(c, s->dst)));
}

static int op_file(struct px_child *c, const struct px_step *s)
{
    const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    if (s->num == 0) {          /* a place to mount on */
        long r = px_sys(SYS_mknodat, AT_FDCWD, below(text(c, s->dst)), S_IFREG | s->attr, 0);
        return r == -EEXIST ? 0 : (int)r;
    }
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, below(text(c, s->dst)), flags, s->attr);
    if (fd < 0)
        return fd;
    long r = px_sys(SYS_write, fd, text(c, s->src), s->num);
    (void)px_sys(SYS_close, fd);
    return r < 0 ? (int)r : (uint64_t)r == s->num ? 0 : -ENOSPC;
}

static int source_tree(struct px_child *c, const struct px_step *s)
{
    if (s->fd >= 0)             /* made by the parent, attributes set */
        return s->fd;
    if (s->flags & PX_STEP_INSIDE)
        return px_mount_clone(AT_FDCWD, below(text(c, s->src)), s->attr);
    return check_source(s, px_mount_clone(AT_FDCWD, text(c, s->src), s->attr));
}

/* Places of the skeleton and of our own /proc. */
static int attach(int tree, const char *target)
{
    int r = tree < 0 ? tree : px_mount_attach_own(tree, below(target));
    if (tree >= 0)
        (void)px_sys(SYS_close, tree);
    return r;
}

static int op_bind(struct px_child *c, const struct px_step *s)
{
    int tree = source_tree(c, s);
    if (!(s->flags & PX_STEP_IDMAP))
        return attach(tree, text(c, s->dst));
    int r = tree < 0 ? tree : px_mount_attach(tree, AT_FDCWD, below(text(c, s->dst)));
    if (tree >= 0)
        (void)px_sys(SYS_close, tree);
    return r;
}

static int op_tmpfs(struct px_child *c, const struct px_step *s)
{
    uint32_t uid = 0, gid = 0;
    payload_ids(c, &uid, &gid);
    /* A shared scratch directory is sticky, a home is the payload's own. */
    return attach(tmpfs_tree(s, s->flags & PX_STEP_OWNED ? 0755 : 01777, uid, gid), text(c, s->dst));
}

static int op_detach(struct px_child *c, const struct px_step *s)
{
    const char *path = below(text(c, s->dst));
    long r = px_sys(SYS_umount2, path, 2 /* MNT_DETACH */);
    return r < 0 ? (int)r : (int)px_sys(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

static int op_proc(struct px_child *c, const struct px_step *s)
{
    const struct px_mount_option options[] = {{"hidepid", "ptraceable"}, {NULL, NULL}};
    return attach(px_mount_new("proc", options, s->attr), text(c, s->dst));
}

static int op_readonly(struct px_child *c, const struct px_step *s)
{
    const char *path = text(c, s->dst);
    int tree = px_mount_clone(AT_FDCWD, below(path), s->attr);
    return tree == -ENOENT ? 0 : attach(tree, path);
}

/* The null device (checked when it was bound) over a file, an empty directory of the root over a directory. */
static int op_mask(struct px_child *c, const struct px_step *s)
{
    bool directory = s->flags & PX_STEP_DIRECTORY;
    int r = attach(px_mount_clone(AT_FDCWD, directory ? "sys" : "dev/null", s->attr), text(c, s->dst));
    return r == -ENOENT ? 0 : r;
}

static int op_devpts(struct px_child *c, const struct px_step *s)
{
    char max[21];
    const struct px_mount_option options[] = {
        {"ptmxmode", "0666"}, {"mode", "0620"}, {"max", digits(s->num, max)}, {NULL, NULL}};
    return attach(px_mount_new("devpts", options, s->attr), text(c, s->dst));
}

static int op_seal(struct px_child *c, const struct px_step *s)
{
    (void)c;
    int root = (int)px_sys(SYS_openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return root;
    int r = px_mount_restrict(root, s->attr, 0);
    (void)px_sys(SYS_close, root);
    return r;
}

static bool same_place(const char *a, const char *b)
{
    struct stat x, y;
    return px_sys(SYS_newfstatat, AT_FDCWD, a, &x, 0) == 0 && px_sys(SYS_newfstatat, AT_FDCWD, b, &y, 0) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int op_pivot(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    int r = px_mount_pivot();
    /* Believed only when seen: nothing lies below the new root. */
    return r < 0 ? r : same_place("/", "/..") && same_place("/", ".") ? 0 : -EXDEV;
}

static int op_loopback(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return px_netns_loopback_up();
}

static int op_subreaper(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return (int)px_sys(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Only ever lowered: min(what is there, what is wanted). */
static int op_rlimit(struct px_child *c, const struct px_step *s)
{
    (void)c;
    struct rlimit now = {0};
    long r = px_sys(SYS_prlimit64, 0, s->attr, 0, &now);
    if (r < 0)
        return (int)r;
    struct rlimit want = {.rlim_cur = s->num, .rlim_max = s->num2};
    if (want.rlim_max > now.rlim_max)
        want.rlim_max = now.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    return (int)px_sys(SYS_prlimit64, 0, s->attr, &want, 0);
}

static int op_keyring(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    long r = px_sys(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, 0, 0, 0, 0);
    return r == -ENOSYS ? 0 : r < 0 ? (int)r : 0;       /* a kernel without keys has none to leak */
}

static int op_bound(struct px_child *c, const struct px_step *s)
{
    (void)c;
    if (s->num)                 /* no namespace of our own, so no privileges to bound: only no_new_privs */
        return (int)px_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return px_privs_bound();
}

static int send_fd(int socket, int fd)
{
    char byte = 't';
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    *(int *)(void *)CMSG_DATA(&control.header) = fd;
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    long r = px_sys(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
    return r < 0 ? (int)r : 0;
}

static int run_steps(struct px_child *c, uint32_t from, uint32_t to, struct px_child_report *report);

static void signal_futex(uint32_t *futex)
{
    __atomic_store_n(futex, 1, __ATOMIC_RELEASE);
    (void)px_sys(SYS_futex, futex, FUTEX_WAKE, 1, 0);
}

static _Noreturn void payload_main(void *arg)
{
    struct px_child *c = arg;
    (void)run_steps(c, c->plan->payload_from, c->plan->init_at, &c->payload_report);
    signal_futex(&c->joined);
    for (;;)
        (void)px_sys(SYS_exit_group, 127);
}

static void wait_while(uint32_t *futex, uint32_t value)
{
    while (__atomic_load_n(futex, __ATOMIC_ACQUIRE) == value)
        (void)px_sys(SYS_futex, futex, FUTEX_WAIT, value, 0);
}

static int op_payload(struct px_child *c, const struct px_step *s)
{
    (void)s;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_FILES | PX_CLONE_PIDFD | PX_CLONE_CHILD_CLEARTID,
        .exit_signal = SIGCHLD,
        .pidfd = (uintptr_t)&c->payload_fd,
        .child_tid = (uintptr_t)&c->payload_alive,
    };
    c->payload_alive = 1;
    /* From here on another process lives in the box; nothing of us may be looked at. The parent restores its own setting. */
    long r = px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (r < 0)
        return (int)r;
    r = px_clone_run(&args, c->payload_stack, c->payload_stack_size, payload_main, c);
    c->payload_pid = (int)r;
    return r < 0 ? (int)r : 0;
}

static int op_ready(struct px_child *c, const struct px_step *s)
{
    (void)s;
    wait_while(&c->joined, 0);
    if (c->plan->own_net && c->payload_report.err == 0) {      /* now: it may be gone a moment after it goes on */
        long r = px_sys(SYS_setns, c->net_fd, CLONE_NEWNET);
        if (r < 0)
            return (int)r;
    }
    signal_futex(&c->ready);
    wait_while(&c->payload_alive, 1);
    if (c->payload_report.err < 0)      /* it is gone; else it runs its program now */
        return c->payload_report.err;
    /* Only the parent may signal the payload: we are about to be nobody. */
    return send_fd(c->control_fd, c->payload_fd);
}

/* ---- stage 2: the payload ---- */

/* The dearest of the namespaces is made here, beside the mounts of pid 1 and not after them. The table of descriptors is
 * still shared, so that pid 1 can follow. */
static int op_netns(struct px_child *c, const struct px_step *s)
{
    (void)s;
    long r = px_sys(SYS_unshare, CLONE_NEWNET);
    if (r < 0)
        return (int)r;
    c->net_fd = (int)px_sys(SYS_openat, AT_FDCWD, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return c->net_fd < 0 ? c->net_fd : 0;
}

static int op_join(struct px_child *c, const struct px_step *s)
{
    (void)s;
    signal_futex(&c->joined);
    wait_while(&c->ready, 0);
    return (int)px_sys(SYS_unshare, CLONE_FILES);
}

static int op_session(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    long r = px_sys(SYS_setsid);
    (void)px_sys(SYS_umask, 022);
    return r < 0 ? (int)r : 0;
}

static int op_ids(struct px_child *c, const struct px_step *s)
{
    (void)c;
    return px_privs_drop((uint32_t)s->num, (uint32_t)s->num2, s->flags & PX_STEP_SETGROUPS, !(s->flags & PX_STEP_REAPER));
}

static int op_stdio(struct px_child *c, const struct px_step *s)
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

/* The terminal comes from the box's own devpts and belongs to the payload; the parent gets the master. */
static int op_terminal(struct px_child *c, const struct px_step *s)
{
    const char *path = text(c, s->src);
    int unlock = 0;
    struct winsize size = {.ws_row = c->rows, .ws_col = c->cols};
    int master = (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0)
        return master;
    long r = px_sys(SYS_ioctl, master, TIOCSPTLCK, &unlock);
    if (r >= 0)
        r = px_sys(SYS_ioctl, master, TIOCSWINSZ, &size);
    if (r < 0)
        return (int)r;
    int terminal = (int)px_sys(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return terminal;
    if ((r = px_sys(SYS_ioctl, terminal, TIOCSCTTY, 0)) < 0)
        return (int)r;
    for (int i = 0; i < 3; i++)
        if ((r = px_sys(SYS_dup3, terminal, i, 0)) < 0)
            return (int)r;
    return send_fd(c->control_fd, master);
}

static int op_chdir(struct px_child *c, const struct px_step *s)
{
    char where[4096];
    long r = px_sys(SYS_chdir, text(c, s->dst));
    if (r < 0)
        return (int)r;
    r = px_sys(SYS_getcwd, where, sizeof where);
    return r < 0 ? (int)r : where[0] == '/' ? 0 : -ENOENT;     /* "(unreachable)": outside our root */
}

static int op_landlock(struct px_child *c, const struct px_step *s)
{
    c->ruleset_fd = px_landlock_new((int)s->num);
    return c->ruleset_fd < 0 ? c->ruleset_fd : 0;
}

static int op_allow(struct px_child *c, const struct px_step *s)
{
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, text(c, s->dst), O_PATH | O_CLOEXEC);
    if (fd < 0)
        return s->flags & PX_STEP_MAYBE ? 0 : fd;
    int r = px_landlock_allow(c->ruleset_fd, c->plan->landlock_abi, fd, s->num);
    (void)px_sys(SYS_close, fd);
    return r;
}

static int op_enforce(struct px_child *c, const struct px_step *s)
{
    (void)s;
    return px_landlock_enforce(c->ruleset_fd);
}

/* The kernel's own layout; libc's struct differs. */
struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static int op_signals(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    const struct kernel_sigaction normal = {0};
    for (int i = 1; i <= 64; i++)
        if (i != SIGKILL && i != SIGSTOP)
            (void)px_sys(SYS_rt_sigaction, i, &normal, 0, 8);
    const struct itimerval off = {0};
    (void)px_sys(SYS_setitimer, ITIMER_REAL, &off, 0);
    const uint64_t none = 0;
    return (int)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
}

static int op_close(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return (int)px_sys(SYS_close_range, 3, ~0u, 0);
}

static int op_seccomp(struct px_child *c, const struct px_step *s)
{
    (void)c;
    uint16_t length = 0;
    const struct sock_filter *program = px_seccomp_program((enum px_filter)s->num, &length);
    return px_seccomp_load(program, length);
}

/* src holds the candidates, one after the other, num of them: what a search of PATH gives, worked out by the parent. */
static int op_exec(struct px_child *c, const struct px_step *s)
{
    const char *path = text(c, s->src);
    int answer = -ENOENT;
    for (uint64_t i = 0; i < s->num; i++) {
        long r = px_sys(SYS_execve, path, c->plan->argv, c->plan->envp);
        if (r == -ENOENT && px_sys(SYS_faccessat, AT_FDCWD, path, 0) == 0)
            c->payload_report.found = 1;        /* the interpreter is what is missing */
        else if (r != -ENOENT && r != -ENOTDIR)
            c->payload_report.found = 1;
        if (c->payload_report.found && answer == -ENOENT)
            answer = (int)r;
        if (c->payload_report.found && r != -EACCES)
            break;
        while (*path++)
            ;
    }
    return answer;
}

/* ---- stage 3: pid 1 becomes px-init ---- */

static int op_init(struct px_child *c, const struct px_step *s)
{
    static const int keep[] = {0, 1};   /* control socket, image of px-init */
    char *const no_environment[] = {0};
    c->plan->init_argv[1] = (char *)digits((uint64_t)c->payload_pid, c->pid_text);
    long r = op_ids(c, s);
    if (r < 0 || (r = px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)) < 0)
        return (int)r;
    if (s->flags & PX_STEP_THREAD && (r = px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) < 0)
        return (int)r;
    /* Both are 3 or more, so neither dup3 can hit the other's source. */
    if ((r = px_sys(SYS_dup3, c->control_fd, keep[0], 0)) < 0 || (r = px_sys(SYS_dup3, c->init_fd, keep[1], O_CLOEXEC)) < 0 ||
        (r = px_sys(SYS_close_range, 2, ~0u, 0)) < 0)
        return (int)r;
    return (int)px_sys(SYS_execveat, keep[1], "", c->plan->init_argv, no_environment, AT_EMPTY_PATH);
}

/* ---- the interpreter ---- */

static step_fn *const apply[PX_OP_COUNT] = {
    [PX_OP_HOSTNAME] = op_hostname, [PX_OP_PRIVATE] = op_private,     [PX_OP_WAIT] = op_wait,
    [PX_OP_CGROUPNS] = op_cgroupns, [PX_OP_NO_USERNS] = op_no_userns, [PX_OP_ROOT] = op_root,
    [PX_OP_OVERLAY] = op_overlay,   [PX_OP_MKDIR] = op_mkdir,         [PX_OP_SYMLINK] = op_symlink,
    [PX_OP_FILE] = op_file,         [PX_OP_BIND] = op_bind,           [PX_OP_TMPFS] = op_tmpfs,
    [PX_OP_DETACH] = op_detach,     [PX_OP_PROC] = op_proc,           [PX_OP_READONLY] = op_readonly,
    [PX_OP_MASK] = op_mask,         [PX_OP_DEVPTS] = op_devpts,       [PX_OP_SEAL] = op_seal,
    [PX_OP_PIVOT] = op_pivot,       [PX_OP_LOOPBACK] = op_loopback,   [PX_OP_SUBREAPER] = op_subreaper,
    [PX_OP_RLIMIT] = op_rlimit,     [PX_OP_KEYRING] = op_keyring,     [PX_OP_BOUND] = op_bound,
    [PX_OP_PAYLOAD] = op_payload,   [PX_OP_READY] = op_ready,         [PX_OP_NETNS] = op_netns,
    [PX_OP_JOIN] = op_join,         [PX_OP_SESSION] = op_session,     [PX_OP_IDS] = op_ids,
    [PX_OP_STDIO] = op_stdio,       [PX_OP_TERMINAL] = op_terminal,   [PX_OP_CHDIR] = op_chdir,
    [PX_OP_LANDLOCK] = op_landlock, [PX_OP_ALLOW] = op_allow,         [PX_OP_ENFORCE] = op_enforce,
    [PX_OP_SIGNALS] = op_signals,   [PX_OP_CLOSE] = op_close,         [PX_OP_SECCOMP] = op_seccomp,
    [PX_OP_EXEC] = op_exec,         [PX_OP_INIT] = op_init,
};

static int run_steps(struct px_child *c, uint32_t from, uint32_t to, struct px_child_report *report)
{
    for (uint32_t i = from; i < to; i++) {
        const struct px_step *s = &c->plan->steps[i];
        int r = apply[s->op](c, s);
        if (r < 0) {
            *report = (struct px_child_report){.step = i, .err = r, .found = report->found};
            return r;
        }
        if (c->stamps)
            c->stamps[i] = now_nsec();
    }
    return 0;
}

_Noreturn void px_child_main(void *arg)
{
    struct px_child *c = arg;
    if (run_steps(c, 0, c->plan->payload_from, &c->report) == 0)
        (void)run_steps(c, c->plan->init_at, c->plan->count, &c->report);
    for (;;)
        (void)px_sys(SYS_exit_group, 127);
}
