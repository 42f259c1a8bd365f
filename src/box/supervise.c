#include "box/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/places.h"
#include "kernel/abi.h"
#include "kernel/notify.h"
#include "kernel/pidfd.h"
#include "kernel/tree.h"

enum { GRACE_MSEC = 2000, FORCE_MSEC = 200, STUCK_MSEC = 20000, EOF_MSEC = 250, EOF_TIMES = 20, DISK_MSEC = 50, CARRIER_MSEC = 5000 };

/* ---- starting ---- */

static int make_id(char out[20])
{
    uint64_t random = 0;
    long n = px_sys(SYS_getrandom, &random, sizeof random, 0);
    if (n != sizeof random)
        random = px_now_nsec() ^ ((uint64_t)px_sys(SYS_gettid) << 32);
    return px_fmt(out, 20, "%016llx", (unsigned long long)random);
}

static int make_cgroup(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    struct px_cgroup_limits limits = {
        .memory_bytes = px_policy_limited(policy->memory_bytes) ? policy->memory_bytes : 0,
        .cpu_milli = px_policy_limited(policy->cpus_milli) ? policy->cpus_milli : 0,
        .one_by_one = box->plan->stays,
    };
    bool must = limits.memory_bytes || limits.cpu_milli;
    const char *which = "cgroup";

    if ((!must && !policy->pids_counted) || px_policy_without(policy, PX_WITHOUT_CGROUP))
        return 0;
    /* px-init is one of them, and so is who carries the traffic. */
    limits.pids = px_policy_limited(policy->pids) ? policy->pids + 1 + (box->carrier ? 1 : 0) : 0;
    int r = px_cgroup_create(&limits, box->id, &box->cgroup, &which);
    box->has_cgroup = r >= 0;
    struct px_plan *plan = box->plan;
    if (r >= 0) {
        const uint64_t set[PX_CG_COUNT] = {limits.memory_bytes, limits.pids, limits.cpu_milli};
        static const char *const fields[PX_CG_COUNT] = {"memory", "pids", "cpus"};
        for (int i = 0; i < PX_CG_COUNT; i++)
            if (set[i])
                px_plan_has(plan, "%s=cgroup%d", fields[i], box->cgroup.on_v2[i] ? 2 : 1);
        return 0;
    }
    if (must && policy->limits == PX_LIMITS_REQUIRE)
        return px_fail(e, PX_E_CGROUP, r, "--%s needs a cgroup, and the '%s' controller cannot be used here",
                       limits.memory_bytes ? "memory" : "cpus", which);
    if (limits.memory_bytes)
        px_plan_lacks(plan, "memory: no cgroup, RLIMIT_AS per process instead");
    if (limits.cpu_milli)
        px_plan_lacks(plan, "cpus: no cgroup");
    if (!must)
        px_plan_lacks(plan, "pids: no cgroup to count it, rlimit holds");
    return 0;
}

/* Where a cgroup holds a limit, the rlimit of the same kind steps back so that the one that counts is met first; where there
 * is none and the policy said "try", each process gets the bound that the tree should have had. */
static void settle_rlimits(struct px_box *box, const struct px_policy *policy)
{
    for (uint32_t i = 0; i < box->plan->count; i++) {
        struct px_step *s = &box->plan->steps[i];
        if (s->op != PX_OP_RLIMIT)
            continue;
        if (s->attr == RLIMIT_NPROC && box->has_cgroup)
            s->num = s->num2 = policy->pids + 64;
        if (s->attr == RLIMIT_AS)
            s->num = s->num2 = box->has_cgroup ? RLIM_INFINITY : policy->memory_bytes;
    }
}

/* The kernel counts the descriptors that are on their way through sockets by user, and refuses to send one more to whoever may
 * have fewer files open than there are. A box with the caller's own id that leaves many on their way would stop every socket of
 * the caller's, our own to the other boxes first: so it can never have more than half of what the caller may. */
uint64_t px_supervise_files_max(void)
{
    struct rlimit now = {.rlim_cur = RLIM_INFINITY};
    (void)px_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &now);
    return now.rlim_cur / 2;
}

static void share_files(struct px_plan *plan)
{
    uint64_t max = px_supervise_files_max();
    for (uint32_t i = 0; i < plan->count; i++) {
        struct px_step *s = &plan->steps[i];
        if (s->op != PX_OP_RLIMIT || s->attr != RLIMIT_NOFILE || s->num2 <= max)
            continue;
        s->num = s->num2 = max;
        px_plan_lacks(plan, "nofile: half of the caller's, whose id it has");
    }
}

