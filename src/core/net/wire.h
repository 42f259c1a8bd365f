/* net/wire.h - how a box reaches the outside: the design, and the messages between px and px-net.
 *
 *   box's network namespace                     |  outside
 *   program --connect--> nft redirect --> 127.0.0.1:1, [::1]:1  --accept--> px-net --connect--> server
 *   program --query----> nft redirect --> 127.0.0.1:53, [::1]:53 ---------> px-net --query----> the host's name servers
 *   server <--connect, send-- sockets of the namespace <---------------- px-net <--connect, send-- visitors of a published port
 *   everything else ---> nft log, drop -------------------------(log)-----> px-net records it
 *
 * Why:     without a tap device, a packet parser or root. The box's own kernel does TCP; the payload, while it has the
 *          privileges, makes the routes, the rules and the listening sockets of its namespace and passes the sockets to
 *          px-net, a process of ours outside that lives as long as the box. A socket keeps its namespace: px-net
 *          accepts inside and connects outside.
 *
 * (1) px-net is the only way out: no device but lo, and whatever is not TCP or a name query is dropped by the rules
 *     (the sender gets EPERM at once). The payload has no privilege over its namespace, so the rules stay. If px-net
 *     dies, the listeners die with it and the box has no network.
 * (2) A name gets an address of its own, from a pool that exists nowhere else (198.18.0.0/15, fd70:78::/96), for the
 *     life of the box. So the address of a connection identifies its name: nothing is guessed, and two names on one
 *     server are kept apart. px-net resolves the name outside, checks every address against the forbidden ranges and
 *     connects to the one it has checked.
 * (3) Decisions: deny wins; with an allow-list what is not on it is refused; an address that is private, local, the
 *     host's own or for metadata must be named as an address (IP or CIDR), whatever name led there. Names that may not
 *     be reached do not resolve (NXDOMAIN) and are never asked for outside. Where there is an allow-list, the server
 *     name of a TLS hello and the Host of a first HTTP request must be the connection's name; a hello that hides its
 *     name (ECH) is refused.
 * (4) px-net is confined before it reads an untrusted byte: no file, no program, no privilege, only TCP and UDP
 *     sockets. What it holds is bounded by the numbers below; a full table refuses the next entry at once.
 * (5) What was refused, and the bytes for each name, are in a page of memory that px reads when the box has ended.
 *
 * Owns:    nothing; both sides include it.
 * Mustn't: be trusted by px: px-net reads untrusted bytes. px checks what it reads from the record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/rule.h"

/* Below 1024, so that no program in the box can bind them. */
enum { PX_NET_PORT_TCP = 1, PX_NET_PORT_DNS = 53, PX_NET_LOG_GROUP = 1 };

#define PX_NET_OWN "10.0.2.100"         /* the box's own address */
#define PX_NET_OWN6 "fd70:78:1::64"
#define PX_NET_HOST_LOOPBACK "10.0.2.2" /* the host's loopback, where that is allowed */
#define PX_NET_RESOLVER "10.0.2.3"
#define PX_NET_CONGESTION "reno"        /* control of TCP within this machine; every kernel has it */
#define PX_NET_GATEWAY6 "fd70:78:1::2"  /* where there is a device */
#define PX_NET_POOL 0xc6120000u         /* 198.18.0.0/15 */
#define PX_NET_POOL6 "fd70:78::"        /* and the same 32 bits as the last four bytes */

enum {
    PX_NET_NAMES_MAX = 4096,            /* with an address of the pool */
    PX_NET_LINKS_MAX = 1024,            /* connections */
    PX_NET_QUERIES_MAX = 256,
    PX_NET_LOOKUPS_MAX = 32,
    PX_NET_SERVERS_MAX = 3,
    PX_NET_HOSTS_MAX = 512,             /* lines of the host's /etc/hosts */
    PX_NET_PORTS_MAX = 64,              /* published, or of the host's loopback */
    PX_NET_INSIDE_MAX = 64,             /* sockets of the box's namespace for connections into it */
    PX_NET_VISITORS_MAX = 32,           /* remembered senders to its UDP ports, each with a socket of its namespace */
    PX_NET_VISITOR_MSEC = 60000,        /* ... for this long after the last datagram */
    PX_NET_LINGER_MSEC = 2000,          /* to deliver what an ended box has sent */
};

