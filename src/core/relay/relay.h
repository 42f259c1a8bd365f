/* relay/relay.h - starting who carries a box's traffic, and reading what came of it.
 *
 * Why:     px-net (net/wire.h) is a process of its own; this is the engine's side of it.
 * Owns:    the process and its record, as long as the box is there.
 * Mustn't: believe the record: its numbers are bounded and its texts checked. */
#pragma once

#include <px/px.h>

#include "box/supervise.h"
#include "helper/helper.h"

/* A carrier that is a helper. */
struct px_relay {
    struct px_carrier carrier;  /* its functions are those of px-net at first */
    struct px_helper helper;
};

struct px_relay *px_relay_new(void);
void px_relay_free(struct px_relay *n);
/* Starts it, with the box's socket as its second descriptor and then `fd`, if there is one. */
int px_relay_launch(struct px_relay *n, const char *name, const char *const *args, int fd, struct px_err *e);
/* A port of the host, as --publish says it, listened on; the descriptor. */
struct px_net_order;
int px_relay_listen(const char *text, struct px_net_order *o, struct px_port *ret_port, struct px_err *e);

/* For a home that another process made: what is read of its record. NULL if there is no memory. */
struct px_carrier *px_relay_guest(int *record);
/* For a policy that px_policy_carried: listens on the published ports, starts px-net. */
int px_relay_start(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);
