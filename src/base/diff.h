/* base/diff.h - two texts as a unified diff.
 *
 * Owns:    nothing; the text goes to a px_buf.
 * Mustn't: take more than linear time and memory, whatever the texts are. */
#pragma once

#include <stddef.h>

struct px_buf;

/* Adds nothing if both are the same. Names go behind --- and +++. At most max bytes of each text are looked at line by line: larger
 * ones get a line that says that they differ. 0 or out->err. */
int px_diff_unified(const char *old_name, const void *old, size_t old_len, const char *new_name, const void *new, size_t new_len,
                    size_t max, struct px_buf *out);
