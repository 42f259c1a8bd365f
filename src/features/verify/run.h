/* verify/run.h - one verification while it runs: which trials, in which boxes, with what result.
 *
 * Why:     policy.c makes a policy for each box, box.c starts, watches and ends one, run.c runs a few at a time,
 *          report.c makes the report. This is what they share.
 * Owns:    every box, policy, stream and work directory of the run; box.c ends them.
 * Mustn't: be included outside these four files. */
#pragma once

#include "verify/verify.h"

enum { PX_VERIFY_TEXT_MAX = 8192 };

/* One trial of a row: as configured, or (self-test) with some mechanisms switched off. */
struct px_trial {
    const struct px_verify_row *row;
    size_t check;               /* of the report */
    uint64_t without;           /* mechanisms to switch off */
    uint64_t kept;              /* self-test: the one layer that was left in force */
    const char *more;           /* options on top of the row's */
    bool done;
    int tries;
    struct px_verdict verdict;
    uint64_t nsec;
};

/* A trial with its box. */
struct px_slot {
    struct px_trial *trial;     /* NULL: free */
    int side;
    struct px_policy *policy;
    struct px_box *box;
    char ws[256];               /* its work directory; "": none */
    int in, out;                /* files for STREAMS */
    int told, tell;             /* a pipe for READY and PORT: its read end and its write end */
    bool seen;                  /* it was in place */
    uint64_t start_nsec, deadline_nsec;
    struct px_buf texts[5];     /* the side's arguments after replacement */
    struct px_side expected;
};

#define PX_SLOT_EMPTY .in = -1, .out = -1, .told = -1, .tell = -1

struct px_verify_run {
    const struct px_verify *ask;
    struct px_fixtures fixtures;
    struct px_outside outside;
    struct px_surroundings s;
    char here[220];             /* where px-attack lies in the boxes */
    char tier[32];
    struct px_trial *trials;
    size_t trials_count, next, active, reported;
    struct px_slot *slots;
    unsigned jobs;
    struct px_verify_report *report;
    struct px_check *checks;
    uint64_t noticed;           /* self-test: mechanisms whose loss some check has detected */
    uint64_t tried;
    bool stopped;
};

/* verify_policy.c */
bool px_verify_is_served(const struct px_verify_row *row);      /* its boxes reach px-outside, and nothing else */
int px_verify_policy(struct px_verify_run *run, struct px_slot *slot, struct px_err *e);        /* into slot->policy */
int px_verify_add_program(struct px_verify_run *run, struct px_slot *slot, struct px_err *e);
/* The words @TOP, @WS and so on replaced; in options `|` is a blank. */
void px_verify_expand(const struct px_verify_run *run, const struct px_slot *slot, const char *text, size_t len, bool options,
                      struct px_buf *out);

/* verify_box.c */
int px_verify_start(struct px_verify_run *run, struct px_slot *slot, struct px_err *e);         /* the box of slot->side */
void px_verify_watch(struct px_verify_run *run, struct px_slot *slot);                          /* while it runs */
void px_verify_judge(struct px_verify_run *run, struct px_slot *slot);                          /* when it has ended */
/* frees it in any state */
void px_verify_end(struct px_verify_run *run, struct px_slot *slot);

/* verify_report.c */
int px_verify_describe(struct px_verify_run *run, const struct px_policy *policy, struct px_err *e);
void px_verify_tell(struct px_verify_run *run);         /* what is done by now, in order */
void px_verify_conclude(struct px_verify_run *run);
