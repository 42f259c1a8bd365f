/* kernel/privs.h - drops ids and capabilities permanently, and verifies it.
 *
 * Why:     an id or capability that is left by mistake is an escape; so everything is read back.
 * Mustn't: use libc's setuid family (it signals other threads). Runs in the child: 0 or -errno. */
#pragma once

#include <stdint.h>

/* Empties the bounding set, locks the securebits, clears the ambient set and sets no_new_privs; capabilities in use
 * stay for now. Inherited by everything started afterwards. */
int px_privs_bound(void);
/* The same for pid 1 of a container, which keeps, also across its exec, the capabilities to start a command as
 * another user and to signal it. */
int px_privs_bound_starter(void);
/* Becomes uid:gid with no groups (unless may_setgroups is 0) and no capability in any set; -EPERM if the values read
 * back differ. `bounded` is 0 where px_privs_bound could not be called: then only no_new_privs covers the bounding
 * set. */
int px_privs_drop(uint32_t uid, uint32_t gid, int may_setgroups, int bounded);
/* Keeps only the capabilities of these bits, and passes none on. For root it also empties the bounding set. A
 * process without capabilities cannot do that; no_new_privs, which the caller sets, has the same effect. */
int px_privs_keep(uint64_t keep);
