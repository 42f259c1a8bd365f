/* probe/filter.c - what restricts a process without privileges: no_new_privs, the seccomp filter, Landlock. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "kernel/landlock.h"
#include "kernel/pidfd.h"
#include "kernel/privs.h"
#include "kernel/seccomp.h"
#include "probe/probe_internal.h"

/* ---- privileges ---- */

static void inside_privileges(struct px_probe_ctx *c)
{
    const struct px_idmap *map = &c->host->map;
    if (!px_probe_works(c, px_sys(SYS_unshare, PX_CLONE_NEWUTS), "making a namespace of names, with privileges,"))
        return;
    int r = px_privs_bound();
    if (r >= 0)
        r = px_privs_drop(map->uid, map->gid, map->kind != PX_IDMAP_SINGLE, 1);
    if (r < 0) {
        px_probe_say(c->row->why, "privileges cannot be given up (%s)", px_probe_errno(r).text);
        return;
    }
    px_probe_say(c->row->found, "no_new_privs, every set of capabilities empty");
    if (px_probe_refused(c, px_sys(SYS_unshare, PX_CLONE_NEWUTS), EPERM, 0, "the same without privileges"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_privileges(struct px_probe_ctx *c)
{
    const struct px_probe_job job = {.namespaces = PX_CLONE_NEWUSER, .inside = inside_privileges};
    (void)px_probe_child(c, &job);
}

/* ---- the filter ---- */

/* An errno that getpriority never returns, so it can only come from the filter. */
enum { MARK = EUSERS, LONE_CALL = SYS_getpriority };

static long lone_call(void)
{
    return px_sys(LONE_CALL, PRIO_PROCESS, 0);
}

/* Allows every call but this one. */
#define LONE_FILTER(action)                                                             \
    {                                                                                   \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),          \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LONE_CALL, 0, 1),                           \
        BPF_STMT(BPF_RET | BPF_K, (action)),                                            \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                                   \
    }

static bool no_new_privs(struct px_probe_ctx *c)
{
    long r = px_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (r < 0)
        px_probe_say(c->row->why, "no_new_privs cannot be set (%s)", px_probe_errno(r).text);
    return r >= 0;
}

static int load_own_filter(void)
{
    uint16_t length = 0;
    const struct sock_filter *program = px_seccomp_program(PX_FILTER_DEFAULT, &length);
    return px_seccomp_load(program, length);
}

static void inside_seccomp(struct px_probe_ctx *c)
{
    const struct sock_filter lone[] = LONE_FILTER(SECCOMP_RET_ERRNO | MARK);
    long before = lone_call();
    c->row->raise = c->host->filtered ? PX_RAISE_OUTER_FILTER : PX_RAISE_KERNEL;
    if (!no_new_privs(c) || !px_probe_works(c, before, "getpriority before the filter"))
        return;
    if (!px_probe_works(c, px_seccomp_load(lone, PX_COUNT_OF(lone)), "loading a filter"))
        return;
    if (!px_probe_works(c, px_sys(SYS_getppid), "another call under the filter") ||
        !px_probe_refused(c, lone_call(), MARK, 0, "getpriority under a filter that names it"))
        return;
    int r = load_own_filter();
    if (r < 0) {
        px_probe_say(c->row->why, "the filter of a box cannot be loaded (%s)", px_probe_errno(r).text);
        return;
    }
    px_probe_say(c->row->found, "the filter of a box loads");
    c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_seccomp(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.inside = inside_seccomp});
}

/* getpid through int 0x80. */
static long foreign_getpid(void)
{
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "0"(20L) : "r8", "r9", "r10", "r11", "memory");
    return r;
}

/* The exit of a child that loads the filter of a box and then calls getpid, 64-bit or through int 0x80. */
static int ask_pid(struct px_probe_ctx *c, bool foreign, int *ret_status)
{
    px_auto_fd int pidfd = -EBADF;
    long pid = px_fork(&pidfd);
    if (pid == 0) {
        (void)px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);   /* leave no core file behind */
        int r = no_new_privs(c) ? load_own_filter() : -EPERM;
        long answer = r < 0 ? r : foreign ? foreign_getpid() : px_sys(SYS_getpid);
        px_fork_exit(answer > 0 ? 0 : r < 0 ? 2 : 1);
    }
    return pid < 0 ? (int)pid : px_fork_reap(pidfd, ret_status);
}

static void inside_foreign(struct px_probe_ctx *c)
{
    int native = 0, foreign = 0;
    int r = ask_pid(c, false, &native);
    if (r >= 0)
        r = ask_pid(c, true, &foreign);
    if (r < 0) {
        px_probe_no_process(c, r);
        return;
    }
    if (!WIFEXITED(native) || WEXITSTATUS(native) != 0) {
        px_probe_say(c->row->why, "unknown: the filter of a box cannot be loaded");
        return;
    }
    px_probe_say(c->row->permitted, "getpid by the 64-bit door worked");
    if (WIFSIGNALED(foreign) && (WTERMSIG(foreign) == SIGSYS || WTERMSIG(foreign) == SIGSEGV)) {
        bool filtered = WTERMSIG(foreign) == SIGSYS;
        px_probe_say(c->row->found, filtered ? "32-bit calls are killed" : "the kernel has no 32-bit calls");
        px_probe_say(c->row->forbidden, "getpid by the 32-bit door (int 0x80) was killed with %s",
                     filtered ? "SIGSYS" : "SIGSEGV");
        c->row->state = PX_PROBE_ENFORCED;
        return;
    }
    px_probe_say(c->row->why, "getpid by the 32-bit door (int 0x80) worked, and must not");
}

