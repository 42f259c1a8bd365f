#include "seccomp/region.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>

enum { BITS = 64, PIECES_MAX = BITS + 1 };

/* ---- cubes ---- */

static void add(struct px_region *r, const struct px_cube *cube)
{
    if (r->err == 0 && r->count == PX_REGION_MAX)
        r->err = -E2BIG;
    if (r->err < 0)
        return;
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 8;
        struct px_cube *larger = realloc(r->cube, room * sizeof *larger);
        if (!larger) {
            r->err = -ENOMEM;
            return;
        }
        r->cube = larger;
        r->room = room;
    }
    r->cube[r->count++] = *cube;
}

static void done(struct px_region *r)
{
    free(r->cube);
    *r = (struct px_region){0};
}

/* The intersection; false if it is empty. */
static bool meet(const struct px_cube *a, const struct px_cube *b, struct px_cube *ret_both)
{
    struct px_cube both;

    for (int i = 0; i < PX_ARGUMENTS; i++) {
        if ((a->value[i] ^ b->value[i]) & a->mask[i] & b->mask[i])
            return false;
        both.mask[i] = a->mask[i] | b->mask[i];
        both.value[i] = a->value[i] | b->value[i];
    }
    *ret_both = both;
    return true;
}

/* The difference a - b: for each bit that b fixes and a does not, the part of a where this bit differs from b and the
 * earlier bits are as in b. */
static void add_difference(struct px_region *out, struct px_cube a, const struct px_cube *b)
{
    struct px_cube both;

    if (!meet(&a, b, &both)) {
        add(out, &a);
        return;
    }
    for (int i = 0; i < PX_ARGUMENTS; i++)
        for (int n = BITS - 1; n >= 0; n--) {
            uint64_t bit = (uint64_t)1 << n;
            if (!(b->mask[i] & ~a.mask[i] & bit))
                continue;
            a.mask[i] |= bit;
            a.value[i] |= ~b->value[i] & bit;
            add(out, &a);
            a.value[i] ^= bit;
        }
}

/* ---- conditions ---- */

struct piece {
    uint64_t mask, value;
};

/* The values whose first differing bit, from the highest, is 0 (or 1) in `value`. */
static size_t differing(uint64_t value, bool where_zero, bool where_one, struct piece out[PIECES_MAX])
{
    size_t count = 0;

    for (int n = BITS - 1; n >= 0; n--) {
        uint64_t bit = (uint64_t)1 << n, mask = ~(bit - 1);
        if (value & bit ? where_one : where_zero)
            out[count++] = (struct piece){.mask = mask, .value = (value ^ bit) & mask};
    }
    return count;
}

/* Above the value, or below it; and the value itself. */
static size_t ordered(const struct px_condition *c, bool above, bool equal, struct piece out[PIECES_MAX])
{
    size_t count = differing(c->value[0], above, !above, out);

    if (equal)
        out[count++] = (struct piece){.mask = UINT64_MAX, .value = c->value[0]};
    return count;
}

static size_t listed(const struct px_condition *c, struct piece out[PIECES_MAX])
{
    for (unsigned i = 0; i < c->count; i++)
        out[i] = (struct piece){.mask = c->mask, .value = c->value[i]};
    return c->count;
}

/* ---- regions ---- */

static struct px_cube cube_of(unsigned argument, struct piece piece)
{
    struct px_cube cube = {0};

    cube.mask[argument] = piece.mask;
    cube.value[argument] = piece.value;
    return cube;
}

/* The cubes of a region whose argument is in one of the pieces; pieces do not overlap. */
static void add_inside(struct px_region *out, const struct px_region *r, unsigned argument, const struct piece *piece,
                       size_t pieces)
{
    struct px_cube both;

    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < pieces; k++) {
            struct px_cube cube = cube_of(argument, piece[k]);
            if (meet(&r->cube[i], &cube, &both))
                add(out, &both);
        }
}

/* The cubes whose argument is in none of the pieces. */
static void add_outside(struct px_region *out, const struct px_region *r, unsigned argument, const struct piece *piece,
                        size_t pieces)
{
    struct px_region left = {0};

    for (size_t i = 0; i < r->count; i++)
        add(&left, &r->cube[i]);
    for (size_t k = 0; k < pieces && left.err == 0; k++) {
        struct px_cube cube = cube_of(argument, piece[k]);
        struct px_region less = {0};

        for (size_t i = 0; i < left.count; i++)
            add_difference(&less, left.cube[i], &cube);
        done(&left);
        left = less;
    }
    for (size_t i = 0; i < left.count; i++)
        add(out, &left.cube[i]);
    if (left.err < 0)
        out->err = left.err;
    done(&left);
}