/* A box that joins another is in the user namespace of that one, whose map is what it is. */
static int not_their_ids(const struct px_policy *policy, int err, struct px_err *e)
{
    bool known = err == -ENOENT || err == -EACCES;
    px_fail(e, PX_E_IDS, known ? 0 : err, "--net %s: the ids of that box do not do for this one", policy->net_box);
    if (err == -ENOENT) {
        px_why(e, "There is no user %u:%u in it.", policy->user.uid, policy->user.gid);
        return px_fix(e, "Give both boxes the same --user.");
    }
    if (err != -EACCES)
        return -1;
    px_why(e, "It was started without files of yours, so that your own id is not among them.");
    return px_fix(e, "Start it with a directory of yours (--work-dir DIR), or leave -v, --work-dir and --rootfs out here.");
}

static int choose_ids(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    struct px_plan *plan = box->plan;
    if (plan->tier != PX_TIER_FULL)
        return 0;
    const struct px_user *user = &policy->user;
    bool caller = plan->binds || plan->root_dir;
    int r = plan->joins ? px_idmap_join(px_pidfd_number(plan->join), user->uid, user->gid, caller, &box->ids)
                        : px_idmap_choose(user->uid, user->gid, caller, &box->ids);
    if (r < 0)
        return plan->joins ? not_their_ids(policy, r, e) : px_fail(e, PX_E_IDS, r, "no ids can be had for the box");
    px_plan_has(plan, "%s", px_idmap_name(&box->ids));
    if (box->ids.kind == PX_IDMAP_SINGLE) {
        /* Only one id exists, so pid 1 has it too, and the kernel forbids changing groups. */
        for (uint32_t i = 0; i < plan->count; i++) {
            struct px_step *s = &plan->steps[i];
            bool init = s->op == PX_OP_INIT || s->op == PX_OP_STAY;
            if (s->op == PX_OP_WAIT || s->op == PX_OP_IDS || init)
                s->flags &= (uint16_t)~PX_STEP_SETGROUPS;
            if (init) {
                s->num = policy->user.uid;
                s->num2 = policy->user.gid;
            }
        }
        px_plan_spare_init(plan);
        share_files(plan);
        px_plan_lacks(plan, "ids: the payload has the caller's own id");
        if (px_sys(SYS_getgroups, 0, 0) > 0)
            px_plan_lacks(plan, "groups: the caller's groups are kept");
    }
    return px_plan_arm(plan, &box->ids, e);
}

static int add_event(struct px_box *box, int fd, uint32_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
    return epoll_ctl(box->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* The next of all that can come, on one timer. */
static void set_timer(struct px_box *box)
{
    const uint64_t all[] = {box->deadline_nsec, box->grace_nsec, box->force_nsec, box->stuck_nsec,
                            box->eof_nsec,      box->disk_nsec, box->carrier_nsec};
    uint64_t at = 0;
    for (size_t i = 0; i < PX_COUNT_OF(all); i++)
        if (all[i] && (at == 0 || all[i] < at))
            at = all[i];
    if (at == 0 || box->epoll < 0)
        return;
    if (box->timer < 0) {
        box->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (box->timer < 0 || add_event(box, box->timer, PX_EVENT_TIMER) < 0) {
            box->timer = px_fd_close(box->timer);
            return;
        }
    }
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)}};
    (void)timerfd_settime(box->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* v1 kills one process when the group is out of memory; we want to know, and end the box as v2 does by itself. A box that stays
 * goes on, and the command that lost a process says so in its result. */
static void watch_oom(struct px_box *box)
{
    int group = box->cgroup.v1[PX_CG_MEMORY].fd;
    char text[32];
    if (!box->has_cgroup || group < 0 || box->plan->stays)
        return;
    px_auto_fd int control = px_open_beneath(group, "memory.oom_control", O_RDONLY, 0);
    int event = control < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event < 0)
        return;
    box->oom_event = event;
    if (px_fmt(text, sizeof text, "%d %d", event, control) >= 0 && px_write_file(group, "cgroup.event_control", text) >= 0)
        (void)add_event(box, event, PX_EVENT_OOM);
}

/* Regular files are always ready, which an epoll cannot say: an event that is always there says it for them. */
static void watch_files(struct px_box *box)
{
    bool want = px_flow_files(box);
    if (want == box->ready_watched)
        return;
    if (box->ready_event < 0)
        box->ready_event = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = PX_EVENT_FILES};
    if (box->ready_event >= 0 && epoll_ctl(box->epoll, want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, box->ready_event, &event) == 0)
        box->ready_watched = want;
}

