/* kernel/fork.h - a copy of this process that ends with it, for work that must not happen to the caller.
 *
 * Why:     a probe gives up privileges and enters namespaces; a program of the host is started with a deadline.
 * Owns:    nothing: the pidfd is the caller's.
 * Mustn't: use anything but raw system calls in the copy: the caller may have threads that hold locks. */
#pragma once

#include <stdint.h>

/* 0 in the copy, its pid, or -errno. */
long px_fork(int *ret_pidfd);
/* The same in new namespaces (PX_CLONE_NEW*) and a cgroup (-EBADF: none), and the copy does not end with its parent. */
long px_fork_into(uint64_t namespaces, int cgroup_fd, int *ret_pidfd);
/* The wait status of a copy once it has ended. 0 or -errno. */
int px_fork_reap(int pidfd, int *ret_status);
_Noreturn void px_fork_exit(int code);
