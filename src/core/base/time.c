/* base/time.c - the clock for limits. */
#include "base/time.h"

#include <time.h>

uint64_t px_now_nsec(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_BOOTTIME, &now);  /* cannot fail: every kernel px runs on has this clock */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
