/* base/time.h - the clock for limits: CLOCK_BOOTTIME, which is not set with the system time, and counts suspended
 * time. */
#pragma once

#include <stdint.h>

uint64_t px_now_nsec(void);
