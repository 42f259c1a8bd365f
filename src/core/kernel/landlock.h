/* kernel/landlock.h - the second layer: which paths may be read, written, executed, independent of the mounts.
 *
 * Why:     it still holds after a mistake in the mount set-up, and also forbids mounting, and tracing and signalling
 *          processes outside of the box.
 * Mustn't: be the only layer of the full tier (it does not cover stat, chmod, chown). Runs in the child: 0 or
 *          -errno. */
#pragma once

#include <stdint.h>

/* The kernel's ABI number; 0 or less: none. */
int px_landlock_abi(void);
/* A ruleset that handles all rights of this ABI; a descriptor or -errno. */
int px_landlock_new(int abi);
/* Grants `access` (without the rights that the ABI lacks) below an open path. */
int px_landlock_allow(int ruleset_fd, int abi, int path_fd, uint64_t access);
/* Restricts this thread permanently; no_new_privs must be set. */
int px_landlock_enforce(int ruleset_fd);

/* Sets of rights for the plan. */
uint64_t px_landlock_read(void);        /* read, list, execute */
uint64_t px_landlock_write(void);       /* all but making devices and ioctl on them */
uint64_t px_landlock_device(void);      /* read, write, ioctl of existing device nodes */
