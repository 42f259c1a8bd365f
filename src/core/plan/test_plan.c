/* plan/test_plan.c - what a plan must hold in which order, whatever the policy; and the plans of the presets themselves. */
#include "plan/plan.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "harness/test.h"
#include "kernel/abi.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"

enum { RO = PX_MOUNT_RDONLY | PX_MOUNT_NOSUID | PX_MOUNT_NODEV, NOWHERE = UINT32_MAX, MIB = 1 << 20 };

static const struct px_host full_host = {
    .uid = 1200, .gid = 1200, .landlock_abi = 7, .user_namespaces = true};
static const char *const echo_argv[] = {"echo", "hello", NULL};

/* ---- making and reading plans ---- */

/* Fields as "name", "value" pairs up to a NULL. */
static struct px_policy make_policy(const char *preset, const char *const *pairs)
{
    struct px_policy p;
    struct px_err e = {0};

    ASSERT_PX(px_policy_init(&p, preset, &e), e);
    for (; pairs && pairs[0]; pairs += 2)
        ASSERT_PX(px_policy_put(&p, pairs[0], pairs[1], &e), e);
    return p;
}

static struct px_plan *make_plan(const char *preset, const char *const *pairs, const struct px_host *host)
{
    struct px_policy p = make_policy(preset, pairs);
    struct px_plan *plan = NULL;
    struct px_err e = {0};

    ASSERT_PX(px_plan_new(&p, echo_argv, host, false, &plan, &e), e);
    px_policy_done(&p);
    return plan;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void refuse_plan(const char *preset, const char *const *pairs, const struct px_host *host, int code)
{
    struct px_policy p = make_policy(preset, pairs);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    int r = px_plan_new(&p, echo_argv, host, false, &plan, &e);

    if (r >= 0)
        FAIL("a plan is made with %s %s", pairs ? pairs[0] : preset, pairs ? pairs[1] : "");
    if (e.code != code)
        FAIL("PX%03d %s (%s), not PX%03d", e.code, e.what, e.why, code);
    ASSERT(plan == NULL);
    ASSERT_EQ(px_plan_new(&p, echo_argv, host, false, &plan, NULL), -1);
    px_policy_done(&p);
}

static uint32_t find_from(const struct px_plan *plan, enum px_op op, const char *dst, uint32_t from)
{
    for (uint32_t i = from; i < plan->count; i++)
        if (plan->steps[i].op == op && (!dst || px_equal(px_plan_text(plan, plan->steps[i].dst), dst)))
            return i;
    return NOWHERE;
}

static uint32_t find(const struct px_plan *plan, enum px_op op, const char *dst)
{
    return find_from(plan, op, dst, 0);
}

static const struct px_step *step(const struct px_plan *plan, enum px_op op, const char *dst)
{
    uint32_t i = find(plan, op, dst);

    if (i == NOWHERE)
        FAIL("the plan has no step %s %s", px_steps_op_word(op), dst ? dst : "");
    return &plan->steps[i];
}

static int count_of(const struct px_plan *plan, enum px_op op)
{
    int n = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        n += plan->steps[i].op == op;
    return n;
}

/* Whether the list has this word, alone or with an explanation behind a colon. */
static bool has_word(char list[40][64], uint32_t count, const char *word)
{
    size_t n = strlen(word);

    for (uint32_t i = 0; i < count; i++)
        if (strncmp(list[i], word, n) == 0 && (list[i][n] == '\0' || list[i][n] == ':'))
            return true;
    return false;
}

/* ---- what holds for every plan ---- */

/* Each step of one kind comes before every step of the other. */
static void check_before(const struct px_plan *plan, enum px_op a, enum px_op b)
{
    uint32_t last = NOWHERE, first = find(plan, b, NULL);

    for (uint32_t at = 0; (at = find_from(plan, a, NULL, at)) != NOWHERE; at++)
        last = at;
    if (last == NOWHERE || first == NOWHERE)
        FAIL("%s or %s is missing", px_steps_op_word(a), px_steps_op_word(b));
    if (last >= first)
        FAIL("step %u (%s) does not come before step %u (%s)", last, px_steps_op_word(a), first, px_steps_op_word(b));
}

static bool attaches(enum px_op op)
{
    return op == PX_OP_BIND || op == PX_OP_TMPFS || op == PX_OP_PROC || op == PX_OP_READONLY ||
           op == PX_OP_MASK || op == PX_OP_DEVPTS;
}

static bool builds(enum px_op op)
{
    return attaches(op) || op == PX_OP_ROOT || op == PX_OP_OVERLAY || op == PX_OP_MKDIR ||
           op == PX_OP_SYMLINK || op == PX_OP_FILE || op == PX_OP_DETACH;
}

static bool is_base(const char *path)
{
    static const char *const base[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/etc"};
    for (size_t i = 0; i < PX_COUNT_OF(base); i++)
        if (px_path_within(path, base[i]))
            return true;
    return false;
}

/* What was attached must stay visible: nothing is put over it, or over a directory above it, later. */
static void check_nothing_hidden(const struct px_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const char *target = px_plan_text(plan, plan->steps[i].dst);
        if (!attaches(plan->steps[i].op))
            continue;
        for (uint32_t k = i + 1; k < plan->count; k++) {
            const char *later = px_plan_text(plan, plan->steps[k].dst);
            bool in_place = plan->steps[k].op == PX_OP_READONLY && strcmp(later, target) == 0;
            if (attaches(plan->steps[k].op) && !in_place && px_path_within(target, later))
                FAIL("%s at %s is hidden by %s at %s", px_steps_op_word(plan->steps[i].op), target,
                     px_steps_op_word(plan->steps[k].op), later);
        }
    }
}

/* A place of the skeleton is made before something is attached to it. */
static void check_places(const struct px_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const char *target = px_plan_text(plan, plan->steps[i].dst);
        if (!attaches(plan->steps[i].op) || px_path_within(target, "/proc"))
            continue;
        uint32_t dir = find(plan, PX_OP_MKDIR, target), file = find(plan, PX_OP_FILE, target);
        if ((dir == NOWHERE || dir > i) && (file == NOWHERE || file > i))
            FAIL("nothing is made at %s before %s", target, px_steps_op_word(plan->steps[i].op));
        bool on_file = plan->steps[i].flags & PX_STEP_FILE;
        if (on_file ? file == NOWHERE : dir == NOWHERE)
            FAIL("%s is the wrong kind of place", target);
    }
}

static void check_bounds(const struct px_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        if (s->op == PX_OP_TMPFS || s->op == PX_OP_ROOT) {
            ASSERT(s->num > 0 && s->num != PX_UNLIMITED);
            ASSERT(s->num2 > 0);
            ASSERT_EQ(s->attr & (PX_MOUNT_NOSUID | PX_MOUNT_NODEV), PX_MOUNT_NOSUID | PX_MOUNT_NODEV);
        }
        if (s->op == PX_OP_BIND && is_base(px_plan_text(plan, s->src)))
            ASSERT_EQ(s->attr, RO);
        if (s->op == PX_OP_BIND) /* a set-id program never counts; a device only where it is meant */
            ASSERT(s->attr & PX_MOUNT_NOSUID);
        if (s->op == PX_OP_BIND && !(s->flags & PX_STEP_DEVICE))
            ASSERT(s->attr & PX_MOUNT_NODEV);
        if (builds(s->op) && i > find(plan, PX_OP_PIVOT, NULL))
            FAIL("step %u (%s) comes after the pivot", i, px_steps_op_word(s->op));
        ASSERT_EQ(s->fd, -1); /* nothing is open yet */
    }
}

