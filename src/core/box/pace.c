#include "box/pace.h"

/* px may use a quarter of the box's processor share in addition. Unused time is saved for BURST_NSEC, so that short
 * bursts are not delayed. */
enum { SHARE = 4, BURST_NSEC = 50 * 1000 * 1000, MILLI_MAX = 1000 * 1000 };
/* A pause itself costs a few system calls, so it has a minimum; its maximum bounds every wait. */
enum { PAUSE_NSEC_MIN = 20 * 1000 * 1000, PAUSE_NSEC_MAX = 1000 * 1000 * 1000 };

void px_pace_start(struct px_pace *pace, uint64_t cpus_milli, uint64_t now_nsec)
{
    cpus_milli = cpus_milli < MILLI_MAX ? cpus_milli : MILLI_MAX;
    *pace = (struct px_pace){.cpus_milli = cpus_milli, .left_nsec = BURST_NSEC, .at_nsec = now_nsec};
}

uint64_t px_pace_spend(struct px_pace *pace, uint64_t used_nsec, uint64_t now_nsec)
{
    const uint64_t second = 1000000000;
    if (pace->cpus_milli == 0)
        return 0;
    uint64_t since = now_nsec > pace->at_nsec ? now_nsec - pace->at_nsec : 0;
    since = since < 3600 * second ? since : 3600 * second;
    uint64_t used = used_nsec < 3600 * second ? used_nsec : 3600 * second;
    pace->at_nsec = now_nsec;
    pace->left_nsec += (int64_t)(since / 1000 * pace->cpus_milli / SHARE);
    pace->left_nsec = pace->left_nsec < BURST_NSEC ? pace->left_nsec : BURST_NSEC;
    pace->left_nsec -= (int64_t)used;
    if (pace->left_nsec >= 0)
        return 0;
    uint64_t pause = (uint64_t)-pace->left_nsec / pace->cpus_milli * 1000 * SHARE + 1;
    pause = pause > PAUSE_NSEC_MIN ? pause : PAUSE_NSEC_MIN;
    return now_nsec + (pause < PAUSE_NSEC_MAX ? pause : PAUSE_NSEC_MAX);
}
