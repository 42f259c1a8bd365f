/* parts/parts.h - a box from a policy, and what the core cannot find by itself: whoever starts the box passes it in.
 *
 * Why:     a stored root needs the store, a profile a JSON library, a runtime a bundle. The small launcher has none of them, so
 *          the core calls none of them: start/start.c passes all parts, start/launcher.c passes none.
 * Owns:    nothing.
 * Mustn't: be given a policy whose root is in the store, or one for an OCI runtime. */
#pragma once

#include <px/px.h>

#include "plan/plan.h"

struct px_after;
struct px_carrier;

struct px_parts {               /* a member that is NULL: what needs it is refused */
    int (*join)(const struct px_policy *policy, struct px_err *e);      /* --net box: a pidfd of that box's pid 1, or -1 */
    int (*pasta)(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);    /* --net outbound:pasta */
    int (*changes)(const struct px_policy *policy, struct px_after **ret_after, struct px_err *e);      /* --changes */
};

/* What a plan needs to know of the host. A filter of the user's is added by the caller. */
void px_parts_probe(const struct px_policy *policy, struct px_host *ret_host);
/* e is not NULL, here and below. */
int px_parts_start(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_host *host,
                   const struct px_parts *parts, struct px_box **ret_box, struct px_err *e);
int px_parts_plan_json(const struct px_policy *policy, const char *const argv[], const struct px_host *host, char **ret_json,
                       struct px_err *e);
/* Gives the plan who carries its traffic, or whose network it joins. */
int px_parts_connect(struct px_plan *plan, const struct px_policy *policy, const struct px_parts *parts, struct px_err *e);
/* Whether a start failed because namespaces cannot be had here. */
bool px_parts_no_namespaces(const struct px_err *e);