static void check_devices(const struct px_plan *plan)
{
    static const struct {
        const char *path;
        unsigned major, minor;
    } wanted[] = {{"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
                  {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};
    size_t found = 0;

    for (uint32_t i = 0; i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        const char *target = px_plan_text(plan, s->dst);
        if (s->op != PX_OP_BIND || !(px_path_within(target, "/dev") || s->flags & PX_STEP_DEVICE) ||
            s->flags & PX_STEP_INSIDE)
            continue;
        if (found >= PX_COUNT_OF(wanted))
            FAIL("%s is one device too many", target);
        ASSERT_STR(target, wanted[found].path);
        ASSERT_STR(px_plan_text(plan, s->src), wanted[found].path);
        ASSERT(s->flags & PX_STEP_DEVICE);
        ASSERT_EQ(s->num, makedev(wanted[found].major, wanted[found].minor));
        ASSERT_EQ(s->attr & (PX_MOUNT_NOSUID | PX_MOUNT_NOEXEC), PX_MOUNT_NOSUID | PX_MOUNT_NOEXEC);
        found++;
    }
    ASSERT_EQ(found, PX_COUNT_OF(wanted));
    const struct px_step *pts = step(plan, PX_OP_DEVPTS, "/dev/pts");
    ASSERT(pts->num > 0 && pts->num <= 64);
}

static void check_stages(const struct px_plan *plan)
{
    ASSERT(find(plan, PX_OP_PAYLOAD, NULL) < plan->payload_from);
    ASSERT_EQ(plan->steps[plan->init_at].op, PX_OP_INIT);
    ASSERT_EQ(plan->init_at, plan->count - 1);
    for (uint32_t i = 0; i < plan->count; i++) {
        int stage = i < plan->payload_from ? 1 : i < plan->init_at ? 2 : 3;
        if (px_steps_op_stage(plan->steps[i].op) != stage)
            FAIL("step %u (%s) is of stage %d", i, px_steps_op_word(plan->steps[i].op),
                 px_steps_op_stage(plan->steps[i].op));
    }
}

/* The end of every plan, in every tier. */
/* The program of the plan is the profile's, with a notification in place of each plain refusal. */
static void check_filter(const struct px_plan *plan, const struct px_step *s)
{
    uint16_t length = 0;
    enum px_filter filter = plan->writable_binds ? PX_FILTER_WORKSPACE : PX_FILTER_DEFAULT;
    const struct sock_filter *ours = px_seccomp_program(filter, &length), *its = (const void *)px_plan_text(plan, s->src);
    int changed = 0;

    ASSERT_EQ(s->num2, length);
    ASSERT_EQ(s->src % 8, 0);
    for (uint16_t i = 0; i < length; i++) {
        if (memcmp(&its[i], &ours[i], sizeof its[i]) == 0)
            continue;
        ASSERT_EQ(ours[i].code, BPF_RET | BPF_K);
        ASSERT(ours[i].k == (SECCOMP_RET_ERRNO | EPERM) || ours[i].k == (SECCOMP_RET_ERRNO | EAFNOSUPPORT));
        ASSERT_EQ(its[i].k, SECCOMP_RET_USER_NOTIF);
        changed++;
    }
    ASSERT(changed >= 2);
}

static void check_launch(const struct px_plan *plan, bool tty)
{
    const enum px_op stream = tty ? PX_OP_TERMINAL : PX_OP_STDIO;
    const enum px_op pairs[][2] = {
        {PX_OP_WAIT, PX_OP_PAYLOAD}, /* nobody is started before the ids are there */
        {PX_OP_PAYLOAD, PX_OP_READY},
        {PX_OP_SESSION, stream}, /* a terminal becomes that of the new session */
        {PX_OP_KEYRING, PX_OP_IDS},
        {PX_OP_BOUND, PX_OP_IDS}, /* dropping reads back what bounding has done */
        {PX_OP_IDS, stream},      /* what is opened from here on is opened with the payload's rights */
        {PX_OP_IDS, PX_OP_CHDIR},
        {PX_OP_JOIN, stream}, /* and in the box's root */
        {PX_OP_JOIN, PX_OP_CHDIR},
        {PX_OP_JOIN, PX_OP_LANDLOCK},
        {PX_OP_BOUND, PX_OP_LANDLOCK}, /* which needs no_new_privs */
        {PX_OP_LANDLOCK, PX_OP_ALLOW},
        {PX_OP_ALLOW, PX_OP_ENFORCE},
        {PX_OP_CHDIR, PX_OP_ENFORCE},
        {PX_OP_ENFORCE, PX_OP_CLOSE}, /* which closes the ruleset */
        {PX_OP_ALLOW, PX_OP_RLIMIT},  /* a small number of files must not stop our own opens */
        {PX_OP_RLIMIT, PX_OP_SECCOMP},
        {PX_OP_RLIMIT, PX_OP_GATE},     /* all that the payload can do before is done while it waits */
        {PX_OP_GATE, PX_OP_SECCOMP},
        {PX_OP_SIGNALS, PX_OP_SECCOMP},
        {PX_OP_EXEC, PX_OP_INIT},
    };
    static const enum px_op once[] = {
        PX_OP_BOUND,   PX_OP_PAYLOAD, PX_OP_IDS,  PX_OP_CHDIR, PX_OP_LANDLOCK, PX_OP_ENFORCE, PX_OP_CLOSE,
        PX_OP_SECCOMP, PX_OP_EXEC,    PX_OP_INIT, PX_OP_WAIT,  PX_OP_JOIN,     PX_OP_READY, PX_OP_GATE};
    /* Where the caller's processes are around the box, a second one goes before. */
    int filters = plan->tier == PX_TIER_LANDLOCK ? 3 : 1;       /* of plans without a network */
    uint32_t seccomp = find(plan, PX_OP_SECCOMP, NULL) + (uint32_t)filters - 1;

    for (size_t i = 0; i < PX_COUNT_OF(pairs); i++)
        check_before(plan, pairs[i][0], pairs[i][1]);
    for (size_t i = 0; i < PX_COUNT_OF(once); i++)
        if (count_of(plan, once[i]) != (once[i] == PX_OP_SECCOMP ? filters : 1))
            FAIL("%s is there %d times", px_steps_op_word(once[i]), count_of(plan, once[i]));
    ASSERT_EQ(plan->steps[seccomp + 1].op, PX_OP_EXEC);
    ASSERT(count_of(plan, PX_OP_CLOSE) == 1);
    ASSERT(plan->notify);
    check_filter(plan, &plan->steps[seccomp]);
    ASSERT_EQ(count_of(plan, tty ? PX_OP_STDIO : PX_OP_TERMINAL), 0);
}

static void check_full(const struct px_plan *plan, bool tty)
{
    static const enum px_op pairs[][2] = {
        {PX_OP_PRIVATE, PX_OP_ROOT}, /* no mount of ours is seen outside */
        {PX_OP_WAIT, PX_OP_ROOT},    /* what is made belongs to the box's ids */
        {PX_OP_WAIT, PX_OP_NO_USERNS}, {PX_OP_NO_USERNS, PX_OP_PAYLOAD},
        {PX_OP_WAIT, PX_OP_COUNTS},    {PX_OP_COUNTS, PX_OP_PAYLOAD},
        {PX_OP_ROOT, PX_OP_MKDIR},     {PX_OP_PROC, PX_OP_MASK},
        {PX_OP_MASK, PX_OP_SEAL},      {PX_OP_SEAL, PX_OP_PIVOT}, /* read-only before it is anybody's root */
        {PX_OP_PIVOT, PX_OP_READY}, /* and the payload goes on in it only then */
        {PX_OP_CGROUPNS, PX_OP_READY},
    };
    const uint64_t namespaces =
        PX_CLONE_NEWUSER | PX_CLONE_NEWNS | PX_CLONE_NEWPID | PX_CLONE_NEWIPC | PX_CLONE_NEWUTS;

    ASSERT_EQ(plan->tier, PX_TIER_FULL);
    check_stages(plan);
    for (size_t i = 0; i < PX_COUNT_OF(pairs); i++)
        check_before(plan, pairs[i][0], pairs[i][1]);
    check_launch(plan, tty);
    check_bounds(plan);
    check_devices(plan);
    check_nothing_hidden(plan);
    ASSERT_EQ(plan->namespaces & namespaces, namespaces);
    ASSERT_EQ(step(plan, PX_OP_SEAL, NULL)->attr, RO);
    ASSERT(step(plan, PX_OP_IDS, NULL)->num != 0); /* the payload is never root, pid 1 is another id */
    ASSERT_EQ(step(plan, PX_OP_INIT, NULL)->num, 0);
    ASSERT(step(plan, PX_OP_IDS, NULL)->flags & PX_STEP_SETGROUPS);
    ASSERT(step(plan, PX_OP_WAIT, NULL)->flags & PX_STEP_SETGROUPS);
    ASSERT(has_word(((struct px_plan *)plan)->mechanisms, plan->mechanisms_count, "no_new_privs"));
}

/* ---- the presets ---- */

static void check_rlimit(const struct px_plan *plan, int resource, uint64_t soft, uint64_t hard)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_RLIMIT && plan->steps[i].attr == (uint32_t)resource) {
            ASSERT_EQ(plan->steps[i].num, soft);
            ASSERT_EQ(plan->steps[i].num2, hard);
            return;
        }
    if (soft != PX_UNLIMITED)
        FAIL("resource %d has no limit", resource);
}

