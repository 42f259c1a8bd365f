/* start/resolve.h - what a start may need beyond the core, and the small launcher leaves to px-main.
 *
 * Why:     reading a profile needs a JSON library, a runtime a bundle, an archive the store; a static launcher that starts in a tenth of a
 *          millisecond has neither. beyond.c does the work, launcher.c refuses in the same words for every case.
 * Owns:    nothing.
 * Mustn't: be called for a policy that px_policy_is_small. */
#pragma once

#include <px/px.h>

#include "plan/plan.h"

/* A user's own system call filter, compiled, and what the plan needs to know of it; *ret_code is the caller's to free(). */
int px_beyond_filter(const struct px_policy *policy, struct px_host *host, struct sock_filter **ret_code, struct px_err *e);
/* What the user should know of his profile, a line each; *ret_text stays NULL if there is nothing. */
int px_beyond_warnings(const struct px_policy *policy, char **ret_text, struct px_err *e);
/* The directory of a root that the store has or gets: an archive's, a base's; *ret_dir is the caller's to free().
 * Whether its files are what they were is looked at: */
enum px_root_look {
    PX_ROOT_NOW,                /* before this returns; what is not is made again */
    PX_ROOT_BESIDE,             /* by threads: px_beyond_root_holds waits for them */
    PX_ROOT_LATER,              /* when somebody uses it, which nobody does yet */
};
struct px_root_lease;
int px_beyond_root(const struct px_policy *policy, enum px_root_look look, char **ret_dir,
                   struct px_root_lease **ret_lease, struct px_err *e);
bool px_beyond_root_holds(struct px_root_lease *lease);
void px_beyond_root_free(struct px_root_lease *lease);
/* Who looks at, and merges, what was done to the directory of --changes (start/changes.c); for the plan of that box. */
int px_beyond_changes(const struct px_policy *policy, struct px_after **ret_after, struct px_err *e);
/* Pid 1 of the box whose network the policy asks for (named/join.c): a pidfd, or -1. */
int px_beyond_join(const struct px_policy *policy, struct px_err *e);
/* Who carries the traffic of a box by pasta (start/pasta.c). */
struct px_carrier;
int px_beyond_pasta(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);
/* What it would do through an OCI runtime; and the same box so made. */
int px_beyond_plan(const struct px_policy *policy, const char *const argv[], const struct px_host *host, char **ret_json,
                   struct px_err *e);
int px_beyond_start(const struct px_policy *policy, const char *const argv[], const struct px_host *host, const struct px_io *io,
                    struct px_box **ret_box, struct px_err *e);
