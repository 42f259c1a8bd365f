/* resolve/messages.h - what uv and pip said, for a person: the lines that tell why.
 *
 * Why:     their last line is often the least of all ("ResolutionImpossible: for help visit ..."), and all of
 *          it is long.
 * Owns:    nothing.
 * Mustn't: pass on a control character: packages' code writes into the same output. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

enum { PX_RESOLVE_WORDS_MAX = 480 };

/* Quoted lines with newlines between them, each once; nothing if there is no line that is known to matter. */
void px_resolve_words(const char *text, struct px_buf *out);
/* All of it, quoted line by line. Of what is too long for `out`, the end. */
void px_resolve_quote(const char *text, size_t length, struct px_buf *out);
/* .px/logs/sync.log of the project whose root is `dir`, in the place of the one before: logs is a directory of the user's
 * that nobody else can write to, and no link. -errno. */
int px_resolve_log(int dir, const struct px_buf *said);
