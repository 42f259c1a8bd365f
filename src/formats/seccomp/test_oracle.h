/* seccomp/test_oracle.h - two independent readings of a profile: a plain interpreter, and libseccomp.
 *
 * Why:     the compiler and the printer are compared with code that shares nothing with them.
 * Owns:    what struct oracle holds, until oracle_done.
 * Mustn't: be linked into the product, or use the tables in data/: names are libseccomp's. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "harness/bpf.h"
#include "harness/test.h"

enum { ORACLE_CALLS = 512, ORACLE_HIGHEST = 467, ORACLE_RULES = 5000, ORACLE_ARGS = 8 };

struct oracle_condition {
    unsigned index;
    enum scmp_compare op;
    uint64_t value, value_two;
};

struct oracle_rule {
    bool about[ORACLE_CALLS];
    uint32_t action;
    unsigned conditions;
    bool any;                   /* any one condition suffices: two are about the same argument */
    struct oracle_condition condition[ORACLE_ARGS];
};

struct oracle {
    uint32_t otherwise;
    int highest;                /* of the calls that are named; -1: none */
    struct oracle_rule *rule;
    size_t rules;
    bool overlap;               /* rules about one call may have different actions and hold together */
    struct sock_filter *code;   /* libseccomp's program */
    uint32_t length;
};

/* ---- reading ---- */

