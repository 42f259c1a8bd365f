/* changes/unified.h - one file before and after, as a unified diff that `patch -p1` and `git apply` understand.
 *
 * Why:     what a command did to a tree is shown to people and models, and applied elsewhere.
 * Owns:    nothing that outlives a call.
 * Mustn't: take more time or memory than its bounds, whatever the bytes are, or write a name that could be taken for something else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_buf;

struct px_diff_side {
    const char *data;           /* the bytes of a file, the target of a symbolic link */
    size_t len;
    unsigned mode;              /* 0100644, 0100755, 0120000; 0: there is none */
};

enum px_diff_style {
    PX_DIFF_GIT,                /* with lines for modes, new and deleted files */
    PX_DIFF_PLAIN,              /* --- a/x and +++ b/x alone, for every file; symbolic links as in the other */
};

enum { PX_DIFF_BYTES_MAX = 2 << 20 };   /* of one side; larger files are only named */

/* What the diffs of one call may cost together, however many files there are. Bytes are those of both sides, steps those
 * of the search for the fewest changed lines. */
struct px_diff_budget {
    uint64_t bytes;
    int64_t steps;
    size_t left_out;            /* files that were only named */
};
#define PX_DIFF_BUDGET ((struct px_diff_budget){.bytes = 256 << 20, .steps = 256 << 20})

/* Nothing if both are the same. 0, or -errno of the buffer or of memory. A file that is not text, or too large, is named in one
 * line instead. */
int px_unified_write(const char *path, const struct px_diff_side *before, const struct px_diff_side *after, enum px_diff_style style,
                  struct px_buf *out);
/* The same within a budget: a file that it is not enough for is named in one line. */
int px_unified_write_within(const char *path, const struct px_diff_side *before, const struct px_diff_side *after,
                         enum px_diff_style style, struct px_diff_budget *budget, struct px_buf *out);
/* Whether nothing is left of it; then a file need not even be read: px_unified_leave_out names it. A mode is 0 for what is
 * not there. */
bool px_unified_used(const struct px_diff_budget *budget);
int px_unified_leave_out(const char *path, unsigned before, unsigned after, struct px_diff_budget *budget,
                      struct px_buf *out);
/* Puts the diff of one file behind those of others, so that none is taken for a part of the one before. -E2BIG: there
 * is no room for it, and nothing is added. */
int px_unified_add(struct px_buf *out, const struct px_buf *one);
/* Whether its lines can be shown: no NUL byte, not too large. */
bool px_unified_is_text(const struct px_diff_side *side);
