/* box/test_pace.c - the times are given: what is tested is how much may be spent, not how long it takes. */
#include "box/pace.h"

#include "harness/test.h"

enum { MSEC = 1000 * 1000 };

TEST(a_box_without_cpus_is_not_paced)
{
    struct px_pace pace = {0};
    ASSERT_EQ(px_pace_spend(&pace, 1000ull * MSEC, 5), 0);
    px_pace_start(&pace, 0, 5);
    ASSERT_EQ(px_pace_spend(&pace, 1000ull * MSEC, 6), 0);
}

TEST(a_burst_is_not_held_up)
{
    struct px_pace pace;
    px_pace_start(&pace, 100, 1000);
    ASSERT_EQ(px_pace_spend(&pace, 49 * MSEC, 1000), 0);
    ASSERT(px_pace_spend(&pace, 2 * MSEC, 1000) > 1000);
}

/* A supervisor that spends all it may, and one that always has more to do. */
static uint64_t spent_in(uint64_t cpus_milli, uint64_t nsec, uint64_t chunk)
{
    struct px_pace pace;
    uint64_t now = 777, spent = 0, end = now + nsec;
    px_pace_start(&pace, cpus_milli, now);
    while (now < end) {
        spent += chunk;
        now += chunk;           /* work takes at least its own time */
        uint64_t until = px_pace_spend(&pace, chunk, now);
        ASSERT(until == 0 || until > now);
        now = until ? until : now;
    }
    return spent;
}

TEST(a_quarter_on_top_is_the_most)
{
    const uint64_t second = 1000ull * MSEC;
    ASSERT(spent_in(100, 100 * second, MSEC) <= 100 * second / 40 + 52 * MSEC);
    ASSERT(spent_in(100, 100 * second, MSEC) >= 100 * second / 40);
    ASSERT(spent_in(10, 100 * second, 100000) <= 100 * second / 400 + 52 * MSEC);
    ASSERT(spent_in(500, 100 * second, MSEC) <= 100 * second / 8 + 52 * MSEC);
    ASSERT(spent_in(8000, 100 * second, MSEC) >= 99 * second);  /* a quarter of eight is more than one can spend */
}

TEST(a_long_calm_is_no_store)
{
    struct px_pace pace;
    px_pace_start(&pace, 100, 0);
    uint64_t later = 3600ull * 1000 * MSEC;
    ASSERT_EQ(px_pace_spend(&pace, 40 * MSEC, later), 0);
    ASSERT(px_pace_spend(&pace, 40 * MSEC, later) > later);
}

TEST(absurd_numbers)
{
    struct px_pace pace;
    px_pace_start(&pace, UINT64_MAX, UINT64_MAX - 5);
    (void)px_pace_spend(&pace, UINT64_MAX, 3);          /* a clock that goes back */
    px_pace_start(&pace, 10, 0);
    uint64_t until = px_pace_spend(&pace, UINT64_MAX, 1000);
    ASSERT(until > 1000 && until <= 1000 + 1000ull * MSEC);     /* never away for long */
}
