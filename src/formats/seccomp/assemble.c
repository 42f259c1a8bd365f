#include "seccomp/assemble.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "seccomp/rules.h"

enum {
    NEXT = -1,                  /* in place of a label: the instruction that follows */
    LABELS_MAX = 3 * PX_PROGRAM_MAX,
    REACH = UINT8_MAX,          /* of a conditional jump, in instructions */
};

/* An instruction whose jumps have labels as targets. If a target is out of reach, a long jump is placed after the
 * instruction. */
struct step {
    uint16_t code;
    uint32_t k;
    int if_true, if_false;
    bool far_true, far_false;
    int at;                     /* in the final program */
};

struct work {
    const struct px_calls *calls;
    struct step step[PX_PROGRAM_MAX];
    int steps;
    int label_at[LABELS_MAX];   /* the step a label stands before; the first labels are those of the decisions */
    int labels;
    struct {
        uint32_t action;
        int label;
    } answer[PX_PROGRAM_MAX];
    int answers;
    /* Numbers first..(first of the next run - 1) lead to the same label. The last run has no end. */
    struct run {
        uint32_t first;
        int target;
    } run[PX_CALLS_MAX + 1];
    int runs;
    int err;                    /* the first failure; nothing is added after it */
};

/* ---- steps and labels ---- */

static void emit(struct work *w, uint16_t code, uint32_t k, int if_true, int if_false)
{
    if (w->steps == PX_PROGRAM_MAX)
        w->err = -E2BIG;
    if (w->err < 0)
        return;
    w->step[w->steps++] = (struct step){.code = code, .k = k, .if_true = if_true, .if_false = if_false};
}

static int new_label(struct work *w)
{
    if (w->labels == LABELS_MAX) {
        w->err = -E2BIG;
        return 0;
    }
    w->label_at[w->labels] = NEXT;
    return w->labels++;
}

static void place(struct work *w, int label)
{
    w->label_at[label] = w->steps;
}

static void emit_load(struct work *w, size_t offset)
{
    emit(w, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, NEXT, NEXT);
}

static void emit_jump(struct work *w, uint16_t op, uint32_t value, int if_true, int if_false)
{
    emit(w, BPF_JMP | op | BPF_K, value, if_true, if_false);
}

/* x86-64 is little-endian: the low half comes first. */
static void emit_argument(struct work *w, unsigned argument, bool high)
{
    emit_load(w, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) + (high ? sizeof(uint32_t) : 0));
}

/* The label of the BPF_RET with this action; it is placed at the end. */
static int answer(struct work *w, uint32_t action)
{
    for (int i = 0; i < w->answers; i++)
        if (w->answer[i].action == action)
            return w->answer[i].label;
    if (w->answers == PX_PROGRAM_MAX) {
        w->err = -E2BIG;
        return 0;
    }
    int label = new_label(w);
    w->answer[w->answers].action = action;
    w->answer[w->answers++].label = label;
    return label;
}

/* ---- one condition ---- */

/* The accumulator holds a half of an argument. */
static void emit_half_is(struct work *w, uint32_t mask, uint32_t value, int yes, int no)
{
    if (mask != UINT32_MAX && value == 0) {
        emit_jump(w, BPF_JSET, mask, no, yes);
        return;
    }
    if (mask != UINT32_MAX)
        emit(w, BPF_ALU | BPF_AND | BPF_K, mask, NEXT, NEXT);
    emit_jump(w, BPF_JEQ, value, yes, no);
}

static void emit_any_of(struct work *w, const struct px_condition *c, int yes, int no)
{
    if ((uint32_t)c->mask != UINT32_MAX)
        emit(w, BPF_ALU | BPF_AND | BPF_K, (uint32_t)c->mask, NEXT, NEXT);
    for (unsigned i = 0; i < c->count; i++)
        emit_jump(w, BPF_JEQ, (uint32_t)c->value[i], yes, i + 1u < c->count ? NEXT : no);
}

static void emit_in(struct work *w, const struct px_condition *c, int yes, int no)
{
    uint32_t high = (uint32_t)(c->mask >> 32), low = (uint32_t)c->mask;

    if (high != 0) {
        emit_argument(w, c->argument, true);
        emit_half_is(w, high, (uint32_t)(c->value[0] >> 32), low != 0 ? NEXT : yes, no);
    }
    if (low == 0 && high != 0)
        return;
    emit_argument(w, c->argument, false);
    if (c->count == 1)
        emit_half_is(w, low, (uint32_t)c->value[0], yes, no);
    else
        emit_any_of(w, c, yes, no);
}

