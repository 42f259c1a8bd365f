/* start/start_internal.h - containers, for px's own use cases. */
#pragma once

#include <stdbool.h>

#include <px/px.h>

struct px_plan;

/* Gives a plan its network driver, or the box whose network it joins. */
int px_start_connect(struct px_plan *plan, const struct px_policy *policy, struct px_err *e);
/* px_box_stay; if bound, the box also dies with the calling thread (PR_SET_PDEATHSIG). */
int px_start_stay(const struct px_policy *policy, bool bound, struct px_box **ret_home, struct px_err *e);
/* The same with an image of px-init that the caller shares among its boxes, or NULL. */
int px_start_stay_with(const struct px_policy *policy, bool bound, const int *image, struct px_box **ret_home, struct px_err *e);
/* The plan of such a container; its root is a directory. */
int px_start_stay_plan(const struct px_policy *policy, bool bound, struct px_plan **ret_plan, struct px_err *e);
