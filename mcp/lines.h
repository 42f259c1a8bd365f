/* mcp/lines.h - splits an untrusted stream into messages, one JSON document a line.
 *
 * Why:     memory must be bounded: a line has a maximum size, and so has its parsed form.
 * Owns:    the bytes of the line that is not complete yet.
 * Mustn't: interpret the messages. */
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
    const char *data; /* valid until the next call; NULL: the line was too long and was dropped */
    size_t len;
};
/* Consumes bytes of *data; 1 with a line (call again), 0 when all are consumed, -ENOMEM. */
int serve_lines_next(struct serve_lines *l, const char **data, size_t *len, struct serve_line *ret);

/* Checks without parsing that a document is within the bounds above. */
bool serve_lines_small(const char *data, size_t len);