/* Greater than the value; or equal as well, if op is BPF_JGE. */
static void emit_above(struct work *w, const struct px_condition *c, uint16_t op, int yes, int no)
{
    uint32_t high = (uint32_t)(c->value[0] >> 32);

    emit_argument(w, c->argument, true);
    emit_jump(w, BPF_JGT, high, yes, NEXT);
    emit_jump(w, BPF_JEQ, high, NEXT, no);
    emit_argument(w, c->argument, false);
    emit_jump(w, op, (uint32_t)c->value[0], yes, no);
}

static void emit_condition(struct work *w, const struct px_condition *c, int yes, int no)
{
    switch ((enum px_compare)c->compare) {
    case PX_COMPARE_IN:
        emit_in(w, c, yes, no);
        break;
    case PX_COMPARE_NE:
        emit_in(w, c, no, yes);
        break;
    case PX_COMPARE_GT:
        emit_above(w, c, BPF_JGT, yes, no);
        break;
    case PX_COMPARE_GE:
        emit_above(w, c, BPF_JGE, yes, no);
        break;
    case PX_COMPARE_LT:
        emit_above(w, c, BPF_JGE, no, yes);
        break;
    case PX_COMPARE_LE:
        emit_above(w, c, BPF_JGT, no, yes);
        break;
    }
}

/* ---- decisions ---- */

/* Conditions before `shared` lead to `no` if they do not hold, the others to `late`. */
static void emit_rule(struct work *w, const struct px_rule *rule, unsigned shared, int no, int late)
{
    for (unsigned i = 0; i < rule->count; i++) {
        bool last = i + 1u == rule->count;
        int yes = last ? answer(w, rule->action) : new_label(w);

        emit_condition(w, &rule->condition[i], yes, i < shared ? no : late);
        if (!last)
            place(w, yes);
    }
}

/* Whether each condition of rule a is also one of rule b, in the same place. */
static bool is_prefix(const struct px_rule *a, const struct px_rule *b)
{
    return a->count < b->count && memcmp(a->condition, b->condition, a->count * sizeof a->condition[0]) == 0;
}

/* If the next rule's conditions are a prefix of this rule's, it needs no instructions: where this rule fails
 * decides. */
static void emit_decision(struct work *w, int index)
{
    const struct px_decision *d = &w->calls->decision[index];

    place(w, index);
    for (uint32_t i = 0; i < d->count && w->err == 0;) {
        const struct px_rule *rule = px_calls_rule(w->calls, d, i++);
        const struct px_rule *next = px_calls_rule(w->calls, d, i < d->count ? i : 0);
        bool contained = i < d->count && is_prefix(next, rule);
        bool last = (contained ? i + 1 : i) == d->count;
        int no = last ? answer(w, d->otherwise) : new_label(w);

        emit_rule(w, rule, contained ? next->count : 0, no, contained ? answer(w, next->action) : no);
        if (!last)
            place(w, no);
        i += contained;
    }
}

/* Emits each decision that checks arguments and that some system call uses. */
static void emit_decisions(struct work *w)
{
    for (int i = 0; i < w->calls->decisions; i++) {
        bool used = false;

        for (int r = 0; r < w->runs && !used; r++)
            used = w->run[r].target == i;
        if (used)
            emit_decision(w, i);
    }
}

static void emit_answers(struct work *w)
{
    for (int i = 0; i < w->answers && w->err == 0; i++) {
        place(w, w->answer[i].label);
        emit(w, BPF_RET | BPF_K, w->answer[i].action, NEXT, NEXT);
    }
}

/* ---- the numbers ---- */

static int target_of(struct work *w, uint16_t decision)
{
    const struct px_decision *d = &w->calls->decision[decision];

    return d->count == 0 ? answer(w, d->otherwise) : decision;
}

static void find_runs(struct work *w)
{
    for (uint32_t i = 0; i <= w->calls->numbers; i++) {
        int target = target_of(w, i < w->calls->numbers ? w->calls->of[i] : w->calls->beyond);

        if (w->runs == 0 || w->run[w->runs - 1].target != target)
            w->run[w->runs++] = (struct run){.first = i, .target = target};
    }
}

/* Emits a binary search over the runs from..to. A half with one run is a jump to its label; a larger left half follows
 * directly. */
