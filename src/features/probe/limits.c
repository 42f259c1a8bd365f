/* probe/limits.c - limits and kills: rlimits, cgroups, processes that die with their parent. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "kernel/cgroup.h"
#include "kernel/pidfd.h"
#include "probe/probe_internal.h"

enum {
    MIB = 1 << 20,
    MEMORY_LIMIT = 16 * MIB,
    MEMORY_SMALL = 2 * MIB,
    MEMORY_LARGE = 32 * MIB,
    PIDS_LIMIT = 3,
    CPU_MILLI = 50,             /* 5 ms in each 100 ms */
    CPU_USE_USEC = 10000,
    END_MSEC = 2500,            /* how long a killed process may take to disappear */
};

/* ---- rlimits ---- */

static void inside_rlimits(struct px_probe_ctx *c)
{
    const uint64_t blocked = 1ull << (SIGXFSZ - 1);
    const struct rlimit limit = {4096, 4096};
    char page[4096] = {0};
    int file = (int)px_sys(SYS_memfd_create, "px-probe", 1u);
    if (file < 0) {
        px_probe_unknown(c, file, "no memory file can be made to try it on");
        return;
    }
    (void)px_sys(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, 0, 8);
    if (px_probe_works(c, px_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, 0), "setting a limit on the size of files") &&
        px_probe_works(c, px_sys(SYS_write, file, page, sizeof page), "writing as much as the limit") &&
        px_probe_refused(c, px_sys(SYS_write, file, page, 1), EFBIG, 0, "writing one byte more"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_rlimits(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.inside = inside_rlimits});
}

/* ---- which hierarchies there are ---- */

void px_probe_layout(struct px_probe_ctx *c)
{
    const size_t max = (size_t)256 * 1024;
    px_auto_free char *text = malloc(max);
    ssize_t n = text ? px_read_file(AT_FDCWD, "/proc/self/mountinfo", text, max) : -ENOMEM;
    if (n < 0) {
        px_probe_unknown(c, n, "/proc/self/mountinfo cannot be read");
        return;
    }
    bool v1 = strstr(text, " - cgroup ") != NULL, v2 = strstr(text, " - cgroup2 ") != NULL;
    if (!v1 && !v2) {
        px_probe_say(c->row->why, "no cgroup hierarchy is mounted");
        c->row->raise = PX_RAISE_CGROUP;
        return;
    }
    c->host->cgroups = true;
    px_probe_say(c->row->found, "%s", v1 && v2 ? "hybrid: v1 with a v2 tree beside it" : v1 ? "v1" : "v2");
    px_probe_say(c->row->permitted, "/proc/self/mountinfo lists them");
    c->row->state = PX_PROBE_ENFORCED;
}

/* ---- groups ---- */

static bool make_group(struct px_probe_ctx *c, const struct px_cgroup_limits *limits, struct px_cgroup *cg)
{
    char id[32];
    const char *which = "cgroup";
    (void)px_fmt(id, sizeof id, "probe-%d", (int)px_sys(SYS_gettid));       /* threads may do it at once */
    int r = px_cgroup_create(limits, id, cg, &which);
    c->row->raise = r == -EACCES || (!c->host->root && c->host->cgroups) ? PX_RAISE_DELEGATE : PX_RAISE_CGROUP;
    if (r < 0)
        px_probe_say(c->row->why, "no group with a limit on it can be made: %s (%s)", which, px_probe_errno(r).text);
    return r >= 0;
}

static void drop_group(struct px_probe_ctx *c, struct px_cgroup *cg)
{
    int r = px_cgroup_done(cg);
    if (r < 0 && c->row->state == PX_PROBE_ENFORCED) {
        c->row->state = PX_PROBE_DEGRADED;
        px_probe_say(c->row->why, "it holds, but the group could not be removed (%s)", px_probe_errno(r).text);
    }
}

static void say_hierarchy(struct px_probe_ctx *c, const struct px_cgroup *cg, enum px_controller which)
{
    px_probe_say(c->row->found, "cgroup v%d", cg->on_v2[which] ? 2 : 1);
}

