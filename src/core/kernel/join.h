/* kernel/join.h - a process that is born in the user and network namespace of another.
 *
 *   we ---clone---> porter: enters the namespaces of `target`
 *    |                |---clone, CLONE_PARENT---> the process, our own child
 *    '--- waits <-----' ends
 *
 * Why:     a network namespace can be entered only with privileges over the user namespace that owns it, and whoever has entered
 *          that cannot come back: so a porter goes, and what it makes there is as much our child as if we had made it.
 * Owns:    the porter, which is gone on return.
 * Mustn't: be given a clone that makes a user or a network namespace. */
#pragma once

#include "kernel/abi.h"

/* px_clone_run, but there. target is a pidfd. The pid, or -errno: -ESRCH if it is gone, -EPERM if its namespaces are not ours to enter. */
long px_join_clone(int target, struct px_clone_args *args, void *stack, uint64_t stack_size, void (*fn)(void *), void *arg);
