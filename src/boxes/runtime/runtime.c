#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/supervise.h"
#include "plan/plan.h"
#include "plan/steps.h"
#include "runtime/bundle.h"
#include "runtime/kind.h"
#include "runtime/log.h"
#include "runtime/orders.h"
#include "runtime/stage.h"
#include "runtime/start.h"

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

enum {
    FILE_MAX = PX_PLAN_TEXT_MAX,
    LOG_MAX = 64 * 1024,        /* the end of it */
    START_MSEC_MAX = 60 * 1000, /* of a box without a timeout */
    CHILD_FD = 10,              /* numbers that no other descriptor of the child's needs */
    FAILED_STATUS = 128,        /* of runsc */
    SHIFT = 1,                  /* from the container's ids to those around it */
};

struct run {
    struct px_partner partner;  /* first: the box knows us by it */
    const struct px_runtime_kind *kind;
    struct px_plan *native;
    struct px_stage stage;
    int socket, log;            /* our ends */
    bool runs, failed, ended;
    struct px_start_message failure;
    struct px_init_report report;
    uint16_t rows, cols;        /* of a terminal */
};

static struct run *run_of(const struct px_box *box)
{
    return (struct run *)(void *)box->partner;
}

/* ---- before it starts ---- */

static int memory_file(const char *name)
{
    return (int)px_sys(SYS_memfd_create, name, MFD_CLOEXEC);
}

/* The child's copies lie above the numbers that its own descriptors are moved to and from. */
static int for_child(int fd)
{
    return fd < 0 ? fd : (int)px_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, CHILD_FD);
}

