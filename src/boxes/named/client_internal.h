/* named/client_internal.h - the user's connection to the keeper of a box.
 *
 * Owns:    its descriptors, and the container received from the keeper.
 * Mustn't: be shared by threads. */
#pragma once

#include "named/named_internal.h"

struct px_living {
    char name[PX_BOX_NAME_MAX];
    int boxes, dir, socket;
    int defaults;               /* what commands start from; with home */
    struct px_box *home;        /* NULL until a command needs it */
    bool waits;                 /* a WAIT request is open, which is answered when a command ends */
    int cancel;                 /* borrowed; readable: give up */
    bool stops;                 /* it was asked to stop */
    char why[512];              /* why the box has ended */
};

/* pidfd of its pid 1, borrowed; -1. */
int px_named_client_init(struct px_living *living, struct px_err *e);