static int watch_all(struct px_box *box, struct px_err *e)
{
    box->epoll = epoll_create1(EPOLL_CLOEXEC);
    /* The control socket is not watched: its report is read when pid 1 is gone, which saves a wake-up. A command in a home has
     * nothing else: its own socket brings the report, or hangs up with the home. */
    if (box->epoll < 0 ||
        (box->home ? add_event(box, box->control, PX_EVENT_REPLY) : add_event(box, box->pidfd, PX_EVENT_PIDFD)) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot watch the box");
    if (box->timeout_msec)
        box->deadline_nsec = box->start_nsec + box->timeout_msec * 1000000;
    if (box->disk.on)
        box->disk_nsec = box->start_nsec + (uint64_t)DISK_MSEC * 1000000;
    set_timer(box);
    if ((box->deadline_nsec || box->disk_nsec) && box->timer < 0)
        return px_fail(e, PX_E_IO, EMFILE, "the timeout cannot be watched");
    watch_oom(box);
    if (box->listener >= 0)
        (void)add_event(box, box->listener, PX_EVENT_REFUSED);
    if (box->carrier && add_event(box, box->carrier->pidfd, PX_EVENT_CARRIER) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot watch the network of the box");
    px_flow_watch(box);
    watch_files(box);
    if (box->tty && box->flow[0].from < 0)
        px_supervise_end_input(box);    /* nobody will type anything */
    return 0;
}

char **px_supervise_copy_argv(char *const argv[])
{
    size_t count = 0, bytes = 0;
    for (; argv[count]; count++)
        bytes += strlen(argv[count]) + 1;
    char **copy = malloc((count + 1) * sizeof *copy + bytes);
    char *text = copy ? (char *)(copy + count + 1) : NULL;
    for (size_t i = 0; copy && i < count; i++) {
        size_t n = strlen(argv[i]) + 1;
        copy[i] = memcpy(text, argv[i], n);
        text += n;
    }
    if (copy)
        copy[count] = NULL;
    return copy;
}

/* A file that has a set-id bit already keeps it when it is written through a mapping, and no filter can see that: the box
 * would speak with its owner's rights on the host. So it does not get such a file to write. */
static int refuse_set_id(int fd, const struct stat *st, const char *path, struct px_err *e)
{
    char name[256] = "";
    int r = 0;
    if (S_ISDIR(st->st_mode))
        r = px_tree_find_set_id(fd, name, sizeof name);
    else if (st->st_mode & (S_ISUID | S_ISGID))
        r = px_fmt(name, sizeof name, "itself") < 0 ? 0 : 1;
    if (r < 0)
        return px_fail(e, PX_E_BIND, r, "cannot search '%s' for set-id files", path);
    if (r == 0)
        return 0;
    px_fail(e, PX_E_BIND, 0, "cannot bind '%s' for writing: it holds a set-id file (%s)", path, name);
    px_why(e, "A box that can write such a file could leave a program on the host that runs with its owner's rights.");
    return px_fix(e, "Bind it read-only: -v %s:...:ro.\nOr take the bit away: chmod ug-s.", path);
}

/* Directories that take changes are made ready; what each is laid over is the step that follows. */
static int open_uppers(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    int count = 0;
    for (uint32_t i = 0; i + 1 < box->plan->count && count < PX_UPPERS; i++) {
        struct px_step *s = &box->plan->steps[i];
        if (s->op != PX_OP_UPPER || !s->src || s->flags & PX_STEP_INSIDE)
            continue;
        bool changes = s[1].op == PX_OP_CHANGES;
        const struct px_upper_want want = {
            .path = px_plan_text(box->plan, s->src),
            .lower_path = px_plan_text(box->plan, s[1].src),
            .lower = s + 1,
            .keep = changes ? !policy->apply && !policy->discard : policy->persist,
            .reuse = changes,
            .private = changes || policy->build,
            .note = changes && box->after ? box->after->note : NULL,
        };
        if (px_upper_open(&box->upper[count++], s, &want, e) < 0)
            return -1;
    }
    return 0;
}

/* What the box may write of the caller's files by this step: a descriptor, -EBADF for nothing, or another -errno. */
static int writable_of(const struct px_box *box, const struct px_step *s)
{
    for (int i = 0; i < PX_UPPERS; i++)
        if (box->upper[i].step == s)
            return (int)px_sys(SYS_fcntl, box->upper[i].upper, F_DUPFD_CLOEXEC, 3);
    if (s->op != PX_OP_BIND || !(s->flags & PX_STEP_CALLER) || s->attr & PX_MOUNT_RDONLY)
        return -EBADF;
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, px_plan_text(box->plan, s->src), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd == -EACCES)          /* not ours to read, so not ours to change */
        return -EBADF;
    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_dev != s->num || st.st_ino != s->num2))
        return -ESTALE;
    return px_fd_take(&fd);
}

