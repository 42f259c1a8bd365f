/* net/batch.h - the routes and rules of a box's network, as netlink messages that the payload sends as they are.
 *
 * Why:     everything is worked out by the parent; the child has no place to build messages in.
 * Owns:    nothing.
 * Mustn't: ask for anything outside the namespace it is sent in. */
#pragma once

struct px_buf;

/* For NETLINK_ROUTE: the box's own address on lo, and every other address routed to it as local. */
void px_batch_routes4(struct px_buf *out);
void px_batch_routes6(struct px_buf *out);
/* For NETLINK_NETFILTER: TCP and queries go to our listeners, loopback stays, all else is told to the log and dropped. */
void px_batch_rules(struct px_buf *out);
/* For the NETLINK_NETFILTER socket that the log comes to. */
void px_batch_log(struct px_buf *out);
