/* What the hidden option --without removes from a finished plan, and what the result says about it. */
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "kernel/abi.h"
#include "plan/plan.h"

static const struct {
    enum px_op ops[4];
    int count;
} lost_steps[PX_WITHOUT_COUNT] = {
#define PX_WITHOUT(name, word, ...) \
    [PX_WITHOUT_##name] = {{__VA_ARGS__}, (int)(sizeof((enum px_op[]){__VA_ARGS__}) / sizeof(enum px_op))},
#include "policy/without.def"
#undef PX_WITHOUT
};

static void forget_mechanism(struct px_plan *plan, const char *word)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->mechanisms_count; i++) {
        if (px_starts_with(plan->mechanisms[i], word))
            continue;
        if (kept != i)
            memcpy(plan->mechanisms[kept], plan->mechanisms[i], PX_NAME_MAX);
        kept++;
    }
    plan->mechanisms_count = kept;
}

static void lose_attributes(struct px_step *s, const struct px_policy *policy)
{
    static const struct {
        enum px_without what;
        unsigned bit;
    } rows[] = {{PX_WITHOUT_READONLY, PX_MOUNT_RDONLY},
                {PX_WITHOUT_NOEXEC, PX_MOUNT_NOEXEC},
                {PX_WITHOUT_NOSUID, PX_MOUNT_NOSUID},
                {PX_WITHOUT_NODEV, PX_MOUNT_NODEV}};
    if (s->op != PX_OP_BIND && s->op != PX_OP_TMPFS && s->op != PX_OP_ROOT && s->op != PX_OP_OVERLAY && s->op != PX_OP_UPPER)
        return;
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_policy_without(policy, rows[i].what))
            s->attr &= ~rows[i].bit;
    if (s->op == PX_OP_TMPFS && px_policy_without(policy, PX_WITHOUT_BOUNDS))
        s->num = s->num2 = 0;
}

/* Without a pid namespace the kernel does not allow mounting a /proc. */
static void show_host_proc(struct px_step *s)
{
    struct stat st = {0};
    (void)stat("/proc", &st);
    *s = (struct px_step){.op = PX_OP_BIND, .fd = s->fd, .src = s->dst, .dst = s->dst, .num = st.st_dev, .num2 = st.st_ino};
}

void px_plan_switch_off(struct px_plan *plan, const struct px_policy *policy)
{
    for (int w = 0; policy->without && w < PX_WITHOUT_COUNT; w++) {
        if (!px_policy_without(policy, w))
            continue;
        for (uint32_t i = 0; i < plan->count; i++)
            for (int k = 0; k < lost_steps[w].count; k++)
                if (plan->steps[i].op == lost_steps[w].ops[k])
                    plan->steps[i].op = PX_OP_OFF;
        forget_mechanism(plan, px_policy_without_word(w));
        px_plan_lacks(plan, "%s: switched off for a test", px_policy_without_word(w));
    }
    for (uint32_t i = 0; policy->without && i < plan->count; i++) {
        struct px_step *s = &plan->steps[i];
        lose_attributes(s, policy);
        if (s->op == PX_OP_PROC && px_policy_without(policy, PX_WITHOUT_PIDNS))
            show_host_proc(s);
        if (s->op == PX_OP_PROC && px_policy_without(policy, PX_WITHOUT_HIDEPID))
            s->flags |= PX_STEP_PLAIN;
        if (s->op == PX_OP_DEVPTS && px_policy_without(policy, PX_WITHOUT_BOUNDS))
            s->num = 1 << 20;
        if (s->op == PX_OP_BOUND && px_policy_without(policy, PX_WITHOUT_PRIVILEGES))
            s->flags |= PX_STEP_REAPER;         /* no_new_privs alone */
    }
    plan->notify = plan->notify && !px_policy_without(policy, PX_WITHOUT_SECCOMP) && !px_policy_without(policy, PX_WITHOUT_NNP);
}
