/* probe/probe.c - the table of probes, and the children they run in. */
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "kernel/abi.h"
#include "kernel/cgroup.h"
#include "kernel/pidfd.h"
#include "probe/probe_internal.h"

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

enum { DEADLINE_SEC = 5, LINGER_SEC = 10, INNER_ID = 1000 };

// clang-format off
static const struct px_probe probes[] = {
    { "version",            "kernel",     PX_NEED_FULL,     px_probe_version },
    { "clone3 with pidfd",  "kernel",     PX_NEED_FULL,     px_probe_clone3 },
    { "close_range",        "kernel",     PX_NEED_FULL,     px_probe_close_range },
    { "openat2",            "kernel",     PX_NEED_FULL,     px_probe_openat2 },
    { "user",               "namespaces", PX_NEED_FULL,     px_probe_user },            /* the ones below need it */
    { "id map",             "namespaces", PX_NEED_FULL,     px_probe_id_map },          /* the ones below use its map */
    { "own ids",            "namespaces", PX_NEED_NICE,     px_probe_own_ids },
    { "mount",              "namespaces", PX_NEED_FULL,     px_probe_mount },
    { "pid",                "namespaces", PX_NEED_FULL,     px_probe_pid },
    { "network",            "namespaces", PX_NEED_FULL,     px_probe_network },
    { "ipc",                "namespaces", PX_NEED_FULL,     px_probe_ipc },
    { "uts",                "namespaces", PX_NEED_FULL,     px_probe_uts },
    { "cgroup",             "namespaces", PX_NEED_FULL,     px_probe_cgroup_namespace },
    { "no nesting",         "namespaces", PX_NEED_FULL,     px_probe_no_nesting },
    { "read-only mounts",   "files",      PX_NEED_FULL,     px_probe_read_only },
    { "own root",           "files",      PX_NEED_FULL,     px_probe_pivot },
    { "bounded tmpfs",      "files",      PX_NEED_FULL,     px_probe_tmpfs },
    { "own procfs",         "files",      PX_NEED_FULL,     px_probe_procfs },
    { "own terminals",      "files",      PX_NEED_FULL,     px_probe_terminal },
    { "overlay",            "files",      PX_NEED_NICE,     px_probe_overlay },
    { "id-mapped mounts",   "files",      PX_NEED_NICE,     px_probe_idmapped },
    { "no privileges",      "privileges", PX_NEED_FULL,     px_probe_privileges },
    { "seccomp filter",     "privileges", PX_NEED_FULL,     px_probe_seccomp },
    { "foreign calls",      "privileges", PX_NEED_FULL,     px_probe_foreign_calls },
    { "seccomp notify",     "privileges", PX_NEED_NICE,     px_probe_notification },
    { "landlock",           "privileges", PX_NEED_LANDLOCK, px_probe_landlock },
    { "whole-tree kill",    "life",       PX_NEED_FULL,     px_probe_tree_kill },
    { "death with parent",  "life",       PX_NEED_FULL,     px_probe_parent_death },
    { "rlimits",            "limits",     PX_NEED_FULL,     px_probe_rlimits },
    { "cgroups",            "limits",     PX_NEED_LIMITS,   px_probe_layout },
    { "memory",             "limits",     PX_NEED_LIMITS,   px_probe_memory },
    { "pids",               "limits",     PX_NEED_LIMITS,   px_probe_pids },
    { "cpu",                "limits",     PX_NEED_LIMITS,   px_probe_cpu },
    { "cgroup.kill",        "limits",     PX_NEED_NICE,     px_probe_cgroup_kill },
    { "tun",                "network",    PX_NEED_NETWORK,  px_probe_tun },
    { "nftables",           "network",    PX_NEED_NETWORK,  px_probe_nftables },
    { "user namespaces",    "host",       PX_NEED_NICE,     px_probe_settings },
    { "security modules",   "host",       PX_NEED_NICE,     px_probe_modules },
    { "apparmor",           "host",       PX_NEED_NICE,     px_probe_apparmor },
    { "selinux",            "host",       PX_NEED_NICE,     px_probe_selinux },
    { "yama",               "host",       PX_NEED_NICE,     px_probe_yama },
    { "bpf",                "host",       PX_NEED_NICE,     px_probe_bpf },
    { "tiocsti",            "host",       PX_NEED_NICE,     px_probe_tiocsti },
    { "fuse",               "host",       PX_NEED_NICE,     px_probe_fuse },
    { "loop devices",       "host",       PX_NEED_NICE,     px_probe_loop },
};
// clang-format on

const struct px_probe *px_probe_at(size_t index)
{
    return index < PX_COUNT_OF(probes) ? &probes[index] : NULL;
}

/* ---- words ---- */

void px_probe_say(char out[PX_PROBE_TEXT], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(out, PX_PROBE_TEXT, fmt, args);
    va_end(args);
    for (char *p = out; *p; p++)        /* it may contain text of /proc or /sys */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
}

