/* relay/relay.h - starts the network driver of a box (px-net), and reads its record.
 *
 * Why:     px-net (net/wire.h) is a process of its own; this is the side of the process that starts it.
 * Owns:    the process and its record, as long as the box exists.
 * Mustn't: trust the record: its numbers are bounded and its texts checked. */
#pragma once

#include <px/px.h>

#include "box/supervise.h"
#include "helper/helper.h"

/* A network driver that is a helper process. */
struct px_relay {
    struct px_carrier carrier;  /* px_relay_new sets the functions of px-net */
    struct px_helper helper;
};

struct px_relay *px_relay_new(void);
void px_relay_free(struct px_relay *n);
/* Starts the helper, with the box's socket as its second descriptor and then `fd`, if there is one. */
int px_relay_launch(struct px_relay *n, const char *name, const char *const *args, int fd, struct px_err *e);
/* Listens on a port of the host, in the syntax of --publish; returns the descriptor. */
struct px_net_order;
int px_relay_listen(const char *text, struct px_net_order *o, struct px_port *ret_port, struct px_err *e);

/* For a container that another process made: reads only its record. NULL if there is no memory. */
struct px_carrier *px_relay_guest(int *record);
/* For a policy for which px_policy_carried is true: listens on the published ports and starts px-net. */
int px_relay_start(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);
