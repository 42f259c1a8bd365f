/* A command in a container: the request to px-init, and its first answer. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/supervise.h"
#include "kernel/pidfd.h"
#include "plan/steps.h"

enum { ANSWER_MSEC_MAX = 60 * 1000, SIGNAL_MSEC_MAX = 1000, SLICE_MSEC = 100, FDS_MAX = 5, NSEC = 1000000 };

struct request {
    struct px_init_request head;
    struct px_buf text;
    int fds[FDS_MAX];
    size_t fd_count;
};

/* ---- the request ---- */

static uint32_t add_words(struct px_buf *text, char *const words[])
{
    uint32_t n = 0;
    for (; words[n]; n++)
        px_buf_add(text, words[n], strlen(words[n]) + 1);
    return n;
}

/* Copies the candidates of the EXEC step, which lie one after the other in the plan's arena. */
static void add_places(struct request *r, const struct px_plan *plan, const struct px_step *s)
{
    const char *place = px_plan_text(plan, s->src);
    for (uint64_t i = 0; i < s->num; i++) {
        size_t n = strlen(place) + 1;
        px_buf_add(&r->text, place, n);
        place += n;
    }
    r->head.places = (uint32_t)s->num;
}

/* Whether a cgroup limits the memory of the container: then RLIMIT_AS, its substitute, is not set. */
static bool held_by_cgroup(const struct px_box *home, const struct px_step *s)
{
    return s->attr == RLIMIT_AS && px_report_has(&home->result, "memory=cgroup");
}

/* How far RLIMIT_NPROC is raised where a cgroup limits the processes of the container, so that the cgroup's limit is
 * hit first. A command's own lower limit is not raised. */
static uint64_t raise_of(const struct px_box *home, const struct px_step *s)
{
    enum { ROOM = 64 };
    bool held = s->attr == RLIMIT_NPROC && s->num >= home->pids && px_report_has(&home->result, "pids=cgroup");
    return held && s->num < RLIM_INFINITY - ROOM ? ROOM : 0;
}

static void add_limit(struct request *r, const struct px_box *home, const struct px_step *s)
{
    uint64_t max = s->attr == RLIMIT_NOFILE && home->keep_ids ? px_supervise_files_max() : UINT64_MAX;
    uint64_t soft = s->num + raise_of(home, s), hard = s->num2 + raise_of(home, s);
    if (r->head.rlimits < PX_INIT_RLIMITS_MAX)
        r->head.rlimit[r->head.rlimits++] = (struct px_init_rlimit){
            .resource = s->attr, .soft = soft < max ? soft : max, .hard = hard < max ? hard : max};
}

static int fill_request(struct request *r, const struct px_box *box, const struct px_policy *policy, const struct px_plan *plan)
{
    const char *directory = px_plan_workdir(plan, policy);
    px_buf_add(&r->text, directory, strlen(directory) + 1);
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->steps[i].op == PX_OP_RLIMIT && !held_by_cgroup(box->home, &plan->steps[i]))
            add_limit(r, box->home, &plan->steps[i]);
        if (plan->steps[i].op == PX_OP_EXEC)
            add_places(r, plan, &plan->steps[i]);
    }
    const struct px_step any = {.attr = RLIMIT_NOFILE, .num = RLIM_INFINITY, .num2 = RLIM_INFINITY};
    if (box->home->keep_ids)    /* also where the policy has no limit */
        add_limit(r, box->home, &any);
    r->head.argc = add_words(&r->text, plan->argv);
    r->head.envc = add_words(&r->text, plan->envp);
    r->head.uid = policy->user.uid;
    r->head.gid = policy->user.gid;
    r->head.flags = (box->tty ? PX_INIT_TTY : 0) | (box->home->keep_ids ? PX_INIT_KEEP_IDS : 0) |
                    (box->home->alone ? PX_INIT_ALONE : 0);
    r->head.length = (uint32_t)r->text.len;
    uint64_t words = 3 + (uint64_t)r->head.places + r->head.argc + r->head.envc;
    return r->text.err < 0 ? r->text.err : words > PX_INIT_WORDS_MAX ? -E2BIG : 0;
}

