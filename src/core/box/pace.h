/* box/pace.h - how much of its own time px may spend on a box with --cpus.
 *
 * Why:     each byte that a box writes and each call that is refused costs the supervisor time, which is outside of the box's
 *          cgroup: a box with a tenth of a processor could use half a one more through px.
 * Owns:    its numbers.
 * Mustn't: read a clock. A supervisor that is ahead of its share does not read for a while, and the box waits. */
#pragma once

#include <stdint.h>

struct px_pace {
    uint64_t cpus_milli;        /* of the box, in thousandths; 0: no pace */
    int64_t left_nsec;          /* that may be spent now; below 0: ahead */
    uint64_t at_nsec;           /* when that was so */
};

void px_pace_start(struct px_pace *pace, uint64_t cpus_milli, uint64_t now_nsec);
/* used_nsec of processor time were spent. Until when nothing more should be read; 0: go on. */
uint64_t px_pace_spend(struct px_pace *pace, uint64_t used_nsec, uint64_t now_nsec);