static void check_tmpfs(const struct px_plan *plan, const char *target, uint64_t bytes, bool noexec)
{
    const struct px_step *s = step(plan, PX_OP_TMPFS, target);

    ASSERT_EQ(s->num, bytes);
    ASSERT_EQ(s->attr & PX_MOUNT_NOEXEC, noexec ? PX_MOUNT_NOEXEC : 0);
    ASSERT(!(s->attr & PX_MOUNT_RDONLY));
}

TEST(default_preset)
{
    struct px_plan *plan = make_plan("default", NULL, &full_host);

    check_full(plan, false);
    check_places(plan);
    ASSERT(plan->own_net);
    ASSERT_EQ(count_of(plan, PX_OP_NETNS), 1);
    check_before(plan, PX_OP_NETNS, PX_OP_BOUND); /* it needs privileges */
    check_before(plan, PX_OP_NETNS, PX_OP_JOIN);
    ASSERT_EQ(count_of(plan, PX_OP_LOOPBACK), 0);
    ASSERT_EQ(count_of(plan, PX_OP_TMPFS), 3);
    check_tmpfs(plan, "/home/sandbox", 256u * MIB, false);
    check_tmpfs(plan, "/tmp", 64 * MIB, false);
    check_tmpfs(plan, "/dev/shm", 64 * MIB, true);
    check_rlimit(plan, RLIMIT_CORE, 1, 1);
    check_rlimit(plan, RLIMIT_NOFILE, 4096, 4096);
    check_rlimit(plan, RLIMIT_NPROC, 1024, 1024);
    check_rlimit(plan, RLIMIT_NICE, 0, 0);
    check_rlimit(plan, RLIMIT_RTPRIO, 0, 0);
    check_rlimit(plan, RLIMIT_CPU, PX_UNLIMITED, 0);
    check_rlimit(plan, RLIMIT_FSIZE, PX_UNLIMITED, 0);
    ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_CHDIR, NULL)->dst), "/home/sandbox");
    ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_HOSTNAME, NULL)->src), "sandbox");
    ASSERT_EQ(step(plan, PX_OP_IDS, NULL)->num, 1000);
    ASSERT_STR(plan->argv[0], "echo");
    ASSERT_STR(plan->argv[1], "hello");
    ASSERT(plan->argv[2] == NULL);
    ASSERT_EQ(plan->missing_count, 0);
    ASSERT(!plan->binds && !plan->writable_binds);
    px_plan_free(plan);
}

TEST(untrusted_preset)
{
    struct px_plan *plan = make_plan("untrusted", NULL, &full_host);

    check_full(plan, false);
    check_places(plan);
    ASSERT_EQ(count_of(plan, PX_OP_TMPFS), 5);
    check_tmpfs(plan, "/home/sandbox", 64 * MIB, true);
    check_tmpfs(plan, "/tmp", 64 * MIB, true);
    check_tmpfs(plan, "/var/tmp", 32 * MIB, true);
    check_tmpfs(plan, "/run", 16 * MIB, true);
    check_tmpfs(plan, "/dev/shm", 16 * MIB, true);
    check_rlimit(plan, RLIMIT_NPROC, 100, 100);
    for (uint32_t i = 0; i < plan->count; i++) { /* nothing that can be written can be executed */
        const struct px_step *s = &plan->steps[i];
        if ((s->op == PX_OP_TMPFS || s->op == PX_OP_BIND) && !(s->attr & PX_MOUNT_RDONLY))
            ASSERT(s->attr & PX_MOUNT_NOEXEC);
    }
    px_plan_free(plan);
}

TEST(session_preset)
{
    (void)px_fd_close(px_test_dir());
    struct px_plan *plan = make_plan("session", PAIRS("work-dir", px_test_dir_path()), &full_host);

    check_full(plan, false);
    ASSERT_EQ(count_of(plan, PX_OP_LOOPBACK), 1);
    check_before(plan, PX_OP_NETNS, PX_OP_LOOPBACK);
    check_before(plan, PX_OP_LOOPBACK, PX_OP_IDS);
    ASSERT_EQ(find(plan, PX_OP_TMPFS, "/home/sandbox"), NOWHERE); /* the work directory is there instead */
    const struct px_step *work = step(plan, PX_OP_BIND, "/home/sandbox");
    ASSERT_EQ(work->attr, PX_MOUNT_NOSUID | PX_MOUNT_NODEV);
    ASSERT(work->flags & PX_STEP_CALLER);
    ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_CHDIR, NULL)->dst), "/home/sandbox");
    ASSERT(plan->binds && plan->writable_binds);
    px_plan_free(plan);
}

TEST(task_preset_has_rlimits_for_what_a_cgroup_may_not_hold)
{
    struct px_plan *plan = make_plan("task", NULL, &full_host);

    check_full(plan, false);
    check_rlimit(plan, RLIMIT_CPU, 20, 21);
    check_rlimit(plan, RLIMIT_NPROC, 256, 256);
    check_rlimit(plan, RLIMIT_AS, 4096ull * MIB, 4096ull * MIB);
    px_plan_free(plan);
}

/* Rules before sockets, both while there are privileges; nothing of it where nobody asked. */
TEST(project_preset_is_carried)
{
    struct px_plan *plan = make_plan("project", NULL, &full_host);
    check_full(plan, false);
    ASSERT(plan->carried);
    ASSERT_EQ(count_of(plan, PX_OP_NETLINK), 3);
    ASSERT_EQ(count_of(plan, PX_OP_SOCKET), 7);
    check_before(plan, PX_OP_LOOPBACK, PX_OP_NETLINK);
    check_before(plan, PX_OP_NETLINK, PX_OP_SOCKET);
    check_before(plan, PX_OP_SOCKET, PX_OP_BOUND);
    px_plan_free(plan);
}

TEST(project_preset_without_its_network)
{
    struct px_plan *plan = make_plan("project", PAIRS("net", "none"), &full_host);
    check_full(plan, false);
    ASSERT(!plan->carried && count_of(plan, PX_OP_NETLINK) == 0 && count_of(plan, PX_OP_SOCKET) == 0);
    px_plan_free(plan);
}

/* What only makes sense with a network of that kind, or cannot be held, is refused. */
TEST(networks_that_cannot_be)
{
    struct px_host landlock = full_host;
    landlock.user_namespaces = false;
    landlock.scratch = "/tmp/x";
    refuse_plan("default", PAIRS("net", "none", "allow-net", "good.test"), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("dns", "192.0.2.1"), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("publish", "1:2", "net", "host"), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("net", "outbound", "runtime", "crun"), &full_host, PX_E_NOT_BUILT);
    refuse_plan("default", PAIRS("net", "outbound", "require", "landlock"), &landlock, PX_E_TIER);
    refuse_plan("default", PAIRS("publish", "1:2", "require", "landlock"), &landlock, PX_E_TIER);
}

/* It is born in two namespaces of the other, and in new ones of every other kind. */
TEST(the_network_of_another_box_is_named)
{
    const struct px_host landlock = {.uid = 1000, .gid = 1000, .landlock_abi = 5, .scratch = "/tmp/x"};
    struct px_plan *plan = make_plan("default", PAIRS("net", "box:web"), &full_host);

    ASSERT(plan->joins && plan->join < 0 && !plan->own_net && !plan->carried);
    ASSERT_EQ(plan->namespaces, PX_CLONE_NEWNS | PX_CLONE_NEWPID | PX_CLONE_NEWIPC | PX_CLONE_NEWUTS);
    ASSERT(find(plan, PX_OP_NETNS, NULL) == NOWHERE && find(plan, PX_OP_LOOPBACK, NULL) == NOWHERE && step(plan, PX_OP_NO_USERNS, NULL));
    ASSERT(has_word(plan->mechanisms, plan->mechanisms_count, "net=box:web"));
    ASSERT(has_word(plan->missing, plan->missing_count, "net, ids"));
    ASSERT(!has_word(plan->mechanisms, plan->mechanisms_count, "namespaces=user"));
    px_plan_free(plan);
    refuse_plan("default", PAIRS("net", "box:web", "publish", "1:2/udp"), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("net", "pid:77", "allow-net", "good.test"), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("net", "box:web", "runtime", "crun"), &full_host, PX_E_NOT_BUILT);
    refuse_plan("default", PAIRS("net", "box:web", "require", "landlock"), &landlock, PX_E_TIER);
}

