/* resolve/messages.h - the lines of uv's and pip's output that show the cause.
 *
 * Why:     their last line is often useless ("ResolutionImpossible: for help visit ..."), and the whole is long.
 * Owns:    nothing.
 * Mustn't: pass on a control character: the code of packages writes to the same output. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

enum { PX_RESOLVE_WORDS_MAX = 480 };

/* Quoted lines with newlines between them, without duplicates; nothing if no known line is found. */
void px_resolve_words(const char *text, struct px_buf *out);
/* All of it, quoted line by line. If it is too long for `out`, the end. */
void px_resolve_quote(const char *text, size_t length, struct px_buf *out);
/* .px/logs/sync.log of the project whose root is `dir`, replacing the previous one. logs must be a directory of the
 * user, not a link, that others cannot write to. -errno. */
int px_resolve_log(int dir, const struct px_buf *said);
