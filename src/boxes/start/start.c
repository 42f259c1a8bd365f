/* start/start.c - finds what a policy names, then starts the box. */
#include <stdlib.h>

#include <px/px.h>
#include <px/sandbox.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/supervise.h"
#include "parts/parts.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "relay/relay.h"
#include "runtime/runtime.h"
#include "start/resolve.h"
#include "start/start_internal.h"

static const struct px_parts all_parts = {.join = px_start_join, .pasta = px_pasta_start, .changes = px_start_changes};

/* ---- plan ---- */

/* Compiles a user's profile, before anything starts. */
static int add_filter(const struct px_policy *policy, struct px_host *host, struct sock_filter **ret_code, struct px_err *e)
{
    return px_policy_own_filter(policy) ? 0 : px_start_filter(policy, host, ret_code, e);
}

/* A policy whose root is a directory, and the lease that keeps it; everything else is borrowed. */
struct rooted {
    struct px_gate gate;
    struct px_policy policy;
    char *dir;
    struct px_root_lease *lease;
};

static bool root_holds(struct px_gate *gate)
{
    return px_start_root_holds(((struct rooted *)gate)->lease);
}

static int find_root(const struct px_policy *policy, enum px_root_look look, struct rooted *ret, struct px_err *e)
{
    *ret = (struct rooted){.gate = {root_holds}, .policy = *policy};
    if (!px_policy_root_is_stored(policy))
        return 0;
    if (px_start_root(policy, look, &ret->dir, &ret->lease, e) < 0)
        return -1;
    ret->policy.rootfs = ret->dir;
    if (look == PX_ROOT_BESIDE && ret->lease)
        ret->policy.gate = &ret->gate;
    return 0;
}

/* The box takes the lease; without a box it is released here. */
static void done_root(struct rooted *r, struct px_box *box)
{
    if (box && r->lease) {
        box->root = r->lease;
        box->root_free = px_root_lease_free;
    } else if (r->lease) {
        px_root_lease_free(r->lease);
    }
    free(r->dir);
}

PX_API int px_policy_prepare(const struct px_policy *policy, struct px_err *e)
{
    PX_ERR(e);
    struct rooted rooted;
    if (find_root(policy, PX_ROOT_LATER, &rooted, e) < 0)
        return -1;
    done_root(&rooted, NULL);
    return 0;
}

static int plan_with(const struct px_policy *policy, const char *const argv[], char **ret_json, struct px_err *e)
{
    struct px_host host;
    px_auto_free struct sock_filter *filter = NULL;
    px_parts_probe(policy, &host);
    if (add_filter(policy, &host, &filter, e) < 0)
        return -1;
    return px_policy_native(policy) ? px_parts_plan_json(policy, argv, &host, ret_json, e)
                                    : px_runtime_plan(policy, argv, &host, ret_json, e);
}

PX_API int px_plan_json(const struct px_policy *policy, const char *const argv[], char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct rooted rooted;
    if (find_root(policy, PX_ROOT_NOW, &rooted, e) < 0)
        return -1;
    int r = plan_with(&rooted.policy, argv, ret_json, e);
    done_root(&rooted, NULL);
    return r;
}

/* ---- box ---- */

int px_start_connect(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    return px_parts_connect(plan, policy, &all_parts, e);
}

static int start_rooted(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_box **ret_box,
                        struct px_err *e)
{
    struct px_host host;
    px_auto_free struct sock_filter *filter = NULL;
    px_parts_probe(policy, &host);
    if (add_filter(policy, &host, &filter, e) < 0)
        return -1;
    return px_policy_native(policy) ? px_parts_start(policy, argv, io, &host, &all_parts, ret_box, e)
                                    : px_runtime_start(policy, argv, &host, io, ret_box, e);
}

/* 1: the box did not start, and files of its root have changed. */
static int start_looking(const struct px_policy *policy, enum px_root_look look, const char *const argv[],
                         const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    struct rooted rooted;
    if (find_root(policy, look, &rooted, e) < 0)
        return -1;
    int r = start_rooted(&rooted.policy, argv, io, ret_box, e);
    bool changed = r < 0 && rooted.policy.gate && !root_holds(&rooted.gate);
    done_root(&rooted, r < 0 ? NULL : *ret_box);
    return changed ? 1 : r;
}

PX_API int px_box_start(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_box **ret_box,
                        struct px_err *e)
{
    PX_ERR(e);
    static const struct px_io nothing = {0};
    if (!io)
        io = &nothing;
    if (policy->detach) {
        px_fail(e, PX_E_USAGE, 0, "a detached command needs a box that stays");
        return px_fix(e, "Use px_keeper_new() and px_living_detach() of px/living.h, or px exec -d.");
    }
    /* A runtime starts the command by itself, and policy->after is for one start. */
    bool beside = px_policy_native(policy) && !policy->after;
    int r = start_looking(policy, beside ? PX_ROOT_BESIDE : PX_ROOT_NOW, argv, io, ret_box, e);
    if (r != 1)
        return r;
    *e = (struct px_err){0};
    return start_looking(policy, PX_ROOT_NOW, argv, io, ret_box, e);
}

int px_start_stay_plan(const struct px_policy *policy, bool bound, struct px_plan **ret_plan, struct px_err *e)
{
    px_auto_free struct sock_filter *filter = NULL;
    struct px_host host;
    if (!px_policy_native(policy)) {
        px_fail(e, PX_E_NOT_BUILT, 0, "--runtime %s does not make boxes that stay", policy->runtime);
        px_why(e, "A box that stays takes its commands through pid 1, and in a container of a runtime pid 1 is not px's.");
        return px_fix(e, "Leave --runtime out: px keeps the box itself.\n"
                         "Or run each command in a box of its own: px exec --runtime %s.", policy->runtime);
    }
    px_parts_probe(policy, &host);
    return add_filter(policy, &host, &filter, e) < 0 ? -1 : px_plan_stay(policy, &host, bound, ret_plan, e);
}

static int stay_rooted(const struct px_policy *policy, bool bound, const int *image, struct px_box **ret_home, struct px_err *e)
{
    static const struct px_io nothing = {0};
    struct px_plan *plan = NULL;
    if (px_start_stay_plan(policy, bound, &plan, e) < 0)
        return -1;
    plan->image = image;
    if (px_start_connect(plan, policy, e) < 0) {
        px_plan_free(plan);
        return -1;
    }
    if (px_supervise_start(plan, policy, &nothing, ret_home, e) == 0)
        return 0;
    if (policy->require == PX_TIER_LANDLOCK && px_parts_no_namespaces(e)) {
        px_why(e, "A box that stays has no weaker tier, and the full one cannot be had here.");
        px_fix(e, "Run `px doctor`: it says what is refused here.\nOr run each command in a box of its own: px exec --require landlock.");
    }
    return -1;
}

int px_start_stay_with(const struct px_policy *policy, bool bound, const int *image, struct px_box **ret_home, struct px_err *e)
{
    struct rooted rooted;
    if (find_root(policy, PX_ROOT_NOW, &rooted, e) < 0)
        return -1;
    int r = stay_rooted(&rooted.policy, bound, image, ret_home, e);
    done_root(&rooted, r < 0 ? NULL : *ret_home);
    return r;
}

int px_start_stay(const struct px_policy *policy, bool bound, struct px_box **ret_home, struct px_err *e)
{
    return px_start_stay_with(policy, bound, NULL, ret_home, e);
}

PX_API int px_box_stay(const struct px_policy *policy, struct px_box **ret_home, struct px_err *e)
{
    PX_ERR(e);
    return px_start_stay(policy, false, ret_home, e);
}
