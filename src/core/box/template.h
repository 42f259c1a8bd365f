/* box/template.h - what all boxes of one policy have in common, made once.
 *
 *   the plan         computed once and copied for each box
 *   the tree         root, /etc, /usr, the devices: everything of the root that no box may write, built once by the plan's own
 *                    steps; a box takes a clone of it (the TREE step) where it would have built its own
 *   the birthplace   a mount namespace that holds the tree, a /proc, and nothing else: a box is born there, so that it neither
 *                    copies nor unmounts the host's mounts
 *
 * Why:     half of what a box costs is the same for each. What is fresh stays fresh: namespaces, ids, /proc with its masks, devpts,
 *          every directory that can be written.
 * Owns:    the plan and the namespace.
 * Mustn't: hold anything that a box can write. The tree's own file system is made read-only, its files belong to the host's root,
 *          who is nobody in every box, and it is mounted read-only, which the kernel locks when a box with ids of its own is born
 *          there: three locks, one of which is enough.
 *
 * Only the host's root can have the last two. Without them a template is a plan to copy, and the boxes build their own roots. */
#pragma once

#include <stdbool.h>

struct px_err;
struct px_plan;
struct px_template;

/* A thread that goes to birthplaces, and what it keeps from one box to the next. */
struct px_template_builder {
    int home, root, cwd;        /* where it lives (going back to a namespace leads to its top); -EBADF: it stays there */
    char *stacks;               /* of the processes that it begins, two of PX_CHILD_STACK */
    bool alone;                 /* nothing of this process can be looked at, ever: its threads need not take turns */
    bool lost;                  /* it could not go back: it may make nothing more */
};
#define PX_TRAVELLER_NONE {.home = -EBADF, .root = -EBADF, .cwd = -EBADF}

int px_template_builder_init(struct px_template_builder *ret_who);    /* -errno: it stays at home */
void px_template_builder_done(struct px_template_builder *who);

/* Takes the plan of a box that stays, also on failure. may_go: there are travellers for it. */
int px_template_new(struct px_plan *plan, bool may_go, struct px_template **ret_template, struct px_err *e);
void px_template_free(struct px_template *t);
/* Whether a plan that was computed later is still the same. */
bool px_template_fits(const struct px_template *t, const struct px_plan *plan);
/* A plan for one box. The template and the traveller must outlive its start. */
int px_template_plan(const struct px_template *t, struct px_template_builder *who, struct px_plan **ret_plan, struct px_err *e);
