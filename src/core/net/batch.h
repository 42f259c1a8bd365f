/* net/batch.h - the routes and rules of a box's network, as netlink messages that the payload sends unchanged.
 *
 * Why:     the parent computes everything; the child has no memory to build messages in.
 * Owns:    nothing.
 * Mustn't: configure anything outside of the namespace in which it is sent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_buf;

/* For NETLINK_ROUTE: the box's own address on lo, and every other address routed to it as local. */
void px_batch_routes4(struct px_buf *out);
void px_batch_routes6(struct px_buf *out);
/* For NETLINK_NETFILTER: TCP and name queries go to px-net's listeners; loopback stays in the box, except for TCP to
 * `ports`, which are the host's; all else is logged and dropped. */
void px_batch_rules(struct px_buf *out, const uint16_t *ports, size_t count);
/* For a namespace with a device to the outside (--net outbound:pasta, see wire.h): special networks, and the
 * addresses `own` of the host, cannot be reached through it. Routes of one family fail at once; the rules hold for
 * every packet. */
struct px_address;
struct px_fence {
    const struct px_address *own;
    size_t own_count;
    const struct px_address *servers;   /* name servers, which are allowed; none: PX_NET_RESOLVER, for datagrams */
    size_t servers_count;
    bool host_loopback;         /* PX_NET_HOST_LOOPBACK is allowed */
};
void px_batch_fence_routes(struct px_buf *out, int family, const struct px_fence *fence);
void px_batch_fence_rules(struct px_buf *out, const struct px_fence *fence);
/* For the NETLINK_NETFILTER socket that receives the log. */
void px_batch_log(struct px_buf *out);
