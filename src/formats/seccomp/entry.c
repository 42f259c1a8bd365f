#include "seccomp/entry.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/err.h"
#include "base/text.h"
#include "kernel/sysname.h"
#include "seccomp/draft.h"
#include "seccomp/reader.h"

enum { ERRNO_MAX = 4095 };

/* ---- actions ---- */

static const struct px_word actions[] = {
    {"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
    {"SCMP_ACT_LOG", SECCOMP_RET_LOG},
    {"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO},
    {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
    {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
    {NULL, 0},
};

static const struct px_word compares[] = {
    {"SCMP_CMP_NE", PX_COMPARE_NE}, {"SCMP_CMP_LT", PX_COMPARE_LT}, {"SCMP_CMP_LE", PX_COMPARE_LE},
    {"SCMP_CMP_EQ", PX_COMPARE_IN}, {"SCMP_CMP_GE", PX_COMPARE_GE}, {"SCMP_CMP_GT", PX_COMPARE_GT},
    {"SCMP_CMP_MASKED_EQ", PX_COMPARE_IN},
    {NULL, 0},
};

/* "EPERM" as a number; 0 if px has no name for it. */
static uint32_t errno_by_name(const char *name)
{
    size_t len = strlen(name);

    for (int i = 1; i <= 133; i++) {
        const char *text = px_errno_text(i);
        if (strncmp(text, name, len) == 0 && text[len] == ':')
            return (uint32_t)i;
    }
    return 0;
}

/* Podman's profiles have the number and the name, Docker's the number only. */
static int read_errno(const struct px_reader *r, json_t *object, const char *number_name, const char *text_name,
                      uint64_t *ret_value)
{
    const char *text = NULL;
    int has_number = px_reader_number(r, object, number_name, ERRNO_MAX, ret_value);
    int has_text = has_number < 0 ? -1 : px_reader_text(r, object, text_name, &text);

    if (has_text < 0)
        return -1;
    if (has_number || !text || !*text)
        return has_number;
    *ret_value = errno_by_name(text);
    return *ret_value ? 1 : px_reader_wrong(r, text_name, "is '%.40s', which is not an error px knows; write its number", text);
}

static int refuse_action(const struct px_reader *r, const char *member, const char *name)
{
    (void)px_reader_wrong(r, member, "is %s, which needs a supervisor of the profile's own", name);
    (void)px_why(r->e, "In a box nobody could answer for it, and px tells of refused calls by itself.");
    return px_fix(r->e, "Use SCMP_ACT_ERRNO for what is to be refused and SCMP_ACT_LOG for what is to be watched.");
}

int px_entry_action(const struct px_reader *r, json_t *object, const char *member, const char *errno_member,
                    const char *errno_text_member, uint32_t *ret_action)
{
    const char *name = NULL;
    uint64_t number = EPERM;

    if (px_reader_text(r, object, member, &name) < 0)
        return -1;
    if (!name)
        return px_reader_wrong(r, member, "is missing");
    if (strcmp(name, "SCMP_ACT_TRACE") == 0 || strcmp(name, "SCMP_ACT_NOTIFY") == 0)
        return refuse_action(r, member, name);
    if (px_reader_word(r, member, actions, name, ret_action) < 0)
        return -1;
    int has_errno = read_errno(r, object, errno_member, errno_text_member, &number);
    if (has_errno < 0)
        return -1;
    if (has_errno && *ret_action != SECCOMP_RET_ERRNO)
        return px_reader_wrong(r, errno_member, "does not go with %s", name);
    if (*ret_action == SECCOMP_RET_ERRNO)
        *ret_action |= (uint32_t)number;
    return 0;
}

/* ---- conditions ---- */

static int read_condition(const struct px_reader *r, json_t *arg, struct px_condition *ret_condition)
{
    static const char *const known[] = {"index", "value", "valueTwo", "op", NULL};
    uint64_t index = 0, value = 0, value_two = 0;
    const char *op = NULL;
    uint32_t compare = 0;

    if (!json_is_object(arg))
        return px_reader_wrong(r, NULL, "must be an object");
    int r1 = px_reader_number(r, arg, "index", PX_ARGUMENTS - 1, &index);
    int r2 = r1 < 0 ? -1 : px_reader_number(r, arg, "value", UINT64_MAX, &value);
    int r3 = r2 < 0 ? -1 : px_reader_number(r, arg, "valueTwo", UINT64_MAX, &value_two);
    int r4 = r3 < 0 ? -1 : px_reader_text(r, arg, "op", &op);
    if (r4 < 0)
        return -1;
    if (r1 == 0 || r2 == 0 || !op)
        return px_reader_wrong(r, r1 == 0 ? "index" : r2 == 0 ? "value" : "op", "is missing");
    if (px_reader_word(r, "op", compares, op, &compare) < 0)
        return -1;
    px_reader_warn_of_others(r, arg, known);
    bool masked = strcmp(op, "SCMP_CMP_MASKED_EQ") == 0;
    *ret_condition = (struct px_condition){
        .argument = (uint8_t)index, .compare = (uint8_t)compare, .count = 1,
        .mask = masked ? value : UINT64_MAX, .value = {masked ? value & value_two : value}};
    return 0;
}

/* Whether two conditions check one argument. runc and crun then make a rule of each condition, because libseccomp does
 * not accept both in one rule. px does the same. */
static bool has_doubles(const struct px_condition *conditions, size_t count)
{
    unsigned seen = 0;

    for (size_t i = 0; i < count; i++) {
        if (seen >> conditions[i].argument & 1)
            return true;
        seen |= 1u << conditions[i].argument;
    }
    return false;
}

static int add_rule(const struct px_reader *r, uint32_t action, const struct px_condition *conditions, size_t count)
{
    struct px_rule *rule = NULL;

    if (r->draft->rules == PX_DRAFT_RULES_MAX)
        return px_reader_wrong(r, NULL, "is one rule too many: px takes %d", PX_DRAFT_RULES_MAX);
    if (px_draft_add_rule(r->draft, &rule) < 0)
        return px_reader_no_memory(r);
    rule->action = action;
    for (size_t i = 0; i < count; i++)
        if (conditions[i].compare != PX_COMPARE_IN || conditions[i].mask != 0)  /* otherwise it always matches */
            rule->condition[rule->count++] = conditions[i];
    return 0;
}

enum { CONDITIONS_MAX = 64 };   /* of one entry; only PX_ARGUMENTS of them can be about different arguments */

/* The rules of one entry: one, or one for each condition. */
static int read_conditions(struct px_reader *r, json_t *entry, uint32_t action)
{
    struct px_condition conditions[CONDITIONS_MAX] = {{0}};
    json_t *args = NULL;

    if (px_reader_array(r, entry, "args", &args) < 0)
        return -1;
    size_t count = json_array_size(args);
    if (count > CONDITIONS_MAX)
        return px_reader_wrong(r, "args", "has %zu conditions, more than %d", count, CONDITIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        r->arg = (int)i;
        if (read_condition(r, json_array_get(args, i), &conditions[i]) < 0)
            return -1;
    }
    r->arg = PX_NOWHERE;
    if (!has_doubles(conditions, count))
        return add_rule(r, action, conditions, count);
    px_draft_warn(r->draft, "syscalls[%d].args has two conditions on one argument: each counts on its own, as in runc",
                  r->entry);
    for (size_t i = 0; i < count; i++)
        if (add_rule(r, action, &conditions[i], 1) < 0)
            return -1;
    return 0;
}

/* ---- names ---- */

static bool is_elsewhere(const char *name)
{
    static const char names[][30] = {
#define PX_ELSEWHERE(name) #name,
#include "elsewhere.def"
#undef PX_ELSEWHERE
    };

    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int add_uses(const struct px_reader *r, const char *name, size_t first_rule)
{
    struct px_draft *d = r->draft;
    int number = px_sysname_number(name);

    if (number < 0) {
        if (!is_elsewhere(name))
            px_draft_warn(d, "syscalls[%d] names '%.60s', a system call that px does not know: it stays refused", r->entry,
                          name);
        return 0;
    }
    for (size_t i = first_rule; i < d->rules; i++)
        if (px_draft_add_use(d, (uint16_t)number, (uint16_t)i) < 0)
            return px_reader_no_memory(r);
    return 0;
}

/* `names`, or the older `name`. */
static int read_names(const struct px_reader *r, json_t *entry, size_t first_rule)
{
    json_t *names = NULL;
    const char *name = NULL;
    int r1 = px_reader_array(r, entry, "names", &names), r2 = r1 < 0 ? -1 : px_reader_text(r, entry, "name", &name);

    if (r2 < 0)
        return -1;
    if (names && name)
        return px_reader_wrong(r, NULL, "has both name and names");
    if (!names && !name)
        return px_reader_wrong(r, "names", "is missing");
    if (name)
        return add_uses(r, name, first_rule);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *text = px_reader_text_at(r, "names", names, i);
        if (!text || add_uses(r, text, first_rule) < 0)
            return -1;
    }
    return 0;
}

/* ---- includes and excludes ---- */

/* "5.12" as 5 << 16 | 12, and what follows it; 0 if it is not a version. */
static uint32_t parse_version(const char *text, const char **ret_rest)
{
    uint32_t part[2] = {0};

    for (int i = 0; i < 2; i++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 4)
            return 0;
        for (size_t k = 0; k < digits; k++)
            part[i] = part[i] * 10 + (uint32_t)(text[k] - '0');
        text += digits;
        if (i == 0 && *text++ != '.')
            return 0;
    }
    *ret_rest = text;
    return part[0] << 16 | part[1];
}

static bool kernel_is_at_least(uint32_t version)
{
    struct utsname host;
    const char *rest;

    return uname(&host) == 0 && parse_version(host.release, &rest) >= version;
}

/* The result of a condition on the host: whether a list was given, and whether this host is in it. */
struct fit {
    bool asks_arch, has_arch, asks_caps, asks_kernel, has_kernel;
};

static int read_fit(const struct px_reader *r, json_t *object, struct fit *ret_fit)
{
    static const char *const known[] = {"arches", "caps", "minKernel", NULL};
    json_t *arches = NULL, *caps = NULL;
    const char *kernel = NULL, *rest = "";
    struct fit fit = {0};

    px_reader_warn_of_others(r, object, known);
    if (px_reader_array(r, object, "arches", &arches) < 0 || px_reader_array(r, object, "caps", &caps) < 0 ||
        px_reader_text(r, object, "minKernel", &kernel) < 0)
        return -1;
    fit.asks_arch = json_array_size(arches) > 0;
    for (size_t i = 0; i < json_array_size(arches); i++) {
        const char *arch = px_reader_text_at(r, "arches", arches, i);
        if (!arch)
            return -1;
        fit.has_arch = fit.has_arch || strcmp(arch, "amd64") == 0 || strcmp(arch, "x86_64") == 0;
    }
    fit.asks_caps = json_array_size(caps) > 0;
    for (size_t i = 0; i < json_array_size(caps); i++)
        if (!px_reader_text_at(r, "caps", caps, i))
            return -1;
    if (kernel && *kernel) {
        uint32_t version = parse_version(kernel, &rest);
        if (version == 0 || *rest)
            return px_reader_wrong(r, "minKernel", "is '%.40s', not a version such as 5.12", kernel);
        fit.asks_kernel = true;
        fit.has_kernel = kernel_is_at_least(version);
    }
    *ret_fit = fit;
    return 0;
}

static int read_group(const struct px_reader *r, json_t *entry, const char *name, struct fit *ret_fit)
{
    struct px_reader inner = *r;
    json_t *object = NULL;

    if (px_reader_object(r, entry, name, &object) < 0)
        return -1;
    inner.group = name;
    return object ? read_fit(&inner, object, ret_fit) : 0;
}

/* 1 if the entry is meant for this host and a box, 0 if not. A box has no capabilities. */
static int is_meant(const struct px_reader *r, json_t *entry)
{
    struct fit in = {0}, out = {0};

    if (read_group(r, entry, "includes", &in) < 0 || read_group(r, entry, "excludes", &out) < 0)
        return -1;
    if (out.has_arch || out.has_kernel || in.asks_caps)
        return 0;
    return !(in.asks_arch && !in.has_arch) && !(in.asks_kernel && !in.has_kernel);
}

/* ---- the entry ---- */

int px_entry_read(struct px_reader *r, json_t *entry)
{
    static const char *const known[] = {"names",    "name",     "action",  "errnoRet", "errno", "args",
                                        "includes", "excludes", "comment", NULL};
    size_t first_rule = r->draft->rules, uses = r->draft->uses;
    uint32_t action = 0;

    if (!json_is_object(entry))
        return px_reader_wrong(r, NULL, "must be an object");
    px_reader_warn_of_others(r, entry, known);
    if (px_entry_action(r, entry, "action", "errnoRet", "errno", &action) < 0 || read_conditions(r, entry, action) < 0 ||
        read_names(r, entry, first_rule) < 0)
        return -1;
    int meant = is_meant(r, entry);
    if (meant == 0) {           /* checked, and left out */
        r->draft->rules = first_rule;
        r->draft->uses = uses;
    }
    return meant < 0 ? -1 : 0;
}
