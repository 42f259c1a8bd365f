/* init/tree.h - the end of a command with everything that it started. Part of px-init: raw calls only.
 *
 * Why:     a process group is left with one call. Each command is the reaper of its own orphans and cannot stop being it (the filter
 *          refuses that, and children that are siblings), so what it started stays below it while it lives; when it is killed all that
 *          becomes pid 1's: killing the children that pid 1 did not have before, until there are no more, ends the tree.
 * Owns:    which children and sessions of pid 1 are others'.
 * Mustn't: reap what it ends before all is dead. The dead hold their places under the limit of processes, so that whoever forks
 *          against us comes to an end. */
#pragma once

#include <stdbool.h>

/* Before the other calls. < 0: the kernel has no such list. */
int px_tree_open(void);
/* Our children, one after the other; < 0: they cannot be read. */
int px_tree_each_child(void (*act)(int pid));
/* The command with that pid, whose row says by now that it ends. */
void px_tree_end(int pid);
/* While something ends: this new command is not part of it. */
void px_tree_spare(int pid);
bool px_tree_ends(void);
/* Kills what has come to light; true: nothing is left of what ends. */
bool px_tree_round(void);
