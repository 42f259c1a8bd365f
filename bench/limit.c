/* limit - the least that a box can cost on this kernel: the yardstick of the other rows, not a sandbox.
 *
 *     limit [-n] ROOT COMMAND ARG...
 *
 * One clone with CLONE_VM and CLONE_VFORK and every namespace (the network only with -n, which also brings lo up), no
 * second exec, no copied page tables. The child maps its own ids, builds the root from ROOT and the host's /usr with the
 * new mount API, adds proc, dev and tmp, loads a filter that was ready beforehand, and executes. It drops nothing that
 * it need not drop. clone is called through libc's wrapper, which has the child's stack right on every processor; the
 * kernel does the same work for clone3. With musl it also saves glibc's start, which asks the processor so much that a
 * virtual machine feels it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "limit.c needs the audit architecture of this machine"
#endif

/* The kernel's values, under names of our own: musl has no wrapper for these calls, and glibc's header differs by
 * version. */
enum {
    TREE_CLONE = 1,             /* OPEN_TREE_CLONE */
    FS_CLOEXEC = 1,             /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */
    FS_SET_STRING = 1,          /* FSCONFIG_SET_STRING */
    FS_CREATE = 6,              /* FSCONFIG_CMD_CREATE */
    MOVE_FROM_FD = 4,           /* MOVE_MOUNT_F_EMPTY_PATH */
    ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NODEV = 4, ATTR_NOEXEC = 8,
};

struct tree_attr {
    uint64_t set, clear, propagation, userns_fd;
};

static const unsigned denied[] = {
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_kexec_load, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_bpf, SYS_perf_event_open,
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_userfaultfd, SYS_unshare, SYS_setns, SYS_open_by_handle_at,
    SYS_name_to_handle_at, SYS_quotactl, SYS_acct, SYS_io_uring_setup,
};
enum { DENIED_COUNT = sizeof denied / sizeof *denied, FILTER_COUNT = DENIED_COUNT + 6 };

struct job {
    const char *root;
    char **argv;
    int net;
    unsigned uid, gid;
    struct sock_filter filter[FILTER_COUNT];
    const char *failed;         /* the child's last words: it shares our memory */
    int failed_errno;
};

extern char **environ;

static int no(struct job *job, const char *step)
{
    job->failed_errno = errno;
    job->failed = step;
    return -1;
}

static void filter_build(struct sock_filter *f)
{
    *f++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    *f++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    *f++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    *f++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < DENIED_COUNT; i++)
        *f++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[i], (uint8_t)(DENIED_COUNT - i), 0);
    *f++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    *f++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
}

static int put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t wrote = fd < 0 ? -1 : write(fd, text, strlen(text));

    if (fd >= 0)
        (void)close(fd);
    return wrote < 0 ? -1 : 0;
}

static int map_ids(const struct job *job)
{
    char line[48];

    (void)snprintf(line, sizeof line, "0 %u 1\n", job->uid);
    if (put_text("/proc/self/uid_map", line) < 0 || put_text("/proc/self/setgroups", "deny") < 0)
        return -1;
    (void)snprintf(line, sizeof line, "0 %u 1\n", job->gid);
    return put_text("/proc/self/gid_map", line);
}

static int attach(int mount_fd, const char *where)
{
    if (mount_fd < 0)
        return -1;
    int r = (int)syscall(SYS_move_mount, mount_fd, "", AT_FDCWD, where, MOVE_FROM_FD);
    (void)close(mount_fd);
    return r;
}

static int bind_tree(const char *from, const char *where, uint64_t attributes)
{
    struct tree_attr attr = {.set = attributes};
    int fd = (int)syscall(SYS_open_tree, AT_FDCWD, from, TREE_CLONE | O_CLOEXEC);

    if (fd >= 0 && attributes != 0 && syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return -1;
    return attach(fd, where);
}

static int new_fs(const char *type, const char *key, const char *value, unsigned attributes, const char *where)
{
    int fs = (int)syscall(SYS_fsopen, type, FS_CLOEXEC);

    if (fs < 0 || (key && syscall(SYS_fsconfig, fs, FS_SET_STRING, key, value, 0) < 0) ||
        syscall(SYS_fsconfig, fs, FS_CREATE, NULL, NULL, 0) < 0)
        return -1;
    int fd = (int)syscall(SYS_fsmount, fs, FS_CLOEXEC, attributes);
    (void)close(fs);
    return attach(fd, where);
}

static int bind_node(const char *name)
{
    char from[32], to[32];

    (void)snprintf(from, sizeof from, "/dev/%s", name);
    (void)snprintf(to, sizeof to, "dev/%s", name);
    int fd = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    (void)close(fd);
    return bind_tree(from, to, 0);
}

static int make_dev(void)
{
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};

    if (new_fs("tmpfs", "mode", "755", ATTR_NOSUID, "dev") < 0)
        return -1;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (bind_node(nodes[i]) < 0)
            return -1;
    if (mkdir("dev/pts", 0755) < 0 || mkdir("dev/shm", 01777) < 0 || symlink("pts/ptmx", "dev/ptmx") < 0)
        return -1;
    if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") < 0)
        return -1;
    return new_fs("tmpfs", NULL, NULL, ATTR_NOSUID | ATTR_NODEV, "dev/shm");
}

static int build_root(struct job *job)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return no(job, "private");
    if (bind_tree(job->root, job->root, ATTR_RDONLY | ATTR_NOSUID) < 0 || chdir(job->root) < 0)
        return no(job, "root");
    if (bind_tree("/usr", "usr", ATTR_RDONLY | ATTR_NOSUID) < 0)
        return no(job, "usr");
    if (new_fs("proc", NULL, NULL, ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC, "proc") < 0)
        return no(job, "proc");
    if (make_dev() < 0)
        return no(job, "dev");
    if (new_fs("tmpfs", NULL, NULL, ATTR_NOSUID | ATTR_NODEV, "tmp") < 0)
        return no(job, "tmp");
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return no(job, "pivot");
    return 0;
}

static int loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int r = fd < 0 ? -1 : ioctl(fd, SIOCSIFFLAGS, &request);

    if (fd >= 0)
        (void)close(fd);
    return r;
}

static int child_main(void *arg)
{
    struct job *job = arg;
    struct sock_fprog program = {FILTER_COUNT, job->filter};

    if (map_ids(job) < 0)
        return no(job, "ids");
    if (build_root(job) < 0)
        return -1;
    if (job->net && loopback_up() < 0)
        return no(job, "lo");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return no(job, "seccomp");
    (void)execve(job->argv[0], job->argv, environ);
    return no(job, "execve");
}

static int run(struct job *job)
{
    static char stack[65536] __attribute__((aligned(16)));
    int flags = CLONE_VM | CLONE_VFORK | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                CLONE_NEWCGROUP | (job->net ? CLONE_NEWNET : 0) | SIGCHLD;
    pid_t pid = clone(child_main, stack + sizeof stack, flags, job);
    int status = 0;

    if (pid < 0)
        (void)no(job, "clone");
    else
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    if (job->failed) {
        fprintf(stderr, "limit: %s: %s\n", job->failed, strerror(job->failed_errno));
        return 125;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct job job = {.uid = geteuid(), .gid = getegid()};

    job.net = argc > 1 && strcmp(argv[1], "-n") == 0;
    argv += job.net ? 2 : 1;
    if (argc - job.net < 3) {
        fputs("usage: limit [-n] ROOT COMMAND ARG...\n", stderr);
        return 2;
    }
    job.root = argv[0];
    job.argv = argv + 1;
    filter_build(job.filter);
    return run(&job);
}
