/* kernel/fork.h - forks this process; the child ends with it. For work that must not change the caller's own
 * process.
 *
 * Why:     a probe drops privileges and enters namespaces; a program of the host is started with a deadline.
 * Owns:    nothing: the pidfd is the caller's.
 * Mustn't: use anything but raw system calls in the child: threads of the caller may hold locks. */
#pragma once

#include <stdint.h>

/* 0 in the child, its pid in the parent, or -errno. */
long px_fork(int *ret_pidfd);
/* The same in new namespaces (PX_CLONE_NEW*) and a cgroup (-EBADF: none); this child does not end with its parent. */
long px_fork_into(uint64_t namespaces, int cgroup_fd, int *ret_pidfd);
/* The wait status of a child once it has ended. 0 or -errno. */
int px_fork_reap(int pidfd, int *ret_status);
_Noreturn void px_fork_exit(int code);
