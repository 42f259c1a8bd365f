#include "seccomp/print.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "seccomp/builtin.h"
#include "seccomp/profile.h"
#include "seccomp/region.h"

/* A refusal by errno that needs more rules than this is left to the default action, whose errno may differ. */
enum { REFUSALS_MAX = 64 };

/* Calls with the same decisions. */
struct group {
    uint16_t own, users;        /* decisions */
    bool plain;                 /* whatever the arguments */
    bool verbatim;              /* printed from the profile's rules: the floor adds nothing */
    uint32_t action;            /* if plain */
};

struct printer {
    struct px_json *out;
    struct px_calls own;
    const struct px_calls *users; /* NULL without a profile */
    uint32_t otherwise;
    struct group group[PX_CALLS_MAX];
    size_t groups;
    uint16_t group_of[PX_CALLS_MAX];
    const char *name[PX_CALLS_MAX];     /* NULL: there is no such call */
};

/* ---- what is decided ---- */

/* The profile's program is loaded last, so where both refuse, its errno is returned. */
static void find_parts(const struct printer *p, const struct group *g, struct px_region_parts *ret_parts)
{
    px_region_parts_init(ret_parts);
    px_region_parts_decide(ret_parts, &p->own, &p->own.decision[g->own]);
    if (p->users)
        px_region_parts_decide(ret_parts, p->users, &p->users->decision[g->users]);
}

static uint16_t find_group(struct printer *p, uint16_t own, uint16_t users)
{
    size_t i = 0;

    while (i < p->groups && (p->group[i].own != own || p->group[i].users != users))
        i++;
    if (i == p->groups)
        p->group[p->groups++] = (struct group){.own = own, .users = users};
    return (uint16_t)i;
}

static bool is_errno(uint32_t action)
{
    return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
}

/* Whether the default also refuses; its errno may differ. */
static bool is_like_default(const struct printer *p, uint32_t action)
{
    return action == p->otherwise || (is_errno(action) && is_errno(p->otherwise));
}

static bool has_equalities_only(const struct px_rule *rule)
{
    bool only = true;

    for (unsigned i = 0; i < rule->count; i++)
        only = only && rule->condition[i].compare == PX_COMPARE_IN;
    return only;
}

/* libseccomp is wrong where one of several rules about a call compares by order; such rules are split into
 * equalities. */
static bool is_verbatim(const struct printer *p, const struct group *g)
{
    const struct px_decision *own = &p->own.decision[g->own];

    if (!p->users || own->count > 0 || own->otherwise != SECCOMP_RET_ALLOW)
        return false;
    const struct px_decision *d = &p->users->decision[g->users];
    bool fits = d->count > 0 && is_like_default(p, d->otherwise);
    for (uint32_t i = 0; fits && i < d->count; i++) {
        const struct px_rule *rule = px_calls_rule(p->users, d, i);
        fits = d->count == 1 || (has_equalities_only(rule) && rule->action == px_calls_rule(p->users, d, 0)->action);
    }
    return fits;
}

static void find_names(struct printer *p)
{
    const char *name;
    uint32_t number;

    for (unsigned i = 0; (name = px_builtin_row(i, &number)); i++)
        p->name[number] = name;
}

