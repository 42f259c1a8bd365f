/* Progress of long work. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/sandbox/sandbox.h"

static const uint64_t terminal_nsec = 100 * 1000000ull, plain_nsec = 10 * 1000000000ull;

static uint64_t now(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void progress_begin(struct progress *p, bool quiet)
{
    *p = (struct progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO)};
}

static void words(char *out, size_t size, const char *what, uint64_t done, uint64_t total)
{
    char a[32], b[32];
    if (total && !done)
        (void)snprintf(out, size, "%s: %s", what, size_text(total, b));
    else if (total)
        (void)snprintf(out, size, "%s: %s of %s", what, size_text(done, a), size_text(total, b));
    else if (done)
        (void)snprintf(out, size, "%s: %s", what, size_text(done, a));
    else
        (void)snprintf(out, size, "%s", what);
}

void progress_tell(void *user, const char *what, uint64_t done, uint64_t total)
{
    struct progress *p = user;
    char line[160];
    uint64_t at = now();
    bool same = strncmp(p->what, what, sizeof p->what - 1) == 0;
    if (p->quiet || (same && at - p->last_nsec < (p->terminal ? terminal_nsec : plain_nsec)))
        return;
    (void)snprintf(p->what, sizeof p->what, "%s", what);
    p->last_nsec = at;
    p->shown = p->terminal;
    words(line, sizeof line, what, done, total);
    say_part(p->terminal ? "\r\033[K%.78s" : "px: %s\n", line);
    (void)fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        say_part("\r\033[K");
    p->shown = false;
}