/* A library's sandbox publishes ports of its network by one more box in it. */
TEST(a_port_of_the_network_of_another_process)
{
    struct px_plan *plan = make_plan("default", PAIRS("net", "pid:77", "publish", "0:80"), &full_host);
    ASSERT(plan->joins && plan->carried && !plan->own_net);
    ASSERT(find(plan, PX_OP_NETNS, NULL) == NOWHERE && find(plan, PX_OP_NETLINK, NULL) == NOWHERE && step(plan, PX_OP_SOCKET, NULL));
    px_plan_free(plan);
}

TEST(a_shared_network_is_named)
{
    struct px_plan *plan = make_plan("default", PAIRS("net", "host"), &full_host);

    check_full(plan, false);
    ASSERT(!plan->own_net && !(plan->namespaces & PX_CLONE_NEWNET));
    ASSERT_EQ(count_of(plan, PX_OP_NETNS), 0);
    ASSERT_EQ(plan->missing_count, 1);
    ASSERT(strncmp(plan->missing[0], "net", 3) == 0);
    px_plan_free(plan);
}

TEST(terminals)
{
    struct px_plan *plan = make_plan("default", PAIRS("tty", "true"), &full_host);

    check_full(plan, true);
    ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_TERMINAL, NULL)->src), "/dev/pts/ptmx");
    px_plan_free(plan);
}

TEST(limits_become_rlimits)
{
    struct px_plan *plan = make_plan(
        "default", PAIRS("cpu-time", "1500ms", "file-size", "4k", "nofile", "unlimited", "pids", "5"),
        &full_host);

    check_full(plan, false);
    check_rlimit(plan, RLIMIT_CPU, 2, 3);
    check_rlimit(plan, RLIMIT_FSIZE, 4096, 4096);
    check_rlimit(plan, RLIMIT_NOFILE, PX_UNLIMITED, 0);
    check_rlimit(plan, RLIMIT_NPROC, 5, 5);
    px_plan_free(plan);
}

TEST(bound_to_a_thread)
{
    struct px_policy p = make_policy("default", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};

    ASSERT_PX(px_plan_new(&p, echo_argv, &full_host, true, &plan, &e), e);
    check_full(plan, false);
    ASSERT(step(plan, PX_OP_INIT, NULL)->flags & PX_STEP_THREAD);
    px_plan_free(plan);
    plan = NULL;
    ASSERT_PX(px_plan_new(&p, echo_argv, &full_host, false, &plan, &e), e);
    ASSERT(!(step(plan, PX_OP_INIT, NULL)->flags & PX_STEP_THREAD));
    px_plan_free(plan);
    px_policy_done(&p);
}

/* ---- the second layer ---- */

TEST(landlock_repeats_the_mounts)
{
    px_auto_fd int dir = px_test_dir();
    ASSERT_EQ(mkdirat(dir, "rw", 0755), 0);
    ASSERT_EQ(mkdirat(dir, "ro", 0755), 0);
    char rw[300], ro[300];
    (void)snprintf(rw, sizeof rw, "%s/rw:/rw", px_test_dir_path());
    (void)snprintf(ro, sizeof ro, "%s/ro:/ro:ro", px_test_dir_path());
    struct px_plan *plan = make_plan("default", PAIRS("bind", rw, "bind", ro), &full_host);

    check_full(plan, false);
    ASSERT_EQ(step(plan, PX_OP_LANDLOCK, NULL)->num, 7);
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/")->num, px_landlock_read());
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/rw")->num, px_landlock_write());
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/tmp")->num, px_landlock_write());
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/home/sandbox")->num, px_landlock_write());
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/ro"), NOWHERE);
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/proc")->num & (PX_LL_MAKE_REG | PX_LL_REMOVE_FILE | PX_LL_MAKE_DIR),
              0);
    ASSERT(has_word(plan->mechanisms, plan->mechanisms_count, "landlock=7"));
    px_plan_free(plan);
}

TEST(a_kernel_without_landlock_is_named)
{
    const struct px_host host = {.uid = 1200, .landlock_abi = -ENOSYS, .user_namespaces = true};
    struct px_plan *plan = make_plan("default", NULL, &host);

    ASSERT_EQ(count_of(plan, PX_OP_LANDLOCK) + count_of(plan, PX_OP_ALLOW) + count_of(plan, PX_OP_ENFORCE),
              0);
    ASSERT(has_word(plan->missing, plan->missing_count, "landlock"));
    px_plan_free(plan);
}

/* ---- binds ---- */

static void make_dirs(int dir, const char *const *names)
{
    for (; *names; names++)
        ASSERT_EQ(mkdirat(dir, *names, 0755), 0);
}

static void make_file_at(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    ASSERT(fd >= 0);
    (void)close(fd);
}

/* "DIR/source:rest" into out. */
static const char *bind_text(char out[512], const char *source, const char *rest)
{
    (void)snprintf(out, 512, "%s/%s:%s", px_test_dir_path(), source, rest);
    return out;
}

TEST(binds_are_sorted_with_parents_first)
{
    char t[5][512];
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("a", "b", "c", "d"));
    make_file_at(dir, "file");
    struct px_plan *plan =
        make_plan("default",
                  PAIRS("bind", bind_text(t[0], "c", "/w/x/y:ro"), "bind", bind_text(t[1], "b", "/w/x"),
                        "bind", bind_text(t[2], "a", "/w"), "bind", bind_text(t[3], "d", "/w-x"), "bind",
                        bind_text(t[4], "file", "/opt/one/file:ro")),
                  &full_host);

    check_full(plan, false);
    uint32_t w = find(plan, PX_OP_BIND, "/w"), x = find(plan, PX_OP_BIND, "/w/x"),
             y = find(plan, PX_OP_BIND, "/w/x/y");
    ASSERT(w < x && x < y && y != NOWHERE);
    ASSERT_EQ(plan->steps[y].attr, RO);
    ASSERT_EQ(plan->steps[w].attr, PX_MOUNT_NOSUID | PX_MOUNT_NODEV);
    ASSERT(find(plan, PX_OP_MKDIR, "/w") < w);
    ASSERT(find(plan, PX_OP_FILE, "/opt/one/file") < find(plan, PX_OP_BIND, "/opt/one/file"));
    ASSERT(find(plan, PX_OP_MKDIR, "/opt/one") < find(plan, PX_OP_FILE, "/opt/one/file"));
    ASSERT(plan->steps[find(plan, PX_OP_BIND, "/opt/one/file")].flags & PX_STEP_FILE);
    struct stat st;
    ASSERT_EQ(fstatat(dir, "a", &st, 0), 0);
    ASSERT_EQ(plan->steps[w].num, st.st_dev); /* pinned to what was there when the plan was made */
    ASSERT_EQ(plan->steps[w].num2, st.st_ino);
    px_plan_free(plan);
}

/* Whoever looked a file up hands it on by its name, which may lead elsewhere by the time the box is planned. */
TEST(a_pinned_bind_is_that_file_or_none)
{
    char text[512];
    struct px_err e = {0};
    struct px_plan *plan = NULL;
    px_auto_fd int dir = px_test_dir();
    make_file_at(dir, "file");
    make_file_at(dir, "secret");
    px_auto_fd int held = openat(dir, "file", O_RDONLY | O_CLOEXEC);
    struct px_policy p = make_policy("default", PAIRS("bind", bind_text(text, "file", "/attachments/file:ro")));
    ASSERT_OK(px_policy_pin(&p, held));
    ASSERT_PX(px_plan_new(&p, echo_argv, &full_host, false, &plan, &e), e);
    px_plan_free(px_take(&plan));
    ASSERT_OK(unlinkat(dir, "file", 0));
    ASSERT_EQ(px_plan_new(&p, echo_argv, &full_host, false, &plan, &e), -1);
    ASSERT_OK(symlinkat("secret", dir, "file"));
    ASSERT_EQ(px_plan_new(&p, echo_argv, &full_host, false, &plan, &e), -1);
    ASSERT_STR(e.what, "what belongs at '/attachments/file' was removed or replaced meanwhile");
    px_policy_done(&p);
}

