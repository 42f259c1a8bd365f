/* parts/parts.h - starts a box from a policy, with the parts that the core cannot find by itself: the caller passes
 * them in.
 *
 * Why:     a stored root needs the store, a profile needs a JSON library, a runtime needs a bundle. The small
 *          launcher has none of them, so the core calls none of them: start/start.c passes all parts,
 *          start/launcher.c passes none.
 * Owns:    nothing.
 * Mustn't: be given a policy whose root is in the store, or one for an OCI runtime. */
#pragma once

#include <px/px.h>

#include "plan/plan.h"

struct px_after;
struct px_carrier;

struct px_parts {               /* a policy that needs a NULL member is refused */
    int (*join)(const struct px_policy *policy, struct px_err *e);      /* --net box: a pidfd of that box's pid 1, or -1 */
    int (*pasta)(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);    /* --net outbound:pasta */
    int (*changes)(const struct px_policy *policy, struct px_after **ret_after, struct px_err *e);      /* --changes */
};

/* Finds out what a plan needs to know of the host. The caller adds the user's filter, if there is one. */
void px_parts_probe(const struct px_policy *policy, struct px_host *ret_host);
/* e is not NULL, here and below. */
int px_parts_start(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_host *host,
                   const struct px_parts *parts, struct px_box **ret_box, struct px_err *e);
int px_parts_plan_json(const struct px_policy *policy, const char *const argv[], const struct px_host *host, char **ret_json,
                       struct px_err *e);
/* Gives the plan its network driver, or the box whose network it joins. */
int px_parts_connect(struct px_plan *plan, const struct px_policy *policy, const struct px_parts *parts, struct px_err *e);
/* Whether a start failed because this host does not allow namespaces. */
bool px_parts_no_namespaces(const struct px_err *e);
