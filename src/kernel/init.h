/* kernel/init.h - what px-init (pid 1 of a box) says over the control socket, once, when the payload is gone.
 *
 * Why:     a wait status and what was used cannot be read from outside once the namespace is gone.
 * Mustn't: be trusted from anything but our own end of the socket, which only pid 1 ever holds. */
#pragma once

#include <stdint.h>

struct px_init_report {
    int32_t wait_status;        /* of the payload */
    uint32_t disk_full;         /* bit N: the Nth writable directory of the plan had no room left */
    uint64_t user_usec, sys_usec, maxrss_kib, read_blocks, write_blocks;
};
