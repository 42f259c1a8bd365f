/* box/hooks.h - what code above the core may do for a box: run it by an OCI runtime, carry its traffic, work on its changes.
 *
 * Why:     the core starts and watches boxes; it calls nothing above it but through these.
 * Owns:    nothing: each says whose it is.
 * Mustn't: be needed by a plan, which is data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <px/px.h>

#include "net/wire.h"

struct px_box;
struct px_err;
struct px_policy;

/* Somebody above who has a part in a box: a runtime (runtime/runtime.c). It is the box's from px_supervise_start on, also on failure. */
struct px_partner {
    const char *tier;           /* of the result */
    char *const *argv;          /* of the result: the plan's is that of the partner's own program */
    bool inside;                /* it has its own process there, and gives it the cgroup, the streams and the terminal */
    int stdio[3];               /* the box's ends of the streams, for that process; -EBADF: none */
    int (*prepare)(struct px_box *box, const struct px_policy *policy, struct px_err *e);       /* all is reserved, nothing runs */
    void (*ready)(struct px_box *box);          /* PX_EVENT_PARTNER */
    int (*gone)(struct px_box *box, struct px_err *e);  /* pid 1 was reaped; -1 if there can be no result */
    void (*done)(struct px_partner *partner);
};

/* Somebody above who has something to do when the box is gone: start/changes.c. It is the box's from
 * px_supervise_start on, also on failure. */
struct px_after {
    const char *note;           /* for changes that are kept */
    int (*ended)(struct px_box *box, struct px_err *e);         /* the result is made, but for what it adds */
    void (*done)(struct px_after *after);
};

/* Who carries the traffic of a box between its namespace and the outside (relay/relay.c). It is the box's from
 * px_supervise_start on, also on failure. */
struct px_carrier {
    int socket;                 /* the box's end: it sends sockets of its namespace there. Ours to close when the box runs. */
    int pidfd;                  /* of the carrier's process; readable when that is gone */
    int pid;                    /* the same: it works for the box, so that the limits of the box hold it */
    unsigned processes;         /* that it will be */
    int record;                 /* what `mark` and `tell` read, also in another process that uses the box */
    struct px_port ports[PX_NET_PORTS_MAX];     /* px_box_port */
    size_t ports_count;
    void (*end)(struct px_carrier *carrier);    /* the box is gone: deliver what is on its way, then go */
    void (*kill)(struct px_carrier *carrier);
    int (*failed)(struct px_carrier *carrier, struct px_err *e);       /* the step DRIVER failed: its words. NULL: it has no such step */
    int (*change)(struct px_carrier *carrier, const char *field, const char *value, struct px_err *e);  /* px_box_network */
    void *(*mark)(struct px_carrier *carrier);  /* how things stand now, for `tell`; the caller's to free() */
    /* Adds what was refused and carried (since then, if since is not NULL). What the result borrows, the caller's to free(). */
    void *(*tell)(struct px_carrier *carrier, const void *since, struct px_result *r);
    void (*done)(struct px_carrier *carrier);
};
