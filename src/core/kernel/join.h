/* kernel/join.h - clones a process in the user and network namespace of another.
 *
 *   we ---clone---> helper: enters the namespaces of `target`
 *    |                |---clone, CLONE_PARENT---> the process, our own child
 *    '--- waits <-----' ends
 *
 * Why:     entering a network namespace takes privileges over the user namespace that owns it, and a process that has
 *          entered that cannot return. So a helper process enters it, and clones there with CLONE_PARENT: the new
 *          process is our child.
 * Owns:    the helper process, which has ended on return.
 * Mustn't: be given a clone that makes a user or a network namespace. */
#pragma once

#include "kernel/abi.h"

/* Like px_clone_run, but in the namespaces of `target`, a pidfd. Returns the pid or -errno: -ESRCH if the target has
 * ended, -EPERM if its namespaces may not be entered. */
long px_join_clone(int target, struct px_clone_args *args, void *stack, uint64_t stack_size, void (*fn)(void *), void *arg);
