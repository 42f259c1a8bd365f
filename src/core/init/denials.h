/* init/denials.h - the system calls that the filter refuses: answered, and counted for the command that made them.
 *
 * Why:     a refused call waits for an answer. Pid 1 gives it: it lives as long as the box, so that nobody's death leaves a call
 *          waiting; it knows the commands; and its time is the box's own, so that a flood of refused calls takes nothing from
 *          other boxes or from whoever keeps them.
 * Owns:    the listeners of the filters, the counts.
 * Mustn't: make a call that the box's filter refuses, for it would wait for itself (a guard walks px-init's calls); take
 *          more than a few calls in one turn; have a second reader beside it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pollfd;
struct px_init_report;

/* All listeners that can be watched at once: the box's, or one of each command's filter. */
enum { PX_REFUSED_WATCH_MAX = 512 };

/* The calls of processes that belong to no running command are written to this file. */
void px_refused_init(int notes);
/* One more listener; row: of the command whose filter it is, or -1 for the box's own. */
void px_refused_listen(int listener, int row);
void px_refused_begin(int row, bool alone);
/* The command has ended: what it was refused goes into its report. NULL: it never ran. */
void px_refused_end(int row, struct px_init_report *report);

int px_refused_watch(struct pollfd *fds);       /* how many; NULL: only that */
void px_refused_take(const struct pollfd *fds, int count);
/* The same without waiting, for whoever waits for something else. */
void px_refused_now(void);