static int open_writable(struct px_box *box, struct px_err *e)
{
    const struct px_plan *plan = box->plan;
    for (uint32_t i = 0; plan->writable_binds && i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        const char *path = px_plan_text(plan, s->src);
        int fd = writable_of(box, s);
        if (fd == -EBADF)
            continue;
        int *more = fd < 0 ? NULL : realloc(box->writable, (box->writable_count + 1) * sizeof *more);
        if (!more) {
            (void)px_fd_close(fd);
            return fd < 0 ? px_fail(e, PX_E_BIND, fd, "cannot bind '%s'", path) : px_fail(e, PX_E_MEMORY, ENOMEM, "box");
        }
        box->writable = more;
        box->writable[box->writable_count++] = fd;
        struct stat st;
        if (fstat(fd, &st) < 0)
            return px_fail(e, PX_E_BIND, errno, "cannot bind '%s'", path);
        if (refuse_set_id(fd, &st, path, e) < 0)
            return -1;
    }
    if (box->writable_count && px_policy_limited(box->disk_bytes))
        px_disk_start(&box->disk, box->writable, box->writable_count, box->disk_bytes, px_places_inodes(box->disk_bytes));
    return 0;
}

/* A hundred boxes at once are a hundred supervisors: a plan that was carried out is memory for nothing. */
static int let_go_of_plan(struct px_box *box)
{
    box->argv = px_supervise_copy_argv(box->partner ? box->partner->argv : box->plan->argv);
    if (!box->argv)
        return -1;
    px_report_isolation(box);
    box->keep_ids = box->ids.kind == PX_IDMAP_SINGLE;
    bool needed = box->stamps || box->plan->tier != PX_TIER_FULL;
    if (!needed) {
        px_plan_free(box->plan);
        box->plan = NULL;
        for (int i = 0; i < PX_UPPERS; i++)
            box->upper[i].step = NULL;
    }
    return 0;
}

/* A home moves no bytes itself, and there may be thousands of them. */
static struct px_box *empty_box(bool streams)
{
    struct px_box *box = calloc(1, streams ? sizeof *box : offsetof(struct px_box, chunks));
    if (!box)
        return NULL;
    box->ids.lock_fd = -EBADF;
    box->cgroup = (struct px_cgroup)PX_CGROUP_NONE;
    for (int i = 0; i < PX_UPPERS; i++)
        box->upper[i] = (struct px_upper)PX_UPPER_NONE;
    int *const fds[] = {&box->pidfd, &box->payload,     &box->control,  &box->epoll,    &box->timer,
                        &box->oom_event, &box->ready_event, &box->terminal, &box->listener, &box->scratch_lock,
                        &box->notes, &box->record, &box->changes};
    for (size_t i = 0; i < PX_COUNT_OF(fds); i++)
        *fds[i] = -EBADF;
    for (int i = 0; i < PX_FLOW_COUNT; i++) {
        box->flow[i].from = box->flow[i].to = -EBADF;
        box->flow[i].chunk = streams ? box->chunks[i] : NULL;
    }
    return box;
}

struct px_box *px_supervise_guest(void)
{
    struct px_box *box = empty_box(false);
    if (box)
        box->guest = true;
    return box;
}

static struct px_box *new_box(struct px_plan *plan, const struct px_policy *policy)
{
    struct px_box *box = empty_box(!plan || !plan->stays);
    if (!box)
        return NULL;
    box->plan = plan;
    box->partner = plan ? plan->partner : NULL;
    box->after = plan ? plan->after : NULL;
    box->carrier = plan ? plan->carrier : NULL;
    bool timed = px_policy_limited(policy->timeout_msec) && !px_policy_without(policy, PX_WITHOUT_TIMEOUT);
    box->timeout_msec = timed ? policy->timeout_msec : 0;
    box->cpu_time_msec = policy->cpu_time_msec;
    box->file_bytes = policy->file_bytes;
    box->disk_bytes = policy->disk_bytes;
    box->output_end = policy->output_end;
    box->own_filter = plan && plan->own_filter;
    box->strict = px_policy_strict(policy);
    box->reaper = plan && plan->tier != PX_TIER_FULL;
    box->tty = policy->tty;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    box->start_realtime_sec = now.tv_sec;
    box->start_nsec = px_now_nsec();
    void *handler[4] = {0};
    (void)px_sys(SYS_rt_sigaction, SIGPIPE, 0, handler, 8);
    box->sigpipe_ignored = handler[0] == (void *)SIG_IGN;
    if (policy->timings && plan)
        box->stamps = calloc(plan->count, sizeof *box->stamps);
    return box;
}

