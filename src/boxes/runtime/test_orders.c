/* runtime/test_orders.c - what px-start is told: every offset within the file, every text as it was. */
#include "runtime/orders.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/test.h"
#include "plan/plan.h"
#include "runtime/kind.h"
#include "runtime/start.h"

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct px_host host = {.uid = 1200, .gid = 1200, .landlock_abi = 7, .user_namespaces = true};
static const char *const argv_bytes[] = {"sh", "-c", "\xff\xfe", NULL};

/* The orders for a policy; out holds them. */
static const struct px_start_orders *orders_of(const char *runtime, const char *const *pairs, bool counted, struct px_buf *out)
{
    struct px_policy policy;
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    const struct px_orders given = {
        .uid = 1000, .gid = 1001, .command_uid = 1000, .command_gid = 1001, .rows = 24, .cols = 80, .counted = counted};
    ASSERT_PX(px_policy_init(&policy, NULL, &e), e);
    for (; pairs && pairs[0]; pairs += 2)
        ASSERT_PX(px_policy_put(&policy, pairs[0], pairs[1], &e), e);
    ASSERT_PX(px_plan_new(&policy, argv_bytes, &host, false, &plan, &e), e);
    px_orders_print(plan, px_runtime_find(runtime, &e), &given, out);
    ASSERT_EQ(out->err, 0);
    px_plan_free(plan);
    px_policy_done(&policy);
    return (const void *)out->data;
}

/* The index-th of texts that stand one after the other. */
static const char *text(const struct px_start_orders *o, uint32_t at, uint32_t count, uint32_t index)
{
    const char *p = (const char *)o + at;
    ASSERT(index < count);
    for (uint32_t i = 0; i < index; i++)
        p += strlen(p) + 1;
    ASSERT(p < (const char *)o + o->size);
    return p;
}

static const struct px_start_limit *limit_of(const struct px_start_orders *o, uint64_t resource)
{
    const struct px_start_limit *limits = (const void *)((const char *)o + o->limits);
    ASSERT(o->limits + o->limits_count * sizeof *limits <= o->size && o->limits % 8 == 0);
    for (uint32_t i = 0; i < o->limits_count; i++)
        if (limits[i].resource == resource)
            return &limits[i];
    return NULL;
}

TEST(texts_are_kept_byte_for_byte)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    const struct px_start_orders *o = orders_of("crun", PAIRS("env", "BYTES=\x80\x01", "workdir", "/tmp"), false, &out);
    bool found = false;
    ASSERT_EQ(o->size, out.len);
    ASSERT(o->socket && o->uid == 1000 && o->gid == 1001 && o->terminal == PX_START_NO_TERMINAL && !o->other_ids);
    ASSERT_EQ(o->argv_count, 3);
    ASSERT_STR(text(o, o->argv, o->argv_count, 2), "\xff\xfe");
    for (uint32_t i = 0; i < o->envp_count; i++)
        found = found || px_equal(text(o, o->envp, o->envp_count, i), "BYTES=\x80\x01");
    ASSERT(found);
    ASSERT_STR((const char *)o + o->workdir, "/tmp");
    ASSERT_STR(text(o, o->candidates, o->candidates_count, 0), "/usr/local/bin/sh");
    ASSERT(o->directories_count >= 3);
    ASSERT_STR(text(o, o->directories, o->directories_count, 0), "/home/sandbox");
}

TEST(limits_count_px_start)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20), more = PX_BUF(1 << 20);
    const char *const *pairs = PAIRS("pids", "10", "nofile", "32", "memory", "64m", "limits", "try");
    const struct px_start_orders *o = orders_of("crun", pairs, false, &out);
    ASSERT_EQ(limit_of(o, RLIMIT_NPROC)->soft, 11);
    ASSERT_EQ(limit_of(o, RLIMIT_NOFILE)->hard, 32);
    ASSERT_EQ(limit_of(o, RLIMIT_AS)->soft, 64 << 20);
    ASSERT_EQ(limit_of(o, RLIMIT_CORE)->hard, 1);
    o = orders_of("crun", pairs, true, &more);
    ASSERT_EQ(limit_of(o, RLIMIT_NPROC)->soft, 74);     /* the cgroup counts, and is met first */
    ASSERT(!limit_of(o, RLIMIT_AS));
}

