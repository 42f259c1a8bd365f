/* Starts the processes of a plan: the parent's side of child/child.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/supervise.h"
#include "box/template.h"
#include "kernel/abi.h"
#include "kernel/clone.h"
#include "kernel/join.h"
#include "kernel/pidfd.h"

#include "init/init_image.inc"       /* static const unsigned char px_init_image[] */

enum { SETUP_MSEC_MAX = 60 * 1000 };

/* The image of px-init as a sealed memfd, which cannot be changed even through /proc/1/exe. */
int px_launch_image(void)
{
    return px_fd_memory("px-init", px_init_image, sizeof px_init_image, PX_MEMORY_SEALED | PX_MEMORY_PROGRAM);
}

/* ---- errors for a step that failed ---- */

int px_launch_exec_failed(int err, bool found, const char *command, struct px_err *e)
{
    if (!found && (err == -ENOENT || err == -ENOTDIR)) {
        px_fail(e, PX_E_NOT_FOUND, 0, "'%s' was not found in the box", command);
        if (strchr(command, '/'))
            px_why(e, "There is no such file in the box; it does not see the host's files.");
        return strchr(command, '/') && *command != '/'
                   ? px_fix(e, "Show the box its directory, and start there: --work-dir DIR (--work-dir . for this one).")
                   : -1;
    }
    px_fail(e, PX_E_EXEC, err, "'%s' could not be run", command);
    if (err == -ENOENT)
        px_why(e, "The file is there, but its interpreter or loader is not in the box.");
    if (err == -EACCES)
        px_why(e, "It is a directory, is not executable, or lies on a directory mounted without execution.");
    if (err == -ETIMEDOUT)
        px_why(e, "The kernel did not execute it in time: a lease lies on the file, or its file server is silent.");
    if (err == -E2BIG)
        px_why(e, "Its arguments and variables together are longer than the kernel passes on.");
    return -1;
}

int px_launch_bind_failed(const struct px_plan *plan, const struct px_step *s, int err, struct px_err *e)
{
    const char *target = px_plan_text(plan, s->dst);
    if (s->op == PX_OP_BIND)
        px_fail(e, PX_E_BIND, err, "cannot bind '%s' to '%s'", px_plan_text(plan, s->src), target);
    else
        px_fail(e, PX_E_BIND, err, "cannot mount a tmpfs on '%s'", target);
    if (err == -ENOENT || err == -ENOTDIR) {
        px_why(e, "The place does not exist in the box, and px makes no directory in a tree that is not its own.");
        return px_fix(e, "Create '%s' in the tree that is bound around it, or choose a place of its own, such as /workspace.", target);
    }
    if (err == -EACCES && s->op == PX_OP_BIND && s->flags & PX_STEP_UNMAPPED) {
        px_why(e, "px may not mount here (a container without CAP_SYS_ADMIN), and a directory above is closed to the box's ids.");
        return px_fix(e, "Open the directories above it: chmod o+x. Or run px as an ordinary user, or give the container CAP_SYS_ADMIN.");
    }
    if (err == -ELOOP)
        px_why(e, "A part of the place is a symbolic link, and px follows none when it mounts.");
    if (err == -ESTALE)
        px_why(e, "The source was replaced by another file while the box was being made.");
    return -1;
}

static int overlay_failed(const struct px_plan *plan, const struct px_step *s, int err, struct px_err *e)
{
    const char *source = px_plan_text(plan, s->src);
    if (s->op == PX_OP_UPPER) {
        if (*source)
            px_fail(e, PX_E_OVERLAY, err, "cannot use '%s' for changes", source);
        else
            px_fail(e, PX_E_OVERLAY, err, "no memory can take the changes");
        if (err != -EOPNOTSUPP)
            return -1;
        px_why(e, "The tmpfs of this kernel (before Linux 6.6) has no attributes of users, which an overlay needs.");
        if (plan->changes)
            px_fix(e, "Let them go to PX_HOME, on a disk: --keep=NAME, or --keep=NAME --discard to drop them at the end.");
        return -1;
    }
    if (s->op == PX_OP_OVERLAY && !(s->flags & PX_STEP_UPPER))
        return px_fail(e, PX_E_ROOTFS, err, "cannot use '%s' as a root", source);
    px_fail(e, PX_E_OVERLAY, err, "cannot lay an overlay over '%s'", source);
    if (err == -ELOOP) {
        px_why(e, "Changes that were kept hold a symbolic link where the box needs a directory of its own.");
        px_fix(e, "Remove the link from the upper directory, or start with another: --overlay=DIR.");
    } else if (err == -EPERM || err == -ENODEV) {
        px_why(e, "This kernel has no overlay for a user namespace (it is there from Linux 5.11 on).");
    } else if (err == -EINVAL) {
        px_why(e, "The kernel keeps the changes of an overlay on no overlayfs (the root of a container), FUSE or network file system.");
        px_fix(e, PX_PLAN_ELSEWHERE "\n" PX_PLAN_HOME);
    }
    return -1;
}