TEST(binds_inside_a_writable_directory_come_after_it)
{
    char t[2][512];
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("a"));
    make_file_at(dir, "file");
    struct px_plan *plan = make_plan("default",
                                     PAIRS("bind", bind_text(t[0], "a", "/home/sandbox/x/a"), "bind",
                                           bind_text(t[1], "file", "/tmp/file:ro")),
                                     &full_host);

    check_full(plan, false);
    check_places(plan);
    uint32_t home = find(plan, PX_OP_TMPFS, "/home/sandbox"), tmp = find(plan, PX_OP_TMPFS, "/tmp");
    ASSERT(find(plan, PX_OP_MKDIR, "/home/sandbox/x") > home &&
           find(plan, PX_OP_MKDIR, "/home/sandbox/x/a") > home);
    ASSERT(find(plan, PX_OP_BIND, "/home/sandbox/x/a") > find(plan, PX_OP_MKDIR, "/home/sandbox/x/a"));
    ASSERT(find(plan, PX_OP_FILE, "/tmp/file") > tmp);
    ASSERT(step(plan, PX_OP_MKDIR, "/home/sandbox/x")->flags & PX_STEP_OWNED);
    px_plan_free(plan);
}

TEST(a_tmpfs_inside_a_bind_is_not_lost)
{
    char t[512];
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("project", "project/cache"));
    struct px_plan *plan =
        make_plan("default", PAIRS("bind", bind_text(t, "project", "/work"), "tmpfs", "/work/cache:size=1m"),
                  &full_host);

    check_full(plan, false);
    ASSERT(find(plan, PX_OP_TMPFS, "/work/cache") > find(plan, PX_OP_BIND, "/work"));
    px_plan_free(plan);
}

TEST(a_tmpfs_inside_the_work_directory_is_not_lost)
{
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("cache"));
    struct px_plan *plan =
        make_plan("default", PAIRS("work-dir", px_test_dir_path(), "tmpfs", "/workspace/cache"), &full_host);

    check_full(plan, false);
    px_plan_free(plan);
}

TEST(a_bind_around_the_work_directory_does_not_hide_it)
{
    char t[512];
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("outer", "outer/inner", "work"));
    char work[300];
    (void)snprintf(work, sizeof work, "%s/work", px_test_dir_path());
    struct px_plan *plan = make_plan(
        "default", PAIRS("work-dir", work, "work-target", "/o/inner", "bind", bind_text(t, "outer", "/o")),
        &full_host);

    check_full(plan, false);
    px_plan_free(plan);
}

TEST(a_tmpfs_inside_a_tmpfs)
{
    struct px_plan *plan = make_plan(
        "default", PAIRS("tmpfs", "/a/b:size=1m", "tmpfs", "/a:size=2m", "tmpfs", "/tmp/x"), &full_host);

    check_full(plan, false);
    check_places(plan);
    ASSERT(find(plan, PX_OP_TMPFS, "/a") < find(plan, PX_OP_TMPFS, "/a/b"));
    ASSERT(find(plan, PX_OP_MKDIR, "/a/b") > find(plan, PX_OP_TMPFS, "/a"));
    ASSERT(find(plan, PX_OP_MKDIR, "/tmp/x") > find(plan, PX_OP_TMPFS, "/tmp"));
    px_plan_free(plan);
}

/* Two binds at one place: one of them would be invisible, and which one would be a matter of luck. */
TEST(two_binds_at_one_place)
{
    char t[2][512];
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("a", "b"));
    struct px_policy p = make_policy(
        "default", PAIRS("bind", bind_text(t[0], "a", "/w"), "bind", bind_text(t[1], "b", "/w:ro")));
    struct px_plan *plan = NULL;
    struct px_err e = {0};

    if (px_plan_new(&p, echo_argv, &full_host, false, &plan, &e) >= 0)
        check_full(plan, false); /* one only, or it is refused */
    else
        ASSERT(e.code == PX_E_BIND || e.code == PX_E_VALUE);
    px_plan_free(plan);
    px_policy_done(&p);
}

TEST(what_cannot_be_bound)
{
    char t[8][512];
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("a"));
    ASSERT_EQ(mkfifoat(dir, "pipe", 0600), 0);
    refuse_plan("default", PAIRS("bind", bind_text(t[0], "pipe", "/x")), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("bind", "/dev/null:/x"), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("bind", bind_text(t[1], "nothing", "/x")), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("bind", bind_text(t[2], "a", "/proc/x")), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("bind", bind_text(t[3], "a", "/proc")), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("bind", bind_text(t[4], "a", "/dev/x")), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("bind", bind_text(t[5], "a", "/sys")), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("work-dir", "/nothing/here"), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("work-dir", px_test_dir_path(), "work-target", "/proc/x"), &full_host,
                PX_E_BIND);
}

TEST(one_disk_for_all)
{
    struct px_plan *plan = make_plan("untrusted", PAIRS("disk", "8m"), &full_host);

    check_full(plan, false);
    ASSERT_EQ(count_of(plan, PX_OP_TMPFS), 1);
    const struct px_step *disk = &plan->steps[find(plan, PX_OP_TMPFS, NULL)];
    ASSERT_EQ(disk->num, 8 * MIB);
    int parts = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_BIND && plan->steps[i].flags & PX_STEP_INSIDE) {
            ASSERT(plan->steps[i].attr & PX_MOUNT_NOEXEC);
            parts++;
        }
    ASSERT_EQ(parts, 5);
    ASSERT_EQ(count_of(plan, PX_OP_DETACH), 1);
    ASSERT(find(plan, PX_OP_DETACH, NULL) < find(plan, PX_OP_SEAL, NULL));
    px_plan_free(plan);
}

TEST(another_root)
{
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("usr"));
    struct px_plan *plan = make_plan("default", PAIRS("rootfs", px_test_dir_path()), &full_host);
    struct stat st;

    check_full(plan, false);
    const struct px_step *overlay = step(plan, PX_OP_OVERLAY, NULL);
    ASSERT_EQ(fstat(dir, &st), 0);
    ASSERT_EQ(overlay->attr, RO);
    ASSERT_EQ(overlay->num2, st.st_ino);
    uint32_t at = find(plan, PX_OP_OVERLAY, NULL);
    for (uint32_t i = 0; i < plan->count; i++) /* the skeleton first, the mounts on top of the whole */
        if (attaches(plan->steps[i].op))
            ASSERT(i > at);
    ASSERT_EQ(find(plan, PX_OP_BIND, "/usr"), NOWHERE);
    ASSERT(find(plan, PX_OP_FILE, "/etc/passwd") < at);
    px_plan_free(plan);
    refuse_plan("default", PAIRS("rootfs", "/no/such/directory"), &full_host, PX_E_ROOTFS);
    refuse_plan("default", PAIRS("rootfs", "/etc/passwd"), &full_host, PX_E_ROOTFS);
    refuse_plan("default", PAIRS("base", "/no/such/directory"), &full_host, PX_E_ROOTFS);
}

