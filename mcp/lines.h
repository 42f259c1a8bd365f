/* mcp/lines.h - messages on a stream, one JSON document a line, from somebody who may send anything.
 *
 * Why:     what reads the stream must not grow with it: a line has a bound, and so has what a parser makes of one.
 * Owns:    the bytes of the line that is not complete yet.
 * Mustn't: understand what is said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
    SERVE_LINE_MAX = 4 << 20, /* bytes of a message */
    SERVE_DEPTH_MAX = 64,     /* of arrays and objects in one another */
    SERVE_VALUES_MAX = 65536, /* in a message: a value takes far more memory than its text */
};

struct serve_lines {
    struct px_buf line;
    bool skipping; /* the rest of a line that is too long */
};

void serve_lines_init(struct serve_lines *l);
void serve_lines_done(struct serve_lines *l);

struct serve_line {
    const char *data; /* until the next call; NULL: the line was too long and is gone */
    size_t len;
};
/* Takes bytes from *data; 1 with a line (call again), 0 when all of them are used up, -ENOMEM. */
int serve_lines_next(struct serve_lines *l, const char **data, size_t *len, struct serve_line *ret);

/* Whether a document is small enough to be parsed, by its bytes alone: within the bounds above. */
bool serve_lines_small(const char *data, size_t len);