static int open_socket(struct run *run, int *ret_child)
{
    int ends[2] = {-1, -1};
    const int on = 1;
    if (!run->kind->socket) {
        *ret_child = -EBADF;
        return 0;
    }
    long r = px_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (r < 0)
        return (int)r;
    px_auto_fd int low = ends[1];
    run->socket = ends[0];
    *ret_child = for_child(low);
    /* The kernel gives the sender's pid, in our pid namespace. */
    r = px_sys(SYS_setsockopt, run->socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    return *ret_child < 0 ? *ret_child : (int)r;
}

static int open_ends(struct run *run, int *ret_socket, int *ret_log)
{
    run->log = memory_file("px-log");
    *ret_log = for_child(run->log);
    int r = open_socket(run, ret_socket);
    return *ret_log < 0 ? *ret_log : r;
}

/* With a shift the container's root is not the runtime, and none of its ids is a 0 of anybody's. Where there is only one id it
 * is the runtime's and the container's root; px-start gives it the command's number. policy is that of the processes around. */
static void choose_ids(const struct px_box *box, const struct px_policy *policy, const struct px_runtime_kind *kind,
                       struct px_bundle *b)
{
    bool single = box->ids.kind == PX_IDMAP_SINGLE, apart = box->ids.kind == PX_IDMAP_SUBIDS_CALLER && !kind->own_kernel;
    uint32_t shift = kind->own_kernel ? 0 : SHIFT, count = box->ids.count;
    b->uid = single ? 0 : policy->user.uid - shift;
    b->gid = single ? 0 : policy->user.gid - shift;
    if (single) {
        b->extents = 1;
        b->uids[0] = b->gids[0] = (struct px_extent){0, 0, 1};
        return;
    }
    b->extents = px_bundle_shift(shift, count, apart ? policy->user.uid : 0, b->uids);
    (void)px_bundle_shift(shift, count, apart ? policy->user.gid : 0, b->gids);
}

/* A single id is 0 around the container, where the runtime wants to be root, and so is px-init. px-start makes two more user
 * namespaces to give it another number. */
static void settle_single(struct px_box *box)
{
    box->ids.uid = box->ids.gid = 0;
    box->plan->owner = (struct px_user){0, 0};
    for (uint32_t i = 0; i < box->plan->count; i++) {
        struct px_step *s = &box->plan->steps[i];
        if (s->op == PX_OP_INIT)
            s->num = s->num2 = 0;
        if (s->op == PX_OP_NO_USERNS)
            s->num += 2;
    }
}

static bool writes_binds(const struct px_policy *policy)
{
    for (size_t i = 0; i < policy->binds.count; i++)
        if (policy->binds.items[i].writable)
            return true;
    return policy->work_dir != NULL;
}

/* Files of the one id that there is belong to uid 0 inside, which the command is not. */
static int no_owner(const struct px_runtime_kind *kind, struct px_err *e)
{
    px_fail(e, PX_E_RUNTIME, 0, "a command under %s could not write to the directories that it is given", kind->name);
    px_why(e, "You have no subordinate ids, so your files would belong to uid 0 inside.");
    return px_fix(e, "Install uidmap and give yourself a range in /etc/subuid and /etc/subgid.\n"
                     "Or bind them read-only, or leave --runtime out.");
}

static int prepare(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    struct run *run = run_of(box);
    px_auto_buf struct px_buf config = PX_BUF(FILE_MAX), orders = PX_BUF(FILE_MAX);
    const struct px_runtime_kind *kind = run->kind;
    struct px_bundle b = {.plan = run->native, .policy = policy, .own_kernel = kind->own_kernel, .net_made = !kind->own_kernel,
                          .terminal = box->tty && !kind->socket};

    choose_ids(box, policy, kind, &b);
    if (box->ids.kind == PX_IDMAP_SINGLE)
        settle_single(box);
    else if (!kind->own_kernel)
        box->plan->owner = policy->user;
    if (kind->own_kernel && box->ids.kind == PX_IDMAP_SINGLE && writes_binds(policy))
        return no_owner(kind, e);
    if (kind->own_kernel) {     /* ids inside are those of its own kernel */
        b.uid = run->native->owner.uid;
        b.gid = run->native->owner.gid;
    }
    struct px_orders given = {.uid = b.uid, .gid = b.gid, .command_uid = b.uid, .command_gid = b.gid, .rows = run->rows,
                              .cols = run->cols, .counted = box->has_cgroup};
    if (box->ids.kind == PX_IDMAP_SINGLE && !kind->own_kernel) {
        b.other_ids = true;
        given.command_uid = policy->user.uid - SHIFT;
        given.command_gid = policy->user.gid - SHIFT;
    }
    px_orders_print(run->native, kind, &given, &orders);
    if (px_bundle_print(&b, &config, e) < 0)
        return -1;
    return px_stage_fill(&run->stage, &config, &orders, e);
}

/* ---- messages of px-start ---- */

struct heard {
    struct px_start_message message;
    pid_t pid;
    int fds[PX_START_CARRIES_MAX];
};

/* 1: a message; 0: the end; -EAGAIN: nothing now. */
static int hear(int socket, struct heard *h)
{
    struct px_passed passed;
    h->message = (struct px_start_message){0};
    long n = px_pass_receive(socket, &h->message, sizeof h->message, MSG_DONTWAIT, h->fds, PX_START_CARRIES_MAX, &passed);
    h->pid = passed.pid;
    return n == sizeof h->message ? 1 : n == -EAGAIN ? -EAGAIN : 0;
}

/* The runtime itself stays outside: what it needs to make a container is not the box's, nor bounded by its limits. */
static int join(struct px_box *box, pid_t pid)
{
    return px_cgroup_enter(&box->cgroup, pid);
}

/* Lets the command come into being, with its standard streams; ours of them are not needed any more. */
static int answer(struct px_box *box)
{
    struct run *run = run_of(box);
    unsigned char given = 0;
    int fds[3];
    size_t count = 0;
    for (int i = 0; i < 3; i++)
        if (run->partner.stdio[i] >= 0) {
            given = (unsigned char)(given | 1u << i);
            fds[count++] = run->partner.stdio[i];
        }
    int r = px_pass_send(run->socket, &given, 1, fds, count, MSG_DONTWAIT);
    for (int i = 0; i < 3; i++)
        run->partner.stdio[i] = px_fd_close(run->partner.stdio[i]);
    return r;
}

/* px-start waits until it is killed. */
static void fail_start(struct run *run, enum px_start_step step, int err)
{
    run->failed = true;
    run->failure = (struct px_start_message){.step = step, .err = err};
}

static void on_hello(struct px_box *box, const struct heard *h)
{
    int r = !box->has_cgroup ? 0 : h->pid > 0 ? join(box, h->pid) : -ESRCH;
    if (r < 0)
        fail_start(run_of(box), PX_START_CGROUP, r);
    else if ((r = answer(box)) < 0)
        fail_start(run_of(box), PX_START_PROCESS, r);
}

static void watch(struct px_box *box, int fd, uint32_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
    (void)epoll_ctl(box->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* From now on signals go to the command, and we get the filter's notifications and the terminal's output. */
static void on_runs(struct px_box *box, struct heard *h)
{
    int next = 0;
    run_of(box)->runs = true;
    if (h->message.carries & PX_START_PIDFD) {
        (void)px_fd_close(box->payload);
        box->payload = px_fd_take(&h->fds[next++]);
    }
    if (h->message.carries & PX_START_LISTENER) {
        box->listener = px_fd_take(&h->fds[next++]);
        watch(box, box->listener, PX_EVENT_REFUSED);
    }
    if (h->message.carries & PX_START_MASTER) {
        box->terminal = px_fd_take(&h->fds[next]);
        (void)px_flow_terminal(box);
        px_flow_watch(box);
    }
}

/* Nothing that the runtime has made outlives its namespaces, so it need not tidy up. */
static void on_ended(struct px_box *box, const struct heard *h)
{
    struct run *run = run_of(box);
    run->ended = true;
    run->report = h->message.report;
    px_supervise_kill(box, PX_END_EXIT);
}

static void take(struct px_box *box, struct heard *h)
{
    struct run *run = run_of(box);
    switch ((enum px_start_kind)h->message.kind) {
    case PX_START_HELLO:
        on_hello(box, h);
        break;
    case PX_START_FAILED:
        run->failed = true;
        run->failure = h->message;
        break;
    case PX_START_RUNS:
        on_runs(box, h);
        break;
    case PX_START_ENDED:
        on_ended(box, h);
        break;
    }
}

static void ready(struct px_box *box)
{
    struct run *run = run_of(box);
    struct heard h;
    for (int i = 0; i < 16 && run->socket >= 0; i++) {
        int r = hear(run->socket, &h);
        if (r == -EAGAIN)
            return;
        if (r > 0)
            take(box, &h);
        for (int k = 0; k < PX_START_CARRIES_MAX; k++)  /* those that were not taken */
            (void)px_fd_close(h.fds[k]);
        if (r == 0) {
            (void)epoll_ctl(box->epoll, EPOLL_CTL_DEL, run->socket, NULL);
            run->socket = px_fd_close(run->socket);
        }
    }
}

/* ---- words ---- */

static bool read_log(const struct run *run, char *out, size_t size)
{
    px_auto_free char *text = malloc(LOG_MAX);
    off_t end = lseek(run->log, 0, SEEK_END);
    off_t from = end > LOG_MAX ? end - LOG_MAX : 0;
    ssize_t n = text && end > 0 ? pread(run->log, text, LOG_MAX, from) : 0;
    return px_log_last(text ? text : "", n > 0 ? (size_t)n : 0, out, size);
}

static int runtime_failed(const struct run *run, struct px_err *e)
{
    char words[sizeof e->why];
    bool told = read_log(run, words, sizeof words);
    px_fail(e, PX_E_RUNTIME, 0, "%s could not make the box", run->kind->name);
    return px_why(e, "%s", told ? words : "It ended without a word in its log.");
}

static int start_failed(const struct run *run, struct px_err *e)
{
    const struct px_start_message *f = &run->failure;
    const char *name = run->kind->name;
    switch ((enum px_start_step)f->step) {
    case PX_START_EXEC:
        return px_launch_exec_failed(f->err, f->found, run->native->argv[0], e);
    case PX_START_WORKDIR:
        for (uint32_t i = 0; i < run->native->count; i++)
            if (run->native->steps[i].op == PX_OP_CHDIR)
                return px_fail(e, PX_E_WORKDIR, f->err, "cannot start in '%s'",
                               px_plan_text(run->native, run->native->steps[i].dst));
        break;
    case PX_START_IDS:
        return px_fail(e, PX_E_RUNTIME, 0, "%s gave the box other ids than it was told to", name);
    case PX_START_PRIVILEGES:
        return px_fail(e, PX_E_RUNTIME, 0, "%s left privileges in the box", name);
    case PX_START_OTHER_IDS:
        return px_fail(e, PX_E_IDS, f->err, "the command cannot have its own ids in the box");
    case PX_START_LANDLOCK:
        return px_fail(e, PX_E_LANDLOCK, f->err, "Landlock cannot be applied in the box");
    case PX_START_SECCOMP:
        return px_fail(e, PX_E_SECCOMP, f->err, "the system call filter cannot be loaded in the box");
    case PX_START_STDIO:
    case PX_START_TERMINAL:
        return px_fail(e, PX_E_TERMINAL, f->err, "the terminal of the box cannot be used");
    case PX_START_RLIMIT:
        return px_fail(e, PX_E_PRIVS, f->err, "a limit cannot be set in the box");
    case PX_START_PROCESS:
        return px_fail(e, PX_E_CLONE, f->err, "cannot start a process in the box");
    case PX_START_CGROUP:
        return px_fail(e, PX_E_CGROUP, f->err, "cannot put the box into its cgroup");
    default:
        break;
    }
    return px_fail(e, PX_E_RUNTIME, f->err, "the box was not as it should be when %s had made it", name);
}

/* ---- the end ---- */

static int gone(struct px_box *box, struct px_err *e)
{
    struct run *run = run_of(box);
    char words[256];
    ready(box);
    if (run->ended) {           /* the command's own use, not the runtime's */
        box->report = run->report;
        box->have_report = true;
        box->usage = (struct rusage){0};
        return 0;
    }
    if (run->kind->socket) {    /* what px-init saw was the end of the runtime */
        box->have_report = false;
        box->end = box->end == PX_END_EXIT ? PX_END_LOST : box->end;
        return 0;
    }
    /* Of its own failure it writes into its log, which the command cannot. */
    bool failed = box->end == PX_END_EXIT && box->have_report && WIFEXITED(box->report.wait_status) &&
                  WEXITSTATUS(box->report.wait_status) == FAILED_STATUS;
    return failed && read_log(run, words, sizeof words) ? runtime_failed(run, e) : 0;
}

static void done(struct px_partner *partner)
{
    struct run *run = (struct run *)(void *)partner;
    (void)px_fd_close(run->socket);
    (void)px_fd_close(run->log);
    for (int i = 0; i < 3; i++)
        (void)px_fd_close(run->partner.stdio[i]);
    run->stage.plan = NULL;     /* the box's */
    px_stage_done(&run->stage);
    px_plan_free(run->native);
    free(run);
}

/* ---- starting ---- */

/* The same promise as px_box_start gives without a runtime: when it returns, the command's program runs. */
static int wait_for_start(struct px_box *box, struct px_err *e)
{
    struct run *run = run_of(box);
    uint64_t deadline = box->deadline_nsec ? box->deadline_nsec : px_now_nsec() + (uint64_t)START_MSEC_MAX * 1000000;
    while (run->kind->socket && !run->runs && !run->failed) {
        struct pollfd fds[2] = {{.fd = run->socket, .events = POLLIN}, {.fd = box->pidfd, .events = POLLIN}};
        (void)px_sys(SYS_poll, fds, 2, 50);
        ready(box);
        if (fds[1].revents && !run->runs && !run->failed)
            return runtime_failed(run, e);
        if (px_now_nsec() < deadline || run->runs || run->failed)
            continue;
        if (box->deadline_nsec) /* the box's own timeout, which is a result and no error */
            return 0;
        return px_fail(e, PX_E_RUNTIME, 0, "%s has not made the box in %d s", run->kind->name, START_MSEC_MAX / 1000);
    }
    return run->failed ? start_failed(run, e) : 0;
}

/* Differences to the native box, beyond what its own plan lists. */
static void add_notes(struct px_plan *plan, const struct px_runtime_kind *kind)
{
    px_plan_has(plan, "runtime=%s", kind->name);
    px_plan_lacks(plan, "pid 1: it has the command's own id");
    if (!kind->own_kernel)
        return;
    px_plan_lacks(plan, "pids: the limit has room for threads of the runtime");
    px_plan_lacks(plan, "proc: hidepid and masks are the runtime's own");
    px_plan_lacks(plan, "dev: can be written to");
    px_plan_lacks(plan, "denials: not told");
    px_plan_lacks(plan, "signals: they end the box");
    px_plan_lacks(plan, "status: 128+N is a signal or the command's own");
}

static int stage(struct run *run, const struct px_policy *policy, const char *const argv[], const struct px_host *host,
                 bool bind_to_thread, struct px_err *e)
{
    struct px_host seen = *host;
    int socket = -EBADF, log = -EBADF;
    seen.landlock_abi = run->kind->own_kernel ? 0 : host->landlock_abi;
    if (px_plan_new(policy, argv, &seen, bind_to_thread, &run->native, e) < 0)
        return -1;
    int r = open_ends(run, &socket, &log);
    if (r < 0) {
        (void)px_fd_close(socket);
        (void)px_fd_close(log);
        return px_fail(e, PX_E_CLONE, r, "cannot prepare the box");
    }
    if (px_stage_init(&run->stage, policy, run->native, run->kind, bind_to_thread, socket, log, e) < 0)
        return -1;
    run->stage.plan->partner = &run->partner;
    run->stage.plan->tier_word = run->partner.tier;
    run->partner.argv = run->native->argv;
    add_notes(run->stage.plan, run->kind);
    if (px_steps_has(run->native, PX_OP_NO_MEMFD, ""))
        px_plan_lacks(run->stage.plan, "memfd: programs can be written into memory and run there");
    return 0;
}

static struct run *new_run(const struct px_policy *policy, struct px_err *e)
{
    const struct px_runtime_kind *kind = px_runtime_find(policy->runtime, e);
    struct run *run = kind ? calloc(1, sizeof *run) : NULL;
    if (kind && !run)
        px_no_memory(e);
    if (!run)
        return NULL;
    run->partner = (struct px_partner){.tier = kind->tier, .inside = kind->socket, .stdio = {-EBADF, -EBADF, -EBADF},
                                       .prepare = prepare, .ready = ready, .gone = gone, .done = done};
    run->kind = kind;
    run->socket = run->log = -EBADF;
    return run;
}

/* A runtime with a kernel of its own has threads that count as the box's, about a hundred and some twenty for each process of the command,
 * and ends or hangs if it cannot have them. So the limit around it has room for them, which the command could use: that is no limit for
 * who requires one. */
static uint64_t with_threads(uint64_t pids)
{
    enum { EACH = 32, MOST = 1 << 22 };         /* no Linux has more than MOST processes */
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return pids > MOST ? pids : pids * EACH + 128 + 4 * (uint64_t)(processors > 0 ? processors : 1);
}

/* As the processes around the container see it: ids are others there. */
static struct px_policy policy_around(const struct px_policy *policy, const struct px_runtime_kind *kind)
{
    struct px_policy around = *policy;  /* borrows every text */
    around.user = (struct px_user){policy->user.uid + SHIFT, policy->user.gid + SHIFT};
    if (kind->own_kernel) {
        around.user = (struct px_user){0, 0};
        around.pids = px_policy_limited(policy->pids) ? with_threads(policy->pids) : policy->pids;
        around.pids_counted = px_policy_limited(policy->pids);
    }
    return around;
}

static int check_limits(const struct px_policy *policy, const struct px_runtime_kind *kind, struct px_err *e)
{
    if (!kind->own_kernel || policy->limits == PX_LIMITS_TRY || !px_policy_limited(policy->pids))
        return 0;
    px_fail(e, PX_E_RUNTIME, 0, "%s cannot hold the limit of %llu processes", kind->name, (unsigned long long)policy->pids);
    px_why(e, "It is a kernel of its own, which does not count processes, and its own threads look like those of the box.");
    return px_fix(e, "Accept a looser bound, which the result names: --limits try.\nOr do without: --pids unlimited.");
}

int px_runtime_start(const struct px_policy *policy, const char *const argv[], const struct px_host *host,
                     const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    struct run *run = new_run(policy, e);
    struct px_box *box = NULL;
    if (!run)
        return -1;
    if (stage(run, policy, argv, host, io->bind_to_thread, e) < 0 || check_limits(policy, run->kind, e) < 0) {
        px_plan_free(run->stage.plan);
        done(&run->partner);
        return -1;
    }
    run->rows = io->rows ? io->rows : 24;
    run->cols = io->cols ? io->cols : 80;
    const struct px_runtime_kind *kind = run->kind;
    const struct px_policy around = policy_around(policy, kind);
    run->stage.plan->owner = kind->own_kernel ? policy->user : around.user;
    if (px_supervise_start(run->stage.plan, &around, io, &box, e) < 0) {
        if (e->code == PX_E_NOT_FOUND || e->code == PX_E_EXEC)
            px_fail(e, PX_E_RUNTIME, e->sys, "%s cannot be run", kind->name);
        return -1;
    }
    if (kind->socket)
        watch(box, run->socket, PX_EVENT_PARTNER);
    if (wait_for_start(box, e) < 0) {
        px_supervise_free(box);
        return -1;
    }
    px_plan_free(px_take(&run->native));        /* it only served to start, and to say why not */
    *ret_box = box;
    return 0;
}

int px_runtime_plan(const struct px_policy *policy, const char *const argv[], const struct px_host *host, char **ret_json,
                    struct px_err *e)
{
    struct run *run = new_run(policy, e);
    px_auto_buf struct px_buf nothing = PX_BUF(1);
    int r = run ? stage(run, policy, argv, host, false, e) : -1;
    if (r >= 0)
        r = px_stage_fill(&run->stage, &nothing, &nothing, e);
    if (r >= 0)
        r = px_plan_print(run->stage.plan, ret_json, e);
    if (run) {
        px_plan_free(run->stage.plan);
        done(&run->partner);
    }
    return r;
}
