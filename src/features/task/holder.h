/* task/holder.h - who holds a lock (flock), by /proc/locks.
 *
 * Why:     a process that is killed is gone before those which it has just forked, and they hold its lock for a
 *          moment. */
#pragma once

#include <stdbool.h>

/* Whether the process that took the lock on dir/name lives. False also if px cannot see it, as in another pid
 * namespace. */
bool px_workspace_holder_lives(int dir, const char *name);
