#include "box/template.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "child/child.h"
#include "kernel/abi.h"
#include "kernel/clone.h"
#include "kernel/idmap.h"
#include "kernel/pidfd.h"
#include "plan/plan.h"
#include "plan/steps.h"

enum { BUILD_SEC_MAX = 60, PLACE_BYTES = 64 << 10, PLACE_INODES = 16 };

struct px_template {
    struct px_plan *plan;       /* with the TREE step if there is a tree */
    struct px_plan *whole;      /* as computed, for px_template_fits */
    int place;
    int filters;                /* the filters of px-init, one file for all boxes */
};

/* ---- running steps in a mount namespace of their own, with our own privileges ---- */

static void wait_for_builder(struct px_child *child, int pidfd)
{
    const struct timespec second = {.tv_sec = 1};
    uint32_t alive;
    int status, seconds = BUILD_SEC_MAX;
    while ((alive = __atomic_load_n(&child->alive, __ATOMIC_ACQUIRE)) != 0)
        if (px_sys(SYS_futex, &child->alive, FUTEX_WAIT, alive, &second, 0, 0) == -ETIMEDOUT && --seconds <= 0)
            (void)px_pidfd_signal(pidfd, SIGKILL);
    (void)px_pidfd_wait(pidfd, false, &status, NULL);
}

/* The child shares our descriptor table: a descriptor that its last step keeps is ours. */
static int build_in(struct px_child *child, char *stack)
{
    const uint64_t all = ~0ull;
    uint64_t before = 0;
    int pidfd = -EBADF;
    struct px_clone_args args = {
        .flags = PX_CLONE_NEWNS | PX_CLONE_VM | PX_CLONE_FILES | PX_CLONE_PIDFD | PX_CLONE_CHILD_CLEARTID |
                 PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&pidfd,
        .child_tid = (uintptr_t)&child->alive,
    };
    child->alive = 1;
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    long pid = px_clone_run(&args, stack, PX_CHILD_STACK, px_child_main, child);
    if (pid > 0)
        wait_for_builder(child, pidfd);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    (void)px_fd_close(pid > 0 ? pidfd : -EBADF);
    int r = pid < 0 ? (int)pid : child->report.err;
    if (r >= 0)
        return child->kept_fd;
    (void)px_fd_close(child->aside_fd);
    (void)px_fd_close(child->kept_fd);
    return r;
}

