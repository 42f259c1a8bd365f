/* The system call filter of a box, as a step of its payload or in the file for px-init. */
#include <string.h>

#include "init/wire.h"
#include "kernel/notify.h"
#include "kernel/seccomp.h"
#include "plan/steps.h"

static void add_listened(struct px_plan *plan, const struct sock_filter *program, uint16_t length)
{
    uint32_t copy = px_steps_program(plan, program, length);
    struct px_step *s = px_steps_add(plan, PX_OP_SECCOMP);
    s->src = copy;
    s->num2 = length;
    s->flags = plan->notify ? PX_STEP_LISTEN : 0;
    if (!plan->notify)
        px_plan_lacks(plan, "denials: no descriptor left to be told of them");
    if (plan->text.err == 0 && plan->notify)
        px_notify_patch((struct sock_filter *)(void *)(plan->text.data + copy), length, plan->own_filter);
}

enum px_filter px_plan_filter(const struct px_policy *policy, bool workspace)
{
    if (policy->build)
        return PX_FILTER_BUILD;
    if (!px_policy_own_filter(policy))
        return workspace ? PX_FILTER_FLOOR_WORKSPACE : PX_FILTER_FLOOR;
    if (px_policy_strict(policy))
        return workspace ? PX_FILTER_STRICT_WORKSPACE : PX_FILTER_STRICT;
    return workspace ? PX_FILTER_WORKSPACE : PX_FILTER_DEFAULT;
}

static void tell_filter(struct px_plan *plan, const struct px_policy *policy)
{
    if (policy->build) {
        px_plan_has(plan, "seccomp=build");
        return;
    }
    const char *word = !plan->own_filter ? "profile+floor" : px_policy_strict(policy) ? "strict" : "default";
    px_plan_has(plan, "seccomp=%s%s", word, plan->writable_binds ? "+workspace" : "");
}

/* px's own filter, or the user's profile on top of px's minimum filter: the kernel takes the stricter answer. */
void px_plan_add_filter(struct px_plan *plan, const struct px_policy *policy, const struct px_host *host)
{
    enum px_filter filter = px_plan_filter(policy, plan->writable_binds);
    plan->own_filter = px_policy_own_filter(policy);
    /* the listener is descriptor 3 for a moment */
    plan->notify = !px_policy_limited(policy->nofile) || policy->nofile > 3;
    if (plan->tier == PX_TIER_LANDLOCK)         /* the caller's processes have the same id as the box's */
        px_steps_add(plan, PX_OP_SECCOMP)->num = PX_FILTER_SELF;
    if (px_plan_cuts_network(plan, policy))
        px_steps_add(plan, PX_OP_SECCOMP)->num = PX_FILTER_OFFLINE;
    if (plan->own_filter) {
        uint16_t length = 0;
        const struct sock_filter *program = px_seccomp_program(filter, &length);
        add_listened(plan, program, length);
    } else {
        px_steps_add(plan, PX_OP_SECCOMP)->num = filter;
        add_listened(plan, host->filter, host->filter_length);
    }
    tell_filter(plan, policy);
}

uint32_t px_plan_stay_filters(struct px_plan *plan, const struct px_policy *policy, const struct px_host *host)
{
    bool off = px_policy_without(policy, PX_WITHOUT_SECCOMP) || px_policy_without(policy, PX_WITHOUT_NNP);
    bool own = plan->own_filter = px_policy_own_filter(policy);
    plan->notify = !off && (own || host->filter_sends);
    if (!plan->notify && !off)
        px_plan_lacks(plan, "denials: the profile refuses sendmsg");
    uint16_t length = 0, spare_length = 0;
    const struct sock_filter *program = px_seccomp_program(px_plan_filter(policy, plan->writable_binds), &length);
    const struct sock_filter *spare = px_seccomp_spare_init(&spare_length);
    struct px_init_filters head = {
        .own = length, .command = own ? 0 : host->filter_length,
        .listen = !plan->notify ? PX_INIT_LISTEN_NONE : own ? PX_INIT_LISTEN_OWN : PX_INIT_LISTEN_COMMAND};
    if (policy->apparmor)
        head.apparmor = (uint32_t)sizeof head + (uint32_t)(length + head.command + spare_length) * PX_STEPS_INSTRUCTION;
    uint32_t at = px_steps_bytes(plan, &head, sizeof head);
    (void)px_steps_program(plan, program, length);
    (void)px_steps_program(plan, host->filter, head.command);
    (void)px_steps_program(plan, spare, spare_length);          /* only px_plan_spare_init counts it */
    if (policy->apparmor) {
        px_steps_text(plan, policy->apparmor);
        px_plan_has(plan, "apparmor=%.48s", policy->apparmor);
    }
    tell_filter(plan, policy);
    return at;
}

void px_plan_spare_init(struct px_plan *plan)
{
    const struct px_step *s = &plan->steps[plan->count - 1];
    struct px_init_filters head;
    if (!plan->stays || plan->text.err < 0)
        return;
    memcpy(&head, plan->text.data + s->src, sizeof head);
    (void)px_seccomp_spare_init(&head.spare);
    memcpy(plan->text.data + s->src, &head, sizeof head);
}
