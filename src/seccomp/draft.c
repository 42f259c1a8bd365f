#include "seccomp/draft.h"

#include <errno.h>
#include <jansson.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "kernel/sysname.h"

enum { ERRNO_MAX = 4095, NOWHERE = -1 };

/* The place is kept for error messages: syscalls[entry].args[arg].member, syscalls[entry].group.member. */
struct reader {
    struct px_draft *draft;
    const char *name;
    int entry, arg;
    const char *group;
    struct px_err *e;
};

/* ---- the draft ---- */

void px_draft_done(struct px_draft *d)
{
    free(d->rule);
    free(d->use);
    for (size_t i = 0; i < PX_DRAFT_WARNINGS_MAX; i++)
        free(d->warning[i]);
    *d = (struct px_draft){0};
}

void px_draft_warn(struct px_draft *d, const char *fmt, ...)
{
    char words[512];
    struct px_buf text = PX_BUF(4 * sizeof words);
    va_list args;

    if (d->warnings++ >= PX_DRAFT_WARNINGS_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    (void)px_buf_quote(&text, words, strlen(words));
    d->warning[d->warnings - 1] = px_buf_take(&text);
}

/* Makes room for one more element; NULL without memory. */
static void *grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    size_t more = *room ? 2 * *room : 64;
    void *larger = realloc(array, more * size);
    if (larger)
        *room = more;
    return larger;
}

/* ---- errors ---- */

/* member NULL is the object itself. */
static void add_place(const struct reader *r, struct px_buf *out, const char *member)
{
    size_t start = out->len;

    if (r->entry != NOWHERE)
        (void)px_buf_printf(out, "syscalls[%d]", r->entry);
    if (r->arg != NOWHERE)
        (void)px_buf_printf(out, ".args[%d]", r->arg);
    if (r->group)
        (void)px_buf_printf(out, "%s%s", out->len > start ? "." : "", r->group);
    if (member)
        (void)px_buf_printf(out, "%s%s", out->len > start ? "." : "", member);
    else if (out->len == start)
        (void)px_buf_puts(out, "the profile");
}

/* "profile 'FILE': PLACE WORDS" */
static int wrong(const struct reader *r, const char *member, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int wrong(const struct reader *r, const char *member, const char *fmt, ...)
{
    px_auto_buf struct px_buf place = PX_BUF(256);
    char words[256];
    va_list args;

    add_place(r, &place, member);
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    (void)px_fail(r->e, PX_E_PROFILE, 0, "profile '%s': %s %s", r->name, px_buf_text(&place), words);
    return -1;
}

static int no_memory(const struct reader *r)
{
    return px_fail(r->e, PX_E_MEMORY, ENOMEM, "reading profile '%s'", r->name);
}

/* ---- members ---- */

/* NULL if it is not there; null counts as not there, as writers of the format leave it so. */
static json_t *member_of(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    return json_is_null(value) ? NULL : value;
}

/* A misspelt member would be a restriction lost: say so. */
static void warn_of_others(const struct reader *r, json_t *object, const char *const *known)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value) {
        px_auto_buf struct px_buf place = PX_BUF(512);
        const char *const *k = known;

        while (*k && strcmp(*k, name) != 0)
            k++;
        if (*k)
            continue;
        add_place(r, &place, name);
        px_draft_warn(r->draft, "%s is not a member that px uses", px_buf_text(&place));
    }
}

/* 1 if there, 0 if not. */
static int read_text(const struct reader *r, json_t *object, const char *name, const char **ret_text)
{
    json_t *value = member_of(object, name);

    if (!value)
        return 0;
    const char *text = json_string_value(value);
    if (!text)
        return wrong(r, name, "must be a text");
    *ret_text = text;
    return 1;
}

static int read_number(const struct reader *r, json_t *object, const char *name, uint64_t max, uint64_t *ret_value)
{
    json_t *value = member_of(object, name);

    if (!value)
        return 0;
    if (!json_is_integer(value))
        return wrong(r, name, "must be a whole number");
    uint64_t number = (uint64_t)json_integer_value(value);
    if (number > max)
        return wrong(r, name, "is %llu, more than %llu", (unsigned long long)number, (unsigned long long)max);
    *ret_value = number;
    return 1;
}

