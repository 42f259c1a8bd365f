/* start/resolve.h - what a policy names and only px-main can find: a stored root, a user's filter, the box whose network is joined.
 *
 * Owns:    nothing.
 * Mustn't: be called for a policy that px_policy_is_small. */
#pragma once

#include <px/px.h>

#include "plan/plan.h"

/* A user's own system call filter, compiled, and what the plan needs to know of it; *ret_code is the caller's to free(). */
int px_start_filter(const struct px_policy *policy, struct px_host *host, struct sock_filter **ret_code, struct px_err *e);
/* The directory of a root that the store has or gets: an archive's, a base's; *ret_dir is the caller's to free().
 * Whether its files are what they were is looked at: */
enum px_root_look {
    PX_ROOT_NOW,                /* before this returns; what is not is made again */
    PX_ROOT_BESIDE,             /* by threads: px_start_root_holds waits for them */
    PX_ROOT_LATER,              /* when somebody uses it, which nobody does yet */
};
struct px_root_lease;
int px_start_root(const struct px_policy *policy, enum px_root_look look, char **ret_dir,
                   struct px_root_lease **ret_lease, struct px_err *e);
bool px_start_root_holds(struct px_root_lease *lease);
/* Who looks at, and merges, what was done to the directory of --changes (start/changes.c); for the plan of that box. */
int px_start_changes(const struct px_policy *policy, struct px_after **ret_after, struct px_err *e);
/* Pid 1 of the box whose network the policy asks for (named/join.c): a pidfd, or -1. */
int px_start_join(const struct px_policy *policy, struct px_err *e);
/* For a policy with --net outbound:pasta: listens on the published ports, starts pasta (start/pasta.c). */
struct px_carrier;
int px_pasta_start(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);