static inline uint32_t oracle_action(const char *name, const json_t *number)
{
    static const struct {
        const char *name;
        uint32_t action;
    } words[] = {
        {"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},       {"SCMP_ACT_LOG", SECCOMP_RET_LOG},
        {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},         {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
        {"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD}, {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].name, name) == 0)
            return words[i].action;
    ASSERT_STR(name, "SCMP_ACT_ERRNO");
    return SECCOMP_RET_ERRNO | (number ? (uint32_t)json_integer_value(number) : EPERM);
}

static inline enum scmp_compare oracle_compare(const char *name)
{
    static const char *const names[] = {"", "NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"};

    for (int i = 1; i < 8; i++)
        if (strcmp(name + strlen("SCMP_CMP_"), names[i]) == 0)
            return (enum scmp_compare)i;
    FAIL("%s is no comparison", name);
}

static inline bool oracle_lists(const json_t *object, const char *member, const char *word)
{
    size_t i;
    json_t *text;

    json_array_foreach(json_object_get(object, member), i, text)
        if (strcmp(json_string_value(text), word) == 0)
            return true;
    return false;
}

/* For this architecture, without capabilities. Every minKernel in the samples is either met or impossibly high. */
static inline bool oracle_applies(const json_t *entry)
{
    const json_t *in = json_object_get(entry, "includes"), *out = json_object_get(entry, "excludes");
    const char *kernel = json_string_value(json_object_get(in, "minKernel"));

    if (oracle_lists(out, "arches", "amd64") || json_array_size(json_object_get(in, "caps")) > 0)
        return false;
    if (json_array_size(json_object_get(in, "arches")) > 0 && !oracle_lists(in, "arches", "amd64"))
        return false;
    return !kernel || strcmp(kernel, "900.1") != 0;
}

static inline void oracle_read_conditions(struct oracle_rule *rule, const json_t *entry)
{
    unsigned seen = 0;
    size_t i;
    json_t *arg;

    json_array_foreach(json_object_get(entry, "args"), i, arg) {
        struct oracle_condition *c = &rule->condition[rule->conditions++];
        const json_t *two = json_object_get(arg, "valueTwo");

        ASSERT(rule->conditions <= ORACLE_ARGS);
        c->index = (unsigned)json_integer_value(json_object_get(arg, "index"));
        c->op = oracle_compare(json_string_value(json_object_get(arg, "op")));
        c->value = strtoull(json_string_value(json_object_get(arg, "value")), NULL, 10);
        c->value_two = two ? strtoull(json_string_value(two), NULL, 10) : 0;
        rule->any = rule->any || seen >> c->index & 1;
        seen |= 1u << c->index;
    }
}

static inline void oracle_read_rule(struct oracle *o, const json_t *entry)
{
    struct oracle_rule *rule = &o->rule[o->rules];
    size_t i;
    json_t *name;

    if (!oracle_applies(entry))
        return;
    o->rules++;
    rule->action = oracle_action(json_string_value(json_object_get(entry, "action")), json_object_get(entry, "errnoRet"));
    json_array_foreach(json_object_get(entry, "names"), i, name) {
        int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, json_string_value(name));
        if (number < 0 || number >= ORACLE_CALLS)
            continue;
        rule->about[number] = true;
        o->highest = number > o->highest ? number : o->highest;
    }
    oracle_read_conditions(rule, entry);
}

/* Numbers of 64 bits do not fit the library's; as texts they do. */
static inline json_t *oracle_load(const char *text)
{
    char *quoted = calloc(2, strlen(text) + 1), *out = quoted;
    json_error_t error;
    bool value = false;

    ASSERT(quoted != NULL);
    while (*text) {
        if (strncmp(text, "\"value", 6) == 0)
            value = true;
        size_t digits = value ? strspn(text, "0123456789") : 0;
        if (digits == 0) {
            *out++ = *text++;
            continue;
        }
        *out++ = '"';
        memcpy(out, text, digits);
        out += digits;
        *out++ = '"';
        text += digits;
        value = false;
    }
    json_t *document = json_loads(quoted, 0, &error);
    free(quoted);
    if (!document)
        FAIL("line %d, column %d: %s", error.line, error.column, error.text);
    return document;
}

/* ---- libseccomp, as runc and crun use it ---- */

/* Whether libseccomp can be asked about a call. 2.5.4 is wrong, or never returns, where one of several rules about it
 * compares by order: [a1 <= 1] or [a1 < 0x100000001] does not let 0x4000001 through. It is right for one rule or any
 * number of equalities; but where rules with different actions overlap, its answer depends on their order. */
static inline bool oracle_is_reliable(const struct oracle *o, int number)
{
    uint32_t action = 0;
    unsigned alternatives = 0;
    bool ordered = false, mixed = false;

    for (size_t i = 0; i < o->rules; i++) {
        const struct oracle_rule *rule = &o->rule[i];
        if (!rule->about[number])
            continue;
        mixed = mixed || (alternatives > 0 && rule->action != action);
        action = rule->action;
        alternatives += rule->any ? rule->conditions : 1;
        for (unsigned k = 0; k < rule->conditions; k++)
            ordered = ordered || (rule->condition[k].op != SCMP_CMP_EQ && rule->condition[k].op != SCMP_CMP_MASKED_EQ);
    }
    return !(ordered && alternatives > 1) && !(o->overlap && mixed);
}

static inline void oracle_add(scmp_filter_ctx ctx, const struct oracle_rule *rule, int number)
{
    struct scmp_arg_cmp compare[ORACLE_ARGS];
    int r = 0;

    for (unsigned i = 0; i < rule->conditions; i++)
        compare[i] = (struct scmp_arg_cmp){.arg = rule->condition[i].index,
                                           .op = rule->condition[i].op,
                                           .datum_a = rule->condition[i].value,
                                           .datum_b = rule->condition[i].value_two};
    if (!rule->any)
        r = seccomp_rule_add_array(ctx, rule->action, number, rule->conditions, compare);
    for (unsigned i = 0; rule->any && i < rule->conditions && r == 0; i++)
        r = seccomp_rule_add_array(ctx, rule->action, number, 1, &compare[i]);
    if (r < 0 && r != -EEXIST)
        FAIL("libseccomp refuses a rule about call %d: %d", number, r);
}

static inline void oracle_export(struct oracle *o, scmp_filter_ctx ctx)
{
    int fd = memfd_create("filter", MFD_CLOEXEC);

    ASSERT(fd >= 0);
    ASSERT_OK(seccomp_export_bpf(ctx, fd));
    off_t size = lseek(fd, 0, SEEK_END);
    o->code = malloc((size_t)size);
    ASSERT(o->code && pread(fd, o->code, (size_t)size, 0) == size);
    o->length = (uint32_t)((size_t)size / sizeof *o->code);
    (void)close(fd);
}

static inline void oracle_compile(struct oracle *o)
{
    scmp_filter_ctx ctx = seccomp_init(o->otherwise);

    ASSERT(ctx != NULL);
    for (int n = 0; n < ORACLE_CALLS; n++)
        for (size_t i = 0; i < o->rules && oracle_is_reliable(o, n); i++)
            if (o->rule[i].about[n] && o->rule[i].action != o->otherwise)
                oracle_add(ctx, &o->rule[i], n);
    oracle_export(o, ctx);
    seccomp_release(ctx);
}

static inline void oracle_init(struct oracle *o, const char *text, bool overlap)
{
    json_t *document = oracle_load(text), *entry;
    size_t i;

    *o = (struct oracle){.highest = -1, .overlap = overlap, .rule = calloc(ORACLE_RULES, sizeof *o->rule)};
    ASSERT(o->rule != NULL);
    o->otherwise = oracle_action(json_string_value(json_object_get(document, "defaultAction")),
                                 json_object_get(document, "defaultErrnoRet"));
    json_array_foreach(json_object_get(document, "syscalls"), i, entry) {
        ASSERT(o->rules < ORACLE_RULES);
        oracle_read_rule(o, entry);
    }
    json_decref(document);
    oracle_compile(o);
}

static inline void oracle_done(struct oracle *o)
{
    free(o->rule);
    free(o->code);
}

/* ---- verdicts ---- */

static inline int32_t oracle_rank(uint32_t action)
{
    return (int32_t)(action & SECCOMP_RET_ACTION_FULL);
}

static inline bool oracle_allows(uint32_t action)
{
    return oracle_rank(action) >= oracle_rank(SECCOMP_RET_LOG);
}

static inline bool oracle_holds(const struct oracle_condition *c, const struct seccomp_data *data)
{
    uint64_t a = data->args[c->index];

    switch (c->op) {
    case SCMP_CMP_NE:
        return a != c->value;
    case SCMP_CMP_LT:
        return a < c->value;
    case SCMP_CMP_LE:
        return a <= c->value;
    case SCMP_CMP_EQ:
        return a == c->value;
    case SCMP_CMP_GE:
        return a >= c->value;
    case SCMP_CMP_GT:
        return a > c->value;
    default:
        return (a & c->value) == (c->value_two & c->value);
    }
}

static inline bool oracle_fits(const struct oracle_rule *rule, const struct seccomp_data *data)
{
    unsigned held = 0;

    for (unsigned i = 0; i < rule->conditions; i++)
        held += oracle_holds(&rule->condition[i], data);
    return rule->any ? held > 0 : held == rule->conditions;
}

/* The strictest rule that fits; of equally strict ones the first. */
static inline uint32_t oracle_verdict(const struct oracle *o, const struct seccomp_data *data)
{
    bool by_errno = oracle_rank(o->otherwise) == oracle_rank(SECCOMP_RET_ERRNO);
    const struct oracle_rule *best = NULL;

    if (data->arch != AUDIT_ARCH_X86_64)
        return SECCOMP_RET_KILL_PROCESS;
    if (data->nr < 0 || data->nr > ORACLE_HIGHEST)
        return by_errno || oracle_allows(o->otherwise) ? SECCOMP_RET_ERRNO | ENOSYS : o->otherwise;
    for (size_t i = 0; i < o->rules; i++)
        if (o->rule[i].about[data->nr] && oracle_fits(&o->rule[i], data) &&
            (!best || oracle_rank(o->rule[i].action) < oracle_rank(best->action)))
            best = &o->rule[i];
    if (best)
        return best->action;
    return by_errno && o->highest >= 0 && data->nr > o->highest ? SECCOMP_RET_ERRNO | ENOSYS : o->otherwise;
}

/* ---- values to try ---- */

/* A fixed seed: the same values in every run. */
static inline uint64_t oracle_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A value near one that a rule about this call compares this argument with. */
static inline uint64_t oracle_value(const struct oracle *o, int number, unsigned argument, uint64_t *state)
{
    static const uint64_t garbage[] = {0, 0, 0, 1, 0x80000000, 0xffffffff, 0xdeadbeef};
    uint64_t r = oracle_random(state), value = r % 3 ? 0 : oracle_random(state), seen = 0;

    for (size_t i = 0; i < o->rules; i++)
        for (unsigned k = 0; o->rule[i].about[number] && k < o->rule[i].conditions; k++) {
            const struct oracle_condition *c = &o->rule[i].condition[k];
            if (c->index == argument && oracle_random(state) % ++seen == 0)
                value = c->op == SCMP_CMP_MASKED_EQ && r & 64 ? c->value_two : c->value;
        }
    switch (r >> 8 & 7) {
    case 0:
        return value + 1;
    case 1:
        return value - 1;
    case 2:
        return value ^ (uint64_t)1 << (r >> 16 & 63);
    case 3:
        return (uint32_t)value | garbage[(r >> 16) % 7] << 32;
    case 4:
        return value | oracle_random(state);
    default:
        return value;
    }
}

static inline struct seccomp_data oracle_call(const struct oracle *o, int number, uint64_t *state)
{
    struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = oracle_random(state)};

    for (unsigned i = 0; i < 6; i++)
        data.args[i] = oracle_value(o, number, i, state);
    return data;
}

/* ---- random profiles ---- */

#define ORACLE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What px itself needs, so that a profile is accepted. */
#define ORACLE_STARTS                                                                               \
    "{'names': ['execve', 'exit_group', 'rt_sigprocmask', 'futex', 'faccessat', 'clock_gettime'],"  \
    " 'action': 'SCMP_ACT_ALLOW'}"

/* JSON is written with single quotes here, which C leaves readable. */
static inline void oracle_quote(struct px_buf *text)
{
    ASSERT_OK(text->err);
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] == '\'')
            text->data[i] = '"';
}