static int read_array(const struct reader *r, json_t *object, const char *name, json_t **ret_array)
{
    json_t *value = member_of(object, name);

    *ret_array = value;
    return value && !json_is_array(value) ? wrong(r, name, "must be a list") : value != NULL;
}

static int read_object(const struct reader *r, json_t *object, const char *name, json_t **ret_object)
{
    json_t *value = member_of(object, name);

    *ret_object = value;
    return value && !json_is_object(value) ? wrong(r, name, "must be an object") : value != NULL;
}

/* The i-th text of a list; NULL after an error. */
static const char *text_at(const struct reader *r, const char *name, json_t *array, size_t i)
{
    const char *text = json_string_value(json_array_get(array, i));
    char place[64];

    if (!text && px_fmt(place, sizeof place, "%s[%zu]", name, i) >= 0)
        (void)wrong(r, place, "must be a text");
    return text;
}

/* ---- words ---- */

struct word {
    const char *name;
    uint32_t value;
};

static const struct word *find_word(const struct word *words, const char *name)
{
    while (words->name && strcmp(words->name, name) != 0)
        words++;
    return words->name ? words : NULL;
}

static void list_words(struct px_buf *out, const struct word *words)
{
    for (const struct word *w = words; w->name; w++)
        (void)px_buf_printf(out, "%s%s", w == words ? "" : ", ", w->name);
}

/* The word's value, or -1 with an error that lists what there is. */
static int pick_word(const struct reader *r, const char *member, const struct word *words, const char *name,
                     uint32_t *ret_value)
{
    const struct word *word = find_word(words, name);
    px_auto_buf struct px_buf all = PX_BUF(700);

    if (word) {
        *ret_value = word->value;
        return 0;
    }
    (void)wrong(r, member, "is '%.60s', which is not a word px knows there", name);
    list_words(&all, words);
    return px_fix(r->e, "Use one of %s.", px_buf_text(&all));
}

