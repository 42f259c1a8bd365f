/* task/holder.h - the holder of a flock, from /proc/locks.
 *
 * Why:     children that a killed process has just forked hold its lock for a moment longer. */
#pragma once

#include <stdbool.h>

/* Whether the process that took the lock on dir/name is running. Also false if px cannot see it, as in another pid
 * namespace. */
bool px_workspace_holder_lives(int dir, const char *name);
