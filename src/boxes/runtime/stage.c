#include "runtime/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "base/time.h"
#include "box/supervise.h"
#include "kernel/abi.h"
#include "plan/plan.h"
#include "plan/steps.h"
#include "runtime/bundle.h"
#include "runtime/kind.h"
#include "runtime/start.h"

#include "runtime/start_image.inc"      /* static const unsigned char px_start_image[] */

enum { BUNDLE_BYTES = 64 << 20, BUNDLE_INODES = 8192, ARGS_MAX = 24 };

/* ---- the command line of the runtime ---- */

static int add_words(const char **argv, int count, const char *const words[])
{
    for (size_t i = 0; words[i] && count < ARGS_MAX - 1; i++)
        argv[count++] = words[i];
    return count;
}

static void make_argv(const struct px_stage *st, const char *program, const char *log, const char *name, const char **argv)
{
    static const char state[] = PX_BUNDLE_STATE;
    const struct px_runtime_kind *kind = st->kind;
    int n = add_words(argv, 0, (const char *const[]){program, "--root", state, "--log", log, NULL});
    n = add_words(argv, n, kind->options);
    if (kind->own_kernel)       /* its network is its own, or passed through */
        argv[n++] = st->native->own_net ? "--network=none" : "--network=host";
    argv[n++] = "run";
    if (kind->socket)
        n = add_words(argv, n, (const char *const[]){"--preserve-fds", "1", NULL});
    n = add_words(argv, n, (const char *const[]){"--bundle", PX_BUNDLE_DIR, name, NULL});
    argv[n] = NULL;
}

/* ---- the bundle, as steps ---- */

static struct px_step *add_content(struct px_plan *plan, const char *path, unsigned mode, const void *data, size_t len)
{
    uint32_t at = (uint32_t)plan->text.len;
    px_buf_add(&plan->text, data, len);
    px_buf_putc(&plan->text, '\0');
    struct px_step *s = px_steps_at(plan, PX_OP_FILE, path);
    s->src = at;
    s->num = len;
    s->attr = mode;
    return s;
}

/* Joined in out, or the plan's sticky error. */
static int joined(struct px_stage *st, const char *dir, const char *path, char out[PATH_MAX])
{
    int r = px_fmt(out, PATH_MAX, "%s%s", dir, path);
    if (r < 0 && st->plan->text.err == 0)
        st->plan->text.err = -E2BIG;
    return r;
}

/* A path of the native box in the bundle: in its root, or beside it if it lies in a tmpfs that is there. */
static int staged(struct px_stage *st, const char *path, char out[PATH_MAX])
{
    const struct px_plan *native = st->native;
    bool beside = false;
    for (uint32_t i = 0; i < native->count; i++) {
        const char *tmpfs = px_plan_text(native, native->steps[i].dst);
        if (native->steps[i].op == PX_OP_TMPFS && !px_equal(path, tmpfs) && px_path_within(path, tmpfs))
            beside = true;
    }
    return joined(st, beside ? PX_BUNDLE_BESIDE : PX_BUNDLE_ROOTFS, path, out);
}

/* A mount point that a tmpfs will cover. runc gives the tmpfs the mode of what it covers. */
static const struct px_step *tmpfs_on(const struct px_plan *plan, const char *path)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_TMPFS && px_equal(px_plan_text(plan, plan->steps[i].dst), path))
            return &plan->steps[i];
    return NULL;
}

/* What lies in /dev a runtime makes itself; but one with its own kernel looks for mount points in what it is given. */
static bool left_to_runtime(const struct px_stage *st, const struct px_step *s)
{
    const char *path = px_plan_text(st->native, s->dst);
    return px_path_within(path, "/dev") && !px_equal(path, "/dev") && !(s->op == PX_OP_MKDIR && st->kind->own_kernel);
}

