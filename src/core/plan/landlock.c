/* The Landlock rules of a command: all that it may read and write, by path. */
#include "base/text.h"
#include "kernel/landlock.h"
#include "plan/steps.h"

static void allow(struct px_plan *plan, const char *path, uint64_t rights, unsigned flags)
{
    struct px_step *s = px_steps_at(plan, PX_OP_ALLOW, path);
    s->num = rights;
    s->flags = (uint16_t)flags;
}

void px_plan_landlock(struct px_plan *plan, const struct px_policy *policy)
{
    if (plan->landlock_abi < 1) {
        px_plan_lacks(plan, "landlock");
        return;
    }
    px_steps_add(plan, PX_OP_LANDLOCK)->num = (uint64_t)plan->landlock_abi;
    allow(plan, "/", policy->overlay ? px_landlock_write() : px_landlock_read(), 0);
    allow(plan, "/dev", px_landlock_device(), 0);
    allow(plan, "/proc", px_landlock_read() | PX_LL_WRITE_FILE | PX_LL_TRUNCATE, 0);
    for (size_t i = 0; i < policy->tmpfs.count; i++)
        allow(plan, policy->tmpfs.items[i].target, px_landlock_write(), PX_STEP_MAYBE);
    if (policy->work_dir || policy->changes)
        allow(plan, policy->work_target, px_landlock_write(), 0);
    for (size_t i = 0; i < policy->binds.count; i++)
        if (policy->binds.items[i].writable)
            allow(plan, policy->binds.items[i].target, px_landlock_write(), 0);
    px_steps_add(plan, PX_OP_ENFORCE);
    px_plan_has(plan, "landlock=%d", plan->landlock_abi);
    if (plan->landlock_abi < 3)
        px_plan_lacks(plan, "landlock: ABI %d does not hold truncation", plan->landlock_abi);
}

bool px_plan_cuts_network(const struct px_plan *plan, const struct px_policy *policy)
{
    return plan->tier == PX_TIER_LANDLOCK && policy->net == PX_NET_NONE && !px_policy_without(policy, PX_WITHOUT_SECCOMP);
}

void px_plan_weaker(struct px_plan *plan, const struct px_policy *policy)
{
    enum { LANDLOCK = 1 << PX_TIER_LANDLOCK, RLIMITS = 1 << PX_TIER_RLIMITS, BOTH = LANDLOCK | RLIMITS };
    static const struct {
        unsigned tiers;
        int until;
        const char text[PX_NAME_MAX];
    } rows[] = {
#define PX_LACKS(tiers, until, text) {tiers, until, text},
#include "weaker.def"
#undef PX_LACKS
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        bool held = plan->tier == PX_TIER_LANDLOCK && rows[i].until > 0 && plan->landlock_abi >= rows[i].until;
        held = held || (px_plan_cuts_network(plan, policy) && px_starts_with(rows[i].text, "net:"));
        if (rows[i].tiers & (1u << plan->tier) && !held)
            px_plan_lacks(plan, "%s", rows[i].text);
    }
    if (px_plan_cuts_network(plan, policy))
        px_plan_has(plan, "net=no internet sockets");
}

static void allow_reading(struct px_plan *plan, const struct px_policy *policy, const char *path)
{
    (void)policy;
    allow(plan, path, px_landlock_read(), PX_STEP_MAYBE);
}

void px_plan_host_paths(struct px_plan *plan, const struct px_policy *policy)
{
    static const char *const readable[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives",
                                           "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime"};
    px_steps_add(plan, PX_OP_LANDLOCK)->num = (uint64_t)plan->landlock_abi;
    allow(plan, px_plan_text(plan, plan->scratch), px_landlock_write(), 0);
    for (size_t i = 0; i < PX_COUNT_OF(readable); i++)
        allow(plan, readable[i], px_landlock_read(), PX_STEP_MAYBE);
    for (size_t i = 0; px_etc_wants_bundle(policy) && px_etc_bundle(i); i++)
        allow(plan, px_etc_bundle(i), px_landlock_read(), PX_STEP_MAYBE);
    px_etc_each(allow_reading, plan, policy);
    for (size_t i = 0; px_rootfs_device(i); i++)
        allow(plan, px_rootfs_device(i), px_landlock_device(), 0);
    if (policy->tty)            /* its own terminal, which is its standard input by now; the others are the caller's */
        allow(plan, "/proc/self/fd/0", px_landlock_device(), PX_STEP_MAYBE);
    for (size_t i = 0; i < policy->binds.count; i++) {
        const struct px_bind *b = &policy->binds.items[i];
        allow(plan, b->target, b->writable ? px_landlock_write() : px_landlock_read(), 0);
        plan->binds = true;
        plan->writable_binds = plan->writable_binds || b->writable;
    }
    px_steps_add(plan, PX_OP_ENFORCE);
    px_plan_has(plan, "landlock=%d", plan->landlock_abi);
}