static void emit_tree(struct work *w, int from, int to)
{
    if (from == to) {
        emit_jump(w, BPF_JA, 0, w->run[from].target, NEXT);
        return;
    }
    int middle = (from + to + 1) / 2;
    bool left_is_run = from == middle - 1, right_is_run = middle == to;
    int left = left_is_run ? w->run[from].target : NEXT;
    int right = right_is_run ? w->run[to].target : new_label(w);

    emit_jump(w, BPF_JGE, w->run[middle].first, right, left);
    if (!left_is_run)
        emit_tree(w, from, middle - 1);
    if (!right_is_run) {
        place(w, right);
        emit_tree(w, middle, to);
    }
}

static void emit_all(struct work *w)
{
    int native = new_label(w);

    find_runs(w);
    emit_load(w, offsetof(struct seccomp_data, arch));
    emit_jump(w, BPF_JEQ, AUDIT_ARCH_X86_64, native, NEXT);
    emit(w, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, NEXT, NEXT);
    place(w, native);
    emit_load(w, offsetof(struct seccomp_data, nr));
    emit_tree(w, 0, w->runs - 1);
    emit_decisions(w);
    emit_answers(w);
}

/* ---- places ---- */

static bool is_conditional(const struct step *s)
{
    return BPF_CLASS(s->code) == BPF_JMP && BPF_OP(s->code) != BPF_JA;
}

/* From the instruction after the step to the label. */
static int distance(const struct work *w, const struct step *s, int label)
{
    return label == NEXT ? s->far_true + s->far_false : w->step[w->label_at[label]].at - (s->at + 1);
}

static int find_places(struct work *w)
{
    int at = 0;

    for (int i = 0; i < w->steps; i++) {
        w->step[i].at = at;
        at += 1 + w->step[i].far_true + w->step[i].far_false;
    }
    return at;
}

/* Adds long jumps until nothing changes: each one moves the code after it, so that other labels may get out of reach.
 * Returns the length of the program. */
static int stretch(struct work *w)
{
    int length = 0;

    for (bool changed = true; changed;) {
        changed = false;
        length = find_places(w);
        for (int i = 0; i < w->steps; i++) {
            struct step *s = &w->step[i];
            if (!is_conditional(s))
                continue;
            bool far_true = s->far_true || distance(w, s, s->if_true) > REACH;
            bool far_false = s->far_false || distance(w, s, s->if_false) > REACH;
            changed = changed || far_true != s->far_true || far_false != s->far_false;
            s->far_true = far_true;
            s->far_false = far_false;
        }
    }
    return length;
}

/* An unconditional jump from `at` to the label, or the BPF_RET at the label itself. */
static struct sock_filter long_jump(const struct work *w, int at, int label)
{
    const struct step *to = &w->step[w->label_at[label]];

    if (BPF_CLASS(to->code) == BPF_RET)
        return (struct sock_filter){.code = to->code, .k = to->k};
    return (struct sock_filter){.code = BPF_JMP | BPF_JA, .k = (uint32_t)(to->at - (at + 1))};
}

static void write_step(const struct work *w, const struct step *s, struct sock_filter *code)
{
    int behind = s->at + 1;

    if (s->code == (BPF_JMP | BPF_JA)) {
        code[s->at] = long_jump(w, s->at, s->if_true);
        return;
    }
    code[s->at] = (struct sock_filter){.code = s->code, .k = s->k};
    if (!is_conditional(s))
        return;
    code[s->at].jt = s->far_true ? 0 : (uint8_t)distance(w, s, s->if_true);
    code[s->at].jf = s->far_false ? s->far_true : (uint8_t)distance(w, s, s->if_false);
    if (s->far_true) {
        code[behind] = long_jump(w, behind, s->if_true);
        behind++;
    }
    if (s->far_false)
        code[behind] = long_jump(w, behind, s->if_false);
}

int px_assemble(const struct px_calls *calls, struct sock_filter *code, uint16_t *ret_len)
{
    struct work *w = calloc(1, sizeof *w);

    if (!w)
        return -ENOMEM;
    w->calls = calls;
    for (int i = 0; i < calls->decisions; i++)
        (void)new_label(w);
    emit_all(w);
    int length = w->err == 0 ? stretch(w) : 0, r = w->err;
    if (r == 0 && length > PX_PROGRAM_MAX)
        r = -E2BIG;
    for (int i = 0; r == 0 && i < w->steps; i++)
        write_step(w, &w->step[i], code);
    if (r == 0)
        *ret_len = (uint16_t)length;
    free(w);
    return r;
}