/* Runs the steps. Returns the descriptor that the last one keeps, or -errno. */
static int run_steps(const struct px_plan *plan)
{
    struct px_child child = {.plan = plan, .aside_fd = -EBADF, .kept_fd = -ECANCELED};
    px_auto_fd int parent = px_fd_above_stdio(px_pidfd_open(getpid()));
    if (parent < 0)
        return parent;
    child.parent_fd = parent;
    void *stack = mmap(NULL, PX_CHILD_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -ENOMEM;
    int kept = build_in(&child, stack);
    (void)munmap(stack, PX_CHILD_STACK);
    return kept;
}

static struct px_plan *empty_plan(uint32_t steps)
{
    struct px_plan *plan = calloc(1, sizeof *plan);
    if (plan)
        plan->steps = calloc(steps, sizeof *plan->steps);
    if (!plan || !plan->steps) {
        free(plan);
        return NULL;
    }
    plan->text = PX_BUF(PX_PLAN_TEXT_MAX);
    return plan;
}

/* Runs the whole plan as stage 1, and frees it. */
static int build_and_free(struct px_plan *plan)
{
    plan->payload_from = plan->init_at = plan->count;
    int fd = plan->text.err < 0 ? plan->text.err : run_steps(plan);
    px_plan_free(plan);
    return fd;
}

/* ---- the builder ---- */

int px_template_builder_init(struct px_template_builder *ret_who)
{
    *ret_who = (struct px_template_builder)PX_TEMPLATE_BUILDER_NONE;
    if (!px_idmap_caller_is_root())
        return -EPERM;
    struct px_template_builder who = {
        .home = (int)px_sys(SYS_openat, AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
        .root = (int)px_sys(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .cwd = (int)px_sys(SYS_openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC),
    };
    if (who.home < 0 || who.root < 0 || who.cwd < 0) {
        px_template_builder_done(&who);
        return -EMFILE;
    }
    *ret_who = who;
    return 0;
}

void px_template_builder_done(struct px_template_builder *who)
{
    int *const fds[] = {&who->home, &who->root, &who->cwd};
    for (size_t i = 0; i < PX_COUNT_OF(fds); i++)
        *fds[i] = px_fd_close(*fds[i]);
    if (who->stacks)
        (void)munmap(who->stacks, (size_t)2 * PX_CHILD_STACK);
    who->stacks = NULL;
}

/* ---- the tree ---- */

/* Whether a step makes a part of the root that all boxes can share: nothing of the caller's and nothing of the box's
 * own. */
static bool is_common(const struct px_step *s)
{
    switch ((enum px_op)s->op) {
    case PX_OP_ROOT:
    case PX_OP_SYMLINK:
    case PX_OP_FILE:
        return true;
    case PX_OP_MKDIR:
        return !(s->flags & PX_STEP_OWNED);
    case PX_OP_BIND:
        return !(s->flags & (PX_STEP_CALLER | PX_STEP_INSIDE | PX_STEP_FOREIGN)) && s->fd < 0;
    default:
        return false;
    }
}

/* The sequence of common steps from ROOT on. None if the root is a given directory: an overlay of ours would not keep
 * its owners. */
static uint32_t find_common(const struct px_plan *plan, uint32_t *ret_from)
{
    uint32_t from = 0, to;
    while (from < plan->count && plan->steps[from].op != PX_OP_ROOT)
        from++;
    for (to = from; to < plan->count && is_common(&plan->steps[to]); to++)
        ;
    for (uint32_t i = from; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_OVERLAY || plan->steps[i].op == PX_OP_OFF)
            return 0;
    *ret_from = from;
    return to - from;
}

static void add_surroundings(struct px_plan *plan, const struct stat *proc)
{
    struct px_step *root = px_steps_add(plan, PX_OP_ROOT);
    root->num = PLACE_BYTES;
    root->num2 = PLACE_INODES;
    root->attr = PX_STEPS_RW;
    px_steps_dir(plan, "/proc", 0555, 0);
    px_steps_dir(plan, PX_TEMPLATE_TREE, 0755, 0);
    /* Whole and writable: the kernel lets a box mount its own /proc only where a fully visible one exists. */
    px_steps_bind(plan, "/proc", "/proc", PX_STEPS_RW | PX_MOUNT_NOEXEC, proc);
    px_steps_at(plan, PX_OP_PUT_BACK, PX_TEMPLATE_TREE);
    px_steps_add(plan, PX_OP_SEAL)->attr = PX_STEPS_RO;
}

/* Makes the template namespace, which holds the tree. */
static int build_place(const struct px_plan *plan, uint32_t from, uint32_t count)
{
    struct stat proc;
    struct px_plan *part = stat("/proc", &proc) < 0 ? NULL : empty_plan(PX_STEPS_MAX);
    if (!part)
        return -ENOMEM;
    px_buf_add(&part->text, plan->text.data, plan->text.len);
    part->owner = plan->owner;
    px_steps_add(part, PX_OP_BEGIN);
    px_steps_add(part, PX_OP_PRIVATE);
    for (uint32_t i = 0; i < count; i++)
        *px_steps_add(part, plan->steps[from + i].op) = plan->steps[from + i];
    px_steps_add(part, PX_OP_SEAL)->attr = PX_STEPS_RO;
    px_steps_add(part, PX_OP_PUT_ASIDE);
    add_surroundings(part, &proc);
    px_steps_add(part, PX_OP_KEEP_NAMESPACE);
    px_steps_add(part, PX_OP_PIVOT);
    return build_and_free(part);
}

/* ---- plans ---- */

static char **copy_vector(char *const *from, const struct px_plan *plan, const struct px_plan *copy)
{
    size_t n = 0;
    while (from[n])
        n++;
    char **to = calloc(n + 1, sizeof *to);
    for (size_t i = 0; to && i < n; i++)
        to[i] = copy->text.data + (from[i] - plan->text.data);
    return to;
}

static struct px_plan *copy_plan(const struct px_plan *plan)
{
    struct px_plan *copy = malloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *plan;
    copy->text = PX_BUF(PX_PLAN_TEXT_MAX);
    px_buf_add(&copy->text, plan->text.data, plan->text.len);
    bool room = copy->text.err >= 0;
    copy->steps = calloc(plan->count, sizeof *copy->steps);
    copy->argv = room ? copy_vector(plan->argv, plan, copy) : NULL;
    copy->envp = room ? copy_vector(plan->envp, plan, copy) : NULL;
    copy->init_argv = room ? copy_vector(plan->init_argv, plan, copy) : NULL;
    if (copy->steps)
        memcpy(copy->steps, plan->steps, plan->count * sizeof *copy->steps);
    else
        copy->count = 0;
    if (copy->steps && copy->argv && copy->envp && copy->init_argv)
        return copy;
    px_plan_free(copy);
    return NULL;
}

/* Replaces the common steps by one TREE step, and adjusts the indices into the list. */
static void put_tree(struct px_template *t, uint32_t from, uint32_t count)
{
    struct px_plan *plan = t->plan;
    const uint32_t less = count - 1;
    plan->steps[from] = (struct px_step){.op = PX_OP_TREE, .fd = -1};
    memmove(plan->steps + from + 1, plan->steps + from + count, (plan->count - from - count) * sizeof *plan->steps);
    plan->count -= less;
    plan->payload_from -= less;
    plan->init_at -= less;
}

/* Whether the boxes will have an id range. Otherwise their steps need paths of the host. */
static bool have_own_ids(const struct px_plan *plan)
{
    struct px_idmap map;
    if (px_idmap_choose(plan->owner.uid, plan->owner.gid, plan->binds, &map) < 0)
        return false;
    px_idmap_done(&map);
    return map.kind == PX_IDMAP_RANGE;
}

static void make_place(struct px_template *t)
{
    uint32_t from = 0, count = have_own_ids(t->whole) ? find_common(t->whole, &from) : 0;
    t->place = count ? build_place(t->whole, from, count) : -EBADF;
    if (t->place >= 0)
        put_tree(t, from, count);
}

static int shared_filters(const struct px_plan *plan)
{
    const struct px_step *s = &plan->steps[plan->count - 1];
    return px_fd_memory("px-filters", px_plan_text(plan, s->src), s->attr, PX_MEMORY_SEALED);
}

int px_template_new(struct px_plan *plan, bool has_builders, struct px_template **ret_template, struct px_err *e)
{
    struct px_template *t = calloc(1, sizeof *t);
    if (!t) {
        px_plan_free(plan);
        return px_no_memory(e);
    }
    t->place = t->filters = -EBADF;
    t->whole = plan;
    t->plan = copy_plan(plan);
    if (!t->plan) {
        px_template_free(t);
        return px_no_memory(e);
    }
    t->filters = shared_filters(plan);
    if (has_builders)
        make_place(t);
    *ret_template = t;
    return 0;
}

void px_template_free(struct px_template *t)
{
    if (!t)
        return;
    px_plan_free(t->whole);
    px_plan_free(t->plan);
    (void)px_fd_close(t->place);
    (void)px_fd_close(t->filters);
    free(t);
}

static bool same_step(const struct px_step *a, const struct px_step *b)
{
    return a->op == b->op && a->flags == b->flags && a->src == b->src && a->dst == b->dst && a->attr == b->attr &&
           a->num == b->num && a->num2 == b->num2;
}

bool px_template_fits(const struct px_template *t, const struct px_plan *plan)
{
    const struct px_plan *mine = t->whole;
    if (mine->count != plan->count || mine->text.len != plan->text.len || mine->landlock_abi != plan->landlock_abi ||
        memcmp(mine->text.data, plan->text.data, plan->text.len) != 0)
        return false;
    for (uint32_t i = 0; i < plan->count; i++)
        if (!same_step(&mine->steps[i], &plan->steps[i]))
            return false;
    return true;
}

int px_template_plan(const struct px_template *t, struct px_template_builder *who, struct px_plan **ret_plan, struct px_err *e)
{
    struct px_plan *plan = copy_plan(t->plan);
    if (!plan)
        return px_no_memory(e);
    plan->filters = t->filters >= 0 ? &t->filters : NULL;
    plan->builder = who;
    plan->template_ns = t->place >= 0 ? &t->place : NULL;
    *ret_plan = plan;
    return 0;
}