static const char *const oracle_names[] = {
    "read",   "write",    "mmap",  "ioctl",  "socket", "clone",  "prctl",     "statx",        "lseek", "splice", "sendto",
    "setns",  "keyctl",   "kill",  "mremap", "select", "ptrace", "renameat2", "finit_module", "fcntl", "pwrite64",
};

static inline uint64_t oracle_edge(uint64_t *state)
{
    static const uint64_t values[] = {0, 1, 2, 3, 7, 40, 0x5412, 0x7e020000, 0xffffffff, 0x100000000, 0x100000001,
                                      0xffffffff00000000, 0x8000000000000000, 0xffffffffffffffff};
    uint64_t r = oracle_random(state);

    return r % 4 == 0 ? oracle_random(state) >> (r >> 8 & 63) : values[(r >> 16) % ORACLE_COUNT(values)];
}

static inline void oracle_add_conditions(struct px_buf *out, unsigned max, uint64_t *state)
{
    static const char *const ops[] = {"NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"};
    unsigned count = oracle_random(state) % (max + 1), first = (unsigned)(oracle_random(state) % 6);

    px_buf_puts(out, "'args': [");
    for (unsigned i = 0; i < count; i++) {
        unsigned index = oracle_random(state) % 24 == 0 ? first : (first + i) % 6;      /* rarely the same one twice */
        px_buf_printf(out, "%s{'index': %u, 'value': %llu, 'valueTwo': %llu, 'op': 'SCMP_CMP_%s'}", i ? ", " : "",
                      index, (unsigned long long)oracle_edge(state), (unsigned long long)oracle_edge(state),
                      ops[oracle_random(state) % ORACLE_COUNT(ops)]);
    }
    px_buf_puts(out, "]");
}