void px_probe_foreign_calls(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.inside = inside_foreign});
}

/* ---- notification ---- */

enum { NOTE_LISTENER, NOTE_ANSWER, NOTE_OTHER };

/* Shares its descriptor table with the supervisor, so the listener has the same number there. */
static _Noreturn void notifying(struct px_probe_ctx *c, int ready_fd)
{
    const struct sock_filter lone[] = LONE_FILTER(SECCOMP_RET_USER_NOTIF);
    const struct sock_fprog program = {.len = PX_COUNT_OF(lone), .filter = (struct sock_filter *)lone};
    int64_t *note = c->shared->note;
    (void)px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    note[NOTE_LISTENER] = no_new_privs(c)
        ? px_sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) : -EPERM;
    (void)px_sys(SYS_write, ready_fd, "r", 1);
    if (note[NOTE_LISTENER] >= 0) {
        note[NOTE_ANSWER] = lone_call();
        note[NOTE_OTHER] = px_sys(SYS_getppid);
    }
    px_fork_exit(0);
}

static long answer_one(int listener)
{
    struct pollfd event = {.fd = listener, .events = POLLIN};
    struct seccomp_notif call;
    memset(&call, 0, sizeof call);
    if (px_sys(SYS_poll, &event, 1, 4000) != 1)
        return -ETIMEDOUT;
    long r = px_sys(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &call);
    if (r < 0)
        return r;
    struct seccomp_notif_resp answer = {.id = call.id, .error = call.data.nr == LONE_CALL ? -MARK : -EINVAL};
    return px_sys(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void supervise(struct px_probe_ctx *c, int pidfd, int ready_fd)
{
    struct pollfd both[] = {{.fd = ready_fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    int64_t *note = c->shared->note;
    int status;
    (void)px_sys(SYS_poll, both, PX_COUNT_OF(both), 4000);
    long r = note[NOTE_LISTENER];
    if (!px_probe_works(c, r, "loading a filter with a listener"))
        return;
    r = answer_one((int)note[NOTE_LISTENER]);
    if (r < 0) {
        px_probe_say(c->row->why, "the event of a call cannot be taken or answered (%s)", px_probe_errno(r).text);
        return;
    }
    (void)px_fork_reap(pidfd, &status);        /* the child has reported the result */
    if (px_probe_works(c, note[NOTE_OTHER], "a call that the filter does not name") &&
        px_probe_refused(c, note[NOTE_ANSWER], MARK, 0, "a call that the supervisor answered"))
        c->row->state = PX_PROBE_ENFORCED;
}

static void inside_notification(struct px_probe_ctx *c)
{
    int ready[2], pidfd = -EBADF;
    if (px_pipe(ready) < 0)
        return;
    c->row->raise = c->host->filtered ? PX_RAISE_OUTER_FILTER : PX_RAISE_KERNEL;
    c->shared->note[NOTE_LISTENER] = -ESRCH;
    long pid = px_sys(SYS_clone, PX_CLONE_FILES | PX_CLONE_PIDFD, 0, &pidfd, 0, 0);
    if (pid == 0)
        notifying(c, ready[1]);
    if (pid < 0) {
        px_probe_no_process(c, pid);
        return;
    }
    int status;
    supervise(c, pidfd, ready[0]);
    (void)px_pidfd_signal(pidfd, SIGKILL);
    (void)px_fork_reap(pidfd, &status);
}

void px_probe_notification(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.inside = inside_notification});
}

/* ---- Landlock ---- */

static int open_dir(const char *path)
{
    return (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void inside_landlock(struct px_probe_ctx *c)
{
    static const char *const candidates[] = {"/usr", "/etc", "/dev", "/proc"};
    const char *granted = NULL;
    int abi = px_landlock_abi(), path = -EBADF;
    for (size_t i = 0; i < PX_COUNT_OF(candidates) && path < 0; i++)
        path = open_dir(granted = candidates[i]);
    int root = open_dir("/");
    if (path < 0 || root < 0) {
        px_probe_unknown(c, path < 0 ? path : root, "no directory can be opened to try it on");
        return;
    }
    int rules = px_landlock_new(abi);
    int r = rules < 0 ? rules : px_landlock_allow(rules, abi, path, px_landlock_read());
    if (r >= 0 && no_new_privs(c))
        r = px_landlock_enforce(rules);
    if (!px_probe_works(c, r, "restricting itself"))
        return;
    char act[64];
    (void)px_fmt(act, sizeof act, "opening %s, which was granted,", granted);
    if (px_probe_works(c, open_dir(granted), act) && px_probe_refused(c, open_dir("/"), EACCES, 0, "opening /, which was not,"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_landlock(struct px_probe_ctx *c)
{
    int abi = px_landlock_abi();
    c->row->raise = PX_RAISE_LANDLOCK;
    if (abi < 1) {
        px_probe_say(c->row->why, "the kernel has no Landlock, or it was not enabled at boot (%s)", px_probe_errno(abi).text);
        return;
    }
    px_probe_say(c->row->found, "ABI %d", abi);
    int r = px_probe_child(c, &(struct px_probe_job){.inside = inside_landlock});
    if (r < 0 || c->row->state != PX_PROBE_ENFORCED || abi >= 3)
        return;
    c->row->state = PX_PROBE_DEGRADED;
    c->row->raise = PX_RAISE_LANDLOCK_ABI;
    px_probe_say(c->row->why, "ABI %d does not hold truncation; the landlock tier needs ABI 3 (Linux 6.2)", abi);
}