TEST(landlock_says_what_the_native_box_says)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    const struct px_start_orders *o = orders_of("runc", NULL, false, &out);
    const struct px_start_rule *rules = (const void *)((const char *)o + o->rules);
    bool root = false, tmp = false;
    ASSERT_EQ(o->landlock_abi, 7);
    ASSERT(o->rules % 8 == 0 && o->rules + o->rules_count * sizeof *rules <= o->size);
    for (uint32_t i = 0; i < o->rules_count; i++) {
        ASSERT(rules[i].path < o->size);
        root = root || px_equal((const char *)o + rules[i].path, "/");
        tmp = tmp || (px_equal((const char *)o + rules[i].path, "/tmp") && rules[i].maybe);
    }
    ASSERT(root && tmp);
}

static unsigned count_answers(const struct px_start_orders *o, const struct px_start_filter *f, uint32_t answer)
{
    const struct sock_filter *code = (const void *)((const char *)o + f->code);
    unsigned n = 0;
    ASSERT(f->code % 8 == 0 && f->length > 0 && f->code + f->length * sizeof *code <= o->size);
    for (uint32_t i = 0; i < f->length; i++)
        n += code[i].code == (BPF_RET | BPF_K) && code[i].k == answer;
    return n;
}

TEST(a_filter_asks_only_where_somebody_listens)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20), more = PX_BUF(1 << 20);
    const struct px_start_orders *o = orders_of("crun", NULL, false, &out);
    ASSERT(o->filters[0].listen && o->filters[1].length == 0);
    ASSERT(count_answers(o, &o->filters[0], SECCOMP_RET_USER_NOTIF) > 0);
    o = orders_of("runsc", NULL, false, &more);
    ASSERT(!o->filters[0].listen && !o->socket);
    ASSERT_EQ(count_answers(o, &o->filters[0], SECCOMP_RET_USER_NOTIF), 0);
    ASSERT(count_answers(o, &o->filters[0], SECCOMP_RET_ERRNO | 1) > 0);
}

/* What a kernel of its own does not know would be refused there. */
TEST(another_kernel_is_asked_for_less)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    const struct px_start_orders *o = orders_of("runsc", PAIRS("tty", "true"), false, &out);
    ASSERT(o->landlock_abi == 0 && o->rules_count == 0);
    ASSERT(!limit_of(o, RLIMIT_MSGQUEUE) && !limit_of(o, RLIMIT_NICE) && limit_of(o, RLIMIT_NOFILE));
    ASSERT_EQ(o->terminal, PX_START_GIVEN_TERMINAL);
}

TEST(without_a_mechanism_there_is_none)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    const struct px_start_orders *o = orders_of("crun", PAIRS("without", "seccomp,landlock,rlimits"), false, &out);
    ASSERT(o->filters[0].length == 0 && o->landlock_abi == 0 && o->limits_count == 0);
}

/* Where there is one id only, the command has it by its own number, and a count of processes to itself. */
TEST(a_single_id_is_renamed)
{
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_policy policy;
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    const struct px_orders given = {.command_uid = 1500, .command_gid = 1600};
    ASSERT_PX(px_policy_init(&policy, NULL, &e), e);
    ASSERT_PX(px_policy_put(&policy, "pids", "10", &e), e);
    ASSERT_PX(px_plan_new(&policy, argv_bytes, &host, false, &plan, &e), e);
    px_orders_print(plan, px_runtime_find("runc", &e), &given, &out);
    const struct px_start_orders *o = (const void *)out.data;
    ASSERT(o->other_ids && o->uid == 0 && o->gid == 0 && o->command_uid == 1500 && o->command_gid == 1600);
    ASSERT_EQ(limit_of(o, RLIMIT_NPROC)->soft, 10);
    px_plan_free(plan);
    px_policy_done(&policy);
}

TEST(a_bound_is_remembered)
{
    px_auto_buf struct px_buf out = PX_BUF(100);
    struct px_policy policy;
    struct px_plan *plan = NULL;
    struct px_err e = {0};
    const struct px_orders given = {0};
    ASSERT_PX(px_policy_init(&policy, NULL, &e), e);
    ASSERT_PX(px_plan_new(&policy, argv_bytes, &host, false, &plan, &e), e);
    px_orders_print(plan, px_runtime_find("crun", &e), &given, &out);
    ASSERT(out.err < 0);
    px_plan_free(plan);
    px_policy_done(&policy);
}
