/* Coordinates: x counts elements of `before`, y of `after`; diagonal k holds the points with x - y == k. A step right drops an
 * element, a step down adds one, a step along the diagonal keeps one. Two searches, from the start and (mirrored) from the end,
 * find for each number of edits how far each diagonal can be followed; where they meet, an optimal path passes. */
#include "changes/myers.h"

#include <errno.h>
#include <stdlib.h>

enum {
    EDITS_MAX = 1024,           /* of one search; beyond it the furthest point will do */
    STEPS_MAX = 64 << 20,       /* of a whole call, a fraction of a second; beyond it everything counts as changed */
};

struct region {
    const uint32_t *a, *b;
    bool *dropped, *added;
    int32_t n, m;
};

/* One of the two searches: reach[k] is the furthest x on diagonal k, -1 if it has not been reached. */
struct search {
    int32_t *reach;
    bool mirrored;
};

struct work {
    struct search forward, backward;
    int64_t steps;              /* that are left */
};

static bool same(const struct region *r, const struct search *s, int32_t x, int32_t y)
{
    return s->mirrored ? r->a[r->n - 1 - x] == r->b[r->m - 1 - y] : r->a[x] == r->b[y];
}

/* Whether (x, x - k) lies in the region. */
static bool inside(const struct region *r, int32_t x, int32_t k)
{
    return x >= 0 && x <= r->n && x - k >= 0 && x - k <= r->m;
}

/* The furthest point of diagonal k with one edit more than its neighbours have, and then along it. */
static void advance(struct work *w, const struct region *r, struct search *s, int32_t k)
{
    int32_t right = s->reach[k - 1] < 0 ? -1 : s->reach[k - 1] + 1, down = s->reach[k + 1];
    int32_t x = right > down ? right : down, other = right > down ? down : right;
    if (!inside(r, x, k))
        x = other;
    if (!inside(r, x, k)) {
        s->reach[k] = -1;
        return;
    }
    int32_t from = x;
    while (x < r->n && x - k < r->m && same(r, s, x, x - k))
        x++;
    w->steps -= x - from;
    s->reach[k] = x;
}

/* Whether the two searches have met on a diagonal of s. */
static bool met(const struct region *r, const struct search *s, const struct search *other, int32_t k, int32_t other_edits)
{
    int32_t mirror = r->n - r->m - k;
    if (mirror < -other_edits || mirror > other_edits || s->reach[k] < 0 || other->reach[mirror] < 0)
        return false;
    return s->reach[k] + other->reach[mirror] >= r->n;
}

/* One more edit for one search. The diagonal where it met the other, or INT32_MAX. */
static int32_t widen(struct work *w, const struct region *r, struct search *s, const struct search *other, int32_t edits,
                     int32_t other_edits)
{
    int32_t low = -edits, high = edits;
    while (low < -r->m)         /* diagonals beyond the region */
        low += 2;
    while (high > r->n)
        high -= 2;
    bool may_meet = (r->n - r->m - edits - other_edits) % 2 == 0;
    s->reach[-edits - 1 < -r->m - 1 ? -r->m - 1 : -edits - 1] = -1;
    s->reach[edits + 1 > r->n + 1 ? r->n + 1 : edits + 1] = -1;
    for (int32_t k = low; k <= high; k += 2) {
        w->steps--;
        advance(w, r, s, k);
        if (may_meet && met(r, s, other, k, other_edits))
            return k;
    }
    return INT32_MAX;
}

struct point {
    int32_t x, y;
};

static struct point furthest(const struct region *r, const struct search *s, int32_t edits)
{
    struct point best = {0, 0};
    for (int32_t k = -edits; k <= edits; k++)
        if (k >= -r->m && k <= r->n && s->reach[k] >= 0 && 2 * s->reach[k] - k > best.x + best.y)
            best = (struct point){s->reach[k], s->reach[k] - k};
    return best;
}

/* A point that splits the region in two; both ends of the region differ, so neither part is the whole. */
static struct point split(struct work *w, const struct region *r)
{
    struct search *f = &w->forward, *b = &w->backward;
    f->reach[0] = b->reach[0] = 0;
    for (int32_t edits = 1;; edits++) {
        int32_t k = widen(w, r, f, b, edits, edits - 1);
        if (k != INT32_MAX)
            return (struct point){f->reach[k], f->reach[k] - k};
        k = widen(w, r, b, f, edits, edits);
        if (k != INT32_MAX)
            return (struct point){r->n - b->reach[k], r->m - (b->reach[k] - k)};
        if (edits >= EDITS_MAX || w->steps <= 0)
            return furthest(r, f, edits);
    }
}

static void mark_all(const struct region *r)
{
    for (int32_t i = 0; i < r->n; i++)
        r->dropped[i] = true;
    for (int32_t i = 0; i < r->m; i++)
        r->added[i] = true;
}

/* Without what both begin and end with. */
static struct region trimmed(struct region r)
{
    while (r.n > 0 && r.m > 0 && r.a[0] == r.b[0])
        r = (struct region){r.a + 1, r.b + 1, r.dropped + 1, r.added + 1, r.n - 1, r.m - 1};
    while (r.n > 0 && r.m > 0 && r.a[r.n - 1] == r.b[r.m - 1])
        r = (struct region){r.a, r.b, r.dropped, r.added, r.n - 1, r.m - 1};
    return r;
}

/* The smaller part by a call of its own, the larger one in the loop: never deeper than the logarithm of the size. */
static void solve(struct work *w, struct region r)
{
    for (;;) {
        r = trimmed(r);
        if (r.n == 0 || r.m == 0 || w->steps <= 0) {
            mark_all(&r);
            return;
        }
        struct point p = split(w, &r);
        struct region first = {r.a, r.b, r.dropped, r.added, p.x, p.y};
        struct region rest = {r.a + p.x, r.b + p.y, r.dropped + p.x, r.added + p.y, r.n - p.x, r.m - p.y};
        bool first_is_small = p.x + p.y < rest.n + rest.m;
        solve(w, first_is_small ? first : rest);
        r = first_is_small ? rest : first;
    }
}

int px_myers(const struct px_sequence *before, const struct px_sequence *after, int64_t *steps)
{
    size_t diagonals = before->count + after->count + 3;
    if (before->count > INT32_MAX / 4 || after->count > INT32_MAX / 4)
        return -ENOMEM;
    int32_t *room = malloc(2 * diagonals * sizeof *room);
    if (!room)
        return -ENOMEM;
    const int64_t given = *steps < STEPS_MAX ? *steps : STEPS_MAX;
    struct work w = {.steps = given};
    /* Diagonals of the forward search run from -m to n and, seen from the end, so do those of the other. */
    w.forward.reach = room + after->count + 1;
    w.backward.reach = room + diagonals + after->count + 1;
    w.backward.mirrored = true;
    solve(&w, (struct region){before->items, after->items, before->changed, after->changed, (int32_t)before->count,
                              (int32_t)after->count});
    *steps -= given - w.steps;
    free(room);
    return 0;
}
