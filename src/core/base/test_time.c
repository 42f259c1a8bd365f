/* base/test_time.c - the clock for limits. */
#include "base/time.h"

#include <time.h>

#include "harness/test.h"

TEST(clock_never_goes_back)
{
    uint64_t last = px_now_nsec();

    for (int i = 0; i < 100000; i++) {
        uint64_t now = px_now_nsec();

        ASSERT(now >= last);
        last = now;
    }
}

TEST(clock_is_that_since_boot)
{
    struct timespec before, after;

    ASSERT_EQ(clock_gettime(CLOCK_BOOTTIME, &before), 0);
    uint64_t now = px_now_nsec();
    ASSERT_EQ(clock_gettime(CLOCK_BOOTTIME, &after), 0);
    ASSERT(now >= (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec);
    ASSERT(now <= (uint64_t)after.tv_sec * 1000000000u + (uint64_t)after.tv_nsec);
}
