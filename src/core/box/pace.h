/* box/pace.h - how much of its own processor time px may spend on a box with --cpus.
 *
 * Why:     each byte that a box writes and each refused call costs the supervisor processor time outside of the box's
 *          cgroup. A box with a tenth of a processor could use half a processor more through px.
 * Owns:    its numbers.
 * Mustn't: read a clock. A supervisor that has used more than its share stops reading, and the box waits. */
#pragma once

#include <stdint.h>

struct px_pace {
    uint64_t cpus_milli;        /* of the box, in thousandths; 0: no pace */
    int64_t left_nsec;          /* that may be spent now; below 0: overdrawn */
    uint64_t at_nsec;           /* when left_nsec was computed */
};

void px_pace_start(struct px_pace *pace, uint64_t cpus_milli, uint64_t now_nsec);
/* Accounts used_nsec of processor time. Returns until when nothing more should be read; 0: go on. */
uint64_t px_pace_spend(struct px_pace *pace, uint64_t used_nsec, uint64_t now_nsec);
