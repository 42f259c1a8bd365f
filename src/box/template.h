/* box/template.h - what all boxes of one policy have in common, made once.
 *
 *   the plan     computed once and copied for each box
 *   the tree     root, /etc, /usr, the devices: everything of the root that no box may write, built once by the plan's own steps
 *                and kept in a mount namespace that holds nothing else; a box gets a clone of it (the TREE step) where it would have built
 *                its own
 *   the place    a mount namespace that holds a /proc and nothing else: a box is born there, so that it neither copies nor
 *                unmounts the host's mounts
 *
 * Why:     half of what a box costs is the same for each. What is fresh stays fresh: namespaces, ids, /proc with its masks, devpts,
 *          every directory that can be written.
 * Owns:    the plan, the tree, the namespaces' descriptors.
 * Mustn't: hold anything that a box can write. The tree's own file system is made read-only, its files belong to the host's root,
 *          who is nobody in every box, and each clone of it is mounted read-only: three locks, one of which is enough.
 *
 * Only the host's root can have the last two. Without them a template is a plan to copy, and the boxes build their own roots. */
#pragma once

#include <stdbool.h>

struct px_err;
struct px_plan;
struct px_template;

/* The namespace where boxes are born; px_template_place fills it, an empty one (all -EBADF) changes nothing. */
struct px_birthplace {
    int there;
    int home, root, cwd;        /* where we live: going back to a namespace leads to its top, not to where one was */
    char *stacks;               /* of the processes that begin there, two of PX_CHILD_STACK; kept from one to the next */
    bool alone;                 /* nothing of this process can be looked at, ever: its threads need not take turns */
    bool lost;                  /* we could not go back: nothing more may be made by this thread */
};
#define PX_BIRTHPLACE_NONE {.there = -EBADF, .home = -EBADF, .root = -EBADF, .cwd = -EBADF}

int px_template_place(struct px_birthplace *ret_place);    /* -errno: it stays empty */
void px_template_place_done(struct px_birthplace *place);
/* For a copy that another thread has used: gives back only what that thread kept. */
void px_template_leave(struct px_birthplace *place);

/* Takes the plan of a box that stays, also on failure. with_tree: there is a birthplace. */
int px_template_new(struct px_plan *plan, bool with_tree, struct px_template **ret_template, struct px_err *e);
void px_template_free(struct px_template *t);
bool px_template_has_tree(const struct px_template *t);
/* Whether a plan that was computed later is still the same. */
bool px_template_fits(const struct px_template *t, const struct px_plan *plan);
/* A plan for one box. The template and the place must outlive its start. */
int px_template_plan(const struct px_template *t, struct px_birthplace *place, struct px_plan **ret_plan, struct px_err *e);
