/* kernel/landlock.h - the second layer: which paths may be read, written, executed, whatever the mounts say.
 *
 * Why:     it survives a mistake in the mount set-up and also forbids mounting, tracing and signalling out of the box.
 * Mustn't: be the only layer of the full tier (it knows no stat, chmod, chown). Runs in the child: 0 or -errno. */
#pragma once

#include <stdint.h>

/* The kernel's ABI number; 0 or less: none. */
int px_landlock_abi(void);
/* A ruleset handling everything this ABI knows; the descriptor, or -errno. */
int px_landlock_new(int abi);
/* Grants `access` (cut down to what the ABI knows) below an open path. */
int px_landlock_allow(int ruleset_fd, int abi, int path_fd, uint64_t access);
/* Restricts this thread for good; no_new_privs must be set. */
int px_landlock_enforce(int ruleset_fd);

/* Sets of rights for the plan. */
uint64_t px_landlock_read(void);        /* read, list, execute */
uint64_t px_landlock_write(void);       /* everything but making devices and ioctl on them */
uint64_t px_landlock_device(void);      /* read, write, ioctl of nodes that are there */