/* A directory, link or file of the skeleton, or a mount point in a tmpfs. */
static void copy_entry(struct px_stage *st, const struct px_step *s)
{
    struct px_plan *plan = st->plan;
    const char *path = px_plan_text(st->native, s->dst), *content = px_plan_text(st->native, s->src);
    const struct px_step *tmpfs = tmpfs_on(st->native, path);
    char target[PATH_MAX];
    if (left_to_runtime(st, s) || px_bundle_detached(st->native, path) || staged(st, path, target) < 0)
        return;
    if (s->op == PX_OP_SYMLINK)
        px_steps_link(plan, content, target);
    else if (s->op == PX_OP_FILE)
        px_steps_file(plan, target, s->num ? content : "");
    else if (!px_steps_has(plan, PX_OP_MKDIR, target))
        px_steps_dir(plan, target, tmpfs && !(tmpfs->flags & PX_STEP_OWNED) ? 01777 : s->attr, s->flags & PX_STEP_OWNED);
}

/* Its mount point in the root stays; the tmpfs itself is beside, and so is everything in it. */
static void copy_tmpfs(struct px_stage *st, const struct px_step *s)
{
    const char *path = px_plan_text(st->native, s->dst);
    char target[PATH_MAX];
    if (!px_bundle_beside(st->native, path) || joined(st, PX_BUNDLE_BESIDE, path, target) < 0)
        return;
    px_steps_dirs(st->plan, target, true, 0);
    struct px_step *copy = px_steps_at(st->plan, PX_OP_TMPFS, target);
    copy->num = s->num;
    copy->num2 = s->num2;
    copy->attr = s->attr;
    copy->flags = s->flags & PX_STEP_OWNED;
}

/* A part of a tmpfs beside, with the attributes of its place: a runtime may forget some of them when it binds. */
static void copy_part(struct px_stage *st, const struct px_step *s)
{
    char path[PATH_MAX];
    if (joined(st, PX_BUNDLE_BESIDE, px_plan_text(st->native, s->src), path) < 0)
        return;
    uint32_t at = px_steps_text(st->plan, path);
    struct px_step *copy = px_steps_add(st->plan, PX_OP_BIND);
    copy->src = copy->dst = at;
    copy->flags = PX_STEP_INSIDE;
    copy->attr = s->attr;
}

/* The caller's files come in by our own hand: looked up once, attributes set on the whole tree, owners mapped for root. */
static void copy_bind(struct px_stage *st, uint32_t index)
{
    const struct px_step *s = &st->native->steps[index];
    char target[64];
    if (s->flags & PX_STEP_INSIDE)
        copy_part(st, s);
    if (!(s->flags & PX_STEP_CALLER) || px_bundle_source(index, target, sizeof target) < 0)
        return;
    if (s->flags & PX_STEP_FILE)
        px_steps_file(st->plan, target, "");
    else
        px_steps_dir(st->plan, target, 0755, 0);
    uint32_t src = px_steps_text(st->plan, px_plan_text(st->native, s->src));
    struct px_step *copy = px_steps_at(st->plan, PX_OP_BIND, target);
    copy->src = src;
    copy->attr = s->attr;
    copy->num = s->num;
    copy->num2 = s->num2;
    copy->flags = s->flags & (PX_STEP_CALLER | PX_STEP_FILE);
}

static void copy_overlay(struct px_stage *st, const struct px_step *s)
{
    uint32_t src = px_steps_text(st->plan, px_plan_text(st->native, s->src));
    struct px_step *copy = px_steps_at(st->plan, PX_OP_OVERLAY, PX_BUNDLE_ROOTFS);
    copy->src = src;
    copy->attr = s->attr;
    copy->num = s->num;
    copy->num2 = s->num2;
}

static void add_start(struct px_stage *st)
{
    struct px_plan *plan = st->plan;
    px_steps_dir(plan, PX_BUNDLE_ROOTFS PX_START_DIR, 0555, 0);
    add_content(plan, PX_BUNDLE_ROOTFS PX_START_PATH, 0555, px_start_image, sizeof px_start_image);
    st->orders = plan->count;
    px_steps_at(plan, PX_OP_FILE, PX_BUNDLE_ROOTFS PX_START_ORDERS)->attr = 0444;
    st->config = plan->count;
    px_steps_at(plan, PX_OP_FILE, PX_BUNDLE_DIR "/config.json")->attr = 0400;
}

