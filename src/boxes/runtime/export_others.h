/* runtime/export_others.h - the plan of a native box in the words of programs that are no OCI runtimes.
 *
 * Why:     who must use another engine should not have to write the policy down a second time.
 * Owns:    nothing.
 * Mustn't: leave a restriction out in silence: what cannot be said there stands at the top as missing. */
#pragma once

struct px_buf;
struct px_err;
struct px_plan;
struct px_policy;

/* A bash script that runs bubblewrap. */
int px_export_bwrap(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out,
                   struct px_err *e);
/* A shell script that runs docker (or podman, by $DOCKER) with an image of the user's choice. */
int px_export_docker(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out,
                    struct px_err *e);
/* A profile for sandbox-exec. */
int px_export_seatbelt(const struct px_policy *policy, const struct px_plan *plan, struct px_buf *out,
                      struct px_err *e);
