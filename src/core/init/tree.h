/* init/tree.h - ends a command with all processes that it started. Part of px-init: raw system calls only.
 *
 * Why:     a process leaves its process group with one call. But each command is the subreaper of its own orphans
 *          and cannot change that (the filter refuses it, and CLONE_PARENT). So what it started stays below it while
 *          it lives. When it is killed, all of that becomes pid 1's: killing the children that pid 1 did not have
 *          before, until there are none, ends the tree.
 * Owns:    which children and sessions of pid 1 belong to other commands.
 * Mustn't: reap what it kills before all is dead. The dead count against the process limit, so that a process that
 *          keeps forking reaches it. */
#pragma once

#include <stdbool.h>

/* Called before the others. < 0: the kernel has no list of children. */
int px_tree_open(void);
/* Calls `act` for each of our children; < 0: they cannot be read. */
int px_tree_each_child(void (*act)(int pid));
/* Kills the command with that pid, whose row is already marked `ends`. */
void px_tree_end(int pid);
/* While a tree is being killed: this new command is not part of it. */
void px_tree_spare(int pid);
bool px_tree_ends(void);
/* Kills the processes found since the last round; true: none is left. */
bool px_tree_round(void);
