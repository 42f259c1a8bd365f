/* init/denials.h - answers the system calls that the filter refuses, and counts them for the command that made them.
 *
 * Why:     a refused call waits for an answer. Pid 1 gives it. It lives as long as the box, so no call is left
 *          waiting. It knows the commands. Its processor time is the box's own, so a flood of refused calls takes
 *          nothing from other boxes or from their keeper.
 * Owns:    the listeners of the filters, and the counts.
 * Mustn't: make a call that the box's filter refuses, because it would wait for itself (a guard walks px-init's
 *          calls); take more than a few calls in one turn; have a second reader beside it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pollfd;
struct px_init_report;

/* All listeners that can be polled at once: the box's, or one for each command's filter. */
enum { PX_REFUSED_WATCH_MAX = 512 };

/* The calls of processes that belong to no running command are written to this file. */
void px_refused_init(int notes);
/* Adds a listener; row: of the command whose filter it is, or -1 for the box's own. */
void px_refused_listen(int listener, int row);
void px_refused_begin(int row, bool alone);
/* The command has ended: its refused calls go into its report. NULL: it never ran. */
void px_refused_end(int row, struct px_init_report *report);

int px_refused_watch(struct pollfd *fds);       /* returns how many; NULL: only counts */
void px_refused_take(const struct pollfd *fds, int count);
/* The same without polling first, for a caller that waits for something else. */
void px_refused_now(void);
