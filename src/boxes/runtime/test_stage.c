/* runtime/test_stage.c - the plan of the processes around a container: what it keeps of a native one, and what it adds. */
#include "runtime/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "kernel/abi.h"
#include "plan/plan.h"
#include "runtime/bundle.h"
#include "runtime/kind.h"
#include "runtime/start.h"

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})
enum { NOWHERE = UINT32_MAX };

static const struct px_host host = {.uid = 1200, .gid = 1200, .landlock_abi = 7, .user_namespaces = true};
static const char *const argv_true[] = {"true", NULL};

struct staged {
    struct px_policy policy;
    struct px_plan *native;
    struct px_stage stage;
};

static void make_native(struct staged *s, const char *const *pairs)
{
    struct px_err e = {0};
    *s = (struct staged){0};
    ASSERT_PX(px_policy_init(&s->policy, NULL, &e), e);
    for (; pairs && pairs[0]; pairs += 2)
        ASSERT_PX(px_policy_put(&s->policy, pairs[0], pairs[1], &e), e);
    ASSERT_PX(px_plan_new(&s->policy, argv_true, &host, false, &s->native, &e), e);
}

static const struct px_runtime_kind *kind_of(const char *name)
{
    struct px_err e = {0};
    char path[256];
    const struct px_runtime_kind *kind = px_runtime_find(name, &e);
    ASSERT(kind);
    if (px_runtime_program(kind, path, sizeof path, &e) < 0)
        SKIP("there is no %s here", name);
    return kind;
}

static void make_stage(struct staged *s, const char *runtime, const char *const *pairs)
{
    const struct px_runtime_kind *kind = kind_of(runtime);
    struct px_err e = {0};
    make_native(s, pairs);
    int log = open("/dev/null", O_RDONLY | O_CLOEXEC), socket = kind->socket ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    ASSERT_PX(px_stage_init(&s->stage, &s->policy, s->native, kind, false, socket, log, &e), e);
}

static void drop(struct staged *s)
{
    px_stage_done(&s->stage);
    px_plan_free(s->native);
    px_policy_done(&s->policy);
}

static uint32_t find(const struct px_plan *plan, enum px_op op, const char *dst)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == op && (!dst || px_equal(px_plan_text(plan, plan->steps[i].dst), dst)))
            return i;
    return NOWHERE;
}

static bool has(const struct px_plan *plan, enum px_op op, const char *dst)
{
    return find(plan, op, dst) != NOWHERE;
}

TEST(what_confines_the_command_is_not_for_the_runtime)
{
    static const enum px_op gone[] = {PX_OP_HOSTNAME, PX_OP_CGROUPNS, PX_OP_READONLY, PX_OP_MASK,    PX_OP_BOUND,   PX_OP_IDS,
                                      PX_OP_LANDLOCK, PX_OP_ALLOW,    PX_OP_ENFORCE,  PX_OP_RLIMIT,  PX_OP_SECCOMP};
    static const enum px_op kept[] = {PX_OP_BEGIN, PX_OP_PRIVATE, PX_OP_WAIT,    PX_OP_NO_USERNS, PX_OP_ROOT,
                                      PX_OP_PROC,  PX_OP_PIVOT,   PX_OP_SESSION, PX_OP_KEYRING,   PX_OP_SIGNALS,
                                      PX_OP_STDIO, PX_OP_CLOSE,   PX_OP_EXEC,    PX_OP_INIT};
    struct staged s;
    make_stage(&s, "crun", NULL);
    const struct px_plan *plan = s.stage.plan;
    for (size_t i = 0; i < PX_COUNT_OF(gone); i++)
        ASSERT(!has(plan, gone[i], NULL));
    for (size_t i = 0; i < PX_COUNT_OF(kept); i++)
        ASSERT(has(plan, kept[i], NULL));
    ASSERT_EQ(plan->namespaces, PX_CLONE_NEWUSER | PX_CLONE_NEWNS | PX_CLONE_NEWPID);
    ASSERT_EQ(plan->steps[find(plan, PX_OP_NO_USERNS, NULL)].num, 1);
    ASSERT(plan->steps[find(plan, PX_OP_PROC, NULL)].flags & PX_STEP_PLAIN);
    ASSERT(!plan->notify);
    drop(&s);
}

