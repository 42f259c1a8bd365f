/* What a command starts with: its variables, its working directory, and the candidate paths of its program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "plan/steps.h"

static const char search_path[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

static const char *inside_home(const struct px_plan *plan, const struct px_policy *policy)
{
    if (policy->build)
        return "/root";
    return plan->tier == PX_TIER_FULL ? px_rootfs_home : px_plan_text(plan, plan->scratch);
}

static size_t add_proxy(const struct px_policy *policy, char (*out)[512])
{
    static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"};
    size_t n = 0;
    for (size_t i = 0; policy->http_proxy && i < PX_COUNT_OF(names); i++)
        if (px_fmt(out[n], 512, "%s=%s", names[i], policy->http_proxy) >= 0)
            n++;
    return n;
}

/* The variables that every box has. The policy's own come after them and win. */
static size_t base_environment(const struct px_plan *plan, const struct px_policy *policy, char out[12][512])
{
    const char *term = policy->tty ? getenv("TERM") : NULL;
    size_t n = 0;
    (void)px_fmt(out[n++], 512, "PATH=%s", search_path);
    (void)px_fmt(out[n++], 512, "HOME=%s", inside_home(plan, policy));
    (void)px_fmt(out[n++], 512, "LANG=C.UTF-8");
    if (px_fmt(out[n], 512, "TERM=%s", term && *term ? term : policy->tty ? "xterm-256color" : "dumb") >= 0)
        n++;
    if (plan->tier != PX_TIER_RLIMITS) {
        (void)px_fmt(out[n++], 512, "PX_SANDBOX=1");
        (void)px_fmt(out[n++], 512, "container=px");
    }
    return n + add_proxy(policy, out + n);
}

static bool overridden(const struct px_policy *policy, const char *variable)
{
    char name[32];
    size_t n = strcspn(variable, "=");
    if (n >= sizeof name)
        return false;
    memcpy(name, variable, n);
    name[n] = '\0';
    return px_policy_env(policy, name) != NULL;
}

/* The caller's own variables; only for a test of the check that looks for them. */
static void leak_environment(struct px_plan *plan, uint32_t *offsets, size_t *count)
{
    for (char **v = environ; v && *v; v++)
        offsets[(*count)++] = px_steps_text(plan, *v);
}

static size_t environ_count(const struct px_policy *policy)
{
    size_t n = 0;
    while (px_policy_without(policy, PX_WITHOUT_ENVIRONMENT) && environ && environ[n])
        n++;
    return n;
}

int px_plan_environment(struct px_plan *plan, const struct px_policy *policy, uint32_t **ret_offsets, size_t *ret_count)
{
    char base[12][512];
    size_t n = base_environment(plan, policy, base), count = 0;
    uint32_t *offsets = calloc(n + policy->env.count + environ_count(policy) + 1, sizeof *offsets);
    if (!offsets)
        return -ENOMEM;
    if (px_policy_without(policy, PX_WITHOUT_ENVIRONMENT))
        leak_environment(plan, offsets, &count);
    for (size_t i = 0; i < n; i++)
        if (!overridden(policy, base[i]))
            offsets[count++] = px_steps_text(plan, base[i]);
    for (size_t i = 0; i < policy->env.count; i++)
        offsets[count++] = px_steps_text(plan, policy->env.items[i]);
    *ret_offsets = offsets;
    *ret_count = count;
    return 0;
}

void px_plan_candidates(struct px_plan *plan, const struct px_policy *policy, const char *command)
{
    const char *path = px_policy_env(policy, "PATH");
    uint32_t first = (uint32_t)plan->text.len;
    uint64_t count = 0;

    if (strchr(command, '/')) {
        px_steps_text(plan, command);
        count = 1;
    } else {
        for (const char *p = path ? path : search_path; p && *p;) {
            size_t n = strcspn(p, ":");
            if (n > 0) {
                px_buf_add(&plan->text, p, n);
                px_buf_putc(&plan->text, '/');
                px_buf_add(&plan->text, command, strlen(command) + 1);
                count++;
            }
            p += n + (p[n] == ':');
        }
    }
    struct px_step *s = px_steps_add(plan, PX_OP_EXEC);
    s->src = first;
    s->num = count;
}

const char *px_plan_workdir(const struct px_plan *plan, const struct px_policy *policy)
{
    if (policy->workdir)
        return policy->workdir;
    if (policy->work_dir || policy->changes)
        return policy->work_target;
    return policy->build ? "/" : inside_home(plan, policy);
}