int px_supervise_start(struct px_plan *plan, const struct px_policy *policy, const struct px_io *io, struct px_box **ret_box,
                       struct px_err *e)
{
    struct px_box *box = new_box(plan, policy);
    if (!box) {
        if (plan->partner)
            plan->partner->done(plan->partner);
        if (plan->after)
            plan->after->done(plan->after);
        if (plan->carrier)
            plan->carrier->done(plan->carrier);
        px_plan_free(plan);
        return px_fail(e, PX_E_MEMORY, ENOMEM, "box");
    }
    if ((plan->carried && !plan->carrier) || (plan->joins && plan->join < 0)) {
        px_supervise_free(box);
        return px_fail(e, PX_E_NOT_BUILT, 0,
                       "boxes made ahead of time with --net outbound, --net box or --publish are not part of this build");
    }
    if (make_id(box->id) < 0 || open_uppers(box, policy, e) < 0 || open_writable(box, e) < 0 ||
        choose_ids(box, policy, e) < 0 || make_cgroup(box, policy, e) < 0) {
        px_supervise_free(box);
        return -1;
    }
    settle_rlimits(box, policy);
    if ((box->partner && box->partner->prepare(box, policy, e) < 0) || px_launch(box, policy, io, e) < 0 || watch_all(box, e) < 0 || let_go_of_plan(box) < 0) {
        if (e && e->code == 0)
            px_fail(e, PX_E_MEMORY, ENOMEM, "box");
        px_supervise_free(box);
        return -1;
    }
    *ret_box = box;
    return 0;
}

int px_supervise_exec(struct px_box *home, const struct px_policy *policy, const char *const argv[], const struct px_io *io,
                      struct px_box **ret_box, struct px_err *e)
{
    struct px_box *box = new_box(NULL, policy);
    if (!box)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "box");
    box->home = home;
    px_report_home(box);
    if (make_id(box->id) < 0 || px_command_start(box, policy, argv, io, e) < 0 || watch_all(box, e) < 0) {
        px_supervise_free(box);
        return -1;
    }
    *ret_box = box;
    return 0;
}

/* ---- ending ---- */

static void end_with(struct px_box *box, enum px_end why)
{
    if (box->end != PX_END_NONE)
        return;
    box->end = why;
    box->end_nsec = px_now_nsec();
}

/* pid 1 and with it everything, by the kernel's own hand. Without a pid namespace px-init is that hand: it gets a hang-up. */
static void force(struct px_box *box)
{
    /* Only ever the command: the home and the others in it stay. Its leader alone only if pid 1 cannot listen: a leader that is
     * dead already has no number by which the rest of its group could be killed. */
    if (box->home && px_command_signal(box, SIGKILL) < 0 && box->payload >= 0)
        (void)px_pidfd_signal(box->payload, SIGKILL);
    if (box->has_cgroup && !box->reaper)
        (void)px_cgroup_kill(&box->cgroup);
    if (box->reaper && box->control >= 0) {
        (void)px_sys(SYS_shutdown, box->control, SHUT_RDWR);
        if (box->payload >= 0)
            (void)px_pidfd_signal(box->payload, SIGKILL);
    } else if (box->pidfd >= 0) {
        (void)px_pidfd_signal(box->pidfd, SIGKILL);
    }
    box->forced = true;
    box->force_nsec = 0;
    box->stuck_nsec = px_now_nsec() + (uint64_t)STUCK_MSEC * 1000000;
    set_timer(box);
}

/* The command dies first, so that px-init can still say what it used (the kernel forgets that of processes which die with
 * their namespace); px-init then ends the rest. Should that take a moment too long, the namespace is ended by force. */
void px_supervise_kill(struct px_box *box, enum px_end why)
{
    if (box->reaped)
        return;
    end_with(box, why);
    box->deadline_nsec = box->grace_nsec = 0;
    if (box->forced || box->force_nsec)
        return;
    if (box->home || box->payload < 0 || px_pidfd_signal(box->payload, SIGKILL) < 0) {
        force(box);
        return;
    }
    box->force_nsec = px_now_nsec() + (uint64_t)FORCE_MSEC * 1000000;
    set_timer(box);
}

