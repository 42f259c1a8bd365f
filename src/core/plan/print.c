/* A plan as JSON: what --plan shows, and tests compare. */
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "plan/plan.h"

static void print_step(const struct px_plan *plan, const struct px_step *s, struct px_json *j)
{
    px_json_object(j, NULL);
    px_json_text(j, "op", px_steps_op_word(s->op));
    px_json_int(j, "stage", px_steps_op_stage(s->op));
    if (s->src && s->op != PX_OP_EXEC && s->op != PX_OP_FILE && s->op != PX_OP_SECCOMP && s->op != PX_OP_STAY &&
        s->op != PX_OP_NETLINK && s->op != PX_OP_SOCKET)
        px_json_text(j, "source", px_plan_text(plan, s->src));
    if (s->dst)
        px_json_text(j, "target", px_plan_text(plan, s->dst));
    if (s->op == PX_OP_FILE)
        px_json_uint(j, "bytes", s->num);
    if (s->op == PX_OP_TMPFS)
        px_json_uint(j, "size", s->num);
    if (s->op == PX_OP_RLIMIT) {
        px_json_uint(j, "resource", s->attr);
        px_json_uint(j, "value", s->num);
    }
    if (s->op == PX_OP_BIND || s->op == PX_OP_TMPFS) {
        px_json_array(j, "attributes");
        static const struct {
            unsigned bit;
            const char *word;
        } words[] = {{PX_MOUNT_RDONLY, "ro"}, {PX_MOUNT_NOSUID, "nosuid"}, {PX_MOUNT_NODEV, "nodev"}, {PX_MOUNT_NOEXEC, "noexec"}};
        for (size_t i = 0; i < PX_COUNT_OF(words); i++)
            if (s->attr & words[i].bit)
                px_json_text(j, NULL, words[i].word);
        px_json_end(j);
    }
    if (s->op == PX_OP_IDS || s->op == PX_OP_INIT) {
        px_json_uint(j, "uid", s->num);
        px_json_uint(j, "gid", s->num2);
    }
    px_json_end(j);
}

static void print_list(struct px_json *j, const char *name, const char (*list)[64], uint32_t count)
{
    px_json_array(j, name);
    for (uint32_t i = 0; i < count; i++)
        px_json_text(j, NULL, list[i]);
    px_json_end(j);
}

int px_plan_print(const struct px_plan *plan, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(64 << 20);
    struct px_json j = {.out = &out, .pretty = true};

    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_text(&j, "tier", plan->tier_word ? plan->tier_word : px_policy_tier_word(plan->tier));
    px_json_array(&j, "argv");
    for (char **a = plan->argv; *a; a++)
        px_json_text(&j, NULL, *a);
    px_json_end(&j);
    px_json_array(&j, "environment");
    for (char **v = plan->envp; *v; v++)
        px_json_text(&j, NULL, *v);
    px_json_end(&j);
    print_list(&j, "mechanisms", plan->mechanisms, plan->mechanisms_count);
    print_list(&j, "missing", plan->missing, plan->missing_count);
    px_json_array(&j, "steps");
    for (uint32_t i = 0; i < plan->count; i++)
        print_step(plan, &plan->steps[i], &j);
    px_json_end(&j);
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    if (out.err < 0)
        return px_fail(e, PX_E_LIMIT, out.err, "the plan is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}