static int explain_step(const struct px_plan *plan, const struct px_child_report *r, struct px_err *e)
{
    const struct px_step *s = &plan->steps[r->step];
    const char *target = px_plan_text(plan, s->dst);

    switch ((enum px_op)s->op) {
    case PX_OP_EXEC:
        return px_launch_exec_failed(r->err, r->found, plan->argv[0], e);
    case PX_OP_TMPFS:
        if (!(s->flags & PX_STEP_FOREIGN))
            break;
        return px_launch_bind_failed(plan, s, r->err, e);
    case PX_OP_BIND:
        return px_launch_bind_failed(plan, s, r->err, e);
    case PX_OP_DRIVER:
        return plan->carrier->failed(plan->carrier, e);
    case PX_OP_CHDIR:
        return px_fail(e, PX_E_WORKDIR, r->err, "cannot start in '%s'", target);
    case PX_OP_UPPER:
    case PX_OP_LAYER:
    case PX_OP_CHANGES:
    case PX_OP_OVERLAY:
        return overlay_failed(plan, s, r->err, e);
    default:
        break;
    }
    px_fail(e, px_steps_op_code(s->op), r->err, "step '%s'%s%s of the box failed", px_steps_op_word(s->op), *target ? " on " : "", target);
    (void)px_plan_blame_filter(r->err, e);
    if (s->op == PX_OP_PROC && r->err == -EPERM)
        px_why(e, "The kernel lets a user namespace mount /proc only where the outer /proc is not covered, as it is in most containers.");
    else if (r->err == -EROFS)
        px_why(e, "The outer /proc/sys is read-only, as it is in most containers, and a box sets its own counts there.");
    else
        return -1;
    return px_fix(e, "Start the container around px with an unmasked /proc (podman: --security-opt unmask=ALL; docker: "
                     "--security-opt systempaths=unconfined).\n"
                     "Or accept the weaker tier by name: --require landlock.");
}

static int explain_failure(const struct px_box *box, const struct px_child_report *r, struct px_err *e)
{
    (void)explain_step(box->plan, r, e);
    if (r->err != -ENOMEM || !box->memory_bytes)
        return -1;
    px_why(e, "The box may use %llu bytes of memory (--memory), and its start needed more.", (unsigned long long)box->memory_bytes);
    return px_fix(e, "Give it more, such as --memory 64m.");
}

/* ---- the clone ---- */

enum { INIT, PARENT, FILTER, MEMORY, LENT };

struct launch {
    struct px_box *box;
    struct px_child child;
    int control_child;          /* the box's end of the control socket */
    /* duplicates for the child, which has its own descriptor table and may move them there */
    int lent[LENT];
    int stdio[3];
    char *stacks;               /* of pid 1 and the payload; unmapped once both have left our memory */
};

static void wake_futex(uint32_t *futex, uint32_t value)
{
    __atomic_store_n(futex, value, __ATOMIC_RELEASE);
    (void)px_sys(SYS_futex, futex, FUTEX_WAKE, 1, 0, 0, 0);
}

static uint64_t setup_deadline(const struct px_box *box)
{
    uint64_t allowed = box->timeout_msec && box->timeout_msec < SETUP_MSEC_MAX ? box->timeout_msec : SETUP_MSEC_MAX;
    return px_now_nsec() + allowed * 1000000;
}

/* Waits until pid 1 has left our memory, by exec or by its end. A set-up that hangs (on a dead file server) is
 * killed. */
static void wait_until_gone(struct px_box *box, struct px_child *child, uint64_t deadline)
{
    uint32_t alive;

    /* If pid 1 fails, the payload may live a little longer, on a stack that we unmap. */
    uint32_t *const both[] = {&child->alive, &child->payload_alive};
    for (size_t i = 0; i < PX_COUNT_OF(both); i++)
        while ((alive = __atomic_load_n(both[i], __ATOMIC_ACQUIRE)) != 0) {
            const struct timespec slice = {.tv_sec = 1};
            (void)px_sys(SYS_futex, both[i], FUTEX_WAIT, alive, &slice, 0, 0);
            if (px_now_nsec() > deadline)
                px_supervise_kill(box, PX_END_TIMEOUT);
        }
}