struct px_probe_errno px_probe_errno(long r)
{
    struct px_probe_errno name = {""};
    const char *text = px_errno_text((int)r);
    size_t n = strcspn(text, ":");
    if (text[n] != ':' || n >= sizeof name.text)
        (void)px_fmt(name.text, sizeof name.text, "errno %ld", r < 0 ? -r : r);
    else
        memcpy(name.text, text, n);
    return name;
}

static void note_starved(struct px_probe_ctx *c, long r)
{
    if (r == -EMFILE || r == -ENFILE)
        c->shared->starved = true;
}

bool px_probe_works(struct px_probe_ctx *c, long r, const char *act)
{
    note_starved(c, r);
    if (r < 0)
        px_probe_say(c->row->why, "%s failed with %s", act, px_probe_errno(r).text);
    else
        px_probe_say(c->row->permitted, "%s worked", act);
    return r >= 0;
}

bool px_probe_refused(struct px_probe_ctx *c, long r, int want, int also, const char *act)
{
    bool right = r < 0 && (r == -want || r == -also);
    note_starved(c, r);
    if (right)
        px_probe_say(c->row->forbidden, "%s failed with %s", act, px_probe_errno(r).text);
    else if (r >= 0)
        px_probe_say(c->row->why, "%s worked, and must not", act);
    else
        px_probe_say(c->row->why, "%s failed with %s, where %s was expected", act, px_probe_errno(r).text,
                     px_probe_errno(want).text);
    return right;
}

void px_probe_unknown(struct px_probe_ctx *c, long r, const char *what)
{
    note_starved(c, r);
    px_probe_say(c->row->why, "unknown: %s (%s)", what, px_probe_errno(r).text);
}

void px_probe_no_process(struct px_probe_ctx *c, long r)
{
    px_probe_unknown(c, r, "no process can be started");
    c->row->raise = PX_RAISE_PROCESSES;
}

int64_t px_probe_number(const char *path)
{
    char text[64];
    uint64_t value;
    if (px_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return -1;
    text[strcspn(text, "\n")] = '\0';
    return px_parse_u64(text, INT64_MAX, &value) < 0 ? -1 : (int64_t)value;
}

/* ---- processes ---- */

void px_probe_linger(void)
{
    const struct timespec long_enough = {.tv_sec = LINGER_SEC};
    (void)px_sys(SYS_nanosleep, &long_enough, 0);
}

static bool hear(int socket)
{
    char byte = 0;
    return px_read_some(socket, &byte, 1) == 1 && byte == 'g';
}

static void tell(int socket, char byte)
{
    (void)px_sys(SYS_sendto, socket, &byte, 1, MSG_NOSIGNAL, 0, 0);
}

void px_probe_meet(struct px_probe_ctx *c)
{
    tell(c->socket, 'm');
    if (!hear(c->socket))
        px_fork_exit(1);
}

/* With many mapped ids our own is unmapped until we switch to id 0. */
static int become_zero(void)
{
    long r = px_sys(SYS_setgroups, 0, 0);
    if (r >= 0)
        r = px_sys(SYS_setresgid, 0, 0, 0);
    if (r >= 0)
        r = px_sys(SYS_setresuid, 0, 0, 0);
    return (int)r;
}

static _Noreturn void child_main(struct px_probe_ctx *c, const struct px_probe_job *job)
{
    (void)px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (!hear(c->socket))
        px_fork_exit(1);
    if (job->namespaces & PX_CLONE_NEWUSER && c->host->map.kind != PX_IDMAP_SINGLE) {
        int r = become_zero();
        (void)px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);    /* changing ids resets it */
        if (r < 0) {
            px_probe_unknown(c, r, "the id 0 of the user namespace cannot be taken");
            px_fork_exit(1);
        }
    }
    job->inside(c);
    px_fork_exit(0);
}

/* ---- the parent's side ---- */

static int no_child(struct px_probe_ctx *c, const struct px_probe_job *job, int r)
{
    if (r == -EAGAIN || r == -ENOMEM || r == -EMFILE || r == -ENFILE) {
        px_probe_no_process(c, r);
    } else if (job->cgroup && (r == -EACCES || r == -EOPNOTSUPP || r == -EBUSY)) {
        px_probe_say(c->row->why, "no process can be born in the group (%s)", px_probe_errno(r).text);
    } else if (job->namespaces & PX_CLONE_NEWUSER && (!c->host->userns || r == -EPERM)) {
        px_probe_say(c->row->why, "a user namespace cannot be made (%s)", px_probe_errno(r).text);
        c->row->raise = px_probe_userns_raise(c->host, r);
    } else if (job->namespaces) {
        px_probe_say(c->row->why, "the namespace cannot be made (%s)", px_probe_errno(r).text);
        c->row->raise = r == -EPERM ? PX_RAISE_CAPABILITIES : PX_RAISE_KERNEL;
    } else {
        px_probe_no_process(c, r);
    }
    return r;
}

