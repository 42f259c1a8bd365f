/* box/hooks.h - what code above the core may do for a box: run it by an OCI runtime, carry its network traffic, work
 * on its changes.
 *
 * Why:     the core starts and watches boxes. It calls code above it only through these structs.
 * Owns:    nothing: each struct says who owns it.
 * Mustn't: be needed by a plan, which is data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <px/px.h>

#include "net/wire.h"

struct px_box;
struct px_err;
struct px_policy;

/* Hooks of an OCI runtime (runtime/runtime.c). px_supervise_start takes ownership, even when it fails. */
struct px_partner {
    const char *tier;           /* for the result */
    char *const *argv;          /* for the result: the plan's argv is that of the runtime's program */
    /* it has its own process in the box, which gets the cgroup, the streams and the terminal */
    bool inside;
    int stdio[3];               /* the box's ends of the streams, for that process; -EBADF: none */
    int (*prepare)(struct px_box *box, const struct px_policy *policy, struct px_err *e);       /* all is reserved, nothing runs */
    void (*ready)(struct px_box *box);          /* PX_EVENT_PARTNER */
    int (*gone)(struct px_box *box, struct px_err *e);  /* pid 1 was reaped; -1 if there can be no result */
    void (*done)(struct px_partner *partner);
};

/* A hook that runs when the box has ended (start/changes.c). px_supervise_start takes ownership, even when it fails. */
struct px_after {
    const char *note;           /* stored with changes that are kept */
    int (*ended)(struct px_box *box, struct px_err *e);         /* the result is complete but for what this adds */
    void (*done)(struct px_after *after);
};

/* The network driver: the process that carries traffic between the box's network namespace and the outside
 * (relay/relay.c). px_supervise_start takes ownership, even when it fails. */
struct px_carrier {
    /* the box's end, to which it sends sockets of its namespace; closed once the box runs */
    int socket;
    int pidfd;                  /* of the driver's process; readable when that has ended */
    int pid;                    /* the same process: it is put into the cgroup of the box */
    unsigned processes;         /* how many processes the driver will have */
    int record;                 /* what `mark` and `tell` read, also in another process that uses the box */
    struct px_port ports[PX_NET_PORTS_MAX];     /* px_box_port */
    size_t ports_count;
    void (*end)(struct px_carrier *carrier);    /* the box has ended: deliver what is in flight, then exit */
    void (*kill)(struct px_carrier *carrier);
    /* the step DRIVER failed: fills the error. NULL: there is no such step */
    int (*failed)(struct px_carrier *carrier, struct px_err *e);
    int (*change)(struct px_carrier *carrier, const char *field, const char *value, struct px_err *e);  /* px_box_network */
    void *(*mark)(struct px_carrier *carrier);  /* the current counts, for `tell`; the caller's to free() */
    /* Adds what was refused and carried, since `since` if that is not NULL. Returns what the result borrows, the
     * caller's to free(). */
    void *(*tell)(struct px_carrier *carrier, const void *since, struct px_result *r);
    void (*done)(struct px_carrier *carrier);
};
