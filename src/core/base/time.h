/* base/time.h - the clock for limits: CLOCK_BOOTTIME, which no clock jump moves and which counts suspended time. */
#pragma once

#include <stdint.h>

uint64_t px_now_nsec(void);