static void add_fd(struct request *r, int fd, uint32_t flag)
{
    if (fd < 0)
        return;
    r->fds[r->fd_count++] = fd;
    r->head.flags |= flag;
}

static int send_request(int control, const struct request *r, uint64_t end)
{
    bool file = r->head.flags & PX_INIT_FILE;
    const struct iovec parts[2] = {{.iov_base = (void *)&r->head, .iov_len = sizeof r->head},
                                   {.iov_base = r->text.data, .iov_len = file ? 0 : r->text.len}};
    /* Other processes use the same socket, so its flags are not changed: a full one is polled until `end`. */
    struct pollfd room_again = {.fd = control, .events = POLLOUT};
    int n = px_pass_send_parts(control, parts, 2, r->fds, r->fd_count, MSG_DONTWAIT);
    while (n == -EAGAIN && px_now_nsec() < end) {
        (void)px_sys(SYS_poll, &room_again, 1, SLICE_MSEC);
        n = px_pass_send_parts(control, parts, 2, r->fds, r->fd_count, MSG_DONTWAIT);
    }
    return n;
}

/* ---- the answer ---- */

/* The command's timeout begins at start_nsec and also bounds the wait for this answer. */
static uint64_t answer_deadline(const struct px_box *box)
{
    uint64_t msec = box->timeout_msec && box->timeout_msec < ANSWER_MSEC_MAX ? box->timeout_msec : ANSWER_MSEC_MAX;
    return box->start_nsec + msec * NSEC;
}

/* 0: there is an answer, or the box has ended. -ETIMEDOUT. -EHOSTDOWN: pid 1 is stopped and cannot answer. */
static int wait_for(const struct px_box *box)
{
    struct pollfd ready[2] = {{.fd = box->control, .events = POLLIN}, {.fd = box->home->pidfd, .events = POLLIN}};
    for (;;) {
        uint64_t now = px_now_nsec(), end = answer_deadline(box);
        uint64_t left = now < end ? (end - now) / NSEC + 1 : 0;
        long r = px_sys(SYS_poll, ready, 2, left < SLICE_MSEC ? (int)left : SLICE_MSEC);
        if (r > 0 || (r < 0 && r != -EINTR))
            return r > 0 ? 0 : (int)r;
        if (left == 0)
            return -ETIMEDOUT;
        if (px_pidfd_stopped(box->home->pidfd))
            return -EHOSTDOWN;
    }
}

static int no_answer(int err, struct px_err *e)
{
    px_fail(e, PX_E_CLONE, err, "the box does not answer");
    if (err == -EHOSTDOWN) {
        e->sys = 0;
        px_why(e, "Its pid 1 is stopped.");
        return px_fix(e, "Whoever stopped it can wake it with SIGCONT; or end the box.");
    }
    return -1;
}

static int explain_answer(const struct px_init_started *s, const char *command, const char *directory, struct px_err *e)
{
    switch ((enum px_init_stage)s->stage) {
    case PX_INIT_FULL:
        px_fail(e, PX_E_LIMIT, 0, "the box runs %d commands already", PX_INIT_COMMANDS_MAX);
        px_why(e, "So many can run in one box at the same time.");
        return px_fix(e, "Wait until one of them has ended, or end one.\nOr start another box for the rest.");
    case PX_INIT_APPARMOR:
        return px_fail(e, PX_E_APPARMOR, s->err, "the command cannot be confined by the box's AppArmor profile");
    case PX_INIT_CHDIR:
        return px_fail(e, PX_E_WORKDIR, s->err, "cannot start in '%s'", directory);
    case PX_INIT_TERMINAL:
        return px_fail(e, PX_E_TERMINAL, s->err, "the box gave no terminal");
    case PX_INIT_EXEC:
        return px_launch_exec_failed(s->err, s->found, command, e);
    default:
        return px_fail(e, PX_E_CLONE, s->err, "the box cannot start one more command");
    }
}

