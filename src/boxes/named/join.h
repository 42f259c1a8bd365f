/* named/join.h - finding the box whose network another one joins.
 *
 * Owns:    nothing.
 * Mustn't: give out a process that is not pid 1 of a box of the caller's, or one that has the caller's own network. */
#pragma once

struct px_err;

/* "box:NAME" or "pid:NUMBER". A pidfd, or -1. */
int px_named_join_find(const char *whose, struct px_err *e);