static int clone_failed(int err, const struct px_plan *plan, struct px_err *e)
{
    if (plan->tier != PX_TIER_FULL)
        return px_fail(e, PX_E_CLONE, err, "cannot start a process");
    if (plan->joins && err == -ESRCH) {
        px_fail(e, PX_E_GONE, 0, "the box whose network was asked for has just ended");
        return px_fix(e, "Start it again: px box start.");
    }
    if (err == -EAGAIN || err == -ENOMEM)
        return px_fail(e, PX_E_CLONE, err, "cannot start the box");
    if (err == -EACCES)         /* only CLONE_INTO_CGROUP fails so */
        return px_fail(e, PX_E_CGROUP, err, "the box cannot be born in its cgroup");
    return px_plan_no_namespace(err, e);
}

/* Whether the payload is the command itself, and not an OCI runtime's program that will start it. */
static bool is_command(const struct px_box *box)
{
    return !box->partner || !box->partner->inside;
}

/* RLIMIT_CORE of 1 keeps crashes from the host's handler (plan.c). The box cannot set it if its hard limit is 0. A
 * privileged parent sets it here. Otherwise the result reports it, if there is a handler. A handler on a socket ("@",
 * Linux 6.16) gets every crash. */
static void hold_core(struct px_plan *plan, pid_t pid)
{
    const struct rlimit one = {.rlim_cur = 1, .rlim_max = 1};
    struct rlimit now = {.rlim_max = 1};
    char pattern[160] = "";          /* core_pattern has at most 128 bytes */
    bool held = px_sys(SYS_prlimit64, 0, RLIMIT_CORE, 0, &now) >= 0 && now.rlim_max > 0;
    held = held || px_sys(SYS_prlimit64, pid, RLIMIT_CORE, &one, 0) >= 0;
    bool known = px_read_file(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof pattern) >= 0;
    if (!known || pattern[0] == '@' || (pattern[0] == '|' && !held))
        px_plan_lacks(plan, "core: a crash in the box reaches the host's core_pattern");
}

/* What only the parent can do for pid 1 while that waits: it writes the id maps, and moves pid 1 into its v1 cgroups,
 * into which clone3 cannot start a process. */
static int prepare_child(struct px_box *box, pid_t pid, struct px_err *e)
{
    if (box->plan->tier == PX_TIER_FULL && !box->plan->joins) {
        int r = px_idmap_apply(&box->ids, pid);
        if (r < 0)
            return px_fail(e, PX_E_IDS, r, "cannot map the ids of the box (%s)", px_idmap_name(&box->ids));
    }
    hold_core(box->plan, pid);
    int r = box->has_cgroup && is_command(box) ? px_cgroup_join(&box->cgroup, pid) : 0;
    if (r >= 0 && box->has_cgroup && box->carrier)
        r = px_cgroup_enter(&box->cgroup, box->carrier->pid);
    return r < 0 ? px_fail(e, PX_E_CGROUP, r, "cannot put the box into its cgroup") : 0;
}

static void leave_template_ns(struct px_template_builder *who)
{
    long r = px_sys(SYS_setns, who->home, CLONE_NEWNS);
    if (r >= 0 && (r = px_sys(SYS_fchdir, who->root)) >= 0 && (r = px_sys(SYS_chroot, ".")) >= 0)
        r = px_sys(SYS_fchdir, who->cwd);
    if (r < 0)
        __atomic_store_n(&who->lost, true, __ATOMIC_RELEASE);
}

/* Clones in the namespace of the box to be joined, in the template namespace, or here. For the template namespace our
 * own thread enters it by setns, and returns after the clone. */
static long clone_pid1(struct launch *l, struct px_clone_args *args)
{
    struct px_plan *plan = l->box->plan;
    if (plan->joins)
        return px_join_clone(plan->join, args, l->stacks, PX_CHILD_STACK, px_child_main, &l->child);
    if (!plan->template_ns)
        return px_clone_run(args, l->stacks, PX_CHILD_STACK, px_child_main, &l->child);
    if (l->box->ids.kind != PX_IDMAP_RANGE)     /* the template was made for boxes with an id range */
        return -EINVAL;
    long pid = px_sys(SYS_setns, *plan->template_ns, CLONE_NEWNS);
    if (pid >= 0)
        pid = px_clone_run(args, l->stacks, PX_CHILD_STACK, px_child_main, &l->child);
    leave_template_ns(plan->builder);
    return pid;
}

