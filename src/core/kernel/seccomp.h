/* kernel/seccomp.h - the system call filter: programs made at build time from data/syscalls.def, and loading one.
 *
 * Why:     namespaces leave the whole kernel within reach; the filter leaves the calls that ordinary programs make.
 * Owns:    nothing; the programs are constants.
 * Mustn't: allocate, or build a program at run time. Loading runs in the child, last before exec: 0 or -errno. */
#pragma once

#include <stdint.h>

/* As in <linux/filter.h>, which not every C library can see; callers only hand it on. */
struct sock_filter;

/* Each once plain and once for a box that can write files of the caller: there openat2, which hides its mode, is ENOSYS. */
enum px_filter {
    PX_FILTER_DEFAULT,
    PX_FILTER_WORKSPACE,
    PX_FILTER_STRICT,           /* for code that only computes */
    PX_FILTER_STRICT_WORKSPACE,
    PX_FILTER_FLOOR,            /* what no box may do: goes with a program of the user's own */
    PX_FILTER_FLOOR_WORKSPACE,
    PX_FILTER_BUILD,            /* for package managers: the default one, changed by data/build.def */
    PX_FILTER_SELF,             /* a second one for a box with the caller's id and processes around it: it may change
                                   priority, scheduler and processors of itself alone, and only by the number 0 */
    PX_FILTER_OFFLINE,          /* another one for a box in the host's network that shall have none: no IPv4, no IPv6 */
};

/* Never NULL. */
const struct sock_filter *px_seccomp_program(enum px_filter filter, uint16_t *ret_len);

/* A second filter for a box whose only id is pid 1's as well, and where Landlock cannot tell the two apart: no signals to pid 1.
 * The kernel keeps them from having an effect; nothing should hang on that alone. */
const struct sock_filter *px_seccomp_spare_init(uint16_t *ret_len);

/* Filters every thread of this process, and what it executes, for good. -EPERM unless no_new_privs is set, which a
 * privileged process could do without: a set-user-id program would then start with a filter that it does not expect. */
int px_seccomp_load(const struct sock_filter *program, uint16_t len);
