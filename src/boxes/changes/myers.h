/* changes/myers.h - which elements of one sequence are not in another, and which are new: a shortest edit script, or nearly.
 *
 * Why:     a diff is read by people and models; the fewer lines, the better. Myers' search from both ends needs memory for the
 *          sequences alone; what it costs grows with the differences, and where they are many it settles for less than the best.
 * Owns:    nothing that outlives a call.
 * Mustn't: run longer than a fixed number of steps, whatever the sequences are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_sequence {
    const uint32_t *items;
    size_t count;
    bool *changed;              /* count of them, all false before; true afterwards for what the other one has not */
};

/* 0 or -ENOMEM. Whatever is not marked is the same in both, in the same order. *steps is what may be used, of which one
 * call takes no more than its own bound; what it used is taken off. */
int px_myers(const struct px_sequence *before, const struct px_sequence *after, int64_t *steps);