/* A random profile with at most `entries_max` entries of at most `conditions_max` conditions. */
static inline void oracle_profile(struct px_buf *out, unsigned entries_max, unsigned conditions_max, uint64_t *state)
{
    static const char *const actions[] = {"ALLOW", "ERRNO", "KILL", "KILL_PROCESS", "TRAP", "LOG", "ALLOW", "ERRNO"};
    unsigned entries = 1 + oracle_random(state) % entries_max;
    bool one_action = oracle_random(state) % 4 != 0;
    const char *action = actions[oracle_random(state) % ORACLE_COUNT(actions)];

    px_buf_printf(out, "{'defaultAction': 'SCMP_ACT_%s', 'syscalls': [" ORACLE_STARTS,
                  actions[oracle_random(state) % ORACLE_COUNT(actions)]);
    for (unsigned i = 0; i < entries; i++) {
        unsigned names = 1 + oracle_random(state) % 3;
        px_buf_printf(out, ", {'action': 'SCMP_ACT_%s', 'names': [",
                      one_action ? action : actions[oracle_random(state) % ORACLE_COUNT(actions)]);
        for (unsigned k = 0; k < names; k++)
            px_buf_printf(out, "%s'%s'", k ? ", " : "", oracle_names[oracle_random(state) % ORACLE_COUNT(oracle_names)]);
        px_buf_puts(out, "], ");
        oracle_add_conditions(out, conditions_max, state);
        px_buf_puts(out, "}");
    }
    px_buf_puts(out, "]}");
    oracle_quote(out);
}
