#include "runtime/losses.h"

#include <string.h>

#include "base/buf.h"
#include "base/field.h"
#include "base/json.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "plan/plan.h"
#include "policy/policy.h"

enum { VALUE_MAX = 1 << 20 };

/* What no field switches on, and what the formats do with the fields, in the order of enum px_format:
 * + it is said there, - it is lost, . it is about px itself. Roots that take changes are refused (export_others.c). */
static const char *const always[] = {"landlock", "landlock", "landlock, seccomp", "landlock, seccomp, namespaces, environment"};
static const struct {
    const char *field, *formats;
} rows[] = {
    {"base", "++++"},       {"rootfs", "++++"},        {"overlay", "++++"},   {"persist", "...."},     {"work-dir", "++++"},
    {"work-target", "+++-"}, {"bind", "++++"},         {"tmpfs", "+++-"},     {"workdir", "+++-"},     {"env", "+++-"},
    {"env-file", "...."},   {"net", "++++"},           {"allow-net", "----"}, {"deny-net", "----"},    {"allow-host-loopback", "----"},
    {"host-port", "----"},  {"publish", "----"},       {"dns", "----"},       {"http-proxy", "+++-"},  {"memory", "+-+-"},
    {"cpus", "+-+-"},       {"cpu-time", "+---"},      {"pids", "+-+-"},      {"disk", "----"},        {"file-size", "+---"},
    {"nofile", "+---"},     {"timeout", "-++-"},       {"output-limit", "----"}, {"output-end", "----"}, {"limits", "...."},
    {"tty", "...."},        {"interactive", "...."},   {"user", "+++-"},      {"hostname", "+++-"},    {"runtime", "...."},
    {"require", "...."},    {"seccomp", "++.."},       {"apparmor", "+---"},  {"name", "...."},        {"detach", "...."},
    {"idle", "----"},       {"max-life", "----"},      {"changes", "++++"},   {"apply", "...."},       {"discard", "...."},
    {"keep", "...."},       {"timings", "...."},       {"build", "...."},     {"without", "...."},
};

static void print_value(const struct px_field *f, const struct px_policy *policy, struct px_buf *out)
{
    struct px_json j = {.out = out};
    px_json_object(&j, NULL);
    f->type->print((const char *)policy + f->offset, f, &j);
    px_json_end(&j);
}

/* Whether the policy sets it to a value that is not empty. */
static bool is_set(const struct px_field *f, const struct px_policy *policy)
{
    static const struct px_policy nothing;
    px_auto_buf struct px_buf value = PX_BUF(VALUE_MAX);
    px_auto_buf struct px_buf none = PX_BUF(VALUE_MAX);
    print_value(f, policy, &value);
    print_value(f, &nothing, &none);
    return !px_equal(px_buf_text(&value), px_buf_text(&none)) && !strstr(px_buf_text(&value), "\"unlimited\"");
}

/* A field without a row is lost. */
static char fate(const char *field, enum px_format format)
{
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].field, field))
            return rows[i].formats[format];
    return '-';
}

static bool any_noexec(const struct px_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == PX_OP_TMPFS && plan->steps[i].attr & PX_MOUNT_NOEXEC)
            return true;
    return false;
}

void px_losses(const struct px_policy *policy, const struct px_plan *plan, enum px_format format, const char *between,
               struct px_buf *out)
{
    px_buf_puts(out, always[format]);
    for (const struct px_field *f = px_policy_fields; f->name; f++)
        if (!(f->flags & PX_FIELD_ABSENT) && fate(f->name, format) == '-' && is_set(f, policy))
            px_buf_printf(out, "%s%s", between, f->name);
    if (format == PX_FORMAT_BWRAP && any_noexec(plan))
        px_buf_printf(out, "%snoexec", between);
    if (policy->net == PX_NET_OUTBOUND || policy->net == PX_NET_PASTA)
        px_buf_printf(out, "%snet", between);
}