/* The skeleton and what takes the changes are the payload's, and made before the overlay; nothing is sealed. */
TEST(a_root_that_can_be_changed)
{
    px_auto_fd int dir = px_test_dir();
    struct px_plan *plan = make_plan("default", PAIRS("rootfs", px_test_dir_path(), "overlay", ""), &full_host);
    uint32_t at = find(plan, PX_OP_OVERLAY, NULL), upper = find(plan, PX_OP_UPPER, "/sys");

    ASSERT_EQ(upper + 1, at);
    ASSERT_EQ(plan->steps[upper].num, 1 << 30);
    ASSERT_EQ(plan->steps[at].attr, RO & ~(unsigned)PX_MOUNT_RDONLY);
    ASSERT_EQ(plan->steps[at].flags, PX_STEP_UPPER | PX_STEP_VOLATILE);
    ASSERT(find(plan, PX_OP_FILE_IDS, NULL) < find(plan, PX_OP_ROOT, NULL));
    ASSERT(step(plan, PX_OP_FILE_IDS, NULL)->flags & PX_STEP_OWNED);
    ASSERT_EQ(plan->steps[at + 1].op, PX_OP_FILE_IDS);
    ASSERT_EQ(plan->steps[at + 1].flags, 0);            /* before anything else is mounted, pid 1 is itself again */
    ASSERT_EQ(step(plan, PX_OP_SEAL, NULL)->attr, RO & ~(unsigned)PX_MOUNT_RDONLY);
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/")->num, px_landlock_write());
    ASSERT(!plan->writable_binds && plan->root_dir);
    px_plan_free(plan);
    plan = make_plan("default", PAIRS("rootfs", px_test_dir_path(), "overlay", "", "memory", "64m"), &full_host);
    ASSERT_EQ(step(plan, PX_OP_UPPER, NULL)->num, 64 << 20);
    px_plan_free(plan);
    plan = make_plan("default", PAIRS("rootfs", px_test_dir_path(), "overlay", "/some/dir", "persist", "true"), &full_host);
    ASSERT_EQ(step(plan, PX_OP_OVERLAY, NULL)->flags, PX_STEP_UPPER);   /* what is kept must survive a crash */
    ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_UPPER, NULL)->src), "/some/dir");
    ASSERT(plan->writable_binds);
    px_plan_free(plan);
    refuse_plan("default", PAIRS("overlay", ""), &full_host, PX_E_ROOTFS);
    refuse_plan("default", PAIRS("rootfs", px_test_dir_path(), "overlay", "", "persist", "true"), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("rootfs", px_test_dir_path(), "persist", "true"), &full_host, PX_E_USAGE);
}

/* With --disk the changes and all writable directories are parts of one tmpfs. */
TEST(a_changed_root_counts_as_disk)
{
    px_auto_fd int dir = px_test_dir();
    struct px_plan *plan = make_plan("default", PAIRS("rootfs", px_test_dir_path(), "overlay", "", "disk", "8m"), &full_host);

    ASSERT_EQ(step(plan, PX_OP_UPPER, NULL)->num, 8 << 20);
    ASSERT(step(plan, PX_OP_OVERLAY, NULL)->flags & PX_STEP_SHARED);
    ASSERT_EQ(count_of(plan, PX_OP_TMPFS), 1);
    ASSERT(step(plan, PX_OP_TMPFS, NULL)->flags & PX_STEP_UPPER);
    ASSERT(step(plan, PX_OP_DETACH, NULL)->flags & PX_STEP_UPPER);
    px_plan_free(plan);
}

TEST(a_directory_that_is_worked_on_as_a_copy)
{
    px_auto_fd int dir = px_test_dir();
    struct px_plan *plan = make_plan("default", PAIRS("changes", px_test_dir_path()), &full_host);
    uint32_t at = find(plan, PX_OP_CHANGES, "/workspace");

    ASSERT(at != NOWHERE && plan->steps[at - 1].op == PX_OP_UPPER && plan->steps[at + 1].op == PX_OP_FILE_IDS);
    ASSERT_EQ(plan->steps[at - 1].src, 0);
    ASSERT(plan->changes && plan->binds && !plan->writable_binds);
    ASSERT_EQ(find(plan, PX_OP_BIND, "/workspace"), NOWHERE);
    ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_CHDIR, NULL)->dst), "/workspace");
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/workspace")->num, px_landlock_write());
    px_plan_free(plan);
    refuse_plan("default", PAIRS("changes", "/etc/passwd"), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("changes", "/no/such"), &full_host, PX_E_BIND);
    refuse_plan("default", PAIRS("apply", "true"), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("changes", px_test_dir_path(), "work-dir", px_test_dir_path()), &full_host, PX_E_USAGE);
    refuse_plan("default", PAIRS("changes", px_test_dir_path(), "work-target", "/usr/lib"), &full_host, PX_E_BIND);
}

TEST(a_build_box)
{
    px_auto_fd int dir = px_test_dir();
    struct px_plan *plan =
        make_plan("default", PAIRS("rootfs", px_test_dir_path(), "overlay", "/some/dir", "build", "true"), &full_host);

    ASSERT_EQ(step(plan, PX_OP_IDS, NULL)->num, 0);
    ASSERT(step(plan, PX_OP_INIT, NULL)->num != 0);     /* pid 1 is never who the payload is */
    ASSERT_EQ(plan->owner.uid, 0);
    ASSERT_EQ(find(plan, PX_OP_FILE, "/etc/passwd"), NOWHERE);
    ASSERT(has_word(plan->mechanisms, plan->mechanisms_count, "seccomp=build"));
    px_plan_free(plan);
    refuse_plan("default", PAIRS("rootfs", px_test_dir_path(), "build", "true"), &full_host, PX_E_USAGE);
}

/* ---- the weaker tier ---- */

static const struct px_host bare_host = {
    .uid = 1200, .gid = 1200, .landlock_abi = 7, .scratch = "/tmp/px-scratch"};

TEST(landlock_tier)
{
    struct px_plan *plan = make_plan("default", PAIRS("require", "landlock", "bind", "/usr:ro"), &bare_host);

    ASSERT_EQ(plan->tier, PX_TIER_LANDLOCK);
    check_stages(plan);
    check_launch(plan, false);
    ASSERT_EQ(plan->namespaces, 0);
    for (uint32_t i = 0; i < plan->count; i++)
        ASSERT(!builds(plan->steps[i].op));
    ASSERT_EQ(count_of(plan, PX_OP_SUBREAPER), 1);
    ASSERT(step(plan, PX_OP_INIT, NULL)->flags & PX_STEP_REAPER);
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/tmp/px-scratch")->num, px_landlock_write());
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/"), NOWHERE);
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/tmp"), NOWHERE);
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/home"), NOWHERE);
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/proc"), NOWHERE);
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/usr")->num, px_landlock_read());
    ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_CHDIR, NULL)->dst), "/tmp/px-scratch");
    ASSERT(has_word(plan->missing, plan->missing_count, "namespaces"));
    ASSERT(has_word(plan->missing, plan->missing_count, "root"));
    ASSERT(!has_word(plan->missing, plan->missing_count, "net"));
    ASSERT(has_word(plan->mechanisms, plan->mechanisms_count, "net=no internet sockets"));
    ASSERT(!has_word(plan->missing, plan->missing_count, "signals"));
    ASSERT_EQ(step(plan, PX_OP_SECCOMP, NULL)->num, PX_FILTER_SELF);
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/dev/pts"), NOWHERE);
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/proc/self/fd/0"), NOWHERE);
    px_plan_free(plan);
    plan = make_plan("default", PAIRS("require", "landlock", "tty", "true"), &bare_host);
    ASSERT_EQ(find(plan, PX_OP_ALLOW, "/dev/pts"), NOWHERE);
    check_before(plan, PX_OP_TERMINAL, PX_OP_LANDLOCK);
    ASSERT_EQ(step(plan, PX_OP_ALLOW, "/proc/self/fd/0")->num, px_landlock_device());
    px_plan_free(plan);
    plan = make_plan("default", PAIRS("require", "landlock", "net", "host"), &bare_host);
    ASSERT(has_word(plan->missing, plan->missing_count, "net"));
    ASSERT_EQ(count_of(plan, PX_OP_SECCOMP), 2);
    px_plan_free(plan);
    struct px_host older = bare_host;
    older.landlock_abi = 5;
    plan = make_plan("default", PAIRS("require", "landlock"), &older);
    ASSERT(has_word(plan->missing, plan->missing_count, "signals"));
    px_plan_free(plan);
}

