/* Runs a project's program on this machine: a child in the caller's process group, so that it can use the terminal. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/fork.h"
#include "kernel/pidfd.h"
#include "run/run.h"

enum { PIECE = 16384, OUT = 0, ERR = 1, STREAMS = 2, AFTER_END = 64 };

struct stream {
    int ends[2];                /* a pipe, if its output is kept; -EBADF: not */
    struct px_headtail kept;
};

struct host {
    struct px_launch *l;
    int pidfd, signals;
    int fail[2];                /* reports the errno of execve; closed on success */
    struct stream streams[STREAMS];
};

static void init(struct host *h, struct px_launch *l, int signals)
{
    *h = (struct host){.l = l, .pidfd = -EBADF, .signals = signals, .fail = {-EBADF, -EBADF}};
    for (size_t i = 0; i < STREAMS; i++) {
        h->streams[i].ends[0] = h->streams[i].ends[1] = -EBADF;
        px_headtail_init(&h->streams[i].kept, l->capture_max, l->capture_max);
    }
}

static void close_pipe(int ends[2])
{
    ends[0] = px_fd_close(ends[0]);
    ends[1] = px_fd_close(ends[1]);
}

static void done(struct host *h)
{
    for (size_t i = 0; i < STREAMS; i++) {
        close_pipe(h->streams[i].ends);
        px_headtail_done(&h->streams[i].kept);
    }
    close_pipe(h->fail);
    (void)px_fd_close(h->pidfd);
}

/* ---- the child ---- */

static int open_pipe(int ends[2])
{
    int r = px_pipe(ends);
    if (r < 0)
        return r;
    ends[0] = px_fd_above_stdio(ends[0]);
    ends[1] = px_fd_above_stdio(ends[1]);
    return ends[0] < 0 ? ends[0] : ends[1] < 0 ? ends[1] : 0;
}

static long take_streams(const struct host *h)
{
    if (!h->l->capture)
        return 0;
    long null = px_sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
    long r = null < 0 ? null : px_sys(SYS_dup3, px_fd_above_stdio((int)null), 0, 0);
    r = r < 0 ? r : px_sys(SYS_dup3, h->streams[OUT].ends[1], 1, 0);
    return r < 0 ? r : px_sys(SYS_dup3, h->streams[ERR].ends[1], 2, 0);
}

/* Nothing but system calls from here on: the caller may have threads. */
static _Noreturn void become(const struct host *h)
{
    const uint64_t none = 0;
    int32_t r = (int32_t)take_streams(h);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    if (r >= 0)
        r = (int32_t)px_sys(SYS_execve, h->l->argv[0], h->l->argv, h->l->env);
    (void)px_sys(SYS_write, h->fail[1], &r, sizeof r);
    px_fork_exit(127);
}

/* ---- the parent ---- */

/* The terminal's signals go to the whole process group, so the program has already received them. */
static void pass_on(const struct host *h)
{
    struct signalfd_siginfo info;
    while (px_read_some(h->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_code != SI_KERNEL)
            (void)px_pidfd_signal(h->pidfd, (int)info.ssi_signo);
}

/* 1: read something; 0: no data now, or end of file. */
static int keep(struct stream *s, const struct pollfd *ready)
{
    char piece[PIECE];
    if (!ready->revents)
        return 0;
    ssize_t n = px_read_some(s->ends[0], piece, sizeof piece);
    if (n > 0)
        return px_headtail_add(&s->kept, piece, (size_t)n) < 0 ? -ENOMEM : 1;
    s->ends[0] = px_fd_close(s->ends[0]);
    return 0;
}

/* Reads until the program has ended. Does not wait for other processes that hold its output open; reads only what is
 * there. */
static int watch(struct host *h)
{
    bool ended = false;
    for (int after = 0; after < AFTER_END; after += ended) {
        struct pollfd fds[] = {{.fd = h->streams[OUT].ends[0], .events = POLLIN},
                               {.fd = h->streams[ERR].ends[0], .events = POLLIN},
                               {.fd = ended ? -1 : h->pidfd, .events = POLLIN},
                               {.fd = h->signals, .events = POLLIN}};
        if (poll(fds, PX_COUNT_OF(fds), ended ? 0 : -1) < 0) {
            if (errno != EINTR)
                return -errno;
            continue;
        }
        if (fds[3].revents)
            pass_on(h);
        int out = keep(&h->streams[OUT], &fds[OUT]), err = keep(&h->streams[ERR], &fds[ERR]);
        if (out < 0 || err < 0)
            return -ENOMEM;
        if (ended && !out && !err)
            break;
        ended = ended || fds[2].revents;
    }
    return 0;
}

static int start(struct host *h, struct px_err *e)
{
    int r = open_pipe(h->fail);
    if (r == 0 && h->l->capture)
        r = open_pipe(h->streams[OUT].ends) < 0 || open_pipe(h->streams[ERR].ends) < 0 ? -EMFILE : 0;
    long pid = r < 0 ? r : px_fork(&h->pidfd);
    if (pid == 0)
        become(h);
    for (size_t i = 0; i < STREAMS; i++)
        h->streams[i].ends[1] = px_fd_close(h->streams[i].ends[1]);
    h->fail[1] = px_fd_close(h->fail[1]);
    if (pid < 0)
        return px_fail(e, PX_E_IO, (int)pid, "cannot start '%.200s'", h->l->argv[0]);
    int32_t said = 0;
    if (px_read_full(h->fail[0], &said, sizeof said) != (ssize_t)sizeof said)
        return 0;
    int status;
    (void)px_fork_reap(h->pidfd, &status);
    return px_fail(e, said == -ENOENT ? PX_E_NOT_FOUND : PX_E_EXEC, said, "cannot run '%.200s'", h->l->argv[0]);
}

static int finish(struct host *h, struct px_launch_end *ret_end, struct px_err *e)
{
    struct px_launch *l = h->l;
    int status = 0, r = watch(h);
    if (r < 0)
        (void)px_pidfd_signal(h->pidfd, SIGKILL);
    int reaped = px_fork_reap(h->pidfd, &status);
    l->out = PX_BUF(2 * l->capture_max + 1);
    l->err = PX_BUF(2 * l->capture_max + 1);
    if (r < 0 || reaped < 0 || px_headtail_join(&h->streams[OUT].kept, &l->out) < 0 ||
        px_headtail_join(&h->streams[ERR].kept, &l->err) < 0)
        return px_fail(e, PX_E_IO, r < 0 ? r : reaped, "cannot wait for '%.200s'", l->argv[0]);
    *ret_end = (struct px_launch_end){
        .code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
        .reason = WIFSIGNALED(status)   ? "signalled"
                  : WEXITSTATUS(status) ? "nonzero"
                                        : "ok",
        .out = {px_buf_text(&l->out), l->out.len},
        .err = {px_buf_text(&l->err), l->err.len},
        .out_total = h->streams[OUT].kept.total,
        .err_total = h->streams[ERR].kept.total,
    };
    return 0;
}

int px_launch_host(struct px_launch *launch, int signals, struct px_launch_end *ret_end, struct px_err *e)
{
    PX_ERR(e);
    struct host h;
    init(&h, launch, signals);
    int r = start(&h, e);
    if (r == 0)
        r = finish(&h, ret_end, e);
    done(&h);
    return r;
}
