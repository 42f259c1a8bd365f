/* box/lend.h - binds of a root caller on file systems without id-mapped mounts: overlayfs (the root of a container),
 * FUSE.
 *
 * Why:     the box of a root caller has an id range of its own, which has no access to the caller's files. On other
 *          file systems an id-mapped mount shows the caller's files as the box user's. Here a read-only bind is seen
 *          with the permissions of any user of the host. The files of a writable bind that belong to the caller get
 *          the box's ids until the box has ended.
 * Owns:    a descriptor of each source whose owner was changed.
 * Mustn't: use a box id that is the caller's; follow a link; leave the mount of the source; change the owner of files
 *          of another user. */
#pragma once

#include "kernel/tree.h"

struct px_box;
struct px_err;

struct px_loan {
    int fd;
    struct px_tree_ids owner;   /* who gets it back */
};

/* Called before the box starts, with box->ids chosen and its plan armed. */
int px_lend(struct px_box *box, struct px_err *e);
/* Called when no process of the box is left. False if some owner could not be changed back; a second call does
 * nothing. */
bool px_lend_back(struct px_box *box);
