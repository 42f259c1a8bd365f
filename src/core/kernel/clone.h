/* kernel/clone.h - calls clone3; the child runs a function on a stack of its own.
 *
 * Why:     with CLONE_VM no page table is copied, however large the caller is; the child therefore shares the caller's memory
 *          until it executes a program, and must run on its own stack.
 * Mustn't: be given a function that returns or uses anything but raw system calls (see child/child.h). */
#pragma once

#include "kernel/abi.h"

/* args.stack and args.stack_size are set from the arguments. Returns the pid or -errno. The child ends in fn. */
long px_clone_run(struct px_clone_args *args, void *stack, uint64_t stack_size, void (*fn)(void *), void *arg);