int px_supervise_signal(struct px_box *box, int signal)
{
    if (box->reaped)
        return -ESRCH;
    if (signal == SIGKILL) {
        px_supervise_kill(box, PX_END_KILLED);
        return 0;
    }
    /* A partner's program passes it on by itself; others in its group would die of it. */
    bool alone = box->partner && !box->partner->inside;
    int r = box->home ? px_command_signal(box, signal)
            : alone ? px_pidfd_signal(box->payload, signal)
                    : px_pidfd_signal_group(box->payload, signal);
    if ((signal == SIGTERM || signal == SIGHUP) && box->grace_nsec == 0) {
        box->grace_nsec = px_now_nsec() + (uint64_t)GRACE_MSEC * 1000000;
        set_timer(box);
    }
    return r;
}

/* A terminal's end of input is a character, and a program that changes the terminal's mode while it arrives loses it: so
 * it is said a few times. */
void px_supervise_end_input(struct px_box *box)
{
    if (box->eof_nsec && px_now_nsec() < box->eof_nsec)
        return;
    (void)px_sys(SYS_write, box->terminal, "\x04", 1);
    box->eof_nsec = ++box->eof_count < EOF_TIMES ? px_now_nsec() + (uint64_t)EOF_MSEC * 1000000 : UINT64_MAX;
    if (box->eof_nsec != UINT64_MAX)
        set_timer(box);
}

int px_supervise_resize(struct px_box *box, unsigned short rows, unsigned short cols)
{
    const struct winsize size = {.ws_row = rows, .ws_col = cols};
    if (box->terminal < 0)
        return -ENOTTY;
    return (int)px_sys(SYS_ioctl, box->terminal, TIOCSWINSZ, &size);
}

/* px-init counts them in a box that stays; in any other we do. */
static void take_refused(struct px_box *box, const struct px_init_refused *list, uint32_t count)
{
    if (!box->home)
        return;
    box->refused_count = count < PX_INIT_REFUSED_MAX ? count : PX_INIT_REFUSED_MAX;
    memcpy(box->refused, list, box->refused_count * sizeof *list);
}

static void take_report(struct px_box *box)
{
    struct px_init_report report;
    long n = px_sys(SYS_recvfrom, box->control, &report, sizeof report, MSG_DONTWAIT, 0, 0);
    if (n == sizeof report && !box->have_report) {
        box->report = report;
        box->have_report = true;
        take_refused(box, report.refused, report.refused_count);
        end_with(box, PX_END_EXIT);
    }
}

/* What the box has sent is delivered, for a bounded time; step goes on until that is over. */
static void end_carrier(struct px_box *box)
{
    if (!box->carrier || box->carrier_gone)
        return;
    box->carrier->end(box->carrier);
    box->carrier_nsec = px_now_nsec() + (uint64_t)CARRIER_MSEC * 1000000;
    set_timer(box);
}

static int reap(struct px_box *box, struct px_err *e)
{
    int r = px_pidfd_wait(box->pidfd, true, &box->init_status, &box->usage);
    if (r == 0)
        return 0;
    /* -ECHILD: the program that uses us waits for any child and was faster; px-init's own report stands in. */
    take_report(box);
    box->reaped = true;
    (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->pidfd, NULL);
    r = box->partner ? box->partner->gone(box, e) : 0;
    end_with(box, PX_END_LOST);
    end_carrier(box);
    return r;
}

/* The report, or the end of the home without one. */
static void on_reply(struct px_box *box)
{
    take_report(box);
    end_with(box, PX_END_LOST);
    box->reaped = true;
    px_flow_bound(box);
    (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->control, NULL);
}

static int on_timer(struct px_box *box, struct px_err *e)
{
    uint64_t count, now = px_now_nsec();
    (void)px_read_some(box->timer, &count, sizeof count);
    if (box->carrier_nsec && now >= box->carrier_nsec) {
        box->carrier_nsec = 0;
        box->carrier->kill(box->carrier);
    }
    if (box->reaped)
        return 0;
    if (box->stuck_nsec && now >= box->stuck_nsec)
        return px_fail(e, PX_E_STUCK, 0, "box %s was killed %d s ago and is still there", box->id, STUCK_MSEC / 1000);
    if (box->force_nsec && now >= box->force_nsec)
        force(box);
    else if (box->deadline_nsec && now >= box->deadline_nsec)
        px_supervise_kill(box, PX_END_TIMEOUT);
    else if (box->grace_nsec && now >= box->grace_nsec)
        px_supervise_kill(box, PX_END_KILLED);
    if (box->eof_nsec && now >= box->eof_nsec)
        px_supervise_end_input(box);
    if (box->disk_nsec && now >= box->disk_nsec) {
        box->disk_nsec = now + (uint64_t)DISK_MSEC * 1000000;
        if (px_disk_over(&box->disk, box->writable, box->writable_count, box->pid, now))
            px_supervise_kill(box, PX_END_DISK);
    }
    set_timer(box);
    return 0;
}