/* Waits until the root is built. The end of pid 1 does not wake the futex, so it is polled. */
static bool wait_until_ready(struct px_child *child, uint64_t deadline)
{
    const struct timespec slice = {.tv_nsec = 10 * 1000 * 1000};

    while (!__atomic_load_n(&child->ready, __ATOMIC_ACQUIRE)) {
        if (!__atomic_load_n(&child->alive, __ATOMIC_ACQUIRE) || px_now_nsec() > deadline)
            return false;
        (void)px_sys(SYS_futex, &child->ready, FUTEX_WAIT, 0, &slice, 0, 0);
    }
    return true;
}

/* Lets the payload exec once its memory limit is in force and the gate's check has succeeded. The deadline is moved
 * by the time that the check took. */
static int open_gate(struct launch *l, uint64_t *deadline)
{
    struct px_box *box = l->box;
    struct px_gate *gate = px_take(&box->plan->gate);
    int r = px_supervise_hear_oom(box);

    if (r >= 0 && l->child.memory_fd >= 0 && wait_until_ready(&l->child, *deadline) && l->child.outside)
        r = px_cgroup_arm_ahead(&box->cgroup);
    uint64_t since = px_now_nsec();
    bool holds = !gate || gate->holds(gate);
    since = px_now_nsec() - since;
    box->start_nsec += since;
    *deadline += since;
    wake_futex(&l->child.gate, holds && r >= 0 ? PX_GO : PX_GO_AWAY);
    return r;
}

static int run_clone(struct launch *l, struct px_err *e)
{
    struct px_box *box = l->box;
    struct px_clone_args args = {
        .flags = box->plan->namespaces | PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CHILD_CLEARTID | PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&box->pidfd,
        .child_tid = (uintptr_t)&l->child.alive,
    };
    int birth = box->has_cgroup && is_command(box) ? px_cgroup_birth_fd(&box->cgroup) : -EBADF;
    if (birth >= 0) {
        args.flags |= PX_CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)birth;
    }
    l->child.payload_stack = l->stacks + PX_CHILD_STACK;
    l->child.payload_stack_size = PX_CHILD_STACK;
    l->child.alive = 1;
    box->clone_nsec = px_now_nsec();
    long pid = clone_pid1(l, &args);
    if (pid < 0) {
        box->pidfd = -EBADF;
        return clone_failed((int)pid, box->plan, e);
    }
    box->pid = (int)pid;
    int r = prepare_child(box, (pid_t)pid, e);
    uint64_t deadline = setup_deadline(box);
    wake_futex(&l->child.go, r < 0 ? PX_GO_AWAY : PX_GO);
    int early = r < 0 || box->plan->stays ? 0 : open_gate(l, &deadline);
    wait_until_gone(box, &l->child, deadline);
    /* No process of the box shares our memory any more. */
    int armed = early < 0 || !box->has_cgroup ? early : px_cgroup_arm(&box->cgroup, is_command(box) ? (pid_t)pid : 0);
    box->ready_nsec = px_now_nsec();
    if (armed == -EBUSY)
        px_supervise_kill(box, PX_END_MEMORY);
    else if (armed < 0 && armed != -ESRCH && r >= 0)    /* it may have ended already */
        return px_fail(e, PX_E_CGROUP, armed, "the memory limit of the box cannot be set");
    return r;
}

/* The child shares our memory. So our signals are blocked meanwhile, and PR_SET_DUMPABLE, which it clears, is
 * restored. */
