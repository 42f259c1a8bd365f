/* start/resolve.h - finds what a policy names and only px-main can find: a stored root, a user's filter, the box
 * whose network is joined.
 *
 * Owns:    nothing.
 * Mustn't: be called for a policy for which px_policy_is_small is true. */
#pragma once

#include <px/px.h>

#include "plan/plan.h"

/* Compiles a user's own system call filter, and sets what the plan needs to know of it; *ret_code is the caller's to
 * free(). */
int px_start_filter(const struct px_policy *policy, struct px_host *host, struct sock_filter **ret_code, struct px_err *e);
/* The directory of a root in the store, from an archive or a base; *ret_dir is the caller's to free(). When its
 * files are compared with what was stored: */
enum px_root_look {
    PX_ROOT_NOW,                /* before this returns; a changed tree is made again */
    PX_ROOT_BESIDE,             /* by threads: px_start_root_holds waits for them */
    PX_ROOT_LATER,              /* when a box uses it, which none does yet */
};
struct px_root_lease;
int px_start_root(const struct px_policy *policy, enum px_root_look look, char **ret_dir,
                   struct px_root_lease **ret_lease, struct px_err *e);
bool px_start_root_holds(struct px_root_lease *lease);
/* The hook that compares and merges the directory of --changes (start/changes.c), for the plan of that box. */
int px_start_changes(const struct px_policy *policy, struct px_after **ret_after, struct px_err *e);
/* Pid 1 of the box whose network the policy joins (named/join.c): a pidfd, or -1. */
int px_start_join(const struct px_policy *policy, struct px_err *e);
/* For a policy with --net outbound:pasta: listens on the published ports, starts pasta (start/pasta.c). */
struct px_carrier;
int px_pasta_start(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);