static int prepare(struct px_probe_ctx *c, const struct px_probe_job *job, pid_t pid)
{
    int r = job->namespaces & PX_CLONE_NEWUSER ? px_idmap_apply(&c->host->map, pid) : 0;
    if (r < 0) {
        px_probe_say(c->row->why, "the map of its ids cannot be written (%s)", px_probe_errno(r).text);
        if (r == -ENOENT)
            c->row->raise = PX_RAISE_NO_PROC;
        else if (r == -EPERM && c->host->root)
            c->row->raise = PX_RAISE_CAPABILITIES;
        return r;
    }
    r = job->cgroup ? px_cgroup_join(job->cgroup, pid) : 0;
    if (r < 0)
        px_probe_say(c->row->why, "the process cannot be put into the group (%s)", px_probe_errno(r).text);
    return r;
}

/* Until the child has ended or the time is up. */
static int attend(struct px_probe_ctx *c, const struct px_probe_job *job, pid_t pid, int pidfd)
{
    const unsigned msec = job->msec ? job->msec : DEADLINE_SEC * 1000;
    uint64_t deadline = px_now_nsec() + msec * 1000000ull;
    struct pollfd fds[] = {{.fd = c->socket, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    for (uint64_t now; (now = px_now_nsec()) < deadline;) {
        int n = poll(fds, PX_COUNT_OF(fds), (int)((deadline - now) / 1000000) + 1);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n <= 0)
            continue;
        if (fds[1].revents)
            return 0;
        char byte = 0;
        if (recv(c->socket, &byte, 1, MSG_DONTWAIT) == 1 && job->outside) {
            job->outside(c, pid);
            tell(c->socket, 'g');
        } else {
            fds[0].fd = -1;     /* its end is closed: it is exiting */
        }
    }
    px_probe_say(c->row->why, "unknown: it did not end within %u ms and was killed", msec);
    return -ETIMEDOUT;
}

static int oversee(struct px_probe_ctx *c, const struct px_probe_job *job, pid_t pid, int pidfd)
{
    int r = prepare(c, job, pid);
    tell(c->socket, r < 0 ? 'x' : 'g');
    if (r >= 0)
        r = attend(c, job, pid, pidfd);
    if (r < 0)
        (void)px_pidfd_signal(pidfd, SIGKILL);
    int ended = px_fork_reap(pidfd, &c->status);
    if (ended < 0)
        c->status = -1;
    if (r >= 0 && c->row->state == PX_PROBE_ABSENT && c->row->why[0] == '\0' && WIFSIGNALED(c->status))
        px_probe_say(c->row->why, "unknown: the probe was ended by signal %d", WTERMSIG(c->status));
    return r;
}

int px_probe_child(struct px_probe_ctx *c, const struct px_probe_job *job)
{
    int ends[2];
    px_auto_fd int pidfd = -EBADF;
    c->status = -1;
    c->own = job->own;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        int r = -errno;
        px_probe_unknown(c, r, "no socket can be made");
        return r;
    }
    long pid = px_fork_into(job->namespaces, job->cgroup ? px_cgroup_birth_fd(job->cgroup) : -EBADF, &pidfd);
    if (pid == 0) {
        (void)px_fd_close(ends[0]);
        c->socket = ends[1];
        child_main(c, job);
    }
    (void)px_fd_close(ends[1]);
    c->socket = ends[0];
    int r = pid < 0 ? no_child(c, job, (int)pid) : oversee(c, job, (pid_t)pid, pidfd);
    c->socket = px_fd_close(c->socket);
    return r;
}

/* ---- one probe ---- */

void px_probe_host_init(struct px_probe_host *host)
{
    *host = (struct px_probe_host){
        .root = geteuid() == 0,
        .map = {.kind = PX_IDMAP_SINGLE, .uid = INNER_ID, .gid = INNER_ID, .caller_uid = geteuid(), .caller_gid = getegid(),
                .count = 1, .lock_fd = -EBADF},
    };
    px_probe_surroundings(host);
}

void px_probe_host_done(struct px_probe_host *host)
{
    px_idmap_done(&host->map);
}

/* Sets the reason of a probe that ended early, and clears the message of a first attempt after a second one worked. */
static void settle(const struct px_probe *probe, const struct px_probe_host *host, struct px_probe_row *row)
{
    if (row->state == PX_PROBE_ENFORCED) {
        row->why[0] = '\0';
        row->raise = PX_RAISE_NONE;
        return;
    }
    if (row->why[0] == '\0')
        px_probe_say(row->why, "unknown: the probe ended before it could tell");
    if (row->raise == PX_RAISE_NONE && host->filtered && probe->need != PX_NEED_NICE)
        row->raise = PX_RAISE_OUTER_FILTER;
}

void px_probe_run(const struct px_probe *probe, struct px_probe_host *host, struct px_probe_row *ret_row)
{
    struct px_probe_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *ret_row = (struct px_probe_row){0};
    if (shared == MAP_FAILED) {
        px_probe_say(ret_row->why, "unknown: no memory for the probe");
        return;
    }
    struct px_probe_ctx c = {.host = host, .shared = shared, .row = &shared->row, .socket = -EBADF, .status = -1};
    probe->run(&c);
    if (shared->starved)
        c.row->raise = PX_RAISE_DESCRIPTORS;
    *ret_row = *c.row;
    (void)munmap(shared, sizeof *shared);
    settle(probe, host, ret_row);
}