/* Splits a region by a condition. Both sides come from the list of values: a list is short, its complement has many
 * pieces. An order has few pieces on either side. */
static void split(const struct px_region *r, const struct px_condition *c, struct px_region *holds, struct px_region *fails)
{
    bool above = c->compare == PX_COMPARE_GT || c->compare == PX_COMPARE_GE;
    bool equal = c->compare == PX_COMPARE_GE || c->compare == PX_COMPARE_LE;
    struct piece piece[PIECES_MAX];

    if (c->compare == PX_COMPARE_IN || c->compare == PX_COMPARE_NE) {
        size_t pieces = listed(c, piece);
        add_inside(c->compare == PX_COMPARE_IN ? holds : fails, r, c->argument, piece, pieces);
        add_outside(c->compare == PX_COMPARE_IN ? fails : holds, r, c->argument, piece, pieces);
        return;
    }
    add_inside(holds, r, c->argument, piece, ordered(c, above, equal, piece));
    add_inside(fails, r, c->argument, piece, ordered(c, !above, !equal, piece));
}

/* ---- parts ---- */

static struct px_region *region_for(struct px_region_parts *parts, uint32_t action)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->part[i].action == action)
            return &parts->part[i].region;
    if (parts->count == PX_PARTS_MAX) {
        parts->err = -E2BIG;
        return NULL;
    }
    parts->part[parts->count].action = action;
    return &parts->part[parts->count++].region;
}

static void add_part(struct px_region_parts *parts, uint32_t action, const struct px_region *r)
{
    struct px_region *region = r->count > 0 ? region_for(parts, action) : NULL;

    for (size_t i = 0; region && i < r->count; i++)
        add(region, &r->cube[i]);
    if (r->err < 0 || (region && region->err < 0))
        parts->err = r->err < 0 ? r->err : region->err;
}

static uint32_t stricter(uint32_t first, uint32_t last)
{
    return px_action_rank(first) < px_action_rank(last) ? first : last;
}

/* Moves the arguments that the rule matches from the region to the part of its action. */
static void take_rule(struct px_region_parts *out, uint32_t action, const struct px_rule *rule, struct px_region *left)
{
    struct px_region now = *left, fails = {0};

    for (unsigned i = 0; i < rule->count && now.err == 0; i++) {
        struct px_region holds = {0};

        split(&now, &rule->condition[i], &holds, &fails);
        done(&now);
        now = holds;
    }
    if (now.err < 0)
        out->err = now.err;
    add_part(out, stricter(action, rule->action), &now);
    done(&now);
    *left = fails;
}

/* Whether the decision may be stricter than this answer. */
static bool may_tighten(const struct px_calls *calls, const struct px_decision *d, uint32_t action)
{
    bool may = px_action_rank(d->otherwise) < px_action_rank(action);

    for (uint32_t i = 0; i < d->count; i++)
        may = may || px_action_rank(px_calls_rule(calls, d, i)->action) < px_action_rank(action);
    return may;
}

static void decide_part(struct px_region_parts *out, struct px_part *part, const struct px_calls *calls, const struct px_decision *d)
{
    if (d->count > 0 && !may_tighten(calls, d, part->action)) {
        add_part(out, part->action, &part->region);     /* avoids splitting refusals needlessly */
        return;
    }
    for (uint32_t i = 0; i < d->count && out->err == 0; i++)
        take_rule(out, part->action, px_calls_rule(calls, d, i), &part->region);
    add_part(out, stricter(part->action, d->otherwise), &part->region);
}

void px_region_parts_init(struct px_region_parts *parts)
{
    *parts = (struct px_region_parts){.part = {{.action = SECCOMP_RET_ALLOW}}, .count = 1};
    add(&parts->part[0].region, &(struct px_cube){0});
    parts->err = parts->part[0].region.err;
}

void px_region_parts_decide(struct px_region_parts *parts, const struct px_calls *calls, const struct px_decision *d)
{
    struct px_region_parts out = {.err = parts->err};

    for (size_t i = 0; i < parts->count && out.err == 0; i++)
        decide_part(&out, &parts->part[i], calls, d);
    px_region_parts_done(parts);
    *parts = out;
}

void px_region_parts_done(struct px_region_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        done(&parts->part[i].region);
    *parts = (struct px_region_parts){0};
}
