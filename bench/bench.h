/* bench.h - the clock and the request loop that the measuring programs share.
 *
 * Why:     rows take turns, so that a noisy moment of the machine falls on all of them; one process per row waits for
 *          its turn.
 * Owns:    the protocol on standard input and output:
 *              run COUNT     ->  COUNT lines "NANOSECONDS STATUS", one per run
 *              for MSEC      ->  one line "RUNS FAILED NANOSECONDS", runs back to back until MSEC have passed
 * Mustn't: decide what is measured; that is the caller's `once`, which returns 0 if the run went well. */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline uint64_t now_nsec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void answer_run(uint64_t count, int (*once)(void *), void *arg)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = now_nsec();
        int status = once(arg);

        printf("%" PRIu64 " %d\n", now_nsec() - start, status);
    }
}

static inline void answer_for(uint64_t msec, int (*once)(void *), void *arg)
{
    uint64_t start = now_nsec(), end = start + msec * 1000000u, runs = 0, failed = 0;

    while (now_nsec() < end) {
        if (once(arg) != 0)
            failed++;
        runs++;
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", runs, failed, now_nsec() - start);
}

/* Until the end of standard input. Returns the program's exit status. */
static inline int serve(int (*once)(void *), void *arg)
{
    char line[64];
    uint64_t number;

    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %" SCNu64, &number) == 1)
            answer_run(number, once, arg);
        else if (sscanf(line, "for %" SCNu64, &number) == 1)
            answer_for(number, once, arg);
        else
            return 2;
        if (fflush(stdout) != 0)
            return 1;
    }
    return 0;
}
