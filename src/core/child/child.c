#include "child/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "child/ops.h"
#include "kernel/abi.h"
#include "kernel/clone.h"
#include "kernel/privs.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { WAIT_SECONDS = 60, GATE_SECONDS = 600 /* the parent inspects a root on a slow disk meanwhile */ };

static uint64_t now_nsec(void)
{
    struct timespec ts = {0};
    (void)px_sys(SYS_clock_gettime, CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int run_steps(struct px_child *c, uint32_t from, uint32_t to, struct px_child_report *report);

/* ---- pid 1: ids, payload ---- */

/* A half-built box must not outlive the process that makes it. The kernel clears PR_SET_PDEATHSIG at every change of
 * ids, so it is set again. If that process died just before, no signal comes: so this is checked too. */
int px_op_die_with_parent(const struct px_child *c)
{
    struct pollfd parent = {.fd = c->parent_fd, .events = POLLIN};
    long r = px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return r < 0 ? (int)r : px_sys(SYS_poll, &parent, 1, 0) == 0 ? 0 : -ESRCH;
}

int px_op_begin(struct px_child *c, const struct px_step *s)
{
    (void)s;
    const uint64_t normal[4] = {0};     /* SIG_DFL: children of a process that ignores SIGCHLD cannot be waited for */
    (void)px_sys(SYS_umask, 0); /* the modes of the plan are exact */
    long r = px_sys(SYS_rt_sigaction, SIGCHLD, normal, 0, 8);
    return r < 0 ? (int)r : px_op_die_with_parent(c);
}

static int wait_for_parent(uint32_t *futex, int seconds)        /* every wait has a limit */
{
    uint32_t go;
    while ((go = __atomic_load_n(futex, __ATOMIC_ACQUIRE)) == PX_GO_WAIT && seconds > 0) {
        const struct timespec second = {.tv_sec = 1};
        if (px_sys(SYS_futex, futex, FUTEX_WAIT, PX_GO_WAIT, &second) == -ETIMEDOUT)
            seconds--;
    }
    return go == PX_GO ? 0 : -ECANCELED;
}

int px_op_gate(struct px_child *c, const struct px_step *s)
{
    (void)s;
    return wait_for_parent(&c->gate, GATE_SECONDS);
}

int px_op_wait(struct px_child *c, const struct px_step *s)
{
    int waited = wait_for_parent(&c->go, WAIT_SECONDS);
    if (waited < 0)
        return waited;
    if (!(s->flags & PX_STEP_SETGROUPS))
        return 0;
    /* The caller's own id is not in the map: become the box's 0, an id that no user of the host has. */
    long r = px_sys(SYS_setgroups, 0, 0);
    if (r >= 0)
        r = px_sys(SYS_setresgid, 0, 0, 0);
    if (r >= 0)
        r = px_sys(SYS_setresuid, 0, 0, 0);
    return r < 0 ? (int)r : px_op_die_with_parent(c);
}

int px_op_subreaper(struct px_child *c, const struct px_step *s)
{
    (void)c;
    (void)s;
    return (int)px_sys(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static _Noreturn void payload_main(void *arg)
{
    struct px_child *c = arg;
    (void)run_steps(c, c->plan->payload_from, c->plan->init_at, &c->payload_report);
    px_op_signal(&c->joined);
    for (;;)
        (void)px_sys(SYS_exit_group, 127);
}

int px_op_payload(struct px_child *c, const struct px_step *s)
{
    (void)s;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_FILES | PX_CLONE_PIDFD | PX_CLONE_CHILD_CLEARTID,
        .exit_signal = SIGCHLD,
        .pidfd = (uintptr_t)&c->payload_fd,
        .child_tid = (uintptr_t)&c->payload_alive,
    };
    /* From here on another process lives in the box, and must not inspect this one. The parent restores its own
     * setting. */
    long r = px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (r < 0)
        return (int)r;
    c->payload_alive = 1;
    r = px_clone_run(&args, c->payload_stack, c->payload_stack_size, payload_main, c);
    if (r < 0)
        c->payload_alive = 0;
    /* if it stayed, its own exec could fail when the payload has used all the memory */
    else if (c->memory_fd >= 0)
        c->outside = px_sys(SYS_write, c->memory_fd, "0", 1) == 1;
    c->payload_pid = (int)r;
    return r < 0 ? (int)r : 0;
}

int px_op_ready(struct px_child *c, const struct px_step *s)
{
    (void)s;
    px_op_wait_while(&c->joined, 0);
    if (c->plan->own_net && c->payload_report.err == 0) {      /* now: the payload may be gone just after it goes on */
        long r = px_sys(SYS_setns, c->net_fd, CLONE_NEWNET);
        if (r < 0)
            return (int)r;
    }
    px_op_signal(&c->ready);
    px_op_wait_while(&c->payload_alive, 1);
    if (c->payload_report.err < 0)      /* it has ended; else it runs its program now */
        return c->payload_report.err;
    /* Only the parent may signal the payload from now on: pid 1 drops its privileges. */
    int r = px_op_send_fd(c->control_fd, c->payload_fd);
    return r < 0 || !c->plan->notify ? r : px_op_send_fd(c->control_fd, c->listener_fd);
}

/* ---- stage 3: pid 1 becomes px-init ---- */

/* With nothing open but the control socket, its own image and, in a container, the filters of its commands. */
static int become_init(const struct px_child *c, const struct px_step *s)
{
    enum { CONTROL, IMAGE, FILTERS };
    char *const no_environment[] = {0};
    bool filters = s->op == PX_OP_STAY;
    long r = px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* The thread that starts a box may end before the box does. px-init watches the process by its socket. */
    if (r < 0 || (r = px_sys(SYS_prctl, PR_SET_PDEATHSIG, s->flags & PX_STEP_THREAD ? SIGKILL : 0, 0, 0, 0)) < 0)
        return (int)r;
    /* All numbers are 3 or more, so no dup3 overwrites the source of another. */
    if ((r = px_sys(SYS_dup3, c->control_fd, CONTROL, 0)) < 0 || (r = px_sys(SYS_dup3, c->init_fd, IMAGE, O_CLOEXEC)) < 0 ||
        (filters && (r = px_sys(SYS_dup3, c->filter_fd, FILTERS, 0)) < 0) ||
        (r = px_sys(SYS_close_range, filters ? FILTERS + 1 : FILTERS, ~0u, 0)) < 0)
        return (int)r;
    return (int)px_sys(SYS_execveat, IMAGE, "", c->plan->init_argv, no_environment, AT_EMPTY_PATH);
}

/* Drops for pid 1 what the payload has dropped. */
int px_op_init(struct px_child *c, const struct px_step *s)
{
    c->plan->init_argv[1] = (char *)px_op_digits((uint64_t)c->payload_pid, c->pid_text);
    int r = px_op_keyring(c, s);
    if (r >= 0)
        r = px_op_bound(c, s);
    if (r >= 0)
        r = px_op_ids(c, s);
    return r < 0 ? r : become_init(c, s);
}

/* The same without a payload. px-init starts commands on request, so if its id differs from theirs, it keeps the
 * capabilities that this takes. */
int px_op_stay(struct px_child *c, const struct px_step *s)
{
    bool starter = s->flags & PX_STEP_SETGROUPS;
    int r = px_op_keyring(c, s);
    if (r >= 0)
        r = starter ? px_privs_bound_starter() : px_op_bound(c, s);
    if (r >= 0 && !starter)
        r = px_op_ids(c, s);
    return r < 0 ? r : become_init(c, s);
}

/* ---- the interpreter ---- */

static px_op_fn *const apply[PX_OP_COUNT] = {
#define PX_OP(name, word, function, ...) [PX_OP_##name] = function,
#include "plan/ops.def"
#undef PX_OP
};

static int run_steps(struct px_child *c, uint32_t from, uint32_t to, struct px_child_report *report)
{
    for (uint32_t i = from; i < to; i++) {
        const struct px_step *s = &c->plan->steps[i];
        int r = apply[s->op](c, s);
        if (r < 0) {
            *report = (struct px_child_report){.step = i, .err = r, .found = report->found};
            return r;
        }
        if (c->stamps)
            c->stamps[i] = now_nsec();
    }
    return 0;
}

_Noreturn void px_child_main(void *arg)
{
    struct px_child *c = arg;
    if (run_steps(c, 0, c->plan->payload_from, &c->report) == 0)
        (void)run_steps(c, c->plan->init_at, c->plan->count, &c->report);
    for (;;)
        (void)px_sys(SYS_exit_group, 127);
}