TEST(the_weaker_tier_is_never_a_surprise)
{
    struct px_host host = bare_host;
    (void)px_fd_close(px_test_dir());

    refuse_plan("default", NULL, &host, PX_E_USERNS);
    refuse_plan("untrusted", NULL, &host, PX_E_USERNS);
    refuse_plan("default", PAIRS("require", "landlock", "bind", "/usr:/opt:ro"), &host, PX_E_TIER);
    refuse_plan("default", PAIRS("require", "landlock", "work-dir", px_test_dir_path()), &host, PX_E_TIER);
    refuse_plan("default", PAIRS("require", "landlock", "rootfs", px_test_dir_path()), &host, PX_E_TIER);
    host.landlock_abi = 2;
    refuse_plan("default", PAIRS("require", "landlock"), &host, PX_E_TIER);
    host.landlock_abi = 0;
    refuse_plan("default", PAIRS("require", "landlock"), &host, PX_E_TIER);
    host = bare_host;
    host.uid = host.gid = 0;
    host.is_root = true;
    refuse_plan("default", PAIRS("require", "landlock"), &host, PX_E_TIER); /* Landlock does not hold uid 0 */
}

/* No box at all: only the engine can ask for it, and every mechanism that is not there is named. */
TEST(rlimits_tier)
{
    struct px_host host = full_host;
    struct px_policy p = make_policy("task", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    p.plain = true;
    host.scratch = "/tmp/px-scratch";
    ASSERT_EQ(px_plan_new(&p, echo_argv, &host, false, &plan, &e), 0);
    px_policy_done(&p);
    ASSERT_EQ(plan->tier, PX_TIER_RLIMITS);
    ASSERT_STR(px_policy_tier_word(plan->tier), "rlimits");
    check_stages(plan);
    ASSERT_EQ(plan->namespaces, 0);
    for (uint32_t i = 0; i < plan->count; i++)
        ASSERT(!builds(plan->steps[i].op));
    ASSERT_EQ(count_of(plan, PX_OP_SUBREAPER), 1);
    ASSERT_EQ(count_of(plan, PX_OP_SECCOMP) + count_of(plan, PX_OP_LANDLOCK) + count_of(plan, PX_OP_ALLOW), 0);
    ASSERT(step(plan, PX_OP_INIT, NULL)->flags & PX_STEP_REAPER);
    static const char *const lacks[] = {"namespaces", "root", "net", "landlock", "seccomp", "ids", "pids", "hostname", "tmpfs"};
    for (size_t i = 0; i < PX_COUNT_OF(lacks); i++)
        ASSERT(has_word(plan->missing, plan->missing_count, lacks[i]));
    px_plan_free(plan);
}

/* What the tier cannot hold, it must not accept in silence. */
TEST(the_weaker_tier_names_each_limit_it_lacks)
{
    struct px_policy p = make_policy("default", PAIRS("require", "landlock", "disk", "1m"));
    struct px_plan *plan = NULL;
    struct px_err e = {0};

    int r = px_plan_new(&p, echo_argv, &bare_host, false, &plan, &e);
    bool named = false;
    for (uint32_t i = 0; r >= 0 && i < plan->missing_count; i++)
        named = named || strstr(plan->missing[i], "disk");
    px_plan_free(plan);
    px_policy_done(&p);
    if (r >= 0 && !named)
        FAIL("a bound on the disk was asked for, is not there, and nothing says so");
}

/* ---- command and environment ---- */

static const char *variable(const struct px_plan *plan, const char *name)
{
    size_t n = strlen(name);
    const char *found = NULL;

    for (char **v = plan->envp; *v; v++)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=') {
            ASSERT(found == NULL); /* each once */
            found = *v + n + 1;
        }
    return found;
}

TEST(environment)
{
    ASSERT_EQ(setenv("SECRET", "leak", 1), 0);
    struct px_plan *plan =
        make_plan("default", PAIRS("env", "HOME=/x", "env", "A=1", "env", "PATH=/p:/q"), &full_host);

    ASSERT_STR(variable(plan, "HOME"), "/x");
    ASSERT_STR(variable(plan, "PATH"), "/p:/q");
    ASSERT_STR(variable(plan, "A"), "1");
    ASSERT_STR(variable(plan, "TERM"), "dumb");
    ASSERT_STR(variable(plan, "LANG"), "C.UTF-8");
    ASSERT_STR(variable(plan, "PX_SANDBOX"), "1");
    ASSERT_STR(variable(plan, "SECRET"), NULL);
    const struct px_step *exec = step(plan, PX_OP_EXEC, NULL);
    ASSERT_EQ(exec->num, 2);
    const char *first = px_plan_text(plan, exec->src);
    ASSERT_STR(first, "/p/echo");
    ASSERT_STR(first + strlen(first) + 1, "/q/echo");
    px_plan_free(plan);
}

