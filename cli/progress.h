/* cli/progress.h - long work told to a person on stderr: one line that changes on a terminal, a few plain lines elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool quiet, terminal;
    bool shown;                 /* there is a line to clear */
    char what[64];
    uint64_t last_nsec;
};

void progress_begin(struct progress *p, bool quiet);
/* For px_sandbox_progress; user is a struct progress. */
void progress_tell(void *user, const char *what, uint64_t done, uint64_t total);
void progress_end(struct progress *p);          /* the terminal's line is gone afterwards */
