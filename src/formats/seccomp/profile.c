#include "seccomp/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "kernel/sysname.h"
#include "seccomp/assemble.h"
#include "seccomp/builtin.h"
#include "seccomp/draft.h"

struct px_profile {
    struct px_draft draft;
    uint16_t *order;            /* of the rules of all decisions */
    size_t ordered;
    struct px_calls calls;
    struct sock_filter *code;
    uint16_t length;
};

static const uint32_t NO_SUCH_CALL = SECCOMP_RET_ERRNO | ENOSYS;

/* The calls that px makes between loading the filter and execve, or to report why execve failed. */
static const int needed[] = {SYS_execve, SYS_exit_group, SYS_rt_sigprocmask, SYS_futex, SYS_faccessat, SYS_clock_gettime};

static bool is_permissive(uint32_t action)
{
    return px_action_rank(action) >= px_action_rank(SECCOMP_RET_LOG);
}

static bool is_errno(uint32_t action)
{
    return px_action_rank(action) == px_action_rank(SECCOMP_RET_ERRNO);
}

void px_profile_free(struct px_profile *p)
{
    if (!p)
        return;
    px_draft_done(&p->draft);
    free(p->order);
    free(p->code);
    free(p);
}

void px_profile_freep(struct px_profile **p)
{
    px_profile_free(*p);
}

/* ---- decisions ---- */

/* The uses of all calls, sorted by number and then as in the file; start[n] is where those of number n begin. */
struct sorted {
    uint16_t *rule;
    size_t start[PX_CALLS_MAX + 1];
};

static int sort_uses(const struct px_draft *d, struct sorted *ret_sorted)
{
    size_t at[PX_CALLS_MAX + 1] = {0};

    ret_sorted->rule = calloc(d->uses + 1, sizeof *ret_sorted->rule);
    if (!ret_sorted->rule)
        return -ENOMEM;
    for (size_t i = 0; i < d->uses; i++)
        at[d->use[i].number + 1]++;
    for (size_t n = 1; n <= PX_CALLS_MAX; n++)
        at[n] += at[n - 1];
    memcpy(ret_sorted->start, at, sizeof at);
    for (size_t i = 0; i < d->uses; i++)
        ret_sorted->rule[at[d->use[i].number]++] = d->use[i].rule;
    return 0;
}

/* Sorts the rules about one call: the strictest first, equal ones in file order. */
static size_t order_rules(const struct px_draft *d, const uint16_t *rule, size_t count, uint16_t *out)
{
    static const uint32_t ranks[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
                                     SECCOMP_RET_ERRNO,        SECCOMP_RET_LOG,         SECCOMP_RET_ALLOW};
    size_t n = 0;

    for (size_t k = 0; k < PX_COUNT_OF(ranks); k++)
        for (size_t i = 0; i < count; i++)
            if (px_action_rank(d->rule[rule[i]].action) == px_action_rank(ranks[k]))
                out[n++] = rule[i];
    return n;
}

/* A rule without conditions ends the list. Rules just before it with the same action are dropped. */
static struct px_decision cut_decision(const struct px_profile *p, size_t count)
{
    const struct px_rule *rules = p->draft.rule;
    struct px_decision d = {.otherwise = p->draft.action, .first = (uint32_t)p->ordered};

    while (d.count < count && rules[p->order[d.first + d.count]].count > 0)
        d.count++;
    if (d.count < count)
        d.otherwise = rules[p->order[d.first + d.count]].action;
    while (d.count > 0 && rules[p->order[d.first + d.count - 1]].action == d.otherwise)
        d.count--;
    return d;
}

static uint16_t add_decision(struct px_profile *p, struct px_decision d)
{
    struct px_calls *calls = &p->calls;

    for (uint16_t i = 0; i < calls->decisions; i++) {
        const struct px_decision *old = &calls->decision[i];
        if (old->otherwise == d.otherwise && old->count == d.count &&
            memcmp(&p->order[old->first], &p->order[d.first], d.count * sizeof *p->order) == 0)
            return i;
    }
    calls->decision[calls->decisions] = d;
    p->ordered += d.count;
    return calls->decisions++;
}

/* libseccomp then drops the rules with conditions. */
static void warn_of_mixture(struct px_profile *p, uint16_t number, const uint16_t *rule, size_t count)
{
    const struct px_rule *rules = p->draft.rule;
    const struct px_rule *plain = NULL;
    bool differs = false;

    for (size_t i = 0; i < count; i++)
        if (rules[rule[i]].count == 0)
            plain = &rules[rule[i]];
    for (size_t i = 0; plain && i < count; i++)
        differs = differs || rules[rule[i]].action != plain->action;
    if (differs)
        px_draft_warn(&p->draft, "%s has a rule without conditions and others: where several hold, the strictest counts",
                      px_sysname_name(number));
}

static uint16_t decide(struct px_profile *p, uint16_t number, const struct sorted *sorted, int highest)
{
    const uint16_t *rule = &sorted->rule[sorted->start[number]];
    size_t count = sorted->start[number + 1] - sorted->start[number];
    bool newer = is_errno(p->draft.action) && highest >= 0 && number > highest;

    if (newer)
        return add_decision(p, (struct px_decision){.otherwise = NO_SUCH_CALL, .first = (uint32_t)p->ordered});
    warn_of_mixture(p, number, rule, count);
    return add_decision(p, cut_decision(p, order_rules(&p->draft, rule, count, &p->order[p->ordered])));
}

static int highest_named(const struct px_draft *d)
{
    int highest = -1;

    for (size_t i = 0; i < d->uses; i++)
        highest = d->use[i].number > highest ? d->use[i].number : highest;
    return highest;
}

