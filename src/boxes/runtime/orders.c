#include "runtime/orders.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "kernel/seccomp.h"
#include "plan/plan.h"
#include "runtime/kind.h"
#include "runtime/start.h"

enum { ALIGNMENT = 8, COUNTED_SPARE = 64 };

static uint32_t align(struct px_buf *out)
{
    while (out->err == 0 && out->len % ALIGNMENT)
        px_buf_putc(out, '\0');
    return (uint32_t)out->len;
}

static uint32_t add_text(struct px_buf *out, const char *text)
{
    uint32_t at = (uint32_t)out->len;
    px_buf_add(out, text, strlen(text) + 1);
    return at;
}

static uint32_t add_texts(struct px_buf *out, char *const list[], uint32_t *ret_count)
{
    uint32_t at = (uint32_t)out->len;
    for (*ret_count = 0; list[*ret_count]; ++*ret_count)
        add_text(out, list[*ret_count]);
    return at;
}

/* The kernel counts the processes of an id in a user namespace: px-start is one of them, unless the command has a namespace to
 * itself. */
static bool has_other_ids(const struct px_orders *given)
{
    return given->command_uid != given->uid || given->command_gid != given->gid;
}

/* Where a cgroup counts, its bound is met first. */
static uint64_t processes(uint64_t limit, const struct px_orders *given)
{
    return limit + (given->counted ? COUNTED_SPARE : has_other_ids(given) ? 0 : 1);
}

/* Limits on what a kernel of a runtime's own does not have, and so refuses to set. */
static bool unknown_there(uint32_t resource)
{
    return resource == RLIMIT_MSGQUEUE || resource == RLIMIT_SIGPENDING || resource == RLIMIT_NICE || resource == RLIMIT_RTPRIO;
}

static void add_limits(const struct px_plan *native, bool own_kernel, const struct px_orders *given, struct px_start_orders *o,
                       struct px_buf *out)
{
    o->limits = align(out);
    for (uint32_t i = 0; i < native->count; i++) {
        const struct px_step *s = &native->steps[i];
        struct px_start_limit limit = {.resource = s->attr, .soft = s->num, .hard = s->num2};
        if (s->op != PX_OP_RLIMIT || (s->attr == RLIMIT_AS && given->counted) || (own_kernel && unknown_there(s->attr)))
            continue;
        if (s->attr == RLIMIT_NPROC)
            limit.soft = limit.hard = processes(s->num, given);
        px_buf_add(out, &limit, sizeof limit);
        o->limits_count++;
    }
}

static void add_rules(const struct px_plan *native, struct px_start_orders *o, struct px_buf *out)
{
    struct px_start_rule rules[PX_STEPS_MAX];
    for (uint32_t i = 0; i < native->count; i++) {
        const struct px_step *s = &native->steps[i];
        if (s->op == PX_OP_LANDLOCK)
            o->landlock_abi = (uint32_t)s->num;
        if (s->op != PX_OP_ALLOW)
            continue;
        rules[o->rules_count++] = (struct px_start_rule){
            .rights = s->num, .path = add_text(out, px_plan_text(native, s->dst)), .maybe = s->flags & PX_STEP_MAYBE};
    }
    o->rules = align(out);
    px_buf_add(out, rules, o->rules_count * sizeof rules[0]);
}

/* A filter without a listener must not ask: no process would answer. */
static void answer_itself(struct sock_filter *code, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (code[i].code == (BPF_RET | BPF_K) && code[i].k == SECCOMP_RET_USER_NOTIF)
            code[i].k = SECCOMP_RET_ERRNO | EPERM;
}

static void add_filters(const struct px_plan *native, bool listen, struct px_start_orders *o, struct px_buf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < native->count && n < PX_START_FILTERS; i++) {
        const struct px_step *s = &native->steps[i];
        uint16_t length = (uint16_t)s->num2;
        if (s->op != PX_OP_SECCOMP)
            continue;
        const struct sock_filter *code = length ? (const void *)px_plan_text(native, s->src)
                                                : px_seccomp_program((enum px_filter)s->num, &length);
        struct px_start_filter *f = &o->filters[n++];
        *f = (struct px_start_filter){.code = align(out), .length = length, .listen = listen && s->flags & PX_STEP_LISTEN};
        px_buf_add(out, code, (size_t)length * sizeof *code);
        if (!f->listen && out->err == 0)
            answer_itself((struct sock_filter *)(void *)(out->data + f->code), length);
    }
}

static void add_texts_of(const struct px_plan *native, const struct px_runtime_kind *kind, struct px_start_orders *o,
                         struct px_buf *out)
{
    o->argv = add_texts(out, native->argv, &o->argv_count);
    o->envp = add_texts(out, native->envp, &o->envp_count);
    o->directories = add_texts(out, native->init_argv + 3, &o->directories_count);
    for (uint32_t i = 0; i < native->count; i++) {
        const struct px_step *s = &native->steps[i];
        if (s->op == PX_OP_CHDIR)
            o->workdir = add_text(out, px_plan_text(native, s->dst));
        if (s->op == PX_OP_TERMINAL)
            o->terminal = kind->socket ? PX_START_OWN_TERMINAL : PX_START_GIVEN_TERMINAL;
        if (s->op != PX_OP_EXEC)
            continue;
        const char *path = px_plan_text(native, s->src);
        o->candidates = (uint32_t)out->len;
        for (o->candidates_count = 0; o->candidates_count < s->num; o->candidates_count++) {
            add_text(out, path);
            path += strlen(path) + 1;
        }
    }
}

void px_orders_print(const struct px_plan *native, const struct px_runtime_kind *kind, const struct px_orders *given,
                     struct px_buf *out)
{
    struct px_start_orders o = {
        .socket = kind->socket, .uid = given->uid, .gid = given->gid, .rows = given->rows, .cols = given->cols,
        .other_ids = has_other_ids(given),
        .command_uid = given->command_uid, .command_gid = given->command_gid};
    px_buf_add(out, &o, sizeof o);      /* its place; filled at the end */
    add_texts_of(native, kind, &o, out);
    add_limits(native, kind->own_kernel, given, &o, out);
    if (!kind->own_kernel)
        add_rules(native, &o, out);
    add_filters(native, kind->socket, &o, out);
    o.size = (uint32_t)out->len;
    if (out->err == 0)
        memcpy(out->data, &o, sizeof o);
}
