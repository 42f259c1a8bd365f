/* Moves bytes between the caller's descriptors and the box's, through one small buffer for each direction.
 *
 *
 * The caller's descriptors may block: other programs share them, so O_NONBLOCK must not be set. Each write follows a
 * poll and is at most PIPE_BUF long, which never blocks on a pipe that poll reported ready. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "box/supervise.h"

/* ---- opening ---- */

/* The mode lets the box's user open its own stream again (/dev/stdout), in the same direction. */
static int make_pipe(int *ret_read, int *ret_write, mode_t mode)
{
    int ends[2];
    int r = px_pipe(ends);
    if (r < 0)
        return r;
    (void)px_sys(SYS_fchmod, ends[0], mode);
    *ret_read = px_fd_above_stdio(ends[0]);     /* above 2: the payload's dup2 must not close them */
    *ret_write = px_fd_above_stdio(ends[1]);
    return *ret_read < 0 ? *ret_read : *ret_write < 0 ? *ret_write : 0;
}

static int not_blocking(int fd)
{
    long flags = px_sys(SYS_fcntl, fd, F_GETFL);
    return flags < 0 ? (int)flags : (int)px_sys(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
}

/* A duplicate, so that epoll can watch a descriptor that was given twice. */
static int copy_of(int fd)
{
    return (int)px_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
}

static int open_out(struct px_flow *f, bool use, int caller_fd, bool keep, int *ret_box_end)
{
    int r = make_pipe(&f->from, ret_box_end, 0222);
    if (r < 0 || (r = not_blocking(f->from)) < 0)
        return r;
    f->capture = keep || !use;
    f->to = use ? copy_of(caller_fd) : -EBADF;
    if (use && f->to < 0)
        return f->to;
    struct stat st;
    f->splice = use && !f->capture && f->limit == 0 && fstat(f->to, &st) == 0 && S_ISFIFO(st.st_mode);
    return 0;
}

static int open_in(struct px_flow *f, bool use, int caller_fd, int *ret_box_end)
{
    if (!use) {
        f->closed = true;
        *ret_box_end = -1;      /* the box's /dev/null */
        return 0;
    }
    int r = make_pipe(ret_box_end, &f->to, 0444);
    if (r < 0 || (r = not_blocking(f->to)) < 0)
        return r;
    f->from = copy_of(caller_fd);
    return f->from < 0 ? f->from : 0;
}

/* With a terminal, the master is known only once the box runs. Until then `from` and `to` are the caller's
 * descriptors. */
static int open_tty(struct px_box *box, const struct px_io *io)
{
    struct px_flow *in = &box->flow[0], *out = &box->flow[1];
    in->from = io->use_in ? copy_of(io->in) : -EBADF;
    in->closed = !io->use_in;
    out->to = io->use_out ? copy_of(io->out) : -EBADF;
    out->capture = io->keep || !io->use_out;
    box->flow[2].closed = true;
    if (io->use_in && in->from < 0)
        return in->from;
    return io->use_out && out->to < 0 ? out->to : 0;
}

int px_flow_terminal(struct px_box *box)
{
    int r = not_blocking(box->terminal);
    if (r < 0)
        return r;
    box->flow[0].to = copy_of(box->terminal);
    box->flow[1].from = copy_of(box->terminal);
    return box->flow[0].to < 0 ? box->flow[0].to : box->flow[1].from < 0 ? box->flow[1].from : 0;
}

int px_flow_open(struct px_box *box, const struct px_policy *policy, const struct px_io *io, int ret_stdio[3], struct px_err *e)
{
    uint64_t keep = policy->output_bytes ? policy->output_bytes : PX_OUTPUT_DEFAULT;
    int r;

    for (int i = 1; i < PX_FLOW_COUNT; i++) {
        struct px_flow *f = &box->flow[i];
        bool unlimited = policy->output_bytes == PX_UNLIMITED;
        f->limit = unlimited ? 0 : policy->output_bytes;
        px_headtail_init(&f->kept, unlimited ? SIZE_MAX / 4 : keep, unlimited || policy->output_end ? 0 : keep);
    }
    if (box->tty) {
        r = open_tty(box, io);
    } else if ((r = open_in(&box->flow[0], io->use_in, io->in, &ret_stdio[0])) >= 0 &&
               (r = open_out(&box->flow[1], io->use_out, io->out, io->keep, &ret_stdio[1])) >= 0) {
        r = open_out(&box->flow[2], io->use_err, io->err, io->keep, &ret_stdio[2]);
    }
    return r < 0 ? px_fail(e, PX_E_IO, r, "cannot open the streams of the box") : 0;
}

/* ---- watching ---- */

static void watch_fd(struct px_box *box, int fd, bool *watched, bool *is_file, bool want, uint32_t events, uint32_t tag)
{
    struct epoll_event event = {.events = events, .data.u32 = tag};
    if (fd < 0 || *is_file || *watched == want)
        return;
    if (epoll_ctl(box->epoll, want ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event) < 0 && want) {
        *is_file = true;        /* EPERM: a regular file, which is always ready */
        return;
    }
    *watched = want;
}

/* Whether the output of the box is not read for now (box/pace.h). What the pipes hold after its end has a limit of
 * its own. */
static bool is_paused(const struct px_box *box, int i)
{
    return i > 0 && box->pace_nsec && !box->reaped;
}

static void watch_flow(struct px_box *box, int i)
{
    struct px_flow *f = &box->flow[i];
    bool pending = f->len > f->at || f->stalled, wanted = !pending && !f->closed && !is_paused(box, i);
    watch_fd(box, f->from, &f->from_watched, &f->from_file, wanted, EPOLLIN, PX_EVENT_FROM + (uint32_t)i);
    watch_fd(box, f->to, &f->to_watched, &f->to_file, pending && !(f->stalled && is_paused(box, i)), EPOLLOUT, PX_EVENT_TO + (uint32_t)i);
}

void px_flow_watch(struct px_box *box)
{
    for (int i = 0; i < PX_FLOW_COUNT; i++)
        watch_flow(box, i);
}

static void unwatch_and_close(struct px_box *box, int *fd, bool *watched)
{
    if (*fd >= 0 && *watched)
        (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, *fd, NULL);
    *watched = false;
    *fd = px_fd_close(*fd);
}

void px_flow_close(struct px_box *box, int index)
{
    struct px_flow *f = &box->flow[index];
    unwatch_and_close(box, &f->from, &f->from_watched);
    unwatch_and_close(box, &f->to, &f->to_watched);
    f->closed = true;
    f->len = f->at = 0;
}

/* ---- moving ---- */

static bool is_ready(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return px_sys(SYS_poll, &p, 1, 0) > 0;
}

/* Writes with SIGPIPE blocked: a closed pipe must not kill the program that uses the library. */
static ssize_t quiet_write(const struct px_box *box, int fd, const void *data, size_t len)
{
    if (box->sigpipe_ignored)
        return (ssize_t)px_sys(SYS_write, fd, data, len);
    const uint64_t pipe_bit = 1ull << (SIGPIPE - 1);
    uint64_t before = 0, pending = 0;
    const struct timespec now = {0};
    (void)px_sys(SYS_rt_sigprocmask, SIG_BLOCK, &pipe_bit, &before, 8);
    (void)px_sys(SYS_rt_sigpending, &pending, 8);
    ssize_t n = (ssize_t)px_sys(SYS_write, fd, data, len);
    if (n == -EPIPE && !(pending & pipe_bit))
        (void)px_sys(SYS_rt_sigtimedwait, &pipe_bit, 0, &now, 8);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    return n;
}

/* Applies the output limit to a chunk just read: the rest is counted and dropped, or ends the run. */
static void apply_limit(struct px_box *box, struct px_flow *f, bool output)
{
    uint64_t before = f->total;
    f->total += f->len;
    if (!output || f->limit == 0 || f->total <= f->limit)
        return;
    if (box->output_end)
        px_supervise_kill(box, PX_END_OUTPUT);
    if (f->to < 0 && !box->output_end)
        return;                 /* the capture keeps the head and the tail */
    f->dropped = true;
    f->len = before >= f->limit ? 0 : (uint32_t)(f->limit - before);
}

/* How much may be read. After the command's end other processes may still write to the pipe; 0: all of its own is
 * read. */
static size_t bytes_to_read(const struct px_flow *f, size_t want)
{
    return f->bounded && f->rest < want ? (size_t)f->rest : want;
}

static void take_share(struct px_flow *f, size_t taken)
{
    if (f->bounded)
        f->rest -= taken < f->rest ? taken : f->rest;
}

static bool read_chunk(struct px_box *box, int i)
{
    struct px_flow *f = &box->flow[i];
    if (f->closed || (!f->from_file && !is_ready(f->from, POLLIN)))
        return false;
    ssize_t n = bytes_to_read(f, PX_CHUNK) ? px_read_some(f->from, f->chunk, bytes_to_read(f, PX_CHUNK)) : 0;
    if (n == -EAGAIN)
        return false;
    if (n <= 0) {               /* end of file, or EIO: the other side of a terminal is closed */
        f->closed = true;
        unwatch_and_close(box, &f->from, &f->from_watched);
        return false;
    }
    f->len = (uint32_t)n;
    f->at = 0;
    take_share(f, (size_t)n);
    apply_limit(box, f, i > 0);
    if (f->capture && px_headtail_add(&f->kept, f->chunk, f->len) < 0)
        f->dropped = true;
    if (f->to < 0)
        f->len = 0;
    return true;
}

static bool write_chunk(struct px_box *box, int i)
{
    struct px_flow *f = &box->flow[i];
    if (!f->to_file && !is_ready(f->to, POLLOUT))
        return false;
    ssize_t n = quiet_write(box, f->to, f->chunk + f->at, f->len - f->at);
    if (n == -EAGAIN || n == -EINTR)
        return false;
    if (n < 0) {                /* nobody reads any more: the box gets SIGPIPE, as any program in a pipeline */
        if (i > 0 && !box->output_error)
            box->output_error = n == -EPIPE ? 0 : (int)n;
        px_flow_close(box, i);
        if (box->tty && i > 0) {        /* the caller's terminal is gone: the box's hangs up */
            px_flow_close(box, 0);
            box->terminal = px_fd_close(box->terminal);
        }
        return false;
    }
    f->at += (uint32_t)n;
    return true;
}

static bool move_pages(struct px_box *box, int i)
{
    struct px_flow *f = &box->flow[i];
    f->stalled = false;
    if (f->closed || !is_ready(f->from, POLLIN))
        return false;
    size_t want = bytes_to_read(f, 1 << 20);
    ssize_t n = want ? (ssize_t)px_sys(SYS_splice, f->from, 0, f->to, 0, want, 2 /* SPLICE_F_NONBLOCK */) : 0;
    if (n == -EAGAIN) {
        f->stalled = true;
        return false;
    }
    if (n < 0) {
        px_flow_close(box, i);
        return false;
    }
    if (n == 0) {
        f->closed = true;
        unwatch_and_close(box, &f->from, &f->from_watched);
    }
    f->total += (uint64_t)n;
    take_share(f, (size_t)n);
    return n > 0;
}

void px_flow_ready(struct px_box *box, int i)
{
    struct px_flow *f = &box->flow[i];
    /* Splicing into a pipe without readers raises SIGPIPE, unless the program ignores it. */
    bool splice = f->splice && box->sigpipe_ignored;
    for (int round = 0; round < 64; round++) {  /* bounded, so that other streams and the timer are served */
        bool pending = f->len > f->at;
        if (is_paused(box, i) && (splice || !pending))
            break;
        if (!(splice ? move_pages(box, i) : pending ? write_chunk(box, i) : read_chunk(box, i)))
            break;
    }
    if (i == 0 && f->closed && f->len <= f->at && f->to >= 0) {         /* the box reads the end of its input */
        if (box->tty)
            px_supervise_end_input(box);
        else
            unwatch_and_close(box, &f->to, &f->to_watched);
    }
    watch_flow(box, i);
}

bool px_flow_files(const struct px_box *box)
{
    for (int i = 0; i < PX_FLOW_COUNT; i++) {
        const struct px_flow *f = &box->flow[i];
        if (f->len > f->at ? f->to_file && f->to >= 0 : f->from_file && !f->closed && f->from >= 0)
            return true;
    }
    return false;
}

bool px_flow_busy(const struct px_box *box)
{
    for (int i = 1; i < PX_FLOW_COUNT; i++)
        if (box->flow[i].len > box->flow[i].at || !box->flow[i].closed)
            return true;        /* a stalled flow is not closed */
    return false;
}

void px_flow_bound(struct px_box *box)
{
    for (int i = 1; i < PX_FLOW_COUNT; i++) {
        struct px_flow *f = &box->flow[i];
        int there = 0;
        if (f->closed || f->from < 0)
            continue;
        (void)is_ready(f->from, POLLIN);        /* FIONREAD of a terminal is right only after a poll */
        f->bounded = px_sys(SYS_ioctl, f->from, FIONREAD, &there) >= 0;
        f->rest = (uint64_t)there;
    }
}

/* All writers have ended, or what they write is not the command's any more. So the pipes hold a bounded rest, even if
 * a process outside the box has a write end. */
void px_flow_drain(struct px_box *box)
{
    for (int i = 1; i < PX_FLOW_COUNT; i++) {
        struct px_flow *f = &box->flow[i];
        px_flow_ready(box, i);
        if (f->len <= f->at && !f->stalled && !f->closed && !is_ready(f->from, POLLIN)) {
            f->closed = true;
            unwatch_and_close(box, &f->from, &f->from_watched);
        }
    }
    px_flow_close(box, 0);
}