/* How many numbers our own table decides about. */
static uint16_t known_numbers(void)
{
    uint32_t number;
    uint16_t numbers = 0;

    for (unsigned i = 0; px_builtin_row(i, &number); i++)
        numbers = number >= numbers ? (uint16_t)(number + 1) : numbers;
    return numbers;
}

static int decide_all(struct px_profile *p)
{
    struct sorted sorted;
    uint32_t action = p->draft.action;
    int highest = highest_named(&p->draft);

    if (sort_uses(&p->draft, &sorted) < 0)
        return -ENOMEM;
    p->order = calloc(p->draft.uses + 1, sizeof *p->order);
    if (p->order) {
        p->calls.numbers = known_numbers();
        for (uint16_t n = 0; n < p->calls.numbers; n++)
            p->calls.of[n] = decide(p, n, &sorted, highest);
        if (is_permissive(action) || is_errno(action))
            action = NO_SUCH_CALL;
        p->calls.beyond = add_decision(p, (struct px_decision){.otherwise = action, .first = (uint32_t)p->ordered});
        p->calls.rules = p->draft.rule;
        p->calls.order = p->order;
    }
    free(sorted.rule);
    return p->order ? 0 : -ENOMEM;
}

/* ---- the program ---- */

static bool is_always_permitted(const struct px_calls *calls, int number)
{
    const struct px_decision *d = &calls->decision[calls->of[number]];
    bool permitted = is_permissive(d->otherwise);

    for (uint32_t i = 0; i < d->count; i++)
        permitted = permitted && is_permissive(px_calls_rule(calls, d, i)->action);
    return permitted;
}

bool px_profile_permits(const struct px_profile *p, int number)
{
    return is_always_permitted(&p->calls, number);
}

static int check_needed(const struct px_profile *p, const char *name, struct px_err *e)
{
    px_auto_buf struct px_buf refused = PX_BUF(256);

    for (size_t i = 0; i < PX_COUNT_OF(needed); i++)
        if (!is_always_permitted(&p->calls, needed[i]))
            (void)px_buf_printf(&refused, "%s%s", refused.len ? ", " : "", px_sysname_name(needed[i]));
    if (refused.len == 0)
        return 0;
    px_fail(e, PX_E_PROFILE, 0, "profile '%s' refuses %s", name, px_buf_text(&refused));
    px_why(e, "The filter is loaded before the program starts, and px itself makes these calls to start it.");
    return px_fix(e, "Allow them without conditions: {\"names\": [...], \"action\": \"SCMP_ACT_ALLOW\"}.");
}

static int compile(struct px_profile *p, const char *name, struct px_err *e)
{
    int r = decide_all(p);

    p->code = r < 0 ? NULL : calloc(PX_PROGRAM_MAX, sizeof *p->code);
    if (!p->code)
        return px_no_memory(e);
    r = px_assemble(&p->calls, p->code, &p->length);
    if (r == -E2BIG) {
        px_fail(e, PX_E_PROFILE, 0, "profile '%s' has too many rules with conditions", name);
        px_why(e, "The kernel takes programs of at most %d instructions.", PX_PROGRAM_MAX);
        return px_fix(e, "Use fewer conditions: one rule with SCMP_CMP_MASKED_EQ often says what many with SCMP_CMP_EQ do.");
    }
    if (r < 0)
        return px_fail(e, PX_E_MEMORY, r, "reading profile '%s'", name);
    return check_needed(p, name, e);
}

/* ---- the file ---- */

int px_profile_parse(const char *text, size_t len, const char *name, struct px_profile **ret_profile, struct px_err *e)
{
    px_auto(px_profile) struct px_profile *p = calloc(1, sizeof *p);

    if (!p)
        return px_no_memory(e);
    if (px_draft_read(text, len, name, &p->draft, e) < 0 || compile(p, name, e) < 0)
        return -1;
    *ret_profile = px_take(&p);
    return 0;
}

/* Opens a regular file without blocking on a FIFO. -errno. */
static int open_file(const char *path)
{
    px_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    return st.st_size > PX_DRAFT_BYTES_MAX ? -EFBIG : px_fd_take(&fd);
}

int px_profile_read(const char *path, struct px_profile **ret_profile, struct px_err *e)
{
    px_auto_fd int fd = open_file(path);
    px_auto_free char *text = malloc(PX_DRAFT_BYTES_MAX + 2);

    if (!text)
        return px_no_memory(e);
    ssize_t len = fd < 0 ? fd : px_read_full(fd, text, PX_DRAFT_BYTES_MAX + 1);
    if (len < 0 || len > PX_DRAFT_BYTES_MAX) {
        px_fail(e, PX_E_PROFILE, len < 0 ? (int)len : EFBIG, "cannot read profile '%s'", path);
        return px_fix(e, "Give a regular file of at most 1 MiB, or one of the names default and strict.");
    }
    text[len] = '\0';
    return px_profile_parse(text, (size_t)len, path, ret_profile, e);
}

/* ---- what it is ---- */

const struct sock_filter *px_profile_program(const struct px_profile *p, uint16_t *ret_len)
{
    *ret_len = p->length;
    return p->code;
}

const struct px_calls *px_profile_calls(const struct px_profile *p)
{
    return &p->calls;
}

size_t px_profile_warnings(const struct px_profile *p)
{
    return p->draft.warnings;
}

const char *px_profile_warning(const struct px_profile *p, size_t index)
{
    return index < PX_DRAFT_WARNINGS_MAX ? p->draft.warning[index] : NULL;
}