/* Seen, not touched: runc looks for a tree and goes without when it cannot write to it; to others the directory is enough. */
static void add_cgroup_view(struct px_plan *plan, bool seen)
{
    static const char tree[] = "/sys/fs/cgroup";
    struct stat st;
    px_steps_dirs(plan, tree, true, 0);
    if (seen && stat(tree, &st) == 0)
        px_steps_bind(plan, tree, tree, PX_STEPS_RO | PX_MOUNT_NOEXEC, &st);
}

static void add_own_tmpfs(struct px_plan *plan, const char *path)
{
    px_steps_dir(plan, path, 0755, 0);
    struct px_step *s = px_steps_at(plan, PX_OP_TMPFS, path);
    s->num = BUNDLE_BYTES;
    s->num2 = BUNDLE_INODES;
    s->attr = PX_STEPS_RW;
    s->flags = PX_STEP_PLAIN;
}

static void add_bundle(struct px_stage *st)
{
    struct px_plan *plan = st->plan;
    const struct px_plan *native = st->native;

    add_own_tmpfs(plan, PX_BUNDLE_DIR);
    px_steps_dir(plan, PX_BUNDLE_BINDS, 0755, 0);
    px_steps_dir(plan, PX_BUNDLE_BESIDE, 0755, 0);
    add_own_tmpfs(plan, PX_BUNDLE_ROOTFS);      /* of its own: the container sees the path of its root in its file system */
    add_start(st);
    for (uint32_t i = 0; i < native->count; i++) {
        const struct px_step *s = &native->steps[i];
        if (s->op == PX_OP_MKDIR || s->op == PX_OP_SYMLINK || s->op == PX_OP_FILE)
            copy_entry(st, s);
        else if (s->op == PX_OP_TMPFS)
            copy_tmpfs(st, s);
        else if (s->op == PX_OP_BIND)
            copy_bind(st, i);
        else if (s->op == PX_OP_OVERLAY)
            copy_overlay(st, s);
    }
    if (st->kind->own_kernel)
        px_steps_at(plan, PX_OP_READONLY, PX_BUNDLE_ROOTFS)->attr = PX_STEPS_RO;
    add_cgroup_view(plan, st->kind->sees_cgroups);
}

/* ---- places in trees that are not ours ---- */

static const struct px_step *bind_around(const struct px_plan *plan, const char *path)
{
    const struct px_step *nearest = NULL;
    size_t longest = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        const char *dst = px_plan_text(plan, plan->steps[i].dst);
        if (plan->steps[i].op == PX_OP_BIND && !px_equal(dst, path) && px_path_within(path, dst) && strlen(dst) > longest) {
            nearest = &plan->steps[i];
            longest = strlen(dst);
        }
    }
    return nearest;
}

/* A runtime would make the mount point, in the caller's own tree; and follow links on the way. */
static int check_place(const struct px_plan *plan, const struct px_step *s)
{
    const char *path = px_plan_text(plan, s->dst);
    const struct px_step *around = bind_around(plan, path);
    if (!around)
        return -ELOOP;          /* below /bin, which is a link */
    px_auto_fd int dir = open(px_plan_text(plan, around->src), O_PATH | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    px_auto_fd int place = px_open_in_root(dir, path + strlen(px_plan_text(plan, around->dst)) + 1, O_PATH, 0);
    return place < 0 ? place : 0;
}

static int check_places(const struct px_plan *plan, struct px_err *e)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        int r = (s->op == PX_OP_BIND || s->op == PX_OP_TMPFS) && s->flags & PX_STEP_FOREIGN ? check_place(plan, s) : 0;
        if (r < 0)
            return px_launch_bind_failed(plan, s, r, e);
    }
    return 0;
}

/* ---- from a native plan to one around a runtime ---- */

