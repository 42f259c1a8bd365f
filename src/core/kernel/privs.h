/* kernel/privs.h - giving up ids and privileges for good, and proving it.
 *
 * Why:     an id or privilege that stays behind by mistake is an escape; so everything is read back before it is believed.
 * Mustn't: use libc's setuid family (it talks to other threads). Runs in the child: 0 or -errno. */
#pragma once

#include <stdint.h>

/* Bounding set emptied, securebits locked, ambient set cleared, no_new_privs set; privileges in use stay for now.
 * Inherited by everything started afterwards. */
int px_privs_bound(void);
/* The same for pid 1 of a box that stays, which keeps what it takes to start a command as another user and to signal it, also
 * across its exec. */
int px_privs_bound_starter(void);
/* Becomes uid:gid with no groups (unless may_setgroups is 0) and no privilege in any set; -EPERM if reading back disagrees.
 * `bounded` is 0 where px_privs_bound could not be called: then the bounding set is left to no_new_privs. */
int px_privs_drop(uint32_t uid, uint32_t gid, int may_setgroups, int bounded);
/* Keeps of what is in force only the privileges of these bits, and hands none on. As root the bounding set goes, too; who has no
 * privilege to begin with cannot drop that, and no_new_privs, which is the caller's to set, stands for it. */
int px_privs_keep(uint64_t keep);