static void note_refused(struct px_box *box, int number)
{
    for (size_t i = 0; i < box->refused_count; i++)
        if (box->refused[i].number == number) {
            box->refused[i].count++;
            return;
        }
    if (box->refused_count < PX_INIT_REFUSED_MAX)
        box->refused[box->refused_count++] = (struct px_init_refused){.number = number, .count = 1};
}

/* Each is answered as the filter would have; a program that asks without end only holds up itself. */
static void on_refused(struct px_box *box)
{
    for (int i = 0; i < 32; i++) {
        struct pollfd state = {.fd = box->listener, .events = POLLIN};
        (void)px_sys(SYS_poll, &state, 1, 0);
        if (state.revents & POLLIN) {
            int number = px_notify_take(box->listener, box->own_filter);
            if (number >= 0)
                note_refused(box, number);
            continue;
        }
        if (state.revents) {            /* nobody is left under the filter */
            (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->listener, NULL);
            box->listener = px_fd_close(box->listener);
        }
        return;
    }
}

static void add_hint(struct px_box *box, const char *hint)
{
    if (box->result.hints_count < PX_COUNT_OF(box->result.hints))
        box->result.hints[box->result.hints_count++] = hint;
}

static int dispatch(struct px_box *box, uint32_t tag, struct px_err *e)
{
    switch (tag) {
    case PX_EVENT_PIDFD:
        return reap(box, e);
    case PX_EVENT_TIMER:
        return on_timer(box, e);
    case PX_EVENT_OOM:
        px_supervise_kill(box, PX_END_MEMORY);
        return 0;
    case PX_EVENT_REPLY:
        on_reply(box);
        return 0;
    case PX_EVENT_REFUSED:
        on_refused(box);
        return 0;
    case PX_EVENT_PARTNER:
        box->partner->ready(box);
        return 0;
    case PX_EVENT_CARRIER:
        (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->carrier->pidfd, NULL);
        box->carrier_gone = true;
        if (!box->reaped && !box->forced && box->end == PX_END_NONE)    /* else it was ended with the box */
            add_hint(box, "the network of the box failed before the box ended");
        return 0;
    case PX_EVENT_FILES:           /* seen to by the caller */
        return 0;
    default:
        px_flow_ready(box, (int)(tag & 3));
        return 0;
    }
}

/* Set-id bits on files that the box could write: refused by the filter, and taken away once more here (a file that had them
 * before keeps them when it is written through a mapping). */
static void strip_binds(struct px_box *box)
{
    int changed = 0, worst = 0;
    for (size_t i = 0; i < box->writable_count; i++) {
        struct stat st;
        int r = fstat(box->writable[i], &st) < 0 ? -errno
                : S_ISDIR(st.st_mode)           ? px_tree_strip(box->writable[i], box->start_realtime_sec - 1)
                                                : px_tree_strip_file(box->writable[i]);
        changed += r > 0 ? r : 0;
        worst = r < 0 ? r : worst;
    }
    if (changed > 0)
        add_hint(box, "set-id bits were removed from files in a writable bind");
    if (worst < 0)
        add_hint(box, "a writable bind could not be searched for set-id files to the end");
}

static int finish(struct px_box *box, struct px_err *e)
{
    strip_binds(box);
    if (box->disk.on)           /* what came after the last look counts as well */
        box->disk.over = px_disk_over(&box->disk, box->writable, box->writable_count, 0, px_now_nsec());
    px_report_make(box);
    for (int i = 0; i < PX_FLOW_COUNT; i++)     /* whoever reads what we hand on sees the end now */
        px_flow_close(box, i);
    int r = box->has_cgroup ? px_cgroup_done(&box->cgroup) : 0;
    box->has_cgroup = false;
    px_idmap_done(&box->ids);
    box->finished = true;
    int after = box->after ? box->after->ended(box, e) : 0;
    for (int i = 0; i < PX_UPPERS; i++)
        px_upper_done(&box->upper[i]);
    if (after < 0)
        return after;
    if (r < 0)
        return px_fail(e, PX_E_STUCK, r, "the cgroup of box %s cannot be removed", box->id);
    if (box->output_error < 0)
        return px_fail(e, PX_E_IO, box->output_error, "output of the box could not be written");
    return 0;
}

