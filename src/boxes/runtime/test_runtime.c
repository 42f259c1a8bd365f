/* runtime/test_runtime.c - boxes that a runtime makes: the same results and the same errors as native ones. */
#include "runtime/runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "box/supervise.h"
#include "harness/test.h"
#include "kernel/landlock.h"
#include "plan/plan.h"
#include "runtime/kind.h"

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SH(text) ((const char *const[]){"/bin/sh", "-c", text, NULL})

enum { DEADLINE_SEC = 120 };

static const char *const runtimes[] = {"runc", "crun"};

static void need(const char *runtime)
{
    char path[256];
    struct px_err e = {0};
    if (px_runtime_program(px_runtime_find(runtime, &e), path, sizeof path, &e) < 0)
        SKIP("there is no %s here", runtime);
}

static int start(const char *runtime, const char *const *pairs, const char *const argv[], struct px_box **ret_box,
                 struct px_err *e)
{
    const struct px_host host = {
        .uid = geteuid(), .gid = getegid(), .landlock_abi = px_landlock_abi(), .user_namespaces = true};
    const struct px_io io = {0};
    struct px_policy policy;
    need(runtime);
    ASSERT_PX(px_policy_init(&policy, NULL, e), *e);
    ASSERT_PX(px_policy_put(&policy, "runtime", runtime, e), *e);
    for (; pairs && pairs[0]; pairs += 2)
        ASSERT_PX(px_policy_put(&policy, pairs[0], pairs[1], e), *e);
    int r = px_runtime_start(&policy, argv, &host, &io, ret_box, e);
    px_policy_done(&policy);
    return r;
}

static struct px_box *run(const char *runtime, const char *const *pairs, const char *const argv[])
{
    struct px_box *box = NULL;
    struct px_err e = {0};
    int r;
    ASSERT_PX(start(runtime, pairs, argv, &box, &e), e);
    while ((r = px_supervise_step(box, -1, &e)) > 0)
        ;
    ASSERT_PX(r, e);
    return box;
}

static void fails(const char *runtime, const char *const *pairs, const char *const argv[], int code)
{
    struct px_box *box = NULL;
    struct px_err e = {0};
    ASSERT_EQ(start(runtime, pairs, argv, &box, &e), -1);
    ASSERT_EQ(e.code, code);
    ASSERT(!box && e.what[0] && e.fix[0]);
}

TEST_DEADLINE(the_command_speaks_for_itself, DEADLINE_SEC)
{
    for (size_t i = 0; i < PX_COUNT_OF(runtimes); i++) {
        struct px_box *box = run(runtimes[i], NULL, SH("echo out; echo err >&2; exit 3"));
        const struct px_result *r = &box->result;
        char tier[32];
        snprintf(tier, sizeof tier, "oci:%s", runtimes[i]);
        ASSERT_EQ(r->status, PX_STATUS_NONZERO);
        ASSERT_EQ(r->exit_code, 3);
        ASSERT_STR(r->out.data, "out\n");
        ASSERT_STR(r->err.data, "err\n");
        ASSERT_STR(r->tier, tier);
        ASSERT_STR(box->argv[0], "/bin/sh");
        px_supervise_free(box);
    }
}

/* A signal is a signal, and an exit status above 128 is an exit status. */
TEST_DEADLINE(signals_are_told_from_statuses, DEADLINE_SEC)
{
    for (size_t i = 0; i < PX_COUNT_OF(runtimes); i++) {
        struct px_box *box = run(runtimes[i], NULL, SH("kill -TERM $$"));
        ASSERT_EQ(box->result.status, PX_STATUS_SIGNALLED);
        ASSERT_EQ(box->result.signal, SIGTERM);
        ASSERT_EQ(box->result.exit_code, 143);
        px_supervise_free(box);
        box = run(runtimes[i], NULL, SH("exit 143"));
        ASSERT_EQ(box->result.status, PX_STATUS_NONZERO);
        ASSERT_EQ(box->result.signal, 0);
        px_supervise_free(box);
    }
}