static int take_terminal(struct px_box *box, struct px_err *e)
{
    char data[sizeof(struct px_init_started)];
    int r = wait_for(box);
    if (r < 0)
        return no_answer(r, e);
    box->terminal = px_launch_receive_fd(box->control, data, sizeof data);
    if (box->terminal < 0)
        return px_fail(e, PX_E_TERMINAL, box->terminal, "the box gave no terminal");
    r = px_flow_terminal(box);
    return r < 0 ? px_fail(e, PX_E_TERMINAL, r, "the terminal of the box cannot be used") : 0;
}

static int take_answer(struct px_box *box, const char *command, const char *directory, struct px_err *e)
{
    struct px_init_started started = {.err = -EPIPE};
    int r = wait_for(box);
    if (r >= 0)
        box->payload = px_launch_receive_fd(box->control, &started, sizeof started);
    if (r < 0)
        return no_answer(r, e);
    if (started.err == -EPIPE && box->payload < 0)
        return px_fail(e, PX_E_GONE, 0, "the box has ended");
    if (started.err < 0)
        return explain_answer(&started, command, directory, e);
    box->inside_pid = started.pid;
    return 0;
}

/* ---- the whole ---- */

static int ask_init(struct px_box *box, struct request *r, const int stdio[3], struct px_err *e)
{
    int ends[2] = {-EBADF, -EBADF};
    long n = px_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "cannot ask the box");
    box->control = ends[0];
    px_auto_fd int theirs = ends[1], file = -EBADF;
    add_fd(r, theirs, 0);
    if (r->text.len > PX_INIT_TEXT_MAX) {
        /* too long for a message: px-init maps the file */
        file = px_fd_memory("px-request", r->text.data, r->text.len, 0);
        add_fd(r, file, PX_INIT_FILE);
        n = file;
    }
    for (int i = 0; i < 3; i++)
        add_fd(r, stdio[i], PX_INIT_IN << i);
    if (n >= 0)
        n = send_request(box->home->control, r, answer_deadline(box));
    if (n == -EPIPE || n == -ECONNRESET)
        return px_fail(e, PX_E_GONE, 0, "the box has ended");
    return n < 0 ? px_fail(e, PX_E_IO, (int)n, "cannot ask the box") : 0;
}

int px_command_start(struct px_box *box, const struct px_policy *policy, const char *const argv[], const struct px_io *io,
                     struct px_err *e)
{
    struct px_plan *plan = NULL;
    struct request r = {.head = {.rows = io->rows ? io->rows : 24, .cols = io->cols ? io->cols : 80}, .text = PX_BUF(PX_PLAN_TEXT_MAX)};
    int stdio[3] = {-EBADF, -EBADF, -EBADF};

    if (px_plan_command(policy, argv, &plan, e) < 0)
        return -1;
    int result = px_flow_open(box, policy, io, stdio, e);
    if (result >= 0 && fill_request(&r, box, policy, plan) < 0)
        result = px_fail(e, PX_E_LIMIT, 0, "the command is too large for a box");
    if (result >= 0)
        result = ask_init(box, &r, stdio, e);
    for (int i = 0; i < 3; i++)
        (void)px_fd_close(stdio[i]);
    if (result >= 0 && box->tty)
        result = take_terminal(box, e);
    if (result >= 0)
        result = take_answer(box, argv[0], px_plan_workdir(plan, policy), e);
    if (result >= 0) {
        box->argv = px_supervise_copy_argv(plan->argv);
        result = box->argv ? 0 : px_no_memory(e);
    }
    px_buf_done(&r.text);
    px_plan_free(plan);
    return result;
}

int px_command_signal_pid(const struct px_box *home, int inside_pid, int signal)
{
    struct request r = {.head = {.flags = PX_INIT_SIGNAL, .pid = inside_pid, .signal = signal}, .text = PX_BUF(1)};
    return send_request(home->control, &r, px_now_nsec() + (uint64_t)SIGNAL_MSEC_MAX * NSEC);
}

/* The shutdown tells px-init to kill this command before it reads the requests of others: see px_command_left. */
int px_command_signal(struct px_box *box, int signal)
{
    if (signal == SIGKILL)
        (void)px_sys(SYS_shutdown, box->control, SHUT_WR);
    return px_command_signal_pid(box->home, box->inside_pid, signal);
}