/* The rules of child/child.h hold here as well. */
TEST(stages_and_their_order)
{
    struct staged s;
    make_stage(&s, "runc", NULL);
    const struct px_plan *plan = s.stage.plan;
    uint32_t seal = find(plan, PX_OP_SEAL, NULL), pivot = find(plan, PX_OP_PIVOT, NULL), close = find(plan, PX_OP_CLOSE, NULL);
    for (uint32_t i = 0; i < plan->count; i++) {
        enum px_op op = plan->steps[i].op;
        ASSERT_EQ(px_steps_op_stage(op), i < plan->payload_from ? 1 : i < plan->init_at ? 2 : 3);
        if (op == PX_OP_BIND || op == PX_OP_TMPFS || op == PX_OP_FILE || op == PX_OP_MKDIR || op == PX_OP_OVERLAY)
            ASSERT(i < seal);
    }
    ASSERT(seal < pivot && pivot < plan->payload_from);
    ASSERT_EQ(plan->steps[close + 1].op, PX_OP_INHERIT);
    ASSERT_EQ(plan->steps[close + 1].num, PX_START_FD);
    ASSERT_EQ(plan->steps[close + 2].op, PX_OP_INHERIT);
    ASSERT_EQ(plan->steps[close + 2].num, 0);
    ASSERT_STR(px_plan_text(plan, plan->steps[find(plan, PX_OP_CHDIR, NULL)].dst), PX_BUNDLE_DIR);
    drop(&s);
}

TEST(the_skeleton_lies_in_the_bundle)
{
    struct staged s;
    make_stage(&s, "crun", NULL);
    const struct px_plan *plan = s.stage.plan;
    ASSERT(has(plan, PX_OP_FILE, PX_BUNDLE_ROOTFS "/etc/passwd"));
    ASSERT(has(plan, PX_OP_MKDIR, PX_BUNDLE_ROOTFS "/home/sandbox"));
    ASSERT(has(plan, PX_OP_MKDIR, PX_BUNDLE_ROOTFS "/dev") && !has(plan, PX_OP_FILE, PX_BUNDLE_ROOTFS "/dev/null"));
    ASSERT(has(plan, PX_OP_FILE, PX_BUNDLE_ROOTFS PX_START_PATH) && has(plan, PX_OP_FILE, PX_BUNDLE_ROOTFS PX_START_ORDERS));
    ASSERT_EQ(plan->steps[find(plan, PX_OP_FILE, PX_BUNDLE_DIR "/config.json")].attr, 0400);
    /* runc gives a tmpfs the mode of what it covers. */
    ASSERT_EQ(plan->steps[find(plan, PX_OP_MKDIR, PX_BUNDLE_ROOTFS "/tmp")].attr, 01777);
    ASSERT_EQ(plan->steps[find(plan, PX_OP_MKDIR, PX_BUNDLE_ROOTFS "/home/sandbox")].attr, 0755);
    drop(&s);
}

TEST(the_callers_files_come_in_by_our_own_hand)
{
    px_auto_fd int dir = px_test_dir();
    ASSERT_OK(dir);
    char bind[512], path[64];
    struct staged s;
    snprintf(bind, sizeof bind, "%s:/work:rw", px_test_dir_path());
    make_stage(&s, "crun", PAIRS("bind", bind));
    const struct px_plan *plan = s.stage.plan;
    uint32_t native = find(s.native, PX_OP_BIND, "/work");
    ASSERT_OK(px_bundle_source(native, path, sizeof path));
    const struct px_step *step = &plan->steps[find(plan, PX_OP_BIND, path)], *original = &s.native->steps[native];
    ASSERT(step->flags & PX_STEP_CALLER);
    ASSERT_STR(px_plan_text(plan, step->src), px_test_dir_path());
    ASSERT(step->num == original->num && step->num2 == original->num2 && step->attr == original->attr);
    ASSERT(plan->binds && plan->writable_binds);
    ASSERT(has(plan, PX_OP_MKDIR, PX_BUNDLE_ROOTFS "/work"));
    drop(&s);
}

/* A runtime would make the mount point, in the caller's tree. */
TEST(a_place_that_is_not_there_is_refused)
{
    px_auto_fd int dir = px_test_dir();
    const struct px_runtime_kind *kind = kind_of("crun");
    char outer[512];
    struct staged s;
    struct px_err e = {0};
    snprintf(outer, sizeof outer, "%s:/work:rw", px_test_dir_path());
    make_native(&s, PAIRS("bind", outer, "tmpfs", "/work/new"));
    ASSERT_EQ(px_stage_init(&s.stage, &s.policy, s.native, kind, false, -1, -1, &e), -1);
    ASSERT_EQ(e.code, PX_E_BIND);
    ASSERT(strstr(e.what, "/work/new"));
    ASSERT_EQ(faccessat(dir, "new", F_OK, 0), -1);
    drop(&s);
    ASSERT_OK(symlinkat("/etc", dir, "link"));
    make_native(&s, PAIRS("bind", outer, "tmpfs", "/work/link"));
    ASSERT_EQ(px_stage_init(&s.stage, &s.policy, s.native, kind, false, -1, -1, &e), -1);
    ASSERT_EQ(e.sys, ELOOP);
    drop(&s);
    ASSERT_OK(mkdirat(dir, "there", 0755));
    make_stage(&s, "crun", PAIRS("bind", outer, "tmpfs", "/work/there"));
    drop(&s);
}

