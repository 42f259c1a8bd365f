#include "box/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/lend.h"
#include "kernel/notify.h"
#include "kernel/pidfd.h"
#include "kernel/tree.h"

enum { GRACE_MSEC = 2000, FORCE_MSEC = 200, STUCK_MSEC = 20000, EOF_MSEC = 250, EOF_TIMES = 20, DISK_MSEC = 50, CARRIER_MSEC = 5000,
       CALLER_NSEC = 5000 /* about what the caller's own poll costs */ };

/* ---- watching ---- */

static int add_event(struct px_box *box, int fd, uint32_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
    return epoll_ctl(box->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Arms the timer for the earliest deadline. */
static void set_timer(struct px_box *box)
{
    const uint64_t all[] = {box->deadline_nsec, box->grace_nsec, box->force_nsec, box->stuck_nsec,
                            box->eof_nsec,      box->disk_nsec, box->carrier_nsec, box->pace_nsec};
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

/* A v1 cgroup out of memory kills one process. px listens for that event and ends the box, as v2 does by itself. A
 * container goes on: the command that lost a process reports it in its result. */
int px_supervise_hear_oom(struct px_box *box)
{
    int group = box->cgroup.v1[PX_CG_MEMORY].fd;
    char text[32];
    if (!box->has_cgroup || group < 0)
        return 0;
    px_auto_fd int control = px_open_beneath(group, "memory.oom_control", O_RDONLY, 0);
    if (control < 0)
        return control;
    box->oom_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (box->oom_event < 0)
        return -errno;
    int r = px_fmt(text, sizeof text, "%d %d", box->oom_event, control);
    r = r < 0 ? r : px_write_file(group, "cgroup.event_control", text);
    return r == -ENOENT ? 0 : r;        /* a real-time kernel has no such events */
}

static void watch_refused(const struct px_box *box, bool want)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = PX_EVENT_REFUSED};
    if (box->listener >= 0)
        (void)epoll_ctl(box->epoll, want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, box->listener, &event);
}

/* epoll does not take regular files, which are always ready. An eventfd that is always readable stands for them. */
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

int px_supervise_watch(struct px_box *box, struct px_err *e)
{
    box->epoll = epoll_create1(EPOLL_CLOEXEC);
    /* The control socket is not watched: its report is read when pid 1 has ended, which saves a wake-up. A command in
     * a container has only its own socket, which brings the report, or hangs up when the container ends. */
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
    if (box->oom_event >= 0)
        (void)add_event(box, box->oom_event, PX_EVENT_OOM);
    watch_refused(box, true);
    if (box->carrier && add_event(box, box->carrier->pidfd, PX_EVENT_CARRIER) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot watch the network of the box");
    px_flow_watch(box);
    watch_files(box);
    if (box->tty && box->flow[0].from < 0)
        px_supervise_end_input(box);    /* there will be no input */
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

/* Kills pid 1, and the kernel then kills the whole pid namespace. Without a pid namespace px-init kills the
 * processes: it gets a hang-up. */
static void kill_all(struct px_box *box)
{
    /* In a container kills this command only. If pid 1 does not take the request, kills only the leader: once the
     * leader is dead, its process group has no number by which px could kill the rest. */
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

/* The command is killed first, so that px-init can still report what it used (the kernel loses the usage of processes
 * that die with their namespace). px-init then ends the rest. After FORCE_MSEC the namespace is killed. */
void px_supervise_kill(struct px_box *box, enum px_end why)
{
    if (box->reaped)
        return;
    end_with(box, why);
    box->deadline_nsec = box->grace_nsec = 0;
    if (box->forced || box->force_nsec)
        return;
    if (box->home || box->payload < 0 || px_pidfd_signal(box->payload, SIGKILL) < 0) {
        kill_all(box);
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
    /* A runtime's program forwards the signal itself; other processes in its group would die of it. */
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

/* A terminal's end of input is a character (^D). A program that changes the terminal's mode while it arrives loses
 * it, so it is sent up to EOF_TIMES times. */
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

/* In a container px-init counts refused calls; in any other box px does. */
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

/* The driver delivers what the box has sent, for CARRIER_MSEC at most. px_supervise_step goes on until it has ended. */
static void end_carrier(struct px_box *box)
{
    if (!box->carrier || box->carrier_gone)
        return;
    box->carrier->end(box->carrier);
    box->carrier_nsec = px_now_nsec() + (uint64_t)CARRIER_MSEC * 1000000;
    set_timer(box);
}

static int reap_init(struct px_box *box, struct px_err *e)
{
    int r = px_pidfd_wait(box->pidfd, true, &box->init_status, &box->usage);
    if (r == 0)
        return 0;
    /* -ECHILD: the program that uses the library waited for any child and reaped it first. px-init's report replaces
     * the usage. */
    take_report(box);
    box->reaped = true;
    (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->pidfd, NULL);
    r = box->partner ? box->partner->gone(box, e) : 0;
    end_with(box, PX_END_LOST);
    end_carrier(box);
    return r;
}

/* The report of a command, or a hang-up because the container ended. */
static void on_reply(struct px_box *box)
{
    take_report(box);
    end_with(box, PX_END_LOST);
    box->reaped = true;
    px_flow_bound(box);
    (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->control, NULL);
}

/* Until then neither output nor refused calls are read: the box waits, and costs px no time. 0: go on. */
static void pause_until(struct px_box *box, uint64_t until)
{
    bool was = box->pace_nsec != 0;
    box->pace_nsec = until;
    set_timer(box);
    if (box->timer < 0)         /* no descriptor is left for a timer: do not pause */
        box->pace_nsec = 0;
    if (was == (box->pace_nsec != 0))
        return;
    watch_refused(box, was);
    px_flow_watch(box);
}

static uint64_t own_nsec(void)
{
    struct timespec used = {0};
    (void)px_sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
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

/* Each refused call is answered with the filter's error. A program that calls without end delays only itself. */
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
        if (state.revents) {            /* no process is left under the filter */
            (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->listener, NULL);
            box->listener = px_fd_close(box->listener);
        }
        return;
    }
}

/* Reads at once, so that every pause is followed by some reading: the wake-up alone may cost more than the pause
 * saved. */
static void end_pause(struct px_box *box)
{
    pause_until(box, 0);
    for (int i = 1; i < PX_FLOW_COUNT; i++)
        px_flow_ready(box, i);
    if (box->listener >= 0)
        on_refused(box);
}

/* The verdict is written before the kill: a process that waits for a command of the box reads it once the box has
 * ended. */
static void end_full(struct px_box *box)
{
    if (box->verdict >= 0)
        (void)px_sys(SYS_pwrite64, box->verdict, &box->disk, sizeof box->disk, 0);
    px_supervise_kill(box, PX_END_DISK);
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
        kill_all(box);
    else if (box->deadline_nsec && now >= box->deadline_nsec)
        px_supervise_kill(box, PX_END_TIMEOUT);
    else if (box->grace_nsec && now >= box->grace_nsec)
        px_supervise_kill(box, PX_END_KILLED);
    if (box->pace_nsec && now >= box->pace_nsec)
        end_pause(box);
    if (box->eof_nsec && now >= box->eof_nsec)
        px_supervise_end_input(box);
    if (box->disk_nsec && now >= box->disk_nsec) {
        box->disk_nsec = now + (uint64_t)DISK_MSEC * 1000000;
        if (px_disk_over(&box->disk, box->writable, box->writable_count, box->pid, now))
            end_full(box);
    }
    set_timer(box);
    return 0;
}

static void add_hint(struct px_box *box, const char *hint)
{
    if (box->result.hints_count < PX_COUNT_OF(box->result.hints))
        box->result.hints[box->result.hints_count++] = hint;
}

static int handle_event(struct px_box *box, uint32_t tag, struct px_err *e)
{
    switch (tag) {
    case PX_EVENT_PIDFD:
        return reap_init(box, e);
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
        if (!box->reaped && !box->forced && box->end == PX_END_NONE)    /* else the driver was ended with the box */
            add_hint(box, "the network of the box failed before the box ended");
        return 0;
    case PX_EVENT_FILES:           /* px_supervise_step serves them */
        return 0;
    default:
        px_flow_ready(box, (int)(tag & 3));
        return 0;
    }
}

/* Removes set-id bits and capabilities of files that the box could write. The filter refuses to set them, but a file
 * that had them before keeps them when it is written through a mapping. */
static void strip_binds(struct px_box *box)
{
    int changed = box->stripped, worst = 0;
    for (size_t i = 0; i < box->writable_count; i++) {
        struct stat st;
        int r = fstat(box->writable[i], &st) < 0 ? -errno
                : S_ISDIR(st.st_mode)           ? px_kernel_tree_strip(box->writable[i], box->start_realtime_sec - 1)
                                                : px_kernel_tree_strip_file(box->writable[i]);
        changed += r > 0 ? r : 0;
        worst = r < 0 ? r : worst;
    }
    if (changed > 0)
        add_hint(box, "set-id bits or capabilities were removed from files that the box could write");
    if (worst < 0)
        add_hint(box, "a writable bind could not be searched for set-id files to the end");
}

static int finish_run(struct px_box *box, struct px_err *e)
{
    strip_binds(box);
    if (box->disk.on)           /* what was written after the last measurement counts too */
        box->disk.over = px_disk_over(&box->disk, box->writable, box->writable_count, 0, px_now_nsec());
    if (box->disk.on && box->disk.unread_before)
        add_hint(box, "a part of a writable bind could not be read: what was written there is not counted by --disk");
    if (!px_lend_back(box))
        add_hint(box, "a part of a writable bind could not be given back: files in it have ids of the box");
    px_report_make(box);
    for (int i = 0; i < PX_FLOW_COUNT; i++)     /* readers of the forwarded output see its end now */
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
    uint64_t began = box->pace.cpus_milli ? own_nsec() : 0;     /* waking up costs as much as reading */
    int n = epoll_wait(box->epoll, events, 16, files || box->reaped ? 0 : wait_msec);
    if (n < 0 && errno != EINTR)
        return px_fail(e, PX_E_IO, errno, "cannot watch the box");
    for (int i = 0; i < n; i++)
        if (handle_event(box, events[i].data.u32, e) < 0)
            return -1;
    for (int i = 0; files && i < PX_FLOW_COUNT; i++)
        px_flow_ready(box, i);
    watch_files(box);
    if (box->pace.cpus_milli && !box->reaped && !box->pace_nsec) {
        uint64_t until = px_pace_spend(&box->pace, own_nsec() - began + CALLER_NSEC, px_now_nsec());
        if (until)
            pause_until(box, until);
    }
    if (!box->reaped)
        return 1;
    px_flow_drain(box);
    /* Only the caller's own reader is slow now, or a server that receives the last bytes of the box. */
    if (px_flow_busy(box) || (box->carrier && !box->carrier_gone)) {
        if (n == 0 && wait_msec != 0)
            (void)epoll_wait(box->epoll, events, 16, wait_msec);
        return 1;
    }
    return finish_run(box, e) < 0 ? -1 : 0;
}

void px_supervise_abandon(struct px_box *box)
{
    if (box->home && box->control >= 0 && !box->reaped)
        kill_all(box);
    if (box->pidfd < 0 || box->reaped || box->guest)
        return;
    struct pollfd gone = {.fd = box->pidfd, .events = POLLIN};
    kill_all(box);
    if (px_sys(SYS_poll, &gone, 1, STUCK_MSEC) > 0)
        (void)px_pidfd_wait(box->pidfd, true, &box->init_status, NULL);
}
