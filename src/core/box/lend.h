/* box/lend.h - a root caller's binds where owners cannot be mapped: on overlayfs (the root of a container), on FUSE.
 *
 * Why:     the box of a root caller has ids of its own, to which the caller's files are closed. Elsewhere an id-mapped mount shows their owner
 *          as the box's user. Here what is bound for reading is seen as any user of the host sees it, and what is bound for writing and belongs
 *          to the caller belongs to the box's ids until the box has ended.
 * Owns:    a descriptor of each source that was lent.
 * Mustn't: let an id of the box be the caller's; follow a link; leave the mount of the source; give anything that belongs to another user. */
#pragma once

#include "kernel/tree.h"

struct px_box;
struct px_err;

struct px_loan {
    int fd;
    struct px_tree_ids owner;   /* who gets it back */
};

/* Before the box starts, with box->ids chosen and its plan armed. */
int px_lend(struct px_box *box, struct px_err *e);
/* When no process of the box is left. False if something could not be given back; a second call does nothing. */
bool px_lend_back(struct px_box *box);
