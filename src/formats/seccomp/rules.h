/* seccomp/rules.h - the decision about each system call as data, between a table or file and a program or text.
 *
 * Why:     our own filters and a user's profile are compiled and printed by the same code.
 * Owns:    nothing; struct px_calls borrows the rules and their order.
 * Mustn't: know BPF or JSON. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    PX_ARGUMENTS = 6,
    PX_VALUES_MAX = 5,
    PX_CALLS_MAX = 512,         /* numbers that can have a decision; the highest known one is below */
    PX_DECISIONS_MAX = PX_CALLS_MAX + 8,
};

enum px_compare { PX_COMPARE_IN, PX_COMPARE_NE, PX_COMPARE_GT, PX_COMPARE_GE, PX_COMPARE_LT, PX_COMPARE_LE };

/* On all 64 bits of an argument. */
struct px_condition {
    uint8_t argument;
    uint8_t compare;            /* enum px_compare */
    uint8_t count;              /* of values: several for IN only, and then mask has 32 bits at most */
    uint64_t mask;              /* IN: the bits that count, and no value has others; else all of them */
    uint64_t value[PX_VALUES_MAX];
};

/* Matches if all conditions do; they are about different arguments. */
struct px_rule {
    uint32_t action;            /* SECCOMP_RET_*, with its data */
    uint8_t count;
    struct px_condition condition[PX_ARGUMENTS];
};

/* The first rule that matches decides, else `otherwise`. Every rule in a decision has conditions. */
struct px_decision {
    uint32_t otherwise;
    uint32_t first, count;      /* in px_calls.order */
};

struct px_calls {
    const struct px_rule *rules;
    const uint16_t *order;      /* indexes of rules; NULL: 0, 1, 2 ... */
    struct px_decision decision[PX_DECISIONS_MAX];
    uint16_t decisions;
    uint16_t of[PX_CALLS_MAX];  /* the decision about each number */
    uint16_t numbers;           /* how many of them there are ... */
    uint16_t beyond;            /* ... and the decision about all others */
};

/* The i-th rule of a decision. */
static inline const struct px_rule *px_calls_rule(const struct px_calls *calls, const struct px_decision *d, uint32_t i)
{
    return &calls->rules[calls->order ? calls->order[d->first + i] : d->first + i];
}

/* Orders actions: a smaller value is stricter, as the kernel compares the results of several filters. */
static inline int32_t px_action_rank(uint32_t action)
{
    return (int32_t)(action & 0xffff0000u);
}