/* What confines a command is not for the runtime, which is ours to trust and has to do such things itself. */
static bool kept(const struct px_stage *st, struct px_step *s)
{
    switch ((enum px_op)s->op) {
    case PX_OP_HOSTNAME:
    case PX_OP_CGROUPNS:
    case PX_OP_READONLY:
    case PX_OP_MASK:
    case PX_OP_BOUND:
    case PX_OP_IDS:
    case PX_OP_APPARMOR:
    case PX_OP_LANDLOCK:
    case PX_OP_ALLOW:
    case PX_OP_ENFORCE:
    case PX_OP_RLIMIT:
    case PX_OP_SECCOMP:
    case PX_OP_OFF:
        return false;
    case PX_OP_TMPFS:           /* runsc works in /tmp */
        return st->kind->own_kernel && px_equal(px_plan_text(st->plan, s->dst), "/tmp");
    case PX_OP_NO_USERNS:       /* the container's own is the last one; runsc makes more */
        s->num = 1;
        return !st->kind->own_kernel;
    case PX_OP_PROC:            /* covered or hidden, the kernel would not let the container have its own */
        s->flags |= PX_STEP_PLAIN;
        return true;
    default:
        return true;
    }
}

static void add_inherited(struct px_plan *plan, int *fd, int number)
{
    if (*fd < 0)
        return;
    struct px_step *s = px_steps_add(plan, PX_OP_INHERIT);
    s->num = (uint64_t)number;
    s->fd = px_fd_take(fd);
}

static int rebuild(struct px_stage *st, int *socket, int *log)
{
    struct px_plan *plan = st->plan;
    px_auto_free struct px_step *old = plan->steps;
    const uint32_t count = plan->count, payload_from = plan->payload_from, init_at = plan->init_at;
    plan->count = 0;
    plan->steps = calloc(PX_STEPS_MAX, sizeof *plan->steps);
    if (!plan->steps)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (i == payload_from)
            plan->payload_from = plan->count;
        if (i == init_at)
            plan->init_at = plan->count;
        if (old[i].op == PX_OP_SEAL)
            add_bundle(st);
        if (!kept(st, &old[i]))
            continue;
        if (old[i].op == PX_OP_CHDIR)
            old[i].dst = px_steps_text(plan, PX_BUNDLE_DIR);
        *px_steps_add(plan, old[i].op) = old[i];
        if (old[i].op == PX_OP_CLOSE) {
            add_inherited(plan, socket, PX_START_FD);
            add_inherited(plan, log, 0);
        }
    }
    return 0;
}

/* ---- vectors: the arena moves while it grows, so they are numbers until the end ---- */

static int take_vector(struct px_plan *plan, char ***vector, uint32_t **ret_offsets, unsigned *ret_count, unsigned most)
{
    unsigned n = 0;
    while ((*vector)[n] && n < most)
        n++;
    *ret_offsets = calloc(n + 1, sizeof **ret_offsets);
    for (unsigned i = 0; *ret_offsets && i < n; i++)
        (*ret_offsets)[i] = (uint32_t)((*vector)[i] - plan->text.data);
    *ret_count = n;
    free(*vector);
    *vector = NULL;
    return *ret_offsets ? 0 : -ENOMEM;
}

static int take_vectors(struct px_stage *st)
{
    struct px_plan *plan = st->plan;
    int r = take_vector(plan, &plan->argv, &st->argv, &st->argv_count, PX_ARGS_MAX);
    if (r >= 0)
        r = take_vector(plan, &plan->envp, &st->envp, &st->envp_count, PX_ARGS_MAX);
    /* px-init looks after no directory here: those of the box are px-start's. */
    return r < 0 ? r : take_vector(plan, &plan->init_argv, &st->init_argv, &st->init_argv_count, 3);
}

static char **make_vector(const struct px_plan *plan, const uint32_t *offsets, unsigned count)
{
    char **v = calloc(count + 1ul, sizeof *v);
    for (unsigned i = 0; v && i < count; i++)
        v[i] = plan->text.data + offsets[i];
    return v;
}

