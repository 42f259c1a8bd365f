/* kernel/seccomp.h - the system call filter: programs made at build time from data/syscalls.def, and loading one.
 *
 * Why:     inside namespaces the whole kernel can still be called; the filter allows the calls that ordinary
 *          programs make.
 * Owns:    nothing; the programs are constants.
 * Mustn't: allocate, or build a program at run time. Loading runs in the child, last before exec: 0 or -errno. */
#pragma once

#include <stdint.h>

/* As in <linux/filter.h>, which not every C library can include; callers only pass it on. */
struct sock_filter;

/* Each exists twice: plain, and for a box that can write files of the caller. There openat2, whose mode a filter
 * cannot see, is ENOSYS. */
enum px_filter {
    PX_FILTER_DEFAULT,
    PX_FILTER_WORKSPACE,
    PX_FILTER_STRICT,           /* for code that only computes */
    PX_FILTER_STRICT_WORKSPACE,
    PX_FILTER_FLOOR,            /* what no box may do: loaded together with a user's own program */
    PX_FILTER_FLOOR_WORKSPACE,
    PX_FILTER_BUILD,            /* for package managers: the default one, changed by data/build.def */
    PX_FILTER_SELF,             /* a second one for a box with the caller's id and processes around it: it may change
                                   priority, scheduler and processors of itself alone, and only by the number 0 */
    PX_FILTER_OFFLINE,          /* another one for a box in the host's network that shall have none: no IPv4, no IPv6 */
};

/* Never NULL. */
const struct sock_filter *px_seccomp_program(enum px_filter filter, uint16_t *ret_len);

/* A second filter for a box with only one id, which pid 1 has too, where Landlock cannot keep them apart: no signals
 * to pid 1. The kernel already makes such signals ineffective; this does not depend on it. */
const struct sock_filter *px_seccomp_spare_init(uint16_t *ret_len);

/* Filters every thread of this process, and what it executes, permanently. -EPERM unless no_new_privs is set. A
 * privileged process could load a filter without it, but then a set-user-id program would start with a filter that
 * it does not expect. */
int px_seccomp_load(const struct sock_filter *program, uint16_t len);
