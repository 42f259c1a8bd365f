/* seccomp/region.h - sets of arguments: exact unions, intersections and differences, for printing a filter.
 *
 * Why:     libseccomp, and so every container runtime, takes alternatives of one comparison for each argument, and
 *          for a mask only equality. "Every value but these four" must be expressed by the bits in which a value
 *          differs from the four.
 * Owns:    the cubes of a region.
 * Mustn't: grow without bound: PX_REGION_MAX cubes, then -E2BIG. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seccomp/rules.h"

enum { PX_REGION_MAX = 4096, PX_PARTS_MAX = 16 };

/* All arguments whose bits in mask are those of value; value has no others. */
struct px_cube {
    uint64_t mask[PX_ARGUMENTS], value[PX_ARGUMENTS];
};

/* A union of cubes. Zero-initialised it is empty. */
struct px_region {
    struct px_cube *cube;
    size_t count, room;
    int err;                    /* 0, -ENOMEM or -E2BIG; then cubes are missing */
};

/* The arguments of a call, divided by their action. */
struct px_region_parts {
    struct px_part {
        uint32_t action;
        struct px_region region;
    } part[PX_PARTS_MAX];
    size_t count;
    int err;
};

/* All arguments, allowed. */
void px_region_parts_init(struct px_region_parts *parts);
/* Divides them further by a decision: each argument gets the stricter of its answer so far and the decision's. Parts do
 * not overlap. Where both refuse by an errno and arguments count, the number may be either. */
void px_region_parts_decide(struct px_region_parts *parts, const struct px_calls *calls, const struct px_decision *d);
void px_region_parts_done(struct px_region_parts *parts);