/* What the payload passes, in the byte that goes with the descriptor. */
enum px_net_socket {
    PX_NET_TCP4 = 'a', PX_NET_TCP6, PX_NET_UDP4, PX_NET_UDP6, PX_NET_DNS4, PX_NET_DNS6, PX_NET_LOG, PX_NET_INSIDE, PX_NET_INSIDE_UDP,
    PX_NET_NAMESPACE,           /* the namespace itself, for px-pasta; answered by an int32_t, 0 or -errno */
};

/* From px to px-net. Orders before GO are not answered. ALLOW, DENY, FORGET and PUBLISH* may also come later; each
 * is answered by an int32_t, 0 or -errno, once it holds for every new connection. */
enum px_net_order_kind {
    PX_ORDER_ALLOW, PX_ORDER_DENY, PX_ORDER_FORGET_ALLOW, PX_ORDER_FORGET_DENY, PX_ORDER_SERVER, PX_ORDER_HOST, PX_ORDER_HOST_PORT,
    PX_ORDER_PUBLISH, PX_ORDER_PUBLISH_UDP, PX_ORDER_OUTSIDE, PX_ORDER_GO,
};
struct px_net_order {
    uint32_t kind;
    uint32_t port;              /* HOST_PORT: 0 is every port; PUBLISH*: in the box, and the listener comes with it */
                                /* OUTSIDE: a network namespace comes with it, and px-net enters it */
    struct px_net_rule rule;    /* ALLOW, DENY */
    struct px_address address;  /* SERVER, HOST */
    char name[PX_NET_NAME_MAX]; /* HOST */
};

/* Descriptors of px-net, and the first two of px-pasta. */
enum { PX_NET_FD_ENGINE = 3, PX_NET_FD_BOX, PX_NET_FD_RECORD };

/* For --net outbound:pasta px-pasta runs instead of px-net (helpers/pasta). It starts pasta, which makes a device in
 * the namespace, and ends it. The rules of the namespace drop every packet through the device that is not for the
 * open network. If the set-up fails, px-pasta sends the reason as one message of text. */
enum { PX_NET_OWN_MAX = 128, PX_NET_WORDS_MAX = 1024 };

/* ---- the record ---- */

enum px_net_op { PX_NET_OP_RESOLVE, PX_NET_OP_CONNECT, PX_NET_OP_SEND, PX_NET_OP_COUNT };
enum px_net_why {
    PX_NET_WHY_LIST,            /* not on the allow-list */
    PX_NET_WHY_DENIED,          /* by --deny-net */
    PX_NET_WHY_RANGE,           /* private, local, metadata, the host's own */
    PX_NET_WHY_LOOPBACK,        /* the host's loopback */
    PX_NET_WHY_NAME,            /* the TLS hello or the Host header names another */
    PX_NET_WHY_HIDDEN,          /* it hides its name, or cannot be parsed */
    PX_NET_WHY_PROTOCOL,        /* neither TCP nor a name query */
    PX_NET_WHY_LIMIT,           /* too many at once */
    PX_NET_WHY_COUNT
};

enum { PX_NET_DENIALS_MAX = 16, PX_NET_TRAFFIC_MAX = 64, PX_NET_TARGET_MAX = 320 };

struct px_net_denial {
    uint32_t op, why;
    uint64_t count;             /* 0: the slot is free */
    char target[PX_NET_TARGET_MAX];
    char grant[PX_NET_TARGET_MAX];      /* what --allow-net would need; "" if it would not help */
};

struct px_net_traffic {
    char name[PX_NET_NAME_MAX]; /* or an address; "" in the last: all others */
    uint64_t connections, sent, received;
};

struct px_net_record {
    struct px_net_denial denials[PX_NET_DENIALS_MAX];
    uint64_t denials_lost;      /* of targets without a slot */
    struct px_net_traffic traffic[PX_NET_TRAFFIC_MAX];
    uint32_t traffic_count;
    uint32_t ready;             /* px-net has its sockets */
};
