/* named/join.h - finds the box whose network another one joins.
 *
 * Owns:    nothing.
 * Mustn't: return a process that is not pid 1 of a box of the caller, or one that has the caller's own network. */
#pragma once

struct px_err;

/* "box:NAME" or "pid:NUMBER". A pidfd, or -1. */
int px_named_join_find(const char *whose, struct px_err *e);