static const struct word actions[] = {
    {"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
    {"SCMP_ACT_LOG", SECCOMP_RET_LOG},
    {"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO},
    {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
    {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
    {NULL, 0},
};

static const struct word compares[] = {
    {"SCMP_CMP_NE", PX_COMPARE_NE}, {"SCMP_CMP_LT", PX_COMPARE_LT}, {"SCMP_CMP_LE", PX_COMPARE_LE},
    {"SCMP_CMP_EQ", PX_COMPARE_IN}, {"SCMP_CMP_GE", PX_COMPARE_GE}, {"SCMP_CMP_GT", PX_COMPARE_GT},
    {"SCMP_CMP_MASKED_EQ", PX_COMPARE_IN},
    {NULL, 0},
};

static const struct word architectures[] = {
    {"SCMP_ARCH_X86_64", 0}, {"SCMP_ARCH_X86", 0}, {"SCMP_ARCH_X32", 0}, {"SCMP_ARCH_ARM", 0}, {"SCMP_ARCH_AARCH64", 0},
    {"SCMP_ARCH_LOONGARCH64", 0}, {"SCMP_ARCH_M68K", 0}, {"SCMP_ARCH_MIPS", 0}, {"SCMP_ARCH_MIPS64", 0},
    {"SCMP_ARCH_MIPS64N32", 0}, {"SCMP_ARCH_MIPSEL", 0}, {"SCMP_ARCH_MIPSEL64", 0}, {"SCMP_ARCH_MIPSEL64N32", 0},
    {"SCMP_ARCH_PARISC", 0}, {"SCMP_ARCH_PARISC64", 0}, {"SCMP_ARCH_PPC", 0}, {"SCMP_ARCH_PPC64", 0},
    {"SCMP_ARCH_PPC64LE", 0}, {"SCMP_ARCH_RISCV64", 0}, {"SCMP_ARCH_S390", 0}, {"SCMP_ARCH_S390X", 0}, {"SCMP_ARCH_SH", 0},
    {"SCMP_ARCH_SHEB", 0}, {"SCMP_ARCH_SPARC", 0}, {"SCMP_ARCH_SPARC64", 0},
    {NULL, 0},
};

/* ---- actions ---- */

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
static int read_errno(const struct reader *r, json_t *object, const char *number_name, const char *text_name,
                      uint64_t *ret_value)
{
    const char *text = NULL;
    int has_number = read_number(r, object, number_name, ERRNO_MAX, ret_value);
    int has_text = has_number < 0 ? -1 : read_text(r, object, text_name, &text);

    if (has_text < 0)
        return -1;
    if (has_number || !text || !*text)
        return has_number;
    *ret_value = errno_by_name(text);
    return *ret_value ? 1 : wrong(r, text_name, "is '%.40s', which is not an error px knows; write its number", text);
}

static int refuse_action(const struct reader *r, const char *member, const char *name)
{
    (void)wrong(r, member, "is %s, which needs a supervisor of the profile's own", name);
    (void)px_why(r->e, "In a box nobody could answer for it, and px tells of refused calls by itself.");
    return px_fix(r->e, "Use SCMP_ACT_ERRNO for what is to be refused and SCMP_ACT_LOG for what is to be watched.");
}

static int read_action(const struct reader *r, json_t *object, const char *member, const char *errno_member,
                       const char *errno_text_member, uint32_t *ret_action)
{
    const char *name = NULL;
    uint64_t number = EPERM;
    int r1 = read_text(r, object, member, &name);

    if (r1 <= 0)
        return r1 < 0 ? -1 : wrong(r, member, "is missing");
    if (strcmp(name, "SCMP_ACT_TRACE") == 0 || strcmp(name, "SCMP_ACT_NOTIFY") == 0)
        return refuse_action(r, member, name);
    if (pick_word(r, member, actions, name, ret_action) < 0)
        return -1;
    int has_errno = read_errno(r, object, errno_member, errno_text_member, &number);
    if (has_errno < 0)
        return -1;
    if (has_errno && *ret_action != SECCOMP_RET_ERRNO)
        return wrong(r, errno_member, "does not go with %s", name);
    if (*ret_action == SECCOMP_RET_ERRNO)
        *ret_action |= (uint32_t)number;
    return 0;
}

/* ---- conditions ---- */

static int read_condition(const struct reader *r, json_t *arg, struct px_condition *ret_condition)
{
    static const char *const known[] = {"index", "value", "valueTwo", "op", NULL};
    uint64_t index = 0, value = 0, value_two = 0;
    const char *op = NULL;
    uint32_t compare = 0;

    if (!json_is_object(arg))
        return wrong(r, NULL, "must be an object");
    int r1 = read_number(r, arg, "index", PX_ARGUMENTS - 1, &index);
    int r2 = r1 < 0 ? -1 : read_number(r, arg, "value", UINT64_MAX, &value);
    int r3 = r2 < 0 ? -1 : read_number(r, arg, "valueTwo", UINT64_MAX, &value_two);
    int r4 = r3 < 0 ? -1 : read_text(r, arg, "op", &op);
    if (r4 < 0)
        return -1;
    if (r1 == 0 || r2 == 0 || r4 == 0)
        return wrong(r, r1 == 0 ? "index" : r2 == 0 ? "value" : "op", "is missing");
    if (pick_word(r, "op", compares, op, &compare) < 0)
        return -1;
    warn_of_others(r, arg, known);
    bool masked = strcmp(op, "SCMP_CMP_MASKED_EQ") == 0;
    *ret_condition = (struct px_condition){
        .argument = (uint8_t)index, .compare = (uint8_t)compare, .count = 1,
        .mask = masked ? value : UINT64_MAX, .value = {masked ? value & value_two : value}};
    return 0;
}

/* Two conditions on one argument: runc and crun then take each condition for a rule of its own, because libseccomp cannot have
 * both in one, and so must we. */
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

static int add_rule(const struct reader *r, uint32_t action, const struct px_condition *conditions, size_t count)
{
    struct px_draft *d = r->draft;

    if (d->rules == PX_DRAFT_RULES_MAX)
        return wrong(r, NULL, "is one rule too many: px takes %d", PX_DRAFT_RULES_MAX);
    struct px_rule *larger = grow(d->rule, d->rules, &d->rules_room, sizeof *d->rule);
    if (!larger)
        return no_memory(r);
    d->rule = larger;
    struct px_rule *rule = &d->rule[d->rules];
    memset(rule, 0, sizeof *rule);
    rule->action = action;
    for (size_t i = 0; i < count; i++)
        if (conditions[i].compare != PX_COMPARE_IN || conditions[i].mask != 0)  /* else it always holds */
            rule->condition[rule->count++] = conditions[i];
    d->rules++;
    return 0;
}

enum { CONDITIONS_MAX = 64 };   /* of one entry; only PX_ARGUMENTS of them can be about different arguments */

/* The rules of one entry: one, or one for each condition. */
static int read_conditions(struct reader *r, json_t *entry, uint32_t action)
{
    struct px_condition conditions[CONDITIONS_MAX];
    json_t *args = NULL;

    if (read_array(r, entry, "args", &args) < 0)
        return -1;
    size_t count = json_array_size(args);
    if (count > CONDITIONS_MAX)
        return wrong(r, "args", "has %zu conditions, more than %d", count, CONDITIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        r->arg = (int)i;
        if (read_condition(r, json_array_get(args, i), &conditions[i]) < 0)
            return -1;
    }
    r->arg = NOWHERE;
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

static int add_uses(const struct reader *r, const char *name, size_t first_rule)
{
    struct px_draft *d = r->draft;
    int number = px_syscall_number(name);

    if (number < 0) {
        if (!is_elsewhere(name))
            px_draft_warn(d, "syscalls[%d] names '%.60s', a system call that px does not know: it stays refused", r->entry,
                          name);
        return 0;
    }
    for (size_t i = first_rule; i < d->rules; i++) {
        struct px_use *larger = grow(d->use, d->uses, &d->uses_room, sizeof *d->use);
        if (!larger)
            return no_memory(r);
        d->use = larger;
        d->use[d->uses++] = (struct px_use){.number = (uint16_t)number, .rule = (uint16_t)i};
    }
    return 0;
}

/* `names`, or the older `name`. */
static int read_names(const struct reader *r, json_t *entry, size_t first_rule)
{
    json_t *names = NULL;
    const char *name = NULL;
    int r1 = read_array(r, entry, "names", &names), r2 = r1 < 0 ? -1 : read_text(r, entry, "name", &name);

    if (r2 < 0)
        return -1;
    if (names && name)
        return wrong(r, NULL, "has both name and names");
    if (!names && !name)
        return wrong(r, "names", "is missing");
    if (name)
        return add_uses(r, name, first_rule);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *text = text_at(r, "names", names, i);
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

/* What a condition on the host says of this one: whether a list was given, and whether this host is in it. */
struct fit {
    bool asks_arch, has_arch, asks_caps, asks_kernel, has_kernel;
};

static int read_fit(const struct reader *r, json_t *object, struct fit *ret_fit)
{
    static const char *const known[] = {"arches", "caps", "minKernel", NULL};
    json_t *arches = NULL, *caps = NULL;
    const char *kernel = NULL, *rest = "";
    struct fit fit = {0};

    warn_of_others(r, object, known);
    if (read_array(r, object, "arches", &arches) < 0 || read_array(r, object, "caps", &caps) < 0 ||
        read_text(r, object, "minKernel", &kernel) < 0)
        return -1;
    fit.asks_arch = json_array_size(arches) > 0;
    for (size_t i = 0; i < json_array_size(arches); i++) {
        const char *arch = text_at(r, "arches", arches, i);
        if (!arch)
            return -1;
        fit.has_arch = fit.has_arch || strcmp(arch, "amd64") == 0 || strcmp(arch, "x86_64") == 0;
    }
    fit.asks_caps = json_array_size(caps) > 0;
    for (size_t i = 0; i < json_array_size(caps); i++)
        if (!text_at(r, "caps", caps, i))
            return -1;
    if (kernel && *kernel) {
        uint32_t version = parse_version(kernel, &rest);
        if (version == 0 || *rest)
            return wrong(r, "minKernel", "is '%.40s', not a version such as 5.12", kernel);
        fit.asks_kernel = true;
        fit.has_kernel = kernel_is_at_least(version);
    }
    *ret_fit = fit;
    return 0;
}

static int read_group(const struct reader *r, json_t *entry, const char *name, struct fit *ret_fit)
{
    struct reader inner = *r;
    json_t *object = NULL;

    if (read_object(r, entry, name, &object) < 0)
        return -1;
    inner.group = name;
    return object ? read_fit(&inner, object, ret_fit) : 0;
}

/* 1 if the entry is meant for this host and a box, 0 if not. A box has no capabilities. */
static int is_meant(const struct reader *r, json_t *entry)
{
    struct fit in = {0}, out = {0};

    if (read_group(r, entry, "includes", &in) < 0 || read_group(r, entry, "excludes", &out) < 0)
        return -1;
    if (out.has_arch || out.has_kernel || in.asks_caps)
        return 0;
    return !(in.asks_arch && !in.has_arch) && !(in.asks_kernel && !in.has_kernel);
}

/* ---- the whole ---- */

static int read_entry(struct reader *r, json_t *entry)
{
    static const char *const known[] = {"names",    "name",     "action",  "errnoRet", "errno", "args",
                                        "includes", "excludes", "comment", NULL};
    size_t first_rule = r->draft->rules, uses = r->draft->uses;
    uint32_t action = 0;

    if (!json_is_object(entry))
        return wrong(r, NULL, "must be an object");
    warn_of_others(r, entry, known);
    if (read_action(r, entry, "action", "errnoRet", "errno", &action) < 0 || read_conditions(r, entry, action) < 0 ||
        read_names(r, entry, first_rule) < 0)
        return -1;
    int meant = is_meant(r, entry);
    if (meant == 0) {           /* checked, and left out */
        r->draft->rules = first_rule;
        r->draft->uses = uses;
    }
    return meant < 0 ? -1 : 0;
}

static int read_entries(struct reader *r, json_t *top)
{
    json_t *entries = NULL;

    if (read_array(r, top, "syscalls", &entries) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        r->entry = (int)i;
        if (read_entry(r, json_array_get(entries, i)) < 0)
            return -1;
    }
    r->entry = NOWHERE;
    return 0;
}

static int check_architectures(const struct reader *r, const char *member, json_t *array)
{
    uint32_t ignored;
    char place[64];

    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *name = text_at(r, member, array, i);
        if (!name || px_fmt(place, sizeof place, "%s[%zu]", member, i) < 0 ||
            pick_word(r, place, architectures, name, &ignored) < 0)
            return -1;
    }
    return 0;
}

static int check_map_row(const struct reader *r, json_t *row)
{
    json_t *below = NULL;
    const char *name = NULL;
    uint32_t ignored;

    if (!json_is_object(row))
        return wrong(r, NULL, "must be an object");
    if (read_text(r, row, "architecture", &name) < 0 || read_array(r, row, "subArchitectures", &below) < 0)
        return -1;
    if (!name)
        return wrong(r, "architecture", "is missing");
    if (pick_word(r, "architecture", architectures, name, &ignored) < 0)
        return -1;
    return check_architectures(r, "subArchitectures", below);
}

static int check_map(const struct reader *r, json_t *map)
{
    struct reader inner = *r;
    char place[32];

    inner.group = place;
    for (size_t i = 0; i < json_array_size(map); i++)
        if (px_fmt(place, sizeof place, "archMap[%zu]", i) < 0 || check_map_row(&inner, json_array_get(map, i)) < 0)
            return -1;
    return 0;
}

/* They are checked and mean nothing more: whatever they say, calls of another architecture end the program. */
static int read_architectures(const struct reader *r, json_t *top)
{
    json_t *list = NULL, *map = NULL;

    if (read_array(r, top, "architectures", &list) < 0 || read_array(r, top, "archMap", &map) < 0)
        return -1;
    if (json_array_size(list) > 0 && json_array_size(map) > 0)
        return wrong(r, NULL, "has both architectures and archMap");
    return check_architectures(r, "architectures", list) < 0 ? -1 : check_map(r, map);
}

static int read_top(struct reader *r, json_t *top)
{
    static const char *const known[] = {"defaultAction", "defaultErrnoRet", "defaultErrno", "architectures", "archMap",
                                        "syscalls", "comment", NULL};

    if (!json_is_object(top))
        return wrong(r, NULL, "must be an object");
    warn_of_others(r, top, known);
    if (read_action(r, top, "defaultAction", "defaultErrnoRet", "defaultErrno", &r->draft->action) < 0 ||
        read_architectures(r, top) < 0)
        return -1;
    return read_entries(r, top);
}

/* ---- numbers that the JSON library cannot hold ---- */

static int negative(const struct reader *r, const char *text, size_t at)
{
    size_t line = 1, start = 0;

    for (size_t i = 0; i < at; i++)
        if (text[i] == '\n') {
            line++;
            start = i + 1;
        }
    return px_fail(r->e, PX_E_PROFILE, 0, "profile '%s', line %zu, column %zu: no number of a profile is negative", r->name,
                   line, at - start + 1);
}

/* Its numbers have 63 bits and a sign. A number of 64 bits is handed over as the negative one with the same bits, which
 * read_number takes back; so no number of the file may be negative. */
static void add_number(struct px_buf *out, const char *text, size_t len)
{
    char digits[24];
    uint64_t value = 0;

    if (len < sizeof digits) {
        memcpy(digits, text, len);
        digits[len] = '\0';
        if (px_parse_u64(digits, UINT64_MAX, &value) == 0 && value > INT64_MAX) {
            (void)px_buf_printf(out, "%lld", (long long)value);
            return;
        }
    }
    (void)px_buf_add(out, text, len);
}

static size_t string_end(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        if (text[at] == '\\')
            at++;
    return at < len ? at + 1 : len;
}

static int fold_numbers(const struct reader *r, const char *text, size_t len, struct px_buf *out)
{
    size_t at = 0, copied = 0;

    while (at < len) {
        if (text[at] == '-')
            return negative(r, text, at);
        if (text[at] == '"') {
            at = string_end(text, len, at);
            continue;
        }
        size_t number = strchr("0123456789", text[at]) ? strspn(text + at, "0123456789.eE+-") : 0;
        if (number == 0) {
            at++;
            continue;
        }
        (void)px_buf_add(out, text + copied, at - copied);
        add_number(out, text + at, number);
        at += number;
        copied = at;
    }
    (void)px_buf_add(out, text + copied, len - copied);
    return 0;
}

int px_draft_read(const char *text, size_t len, const char *name, struct px_draft *ret_draft, struct px_err *e)
{
    struct reader r = {.draft = ret_draft, .name = name, .entry = NOWHERE, .arg = NOWHERE, .e = e};
    px_auto_buf struct px_buf folded = PX_BUF((size_t)2 * PX_DRAFT_BYTES_MAX);
    json_error_t error;

    *ret_draft = (struct px_draft){0};
    if (len > PX_DRAFT_BYTES_MAX)
        return px_fail(e, PX_E_PROFILE, 0, "profile '%s' is larger than %d bytes", name, PX_DRAFT_BYTES_MAX);
    if (fold_numbers(&r, text, len, &folded) < 0)
        return -1;
    if (folded.err < 0)
        return no_memory(&r);
    json_t *top = json_loadb(px_buf_text(&folded), folded.len, JSON_REJECT_DUPLICATES, &error);
    if (!top)
        return px_fail(e, PX_E_PROFILE, 0, "profile '%s', line %d, column %d: %s", name, error.line, error.column, error.text);
    int answer = read_top(&r, top);
    json_decref(top);
    if (answer < 0)
        px_draft_done(ret_draft);
    return answer;
}
