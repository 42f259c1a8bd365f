/* store/canonical.h - canonical JSON: one value has one sequence of bytes.
 *
 *     keys sorted by code point, no blanks, whole numbers within 2^53-1 only, strings as base/json.h writes them
 *
 * Why:     ids are hashes of these bytes; they must not depend on a library's version or on the form of the input.
 * Owns:    nothing.
 * Mustn't: accept what two readers could read differently: reals, huge numbers. (store/document.h reads.) */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct px_buf;

enum { PX_CANONICAL_DEPTH = 16 };

/* Adds it to out; 0, -EINVAL (a real, a number too large, too deep), or out's own error. */
int px_canonical(const json_t *value, struct px_buf *out);