static int clone_quietly(struct launch *l, struct px_err *e)
{
    const uint64_t all = ~0ull;
    uint64_t before = 0;
    /* The dumpable attribute belongs to the memory, so to all threads: they start one box at a time. The flock is on
     * this process's own /proc/self/fd, which all its threads and no other process can lock without a global. */
    bool turns = !l->box->plan->builder || !l->box->plan->builder->alone;
    px_auto_fd int threads =
        turns ? (int)px_sys(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    while (threads >= 0 && px_sys(SYS_flock, threads, LOCK_EX) == -EINTR)
        ;
    long dumpable = px_sys(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0);

    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    int r = run_clone(l, e);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    if (dumpable == 1)
        (void)px_sys(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
    return r;
}

int px_launch_receive_fd(int control, void *data, size_t size)
{
    int fd;
    (void)px_pass_receive(control, data, size, MSG_DONTWAIT, &fd, 1, NULL);
    return fd < 0 ? -EPROTO : fd;
}

static int receive_fd(int control)
{
    char byte;
    return px_launch_receive_fd(control, &byte, 1);
}

static int connect_terminal(struct px_box *box, struct px_err *e)
{
    box->terminal = receive_fd(box->control);
    if (box->terminal < 0)
        return px_fail(e, PX_E_TERMINAL, box->terminal, "the box gave no terminal");
    int r = px_flow_terminal(box);
    return r < 0 ? px_fail(e, PX_E_TERMINAL, r, "the terminal of the box cannot be used") : 0;
}

static void close_child_ends(struct launch *l)
{
    l->control_child = px_fd_close(l->control_child);
    if (l->box->carrier)
        l->box->carrier->socket = px_fd_close(l->box->carrier->socket);
    for (int i = 0; i < LENT; i++)
        l->lent[i] = px_fd_close(l->lent[i]);
    for (int i = 0; i < 3; i++)
        l->stdio[i] = px_fd_close(l->stdio[i]);
    for (uint32_t i = 0; i < l->box->plan->count; i++)
        l->box->plan->steps[i].fd = px_fd_close(l->box->plan->steps[i].fd);
}

static int make_control(struct launch *l)
{
    int ends[2] = {-1, -1};
    long r = px_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (r < 0)
        return (int)r;
    l->box->control = px_fd_above_stdio(ends[0]);
    l->control_child = px_fd_above_stdio(ends[1]);
    return l->box->control < 0 ? l->box->control : l->control_child < 0 ? l->control_child : 0;
}

/* The filters that px-init of a container loads: the bytes of the STAY step, at the start of a file. */
static int filter_file(const struct px_box *box)
{
    const struct px_plan *plan = box->plan;
    if (plan->filters && box->ids.kind == PX_IDMAP_RANGE)
        return (int)px_sys(SYS_fcntl, *plan->filters, F_DUPFD_CLOEXEC, 3);
    const struct px_step *s = &plan->steps[plan->count - 1];
    return px_fd_memory("px-filters", px_plan_text(plan, s->src), s->attr, 0);
}

/* Waits until px-init of a container reports that it takes commands, or what failed. */
static int wait_for_init(struct px_box *box, struct px_err *e)
{
    struct px_init_started started = {0};
    struct pollfd ready = {.fd = box->control, .events = POLLIN};
    long r = px_sys(SYS_poll, &ready, 1, SETUP_MSEC_MAX);
    if (r > 0)
        r = px_sys(SYS_recvfrom, box->control, &started, sizeof started, MSG_DONTWAIT, 0, 0);
    if (r != sizeof started)
        return px_fail(e, PX_E_CLONE, 0, "pid 1 of the box did not come up");
    if (started.err < 0 && started.stage == PX_INIT_APPARMOR)
        return px_fail(e, PX_E_APPARMOR, started.err, "the AppArmor profile cannot be applied in the box");
    if (started.err < 0)
        return px_fail(e, PX_E_SECCOMP, started.err, "pid 1 of the box could not load the filter");
    if (box->plan->notify && !started.found)
        px_plan_lacks(box->plan, "denials: another listens to the filters already");
    if (started.pid < 0)
        px_plan_lacks(box->plan, "kill: only of a command's process group; this kernel lists no children");
    return 0;
}

static int open_image(const struct px_plan *plan)
{
    return plan->image ? (int)px_sys(SYS_fcntl, *plan->image, F_DUPFD_CLOEXEC, 3) : px_launch_image();
}

/* A pool's builder reuses its stacks: munmap would stall every thread that shares the memory. */
static int borrow_stacks(struct launch *l)
{
    struct px_template_builder *who = l->box->plan->builder;
    l->stacks = who ? who->stacks : NULL;
    if (!l->stacks) {
        void *stacks = mmap(NULL, (size_t)2 * PX_CHILD_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        l->stacks = stacks == MAP_FAILED ? NULL : stacks;
    }
    if (who)
        who->stacks = l->stacks;
    return l->stacks ? 0 : -ENOMEM;
}

static int open_all(struct launch *l, const struct px_policy *policy, const struct px_io *io, struct px_err *e)
{
    int r = make_control(l);
    if (r >= 0)
        r = l->lent[INIT] = px_fd_above_stdio(open_image(l->box->plan));
    if (r >= 0)
        r = l->lent[PARENT] = px_fd_above_stdio(px_pidfd_open(getpid()));
    if (r >= 0)
        r = borrow_stacks(l);
    if (r >= 0 && l->box->plan->stays)
        r = l->lent[FILTER] = px_fd_above_stdio(filter_file(l->box));
    if (r >= 0 && l->box->has_cgroup && is_command(l->box) && !l->box->plan->stays) {
        l->lent[MEMORY] = px_fd_above_stdio(px_cgroup_memory_door(&l->box->cgroup));
        r = l->lent[MEMORY] == -EBADF ? 0 : l->lent[MEMORY];
    }
    if (r < 0)
        return px_fail(e, PX_E_CLONE, r, "cannot prepare the box");
    return l->box->plan->stays ? 0 : px_flow_open(l->box, policy, io, l->stdio, e);
}

static void tell_lacks(struct px_plan *plan, uint32_t lacks)
{
    if (lacks & PX_LACKS_NO_MEMFD)
        px_plan_lacks(plan, "memfd: programs can be written into memory and run there");
    if (lacks & PX_LACKS_OWN_INODES)
        px_plan_lacks(plan, "inotify: it sees who opens which program of the host");
    if (lacks & PX_LACKS_HOSTNAME)
        px_plan_lacks(plan, "hostname: the box sees the host's; sethostname is refused");
}

int px_launch(struct px_box *box, const struct px_policy *policy, const struct px_io *io, struct px_err *e)
{
    struct launch l = {
        .box = box,
        .child = {.plan = box->plan, .go = PX_GO_WAIT, .init_fd = -EBADF, .parent_fd = -EBADF, .ruleset_fd = -EBADF,
                  .upper_tree = -EBADF, .filter_fd = -EBADF, .relay_fd = -EBADF, .memory_fd = -EBADF,
                  .payload_fd = -EBADF, .net_fd = -EBADF, .stamps = box->stamps,
                  .rows = io->rows ? io->rows : 24, .cols = io->cols ? io->cols : 80},
        .control_child = -EBADF,
        .lent = {-EBADF, -EBADF, -EBADF, -EBADF},
        .stdio = {-EBADF, -EBADF, -EBADF},
    };
    int r = open_all(&l, policy, io, e);
    for (int i = 0; r >= 0 && i < 3 && !is_command(box); i++)
        box->partner->stdio[i] = px_fd_take(&l.stdio[i]);
    if (r >= 0) {
        l.child.control_fd = l.control_child;
        l.child.init_fd = l.lent[INIT];
        l.child.parent_fd = l.lent[PARENT];
        l.child.filter_fd = l.lent[FILTER];
        l.child.memory_fd = l.lent[MEMORY];
        l.child.relay_fd = box->carrier ? box->carrier->socket : -EBADF;
        memcpy(l.child.stdio, l.stdio, sizeof l.stdio);
        r = clone_quietly(&l, e);
    }
    /* px-init writes to it the refused calls of processes outside of any command */
    box->notes = px_fd_take(&l.lent[FILTER]);
    close_child_ends(&l);
    if (l.stacks && !(box->plan->builder && box->plan->builder->stacks == l.stacks))
        (void)munmap(l.stacks, (size_t)2 * PX_CHILD_STACK);
    /* The payload's own report is more exact: pid 1 only knows that the payload failed. */
    /* If pid 1 failed before its ids were mapped, that failure is also why they could not be mapped. */
    bool first = r < 0 && l.child.report.err != -ECANCELED;
    if (r >= 0 && l.child.payload_report.err < 0)
        r = explain_failure(box, &l.child.payload_report, e);
    if ((r >= 0 || first) && l.child.report.err < 0)
        r = explain_failure(box, &l.child.report, e);
    tell_lacks(box->plan, l.child.lacks);
    if (box->plan->stays)
        return r < 0 ? r : wait_for_init(box, e);
    if (r >= 0 && box->plan->changes)
        box->changes = receive_fd(box->control);
    if (r >= 0 && box->tty && is_command(box))
        r = connect_terminal(box, e);
    if (r >= 0)                 /* absent if pid 1 was killed meanwhile; then the box ends by its pidfd */
        box->payload = receive_fd(box->control);
    if (r >= 0 && box->plan->notify)
        box->listener = receive_fd(box->control);
    return r;
}