static int find_groups(struct printer *p)
{
    for (uint16_t n = 0; n < p->own.numbers; n++)
        p->group_of[n] = find_group(p, p->own.of[n], p->users ? p->users->of[n] : 0);
    for (size_t i = 0; i < p->groups; i++) {
        struct group *g = &p->group[i];
        struct px_region_parts parts;

        g->verbatim = is_verbatim(p, g);
        if (g->verbatim)
            continue;
        find_parts(p, g, &parts);
        int err = parts.err;
        g->plain = parts.count == 1;
        g->action = parts.part[0].action;
        px_region_parts_done(&parts);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ---- words ---- */

static const char *action_name(uint32_t action)
{
    switch (action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
        return "SCMP_ACT_ALLOW";
    case SECCOMP_RET_LOG:
        return "SCMP_ACT_LOG";
    case SECCOMP_RET_ERRNO:
        return "SCMP_ACT_ERRNO";
    case SECCOMP_RET_TRAP:
        return "SCMP_ACT_TRAP";
    case SECCOMP_RET_KILL_THREAD:
        return "SCMP_ACT_KILL_THREAD";
    default:
        return "SCMP_ACT_KILL_PROCESS";
    }
}

static void print_action(const struct printer *p, const char *name, const char *errno_name, uint32_t action)
{
    px_json_text(p->out, name, action_name(action));
    if (is_errno(action))
        px_json_uint(p->out, errno_name, action & SECCOMP_RET_DATA);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the calls whose group is this one, or is plain with this action. */
static void print_names(const struct printer *p, const struct group *one, uint32_t action)
{
    const char *names[PX_CALLS_MAX] = {NULL};
    size_t count = 0;

    for (uint16_t n = 0; n < p->own.numbers; n++) {
        const struct group *g = &p->group[p->group_of[n]];

        if (p->name[n] && (one ? g == one : g->plain && g->action == action))
            names[count++] = p->name[n];
    }
    qsort(names, count, sizeof names[0], compare_names);
    px_json_array(p->out, "names");
    for (size_t i = 0; i < count; i++)
        px_json_text(p->out, NULL, names[i]);
    px_json_end(p->out);
}

/* ---- entries ---- */

static void print_argument(const struct printer *p, unsigned index, const char *op, uint64_t value, uint64_t value_two)
{
    px_json_object(p->out, NULL);
    px_json_uint(p->out, "index", index);
    px_json_uint(p->out, "value", value);
    px_json_uint(p->out, "valueTwo", value_two);
    px_json_text(p->out, "op", op);
    px_json_end(p->out);
}

static void print_equal(const struct printer *p, unsigned index, uint64_t mask, uint64_t value)
{
    if (mask == UINT64_MAX)
        print_argument(p, index, "SCMP_CMP_EQ", value, 0);
    else if (mask != 0)
        print_argument(p, index, "SCMP_CMP_MASKED_EQ", mask, value);
}

static void print_cube(const struct printer *p, const struct px_cube *cube)
{
    px_json_array(p->out, "args");
    for (unsigned i = 0; i < PX_ARGUMENTS; i++)
        print_equal(p, i, cube->mask[i], cube->value[i]);
    px_json_end(p->out);
}

static void print_conditions(const struct printer *p, const struct px_rule *rule)
{
    static const char *const ops[] = {
        [PX_COMPARE_NE] = "SCMP_CMP_NE", [PX_COMPARE_GT] = "SCMP_CMP_GT", [PX_COMPARE_GE] = "SCMP_CMP_GE",
        [PX_COMPARE_LT] = "SCMP_CMP_LT", [PX_COMPARE_LE] = "SCMP_CMP_LE",
    };

    px_json_array(p->out, "args");
    for (unsigned i = 0; i < rule->count; i++) {
        const struct px_condition *c = &rule->condition[i];
        if (c->compare == PX_COMPARE_IN)
            print_equal(p, c->argument, c->mask, c->value[0]);
        else
            print_argument(p, c->argument, ops[c->compare], c->value[0], 0);
    }
    px_json_end(p->out);
}

static void print_verbatim(const struct printer *p, const struct group *g)
{
    const struct px_decision *d = &p->users->decision[g->users];

    for (uint32_t i = 0; i < d->count; i++) {
        const struct px_rule *rule = px_calls_rule(p->users, d, i);

        px_json_object(p->out, NULL);
        print_names(p, g, 0);
        print_action(p, "action", "errnoRet", rule->action);
        print_conditions(p, rule);
        px_json_end(p->out);
    }
}

static bool is_left_out(const struct printer *p, const struct px_part *part)
{
    return part->action == p->otherwise || (is_like_default(p, part->action) && part->region.count > REFUSALS_MAX);
}

static void print_part(const struct printer *p, const struct group *g, const struct px_part *part, const char *remark)
{
    for (size_t i = 0; i < part->region.count; i++) {
        px_json_object(p->out, NULL);
        print_names(p, g, 0);
        print_action(p, "action", "errnoRet", part->action);
        print_cube(p, &part->region.cube[i]);
        if (remark && i == 0)
            px_json_text(p->out, "comment", remark);
        px_json_end(p->out);
    }
}

static int print_group(const struct printer *p, const struct group *g)
{
    const char *remark = NULL;
    struct px_region_parts parts;

    find_parts(p, g, &parts);
    int err = parts.err;
    for (size_t i = 0; i < parts.count; i++)
        if (is_left_out(p, &parts.part[i]) && parts.part[i].action != p->otherwise)
            remark = "other arguments are refused by the default; px itself gives another errno";
    for (size_t i = 0; i < parts.count; i++)
        if (!is_left_out(p, &parts.part[i])) {
            print_part(p, g, &parts.part[i], remark);
            remark = NULL;
        }
    px_region_parts_done(&parts);
    return err;
}

/* One entry for all plain groups with the action of this one, when the first of them comes. */
static void print_plain(const struct printer *p, const struct group *g)
{
    for (const struct group *before = p->group; before < g; before++)
        if (before->plain && before->action == g->action)
            return;
    px_json_object(p->out, NULL);
    print_names(p, NULL, g->action);
    print_action(p, "action", "errnoRet", g->action);
    px_json_end(p->out);
}

static int print_entries(const struct printer *p)
{
    int err = 0;

    px_json_array(p->out, "syscalls");
    for (size_t i = 0; i < p->groups; i++)
        if (p->group[i].plain && p->group[i].action != p->otherwise)
            print_plain(p, &p->group[i]);
    for (size_t i = 0; i < p->groups && err == 0; i++)
        if (p->group[i].verbatim)
            print_verbatim(p, &p->group[i]);
        else if (!p->group[i].plain)
            err = print_group(p, &p->group[i]);
    px_json_end(p->out);
    return err;
}

static const char *title(enum px_filter filter, bool with_profile)
{
    if (with_profile)
        return "What the profile and px's floor allow together. Calls of another architecture kill the program.";
    if (filter == PX_FILTER_DEFAULT || filter == PX_FILTER_WORKSPACE)
        return "px's filter `default`. Calls of another architecture kill the program.";
    if (filter == PX_FILTER_STRICT || filter == PX_FILTER_STRICT_WORKSPACE)
        return "px's filter `strict`. Calls of another architecture kill the program.";
    return "px's floor: what no box may do. Calls of another architecture kill the program.";
}

static int print_all(const struct printer *p, enum px_filter filter, const char *name)
{
    px_json_object(p->out, name);
    px_json_text(p->out, "comment", title(filter, p->users != NULL));
    print_action(p, "defaultAction", "defaultErrnoRet", p->otherwise);
    px_json_array(p->out, "architectures");
    px_json_text(p->out, NULL, "SCMP_ARCH_X86_64");
    px_json_end(p->out);
    int err = print_entries(p);
    px_json_end(p->out);
    return err;
}

/* The action for calls that are not in the list, such as newer ones; a runtime's libseccomp may also be older than our
 * table. ENOSYS lets a C library fall back, but it must not replace an action that kills. */
static uint32_t default_action(const struct px_calls *users)
{
    return users ? users->decision[users->beyond].otherwise : SECCOMP_RET_ERRNO | ENOSYS;
}

int px_profile_print(enum px_filter filter, const struct px_profile *profile, struct px_json *out, const char *name,
                     struct px_err *e)
{
    struct printer *p = calloc(1, sizeof *p);
    int r = p ? px_builtin_calls(filter, &p->own) : -ENOMEM;

    if (r == 0) {
        p->out = out;
        p->users = profile ? px_profile_calls(profile) : NULL;
        p->otherwise = default_action(p->users);
        find_names(p);
        r = find_groups(p);
    }
    if (r == 0)
        r = print_all(p, filter, name);
    free(p);
    if (r < 0)
        return px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_LIMIT, r, "printing the system call filter");
    return 0;
}