TEST(a_given_root_is_below_a_skeleton)
{
    px_auto_fd int dir = px_test_dir();
    ASSERT_OK(dir);
    struct staged s;
    make_stage(&s, "crun", PAIRS("rootfs", px_test_dir_path()));
    const struct px_plan *plan = s.stage.plan;
    uint32_t overlay = find(plan, PX_OP_OVERLAY, PX_BUNDLE_ROOTFS);
    ASSERT(overlay != NOWHERE);
    ASSERT_STR(px_plan_text(plan, plan->steps[overlay].src), px_test_dir_path());
    for (uint32_t i = overlay; i < plan->count; i++)    /* nothing is made in it once it is mounted */
        ASSERT(!px_starts_with(px_plan_text(plan, plan->steps[i].dst), PX_BUNDLE_ROOTFS "/"));
    drop(&s);
}

TEST(parts_of_a_shared_disk_lie_beside)
{
    struct staged s;
    make_stage(&s, "crun", PAIRS("disk", "4m"));
    const struct px_plan *plan = s.stage.plan;
    uint32_t tmpfs = find(plan, PX_OP_TMPFS, PX_BUNDLE_BESIDE "/.scratch");
    ASSERT(tmpfs != NOWHERE && plan->steps[tmpfs].num == 4 << 20);
    ASSERT(!has(plan, PX_OP_MKDIR, PX_BUNDLE_ROOTFS "/.scratch"));
    uint32_t part = find(plan, PX_OP_MKDIR, PX_BUNDLE_BESIDE "/.scratch/0");
    ASSERT(part != NOWHERE && part > tmpfs && plan->steps[part].flags & PX_STEP_OWNED);
    drop(&s);
}

TEST(the_files_are_filled_in_last)
{
    struct staged s;
    struct px_err e = {0};
    px_auto_buf struct px_buf config = PX_BUF(64), orders = PX_BUF(64);
    make_stage(&s, "crun", NULL);
    px_buf_puts(&config, "{}");
    px_buf_add(&orders, "a\0b", 3);
    ASSERT_PX(px_stage_fill(&s.stage, &config, &orders, &e), e);
    const struct px_plan *plan = s.stage.plan;
    const struct px_step *file = &plan->steps[find(plan, PX_OP_FILE, PX_BUNDLE_DIR "/config.json")];
    ASSERT_EQ(file->num, 2);
    ASSERT_STR(px_plan_text(plan, file->src), "{}");
    file = &plan->steps[find(plan, PX_OP_FILE, PX_BUNDLE_ROOTFS PX_START_ORDERS)];
    ASSERT_EQ(file->num, 3);
    ASSERT_EQ(memcmp(px_plan_text(plan, file->src), "a\0b", 3), 0);
    ASSERT(strstr(plan->argv[0], "crun"));
    ASSERT_STR(plan->init_argv[0], "px-init");
    ASSERT(plan->init_argv[2] && !plan->init_argv[3]);
    drop(&s);
}

TEST(running_out_of_memory_is_an_error)
{
    const struct px_runtime_kind *kind = kind_of("crun");
    px_auto_buf struct px_buf nothing = PX_BUF(1);
    struct staged s;
    unsigned n = 0;
    make_native(&s, PAIRS("disk", "4m"));
    for (bool failed = true; failed; n++) {
        struct px_err e = {0};
        int log = open("/dev/null", O_RDONLY | O_CLOEXEC);
        px_test_fail_alloc(n + 1);
        int r = px_stage_init(&s.stage, &s.policy, s.native, kind, false, -1, log, &e);
        if (r == 0)
            r = px_stage_fill(&s.stage, &nothing, &nothing, &e);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(failed ? r < 0 && e.code != 0 : r == 0);
        px_stage_done(&s.stage);
    }
    ASSERT(n > 10);
    drop(&s);
}

TEST(an_unknown_or_missing_runtime_is_an_error)
{
    struct px_err e = {0};
    const struct px_runtime_kind absent = {.name = "px-no-such-runtime", .package = "no-such-package"};
    char path[256];
    ASSERT(!px_runtime_find("docker", &e));
    ASSERT_EQ(e.code, PX_E_VALUE);
    ASSERT(!px_runtime_find(NULL, &e));
    ASSERT_EQ(px_runtime_program(&absent, path, sizeof path, &e), -1);
    ASSERT_EQ(e.code, PX_E_RUNTIME);
    ASSERT(strstr(e.fix, "apt install no-such-package"));
}
