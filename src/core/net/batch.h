/* net/batch.h - the routes and rules of a box's network, as netlink messages that the payload sends as they are.
 *
 * Why:     everything is worked out by the parent; the child has no place to build messages in.
 * Owns:    nothing.
 * Mustn't: ask for anything outside the namespace it is sent in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_buf;

/* For NETLINK_ROUTE: the box's own address on lo, and every other address routed to it as local. */
void px_batch_routes4(struct px_buf *out);
void px_batch_routes6(struct px_buf *out);
/* For NETLINK_NETFILTER: TCP and queries go to our listeners, loopback stays but for TCP to `ports`, which are the
 * host's; all else is told to the log and dropped. */
void px_batch_rules(struct px_buf *out, const uint16_t *ports, size_t count);
/* For a namespace with a device to the outside (--net outbound:pasta, see wire.h): what is not the open network, and the addresses `own` of
 * the host, cannot be reached by it. Routes of one family that refuse at once; rules that hold for every packet. */
struct px_address;
struct px_fence {
    const struct px_address *own;
    size_t own_count;
    const struct px_address *servers;   /* of names, which are let through; none: PX_NET_RESOLVER, for datagrams */
    size_t servers_count;
    bool host_loopback;         /* PX_NET_HOST_LOOPBACK is let through */
};
void px_batch_fence_routes(struct px_buf *out, int family, const struct px_fence *fence);
void px_batch_fence_rules(struct px_buf *out, const struct px_fence *fence);
/* For the NETLINK_NETFILTER socket that the log comes to. */
void px_batch_log(struct px_buf *out);