/* Writes to every page; the kernel must stop it at the limit. */
static long touch(size_t bytes)
{
    long at = px_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0)
        return at;
    for (size_t i = 0; i < bytes; i += 4096)
        ((volatile char *)at)[i] = 1;
    (void)px_sys(SYS_munmap, at, bytes);
    return 0;
}

static void inside_memory(struct px_probe_ctx *c)
{
    if (!px_probe_works(c, touch(MEMORY_SMALL), "using 2 of 16 MiB"))
        return;
    c->shared->note[0] = 1;
    (void)touch(MEMORY_LARGE);
    c->shared->note[0] = 2;     /* not reached if the limit works */
}

void px_probe_memory(struct px_probe_ctx *c)
{
    struct px_cgroup cg = PX_CGROUP_NONE;
    struct px_cgroup_usage usage;
    if (!make_group(c, &(struct px_cgroup_limits){.memory_bytes = MEMORY_LIMIT}, &cg))
        return;
    say_hierarchy(c, &cg, PX_CG_MEMORY);
    int r = px_probe_child(c, &(struct px_probe_job){.cgroup = &cg, .inside = inside_memory});
    px_cgroup_read(&cg, &usage);
    bool killed = c->status >= 0 && WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL;
    if (r >= 0 && c->shared->note[0] == 1 && killed && usage.oom_kills > 0) {
        px_probe_say(c->row->forbidden, "using 32 of 16 MiB was killed (%s %llu)", usage.oom_counter,
                     (unsigned long long)usage.oom_kills);
        c->row->state = PX_PROBE_ENFORCED;
    } else if (r >= 0 && c->shared->note[0] == 2) {
        px_probe_say(c->row->why, "32 MiB could be used under a limit of 16 MiB: swap is not counted");
        c->row->raise = PX_RAISE_CGROUP;
    }
    drop_group(c, &cg);
}