static void check_candidates(const char *path, const char *command, uint64_t wanted, const char *first)
{
    struct px_policy p = make_policy("default", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    const char *argv[] = {command, NULL};

    if (path)
        ASSERT_PX(px_policy_put(&p, "env", path, &e), e);
    ASSERT_PX(px_plan_new(&p, argv, &full_host, false, &plan, &e), e);
    ASSERT_EQ(step(plan, PX_OP_EXEC, NULL)->num, wanted);
    if (wanted)
        ASSERT_STR(px_plan_text(plan, step(plan, PX_OP_EXEC, NULL)->src), first);
    px_plan_free(plan);
    px_policy_done(&p);
}

TEST(where_a_command_is_looked_for)
{
    check_candidates(NULL, "tool", 6, "/usr/local/bin/tool");
    check_candidates(NULL, "/bin/tool", 1, "/bin/tool");
    check_candidates(NULL, "./tool", 1, "./tool");
    check_candidates("PATH=", "tool", 0, NULL);
    check_candidates("PATH=::/a::", "tool", 1, "/a/tool");
}

TEST(no_command)
{
    struct px_policy p = make_policy("default", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    const char *none[] = {NULL}, *empty[] = {"", NULL};

    ASSERT_EQ(px_plan_new(&p, none, &full_host, false, &plan, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    ASSERT_EQ(px_plan_new(&p, NULL, &full_host, false, &plan, &e), -1);
    ASSERT_EQ(px_plan_new(&p, empty, &full_host, false, &plan, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    ASSERT(plan == NULL);
    px_policy_done(&p);
}

/* ---- bounds ---- */

TEST(too_many_words)
{
    struct px_policy p = make_policy("default", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    px_auto_free const char **argv = calloc(PX_ARGS_MAX + 2, sizeof *argv);

    ASSERT(argv != NULL);
    for (int i = 0; i <= PX_ARGS_MAX; i++)
        argv[i] = "x";
    ASSERT_EQ(px_plan_new(&p, argv, &full_host, false, &plan, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    argv[PX_ARGS_MAX - 1] = NULL;
    ASSERT_PX(px_plan_new(&p, argv, &full_host, false, &plan, &e), e);
    ASSERT_STR(plan->argv[PX_ARGS_MAX - 2], "x");
    ASSERT(plan->argv[PX_ARGS_MAX - 1] == NULL);
    px_plan_free(plan);
    px_policy_done(&p);
}

TEST(too_much_text)
{
    struct px_policy p = make_policy("default", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    px_auto_free char *long_text = malloc(PX_PLAN_TEXT_MAX + 1);

    ASSERT(long_text != NULL);
    memset(long_text, 'x', PX_PLAN_TEXT_MAX);
    long_text[PX_PLAN_TEXT_MAX] = '\0';
    const char *argv[] = {"echo", long_text, NULL};
    ASSERT_EQ(px_plan_new(&p, argv, &full_host, false, &plan, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    const char *as_command[] = {long_text, NULL};
    ASSERT_EQ(px_plan_new(&p, as_command, &full_host, false, &plan, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    ASSERT(plan == NULL);
    px_policy_done(&p);
}

TEST(too_many_steps)
{
    struct px_policy p = make_policy("default", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    char text[128];

    for (int i = 0; i < 250; i++) {
        (void)snprintf(text, sizeof text, "/t%d/a/b/c/d/e", i);
        ASSERT_PX(px_policy_put(&p, "tmpfs", text, &e), e);
    }
    ASSERT_EQ(px_plan_new(&p, echo_argv, &full_host, false, &plan, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    ASSERT(plan == NULL);
    px_policy_done(&p);
}

/* A very long name must not be cut into another one: it is taken whole or refused. */
TEST(long_paths_are_not_cut)
{
    struct px_policy p = make_policy("default", NULL);
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    char path[4000] = "";

    for (int i = 0; i < 15; i++) {
        size_t at = strlen(path);
        path[at] = '/';
        memset(path + at + 1, 'a' + i, 250);
        path[at + 251] = '\0';
    }
    ASSERT_PX(px_policy_put(&p, "tmpfs", path, &e), e);
    if (px_plan_new(&p, echo_argv, &full_host, false, &plan, &e) >= 0) {
        check_full(plan, false);
        check_places(plan);
        (void)step(plan, PX_OP_TMPFS, path);
    } else {
        ASSERT(e.code == PX_E_LIMIT || e.code == PX_E_VALUE);
    }
    px_plan_free(plan);
    px_policy_done(&p);
}

/* ---- printing ---- */

TEST(printed)
{
    struct px_plan *plan = make_plan("default", NULL, &full_host);
    struct px_err e = {0};
    px_auto_free char *json = NULL;

    ASSERT_PX(px_plan_print(plan, &json, &e), e);
    ASSERT(strstr(json, "\"tier\": \"full\"") != NULL);
    ASSERT(strstr(json, "\"op\": \"pivot\"") != NULL);
    ASSERT(strstr(json, "\"op\": \"seccomp\"") != NULL);
    ASSERT(strstr(json, "\"target\": \"/home/sandbox\"") != NULL);
    px_plan_free(plan);
    px_plan_free(NULL);
}

TEST(every_step_has_words)
{
    for (int op = 0; op < PX_OP_COUNT; op++) {
        ASSERT(px_steps_op_word((enum px_op)op) && px_steps_op_word((enum px_op)op)[0]);
        ASSERT(px_err_find(px_steps_op_code((enum px_op)op)) != NULL);
        ASSERT(px_steps_op_stage((enum px_op)op) >= 1 && px_steps_op_stage((enum px_op)op) <= 3);
    }
}

TEST(notes_are_bounded)
{
    static char list[40][64];
    uint32_t count = 0;

    for (int i = 0; i < 50; i++)
        px_plan_note(list, &count, "%d %0100d", i, 0);
    ASSERT_EQ(count, 40);
    ASSERT_EQ(strlen(list[39]), 63);
}

/* ---- without memory ---- */

TEST(every_allocation_may_fail)
{
    char t[512];
    px_auto_fd int dir = px_test_dir();
    make_dirs(dir, PAIRS("a"));
    struct px_policy p =
        make_policy("untrusted", PAIRS("bind", bind_text(t, "a", "/w"), "env", "A=1", "disk", "1m"));

    for (unsigned n = 1; n < 1000; n++) {
        struct px_plan *plan = NULL;
        struct px_err e = {0};
        px_auto_free char *json = NULL;
        px_test_fail_alloc(n);
        int r = px_plan_new(&p, echo_argv, &full_host, false, &plan, &e);
        if (r >= 0)
            r = px_plan_print(plan, &json, &e);
        bool came = px_test_alloc_failed();
        px_test_fail_alloc(0);
        if (came && r >= 0)
            FAIL("allocation %u failed and nothing says so", n);
        if (r < 0 && e.code != PX_E_MEMORY && e.code != PX_E_LIMIT)
            FAIL("allocation %u failed: PX%03d %s", n, e.code, e.what);
        px_plan_free(plan);
        if (!came) {
            ASSERT_PX(r, e);
            px_policy_done(&p);
            return;
        }
    }
    FAIL("a thousand allocations and no end");
}

/* ---- what the box has of the host's files and counts ---- */

TEST(the_base_has_inodes_of_the_boxes_own)
{
    struct px_plan *plan = make_plan("default", NULL, &full_host);
    uint32_t own = find(plan, PX_OP_OWN_INODES, "/usr");
    ASSERT(own != NOWHERE && own > find(plan, PX_OP_BIND, "/usr") && own < find(plan, PX_OP_PROC, NULL));
    ASSERT_EQ(plan->steps[own].attr, RO);
    uint32_t cache = find(plan, PX_OP_BIND, "/etc/ld.so.cache");
    ASSERT(cache == NOWHERE || plan->steps[cache].flags & PX_STEP_COPY);
    px_plan_free(plan);
}

/* A host that has python3 alone. */
TEST(python_has_its_short_name)
{
    bool short_name = access("/usr/bin/python", F_OK) == 0 || access("/usr/local/bin/python", F_OK) == 0 || access("/bin/python", F_OK) == 0;
    bool wanted = !short_name && access("/usr/bin/python3", F_OK) == 0;
    struct px_plan *plan = make_plan("default", NULL, &full_host);
    uint32_t link = find(plan, PX_OP_SYMLINK, "/etc/px/usr/bin/python"), own = find(plan, PX_OP_OWN_INODES, "/usr");
    ASSERT_EQ(link != NOWHERE, wanted);
    ASSERT(own != NOWHERE && (!wanted || link < own));
    ASSERT_STR(px_plan_text(plan, plan->steps[own].src), wanted ? "/etc/px/usr" : "");
    px_plan_free(plan);
}

/* The host's own file would show when others connect; a box without a network has no use for it. */
TEST(certificates_are_a_copy_and_for_the_network)
{
    static const char place[] = "/etc/ssl/certs/ca-certificates.crt";
    static const char *const nets[] = {"none", "loopback", "outbound", "outbound:pasta", "host", "box:web"};
    bool present = access(place, R_OK) == 0 || access("/etc/pki/tls/certs/ca-bundle.crt", R_OK) == 0;
    for (size_t i = 0; i < PX_COUNT_OF(nets); i++) {
        struct px_plan *plan = make_plan("default", PAIRS("net", nets[i]), &full_host);
        uint32_t at = find(plan, PX_OP_BIND, place);
        ASSERT_EQ(at != NOWHERE, present && i >= 2);
        ASSERT(at == NOWHERE || plan->steps[at].flags & PX_STEP_COPY);
        ASSERT_EQ(find(plan, PX_OP_SYMLINK, "/etc/ssl/cert.pem") != NOWHERE, present && i >= 2);
        px_plan_free(plan);
    }
    struct px_plan *plan = make_plan("default", PAIRS("net", "host", "tmpfs", "/etc/ssl"), &full_host);
    ASSERT(find(plan, PX_OP_BIND, place) == NOWHERE);
    px_plan_free(plan);
}

/* What ordinary programs read: files as copies, directories with inodes of the box's own; nothing where the caller has something. */
TEST(etc_has_what_programs_read)
{
    struct px_plan *plan = make_plan("default", NULL, &full_host);
    uint32_t services = find(plan, PX_OP_BIND, "/etc/services"), fonts = find(plan, PX_OP_BIND, "/etc/fonts");
    ASSERT_EQ(services != NOWHERE, access("/etc/services", R_OK) == 0);
    ASSERT(services == NOWHERE || plan->steps[services].flags & PX_STEP_COPY);
    ASSERT_EQ(fonts != NOWHERE, access("/etc/fonts", X_OK) == 0);
    ASSERT_EQ(find(plan, PX_OP_OWN_INODES, "/etc/fonts") != NOWHERE, fonts != NOWHERE);
    ASSERT(find(plan, PX_OP_BIND, "/etc/ssl/certs/java/cacerts") == NOWHERE);
    ASSERT(find(plan, PX_OP_OWN_INODES, "/etc/alternatives") == NOWHERE);
    px_plan_free(plan);
    plan = make_plan("default", PAIRS("tmpfs", "/etc/services", "tmpfs", "/etc/fonts/conf.d"), &full_host);
    ASSERT(find(plan, PX_OP_BIND, "/etc/services") == NOWHERE);
    ASSERT(find(plan, PX_OP_BIND, "/etc/fonts") == NOWHERE);
    px_plan_free(plan);
}

/* Only where no directory in memory holds programs, and while pid 1 still has the caller's id. */
TEST(programs_in_memory)
{
    struct px_plan *plan = make_plan("default", NULL, &full_host);
    ASSERT(find(plan, PX_OP_NO_MEMFD, NULL) == NOWHERE);
    px_plan_free(plan);
    plan = make_plan("untrusted", NULL, &full_host);
    ASSERT(find(plan, PX_OP_NO_MEMFD, NULL) < find(plan, PX_OP_WAIT, NULL));
    ASSERT_EQ(step(plan, PX_OP_NO_MEMFD, NULL)->num, 2);
    px_plan_free(plan);
}