TEST_DEADLINE(a_timeout_keeps_what_was_said, DEADLINE_SEC)
{
    for (size_t i = 0; i < PX_COUNT_OF(runtimes); i++) {
        struct px_box *box = run(runtimes[i], PAIRS("timeout", "2s"), SH("echo before; trap '' TERM; sleep 1000; echo after"));
        ASSERT_EQ(box->result.status, PX_STATUS_TIMEOUT);
        ASSERT_EQ(box->result.exit_code, 124);
        ASSERT(px_equal(box->result.out.data, "before\n") || px_equal(box->result.out.data, ""));
        px_supervise_free(box);
    }
}

TEST_DEADLINE(errors_have_their_own_codes, DEADLINE_SEC)
{
    for (size_t i = 0; i < PX_COUNT_OF(runtimes); i++) {
        fails(runtimes[i], NULL, PAIRS("no-such-command"), PX_E_NOT_FOUND);
        fails(runtimes[i], NULL, PAIRS("/no/such/command"), PX_E_NOT_FOUND);
        fails(runtimes[i], NULL, PAIRS("/etc/passwd"), PX_E_EXEC);
        fails(runtimes[i], PAIRS("workdir", "/no/such/place"), SH("true"), PX_E_WORKDIR);
        fails(runtimes[i], NULL, (const char *const[]){NULL}, PX_E_USAGE);
    }
}

TEST_DEADLINE(a_box_that_is_given_up_is_gone, DEADLINE_SEC)
{
    for (size_t i = 0; i < PX_COUNT_OF(runtimes); i++) {
        struct px_box *box = NULL;
        struct px_err e = {0};
        ASSERT_PX(start(runtimes[i], NULL, SH("sleep 1000 & sleep 1000"), &box, &e), e);
        px_supervise_free(box);         /* the harness looks for what is left */
    }
}

TEST_DEADLINE(a_killed_box_has_a_result, DEADLINE_SEC)
{
    for (size_t i = 0; i < PX_COUNT_OF(runtimes); i++) {
        struct px_box *box = NULL;
        struct px_err e = {0};
        int r;
        ASSERT_PX(start(runtimes[i], NULL, SH("trap 'exit 7' USR1; while :; do sleep 0.01; done"), &box, &e), e);
        px_supervise_kill(box, PX_END_KILLED);
        while ((r = px_supervise_step(box, -1, &e)) > 0)
            ;
        ASSERT_PX(r, e);
        ASSERT_EQ(box->result.status, PX_STATUS_SIGNALLED);
        ASSERT_STR(box->result.reason, "killed by the caller");
        px_supervise_free(box);
    }
}

TEST_DEADLINE(a_plan_can_be_shown_without_running_it, DEADLINE_SEC)
{
    const struct px_host host = {.uid = geteuid(), .gid = getegid(), .user_namespaces = true};
    struct px_policy policy;
    struct px_err e = {0};
    char *json = NULL;
    need("crun");
    ASSERT_PX(px_policy_init(&policy, NULL, &e), e);
    ASSERT_PX(px_policy_put(&policy, "runtime", "crun", &e), e);
    ASSERT_PX(px_runtime_plan(&policy, SH("true"), &host, &json, &e), e);
    ASSERT(strstr(json, "inherit-descriptor") && strstr(json, "/bundle/config.json"));
    free(json);
    px_policy_done(&policy);
}

/* Whichever allocation fails, there is an error or a box, and nothing is left open or running. */
TEST_DEADLINE(running_out_of_memory_leaves_nothing, 300)
{
    const struct px_host host = {.uid = geteuid(), .gid = getegid(), .user_namespaces = true};
    const struct px_io io = {0};
    struct px_policy policy;
    struct px_err e = {0};
    unsigned n = 0;
    need("crun");
    ASSERT_PX(px_policy_init(&policy, NULL, &e), e);
    ASSERT_PX(px_policy_put(&policy, "runtime", "crun", &e), e);
    for (bool failed = true; failed; n++) {
        struct px_box *box = NULL;
        e = (struct px_err){0};
        px_test_fail_alloc(n + 1);
        int r = px_runtime_start(&policy, SH("true"), &host, &io, &box, &e);
        failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT(r < 0 ? failed && e.code != 0 && !box : box != NULL);
        px_supervise_free(box);
    }
    ASSERT(n > 20);
    px_policy_done(&policy);
}
