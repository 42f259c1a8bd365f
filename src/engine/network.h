/* engine/network.h - starting who carries a box's traffic, and reading what came of it.
 *
 * Why:     px-net (net/wire.h) is a process of its own; this is the engine's side of it.
 * Owns:    the process and its record, as long as the box is there.
 * Mustn't: believe the record: its numbers are bounded and its texts checked. */
#pragma once

#include <px/px.h>

struct px_carrier;

/* For a home that another process made: what is read of its record. NULL if there is no memory. */
struct px_carrier *px_network_guest(int *record);
/* For a policy that px_policy_carried: listens on the published ports, starts px-net. */
int px_network_start(const struct px_policy *policy, struct px_carrier **ret_carrier, struct px_err *e);