/* ---- the whole ---- */

static int make_plan(struct px_stage *st, bool bind_to_thread, int log, struct px_err *e)
{
    struct px_policy around = {0};
    const struct px_host host = {.uid = geteuid(), .gid = getegid(), .user_namespaces = true};
    const char *argv[ARGS_MAX];
    char program[256], log_path[64], name[64];

    if (px_runtime_program(st->kind, program, sizeof program, e) < 0 || px_policy_init(&around, NULL, e) < 0)
        return -1;
    (void)px_fmt(log_path, sizeof log_path, "/proc/self/fd/%d", log);
    around.tty = st->policy->tty && !st->kind->socket;
    around.net = st->native->own_net ? st->policy->net : PX_NET_HOST;
    /* runsc makes a socket of that name, which in a shared network all can see. */
    (void)px_fmt(name, sizeof name, "px-%d-%llx", (int)getpid(), (unsigned long long)px_now_nsec());
    make_argv(st, program, log_path, name, argv);
    int r = px_plan_new(&around, argv, &host, bind_to_thread, &st->plan, e);
    px_policy_done(&around);
    return r;
}

/* The result describes the inner box, not the one around it. */
static void take_notes(struct px_plan *plan, const struct px_plan *native)
{
    memcpy(plan->mechanisms, native->mechanisms, sizeof plan->mechanisms);
    memcpy(plan->missing, native->missing, sizeof plan->missing);
    plan->mechanisms_count = native->mechanisms_count;
    plan->missing_count = native->missing_count;
    plan->binds = native->binds;
    plan->writable_binds = native->writable_binds;
    plan->own_filter = native->own_filter;
    plan->notify = false;       /* px-start has the listener, and passes it on by another way */
    plan->namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWNS | PX_CLONE_NEWPID;
}

int px_stage_init(struct px_stage *st, const struct px_policy *policy, const struct px_plan *native,
                  const struct px_runtime_kind *kind, bool bind_to_thread, int socket, int log, struct px_err *e)
{
    px_auto_fd int its_socket = socket, its_log = log;
    *st = (struct px_stage){.native = native, .policy = policy, .kind = kind};
    if (check_places(native, e) < 0 || make_plan(st, bind_to_thread, log, e) < 0)
        return -1;
    if (take_vectors(st) < 0 || rebuild(st, &its_socket, &its_log) < 0) {
        px_stage_done(st);
        return px_no_memory(e);
    }
    take_notes(st->plan, native);
    return 0;
}

void px_stage_done(struct px_stage *st)
{
    px_plan_free(st->plan);
    free(st->argv);
    free(st->envp);
    free(st->init_argv);
    *st = (struct px_stage){0};
}

static void set_content(struct px_plan *plan, uint32_t step, const struct px_buf *content)
{
    plan->steps[step].src = (uint32_t)plan->text.len;
    plan->steps[step].num = content->len;
    px_buf_add(&plan->text, content->data, content->len);
    px_buf_putc(&plan->text, '\0');
}

int px_stage_fill(struct px_stage *st, const struct px_buf *config, const struct px_buf *orders, struct px_err *e)
{
    struct px_plan *plan = st->plan;
    set_content(plan, st->config, config);
    set_content(plan, st->orders, orders);
    if (plan->text.err < 0) {
        px_fail(e, plan->text.err == -ENOMEM ? PX_E_MEMORY : PX_E_LIMIT, 0, "the request is too large for one box");
        return px_why(e, "Arguments, variables and paths together may have %d bytes, a plan %d steps.", PX_PLAN_TEXT_MAX,
                      PX_STEPS_MAX);
    }
    plan->argv = make_vector(plan, st->argv, st->argv_count);
    plan->envp = make_vector(plan, st->envp, st->envp_count);
    plan->init_argv = make_vector(plan, st->init_argv, st->init_argv_count);
    return plan->argv && plan->envp && plan->init_argv ? 0 : px_no_memory(e);
}