static void inside_pids(struct px_probe_ctx *c)
{
    int pidfd[PIDS_LIMIT + 1], made = 0, status;
    long pid = 0;
    while (made < PIDS_LIMIT && (pid = px_fork(&pidfd[made])) > 0)
        made++;
    if (pid == 0) {
        px_probe_linger();
        px_fork_exit(0);
    }
    for (int i = 0; i < made; i++) {
        (void)px_pidfd_signal(pidfd[i], SIGKILL);
        (void)px_fork_reap(pidfd[i], &status);
    }
    long first = made == PIDS_LIMIT - 1 || pid > 0 ? 0 : pid;
    if (px_probe_works(c, first, "starting 2 processes beside itself under a limit of 3") &&
        px_probe_refused(c, pid, EAGAIN, 0, "starting a third"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_pids(struct px_probe_ctx *c)
{
    struct px_cgroup cg = PX_CGROUP_NONE;
    if (!make_group(c, &(struct px_cgroup_limits){.pids = PIDS_LIMIT}, &cg))
        return;
    say_hierarchy(c, &cg, PX_CG_PIDS);
    (void)px_probe_child(c, &(struct px_probe_job){.cgroup = &cg, .inside = inside_pids});
    drop_group(c, &cg);
}

static void inside_cpu(struct px_probe_ctx *c)
{
    struct timespec used = {0};
    (void)c;
    while (used.tv_sec == 0 && used.tv_nsec < CPU_USE_USEC * 1000L)
        (void)px_sys(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
}

/* How often the cgroup was throttled; -1 if not reported. */
static long long throttled(const struct px_cgroup *cg)
{
    char text[2048];
    int fd = cg->on_v2[PX_CG_CPU] ? cg->v2.fd : cg->v1[PX_CG_CPU].fd;
    long long count = -1;
    if (px_read_file(fd, "cpu.stat", text, sizeof text) < 0)
        return -1;
    const char *line = strstr(text, "nr_throttled ");
    return line && sscanf(line, "nr_throttled %lld", &count) == 1 ? count : -1;
}

void px_probe_cpu(struct px_probe_ctx *c)
{
    struct px_cgroup cg = PX_CGROUP_NONE;
    if (!make_group(c, &(struct px_cgroup_limits){.cpu_milli = CPU_MILLI}, &cg))
        return;
    say_hierarchy(c, &cg, PX_CG_CPU);
    if (px_probe_child(c, &(struct px_probe_job){.cgroup = &cg, .inside = inside_cpu}) >= 0) {
        long long held = throttled(&cg);
        px_probe_say(c->row->permitted, "using 10 ms of processor time worked");
        if (held > 0) {
            px_probe_say(c->row->forbidden, "using more than 5 ms in 100 ms was held back (nr_throttled %lld)", held);
            c->row->state = PX_PROBE_ENFORCED;
        } else {
            px_probe_say(c->row->why, "the quota was taken, but nothing shows that it holds (nr_throttled %lld)", held);
            c->row->state = PX_PROBE_DEGRADED;
        }
    }
    drop_group(c, &cg);
}

/* ---- cgroup.kill ---- */

static void inside_group_kill(struct px_probe_ctx *c)
{
    px_auto_fd int pidfd = -EBADF;
    long pid = px_fork(&pidfd);
    if (pid == 0) {
        (void)px_sys(SYS_setsid);
        px_probe_linger();
        px_fork_exit(0);
    }
    if (px_probe_works(c, pid, "starting a process in the group"))
        px_probe_meet(c);
    px_probe_linger();
}

static void outside_group_kill(struct px_probe_ctx *c, pid_t pid)
{
    const struct px_cgroup *cg = c->own;
    int r = px_cgroup_kill(cg);
    if (r < 0) {
        c->shared->note[0] = 1;
        px_probe_say(c->row->why, "there is no cgroup.kill here (%s): a box ends by its pid namespace alone",
                     px_probe_errno(r).text);
        (void)px_sys(SYS_kill, pid, SIGKILL);   /* not reaped yet; its own child goes with it */
    }
}

void px_probe_cgroup_kill(struct px_probe_ctx *c)
{
    struct px_cgroup cg = PX_CGROUP_NONE;
    if (!make_group(c, &(struct px_cgroup_limits){0}, &cg))
        return;
    if (px_cgroup_birth_fd(&cg) < 0) {
        px_probe_say(c->row->why, "no v2 group can be made: a box ends by its pid namespace alone");
        c->row->raise = PX_RAISE_NONE;  /* the rows above report it */
        (void)px_cgroup_done(&cg);
        return;
    }
    const struct px_probe_job job = {.cgroup = &cg, .own = &cg, .inside = inside_group_kill, .outside = outside_group_kill};
    int r = px_probe_child(c, &job);
    bool killed = r >= 0 && c->status >= 0 && WIFSIGNALED(c->status) && c->shared->note[0] == 0;
    int gone = px_cgroup_done(&cg);     /* -EBUSY while one of them lives */
    if (killed && gone >= 0) {
        px_probe_say(c->row->forbidden, "two processes of two sessions were gone after one write");
        c->row->state = PX_PROBE_ENFORCED;
    }
}

/* ---- the end of a tree ---- */

/* A child without a parent-death signal. */
static long fork_free(void)
{
    return px_sys(SYS_clone, 0, 0, 0, 0, 0);
}

/* Reads one byte (1), the end (0), or nothing in time (-ETIMEDOUT). */
static long await(int fd)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    char byte;
    long n = px_sys(SYS_poll, &event, 1, END_MSEC);
    return n == 0 ? -ETIMEDOUT : n < 0 ? n : px_sys(SYS_read, fd, &byte, 1);
}

/* Process 1 of a pid namespace. Its grandchild has its own session, is orphaned, and holds the pipe open. */
static void inside_tree(struct px_probe_ctx *c)
{
    const int *ends = c->own;
    px_auto_fd int pidfd = -EBADF;
    int status;
    long pid = px_fork(&pidfd);
    if (pid == 0) {
        (void)px_sys(SYS_setsid);
        long second = fork_free();
        if (second == 0) {
            (void)px_sys(SYS_write, ends[1], "c", 1);
            px_probe_linger();
        }
        px_fork_exit(second < 0);
    }
    int r = pid < 0 ? (int)pid : px_fork_reap(pidfd, &status);
    if (r < 0 || status != 0)
        px_probe_no_process(c, r < 0 ? r : -EAGAIN);
    else
        px_probe_meet(c);
}

static void outside_tree(struct px_probe_ctx *c, pid_t pid)
{
    int *ends = c->own;
    ends[1] = px_fd_close(ends[1]);
    long n = await(ends[0]);
    if (px_probe_works(c, n == 1 ? 0 : n == 0 ? -EPIPE : n, "leaving its session and its parent"))
        (void)px_sys(SYS_kill, pid, SIGKILL);   /* our child, not reaped yet */
}

void px_probe_tree_kill(struct px_probe_ctx *c)
{
    int ends[2];
    const struct px_probe_job job = {
        .namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWPID, .own = ends, .inside = inside_tree, .outside = outside_tree};
    if (px_pipe(ends) < 0)
        return;
    int r = px_probe_child(c, &job);
    ends[1] = px_fd_close(ends[1]);
    bool killed = r >= 0 && c->status >= 0 && WIFSIGNALED(c->status) && c->row->permitted[0];
    if (killed && await(ends[0]) == 0) {
        px_probe_say(c->row->forbidden, "outliving process 1 of its namespace failed: it was gone with it");
        c->row->state = PX_PROBE_ENFORCED;
    } else if (killed) {
        px_probe_say(c->row->why, "a process outlived process 1 of its namespace");
    }
    (void)px_fd_close(ends[0]);
}

/* A process and its child, which sets PR_SET_PDEATHSIG and then reports on the pipe. */
static long start_pair(struct px_probe_ctx *c, int said, int *ret_first)
{
    px_auto_fd int second = -EBADF;
    long pid = px_fork(ret_first);
    if (pid != 0)
        return pid;
    long last = px_fork(&second);
    if (last == 0) {
        c->shared->note[0] = px_sys(SYS_getpid);
        (void)px_sys(SYS_write, said, "b", 1);
    }
    if (last >= 0)
        px_probe_linger();
    px_fork_exit(0);
}

static void judge_pair(struct px_probe_ctx *c, int heard, int first)
{
    int status;
    long n = await(heard);
    if (n == 0) {               /* the second was never started */
        px_probe_no_process(c, -EAGAIN);
        return;
    }
    bool lived = px_probe_works(c, n == 1 ? 0 : n, "living as long as its parent");
    (void)px_pidfd_signal(first, SIGKILL);
    (void)px_fork_reap(first, &status);
    if (lived && await(heard) == 0) {
        px_probe_say(c->row->forbidden, "outliving its parent failed: it was gone with it");
        c->row->state = PX_PROBE_ENFORCED;
    } else if (lived) {
        px_probe_say(c->row->why, "a process outlived its parent although it asked for the opposite");
        if (c->shared->note[0] > 1)
            /* it holds the pipe open, so the pid is not reused */
            (void)px_sys(SYS_kill, c->shared->note[0], SIGKILL);
    }
}

static void inside_parent_death(struct px_probe_ctx *c)
{
    int ends[2], status;
    px_auto_fd int first = -EBADF;
    long r = px_pipe(ends);
    if (r >= 0)                 /* orphans are reparented to us, not to the host's process 1 */
        r = px_sys(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (r >= 0)
        r = start_pair(c, ends[1], &first);
    if (r < 0) {
        px_probe_no_process(c, r);
        return;
    }
    (void)px_fd_close(ends[1]);
    judge_pair(c, ends[0], first);
    for (int i = 0; i < 8 && px_sys(SYS_wait4, -1, &status, __WALL, 0) > 0; i++)
        ;
}

void px_probe_parent_death(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.inside = inside_parent_death});
}