int px_supervise_step(struct px_box *box, int wait_msec, struct px_err *e)
{
    if (box->finished)
        return 0;
    struct epoll_event events[16];
    bool files = px_flow_files(box);
    int n = epoll_wait(box->epoll, events, 16, files || box->reaped ? 0 : wait_msec);
    if (n < 0 && errno != EINTR)
        return px_fail(e, PX_E_IO, errno, "cannot watch the box");
    for (int i = 0; i < n; i++)
        if (dispatch(box, events[i].data.u32, e) < 0)
            return -1;
    for (int i = 0; files && i < PX_FLOW_COUNT; i++)
        px_flow_ready(box, i);
    watch_files(box);
    if (!box->reaped)
        return 1;
    px_flow_drain(box);
    /* Only the caller's own reader is slow now, or a server that gets the box's last bytes. */
    if (px_flow_busy(box) || (box->carrier && !box->carrier_gone)) {
        if (n == 0 && wait_msec != 0)
            (void)epoll_wait(box->epoll, events, 16, wait_msec);
        return 1;
    }
    return finish(box, e) < 0 ? -1 : 0;
}

void px_supervise_free(struct px_box *box)
{
    if (!box)
        return;
    if (box->home && box->control >= 0 && !box->reaped)
        force(box);
    if (box->pidfd >= 0 && !box->reaped && !box->guest) {
        struct pollfd gone = {.fd = box->pidfd, .events = POLLIN};
        force(box);
        if (px_sys(SYS_poll, &gone, 1, STUCK_MSEC) > 0)
            (void)px_pidfd_wait(box->pidfd, true, &box->init_status, NULL);
    }
    if (box->partner)
        box->partner->done(box->partner);
    for (int i = 0; i < PX_FLOW_COUNT; i++) {
        px_flow_close(box, i);
        px_headtail_done(&box->flow[i].kept);
    }
    if (box->carrier)           /* before the cgroup, in which it is */
        box->carrier->done(box->carrier);
    if (box->has_cgroup)
        (void)px_cgroup_done(&box->cgroup);
    if (box->after)
        box->after->done(box->after);
    for (int i = 0; i < PX_UPPERS; i++)
        px_upper_done(&box->upper[i]);
    px_idmap_done(&box->ids);
    int *const fds[] = {&box->pidfd, &box->payload, &box->control, &box->timer, &box->oom_event, &box->ready_event, &box->terminal,
                        &box->listener, &box->scratch_lock, &box->notes, &box->record, &box->changes, &box->epoll};
    for (size_t i = 0; i < PX_COUNT_OF(fds); i++)
        *fds[i] = px_fd_close(*fds[i]);
    if (box->root_free)
        box->root_free(box->root);
    px_buf_done(&box->out_text);
    px_buf_done(&box->err_text);
    for (size_t i = 0; i < box->writable_count; i++)
        (void)px_fd_close(box->writable[i]);
    free(box->writable);
    free(box->carrier_mark);
    free(box->carrier_told);
    px_plan_free(box->plan);
    free(box->argv);
    free(box->stamps);
    free(box);
}

/* ---- what each step cost ---- */

int px_supervise_timings(const struct px_box *box, char **ret_text, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    if (!box->stamps)
        return px_fail(e, PX_E_USAGE, 0, "timings were not asked for");
    px_buf_printf(&out, "  %-40s %8s\n", "step", "us");
    uint64_t sum[PX_OP_COUNT] = {0};
    uint32_t times[PX_OP_COUNT] = {0};
    uint64_t before = box->clone_nsec;  /* so the first step carries the clone itself */
    uint64_t forked = 0;                /* the payload's clock starts there */
    for (uint32_t i = 0; i < box->plan->count; i++) {
        enum px_op op = box->plan->steps[i].op;
        if (i == box->plan->payload_from)
            before = forked;
        if (box->stamps[i] == 0)
            continue;
        sum[op] += box->stamps[i] - before;
        times[op]++;
        before = box->stamps[i];
        forked = op == PX_OP_PAYLOAD ? before : forked;
    }
    for (int op = 0; op < PX_OP_COUNT; op++)
        if (times[op])
            px_buf_printf(&out, "  %-32s %3u x %8.1f\n", px_op_word((enum px_op)op), times[op], (double)sum[op] / 1000);
    px_buf_printf(&out, "  %-40s %8.1f\n", "plan", (double)(box->clone_nsec - box->start_nsec) / 1000);
    px_buf_printf(&out, "  %-40s %8.1f\n", "clone-to-exec", (double)(box->ready_nsec - box->clone_nsec) / 1000);
    px_buf_printf(&out, "  %-40s %8.1f\n", "run", (double)(box->end_nsec - box->ready_nsec) / 1000);
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "timings");
    *ret_text = px_buf_take(&out);
    return 0;
}
