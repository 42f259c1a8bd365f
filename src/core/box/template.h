/* box/template.h - the parts that all boxes of one policy share, made once.
 *
 *   the plan                 computed once and copied for each box
 *   the tree                 root, /etc, /usr, the devices: everything of the root that no box may write, built once by
 *                            the plan's own steps; a box attaches a clone of it (the TREE step) instead of building it
 *   the template namespace   a mount namespace that holds the tree and a /proc and nothing else; a box is cloned from
 *                            it, so that it neither copies nor unmounts the host's mounts
 *
 * Why:     half of the cost of a box is the same for each. What must be new for each box still is: namespaces, ids,
 *          /proc with its masks, devpts, every writable directory.
 * Owns:    the plan and the namespace.
 * Mustn't: hold anything that a box can write. Three protections, each of which is enough: the tree's file system is
 *          read-only; its files belong to the host's root, whose id is mapped in no box; the mount is read-only, and
 *          the kernel locks that flag when a box with its own user namespace is cloned from the template namespace.
 *
 * Only the host's root can have the tree and the namespace. Without them a template is a plan to copy, and each box
 * builds its own root. */
#pragma once

#include <stdbool.h>

struct px_err;
struct px_plan;
struct px_template;

/* A thread that makes boxes in template namespaces, and what it keeps from one box to the next. */
struct px_template_builder {
    /* its own mount namespace, root and working directory (setns resets the last two); -EBADF: it enters no other */
    int home, root, cwd;
    char *stacks;               /* of the processes that it clones, two of PX_CHILD_STACK */
    /* no process may ever inspect this one: its threads need not start boxes one at a time */
    bool alone;
    bool lost;                  /* it could not return to its namespace: it makes no more boxes */
};
#define PX_TEMPLATE_BUILDER_NONE {.home = -EBADF, .root = -EBADF, .cwd = -EBADF}

int px_template_builder_init(struct px_template_builder *ret_who);    /* -errno: it enters no other namespace */
void px_template_builder_done(struct px_template_builder *who);

/* Takes the plan of a container, also on failure. has_builders: a template namespace is of use. */
int px_template_new(struct px_plan *plan, bool has_builders, struct px_template **ret_template, struct px_err *e);
void px_template_free(struct px_template *t);
/* Whether a plan that was computed later is still the same. */
bool px_template_fits(const struct px_template *t, const struct px_plan *plan);
/* A plan for one box. The template and the builder must outlive its start. */
int px_template_plan(const struct px_template *t, struct px_template_builder *who, struct px_plan **ret_plan, struct px_err *e);
