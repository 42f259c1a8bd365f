/* helpers/net/relay.h - px-net: carries the connections and name queries of one box. The design is in net/wire.h.
 *
 * Why:     one process for each box, so that what a box does to it hurts that box alone.
 * Owns:    every socket, pipe and table below, all of them bounded by the numbers of net/wire.h.
 * Mustn't: block but in epoll_wait, open a file, or trust a byte from either side. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "helpers/net/dns.h"
#include "net/wire.h"

struct relay;
struct link;

/* A descriptor in the epoll, and what to do when it is ready. The first member of whatever it belongs to. */
struct watch {
    void (*ready)(struct relay *r, struct watch *w, uint32_t events);
    int fd;
};

enum name_state { NAME_NEW, NAME_LOOKING, NAME_KNOWN };

struct name {
    char text[PX_NET_NAME_MAX];
    uint32_t number;            /* in the pool; its own for ever */
    enum name_state state;
    bool given;                 /* the box has an address of the pool for it, so that it stays */
    int rcode;                  /* of the last lookup */
    struct px_address addresses[2 * PX_DNS_ADDRESSES_MAX];
    size_t count;
    uint64_t until_nsec;        /* how long that is good */
    int traffic;                /* its row of the record; -1: none yet */
    struct name *next;          /* in its bucket, or in the list of free ones */
};

enum { BUCKETS = 1024, NAME_BLOCK = 64, PIPES_LARGE = 4, CLIENTS_MAX = 16 };

/* A query of the box that waits for a lookup. */
struct query {
    struct name *name;          /* NULL: the slot is free */
    struct px_dns_question question;
    struct watch *from;         /* the UDP socket it came by, or NULL */
    struct sockaddr_storage to;
    socklen_t to_len;
    struct client *client;      /* TCP; NULL if it is gone */
};

struct lookup {
    struct watch w;
    struct name *name;          /* NULL: the slot is free */
    uint16_t id[2];             /* of the two questions: A, AAAA */
    bool have[2];
    struct px_dns_reply reply[2];
    unsigned tries;
    uint64_t deadline_nsec;
};

/* A query that comes by TCP. */
struct client {
    struct watch w;
    bool used;
    uint8_t in[2 + PX_DNS_MESSAGE_MAX];
    size_t have;
    uint64_t deadline_nsec;
};

struct listener {
    struct watch w;
    bool six;
    uint16_t port;              /* published: of the box */
};

/* What says by which of the host's addresses a datagram came, or goes. */
union udp_way {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

/* A sender to a published UDP port. */
struct visitor {
    struct watch w;             /* the socket of the box's namespace that speaks for him */
    struct listener *port;      /* NULL: no visitor has it */
    struct sockaddr_storage from;
    socklen_t from_length;
    union udp_way way;
    size_t way_length;          /* 0: not known */
    int traffic;
    uint64_t used_nsec;         /* when something last went either way */
};

struct host_entry {
    char name[PX_NET_NAME_MAX];
    struct px_address address;
};

struct relay {
    int epoll;
    struct watch engine, box, log;
    struct listener tcp[2], dns_tcp[2];
    struct watch dns_udp[2];
    struct px_net_record *record;
    /* settings */
    struct px_net_rules rules;
    struct px_address servers[PX_NET_SERVERS_MAX];
    size_t servers_count;
    struct host_entry *hosts;
    size_t hosts_count;
    uint16_t host_ports[PX_NET_PORTS_MAX];
    size_t host_ports_count;
    bool host_loopback;         /* every port of it */
    struct listener published[PX_NET_PORTS_MAX];
    size_t published_count;
    struct listener udp_ports[PX_NET_PORTS_MAX];
    size_t udp_ports_count;
    /* state */
    struct name *names[PX_NET_NAMES_MAX];       /* by number */
    uint32_t names_count;
    struct name *names_free;
    struct name *buckets[BUCKETS];
    uint64_t seed;
    struct query queries[PX_NET_QUERIES_MAX];
    struct lookup lookups[PX_NET_LOOKUPS_MAX];
    struct client clients[CLIENTS_MAX];
    struct link *links;         /* all that live */
    struct link *again;         /* those that have more to do than one turn allows */
    size_t links_count, links_max;
    int inside[PX_NET_INSIDE_MAX];              /* idle sockets of the box's namespace */
    size_t inside_count;
    struct visitor visitors[PX_NET_VISITORS_MAX];
    size_t visitors_count, visitors_here;       /* that have a socket; that are somebody's */
    bool publishing;            /* the published ports are in the epoll */
    int pipes[PIPES_LARGE][2];  /* large ones that are idle */
    size_t pipes_count, pipes_large;
    bool ending;
    uint64_t end_nsec;
};

/* main.c */
int relay_watch(struct relay *r, struct watch *w, uint32_t events);
void relay_unwatch(struct relay *r, struct watch *w);   /* and closes it */
/* confine.c */
int relay_confine(void);
/* record.c */
void relay_deny(struct relay *r, enum px_net_op op, enum px_net_why why, const char *target, const char *grant);
int relay_traffic(struct relay *r, const char *name);
/* log.c */
void relay_log_ready(struct relay *r, struct watch *w, uint32_t events);
/* names.c */
struct name *names_find(struct relay *r, const char *text, bool make);
void names_drop(struct relay *r, struct name *n);       /* one that the box has no address for */
struct px_address names_address(const struct name *n, bool six);
/* The name for an address of the pool; *ret_pool: whether it is one of the pool at all. */
struct name *names_by_address(struct relay *r, const struct px_address *a, bool *ret_pool);
/* lookup.c */
void lookup_start(struct relay *r, struct name *n);
void lookup_tick(struct relay *r, uint64_t now);
/* serve.c */
void serve_udp_ready(struct relay *r, struct watch *w, uint32_t events);
void serve_tcp_ready(struct relay *r, struct watch *w, uint32_t events);
void serve_known(struct relay *r, struct name *n);      /* its lookup is over */
void serve_tick(struct relay *r, uint64_t now);
/* link.c */
void link_stays(int fd);                                /* its connections do not leave this machine */
void link_accept_ready(struct relay *r, struct watch *w, uint32_t events);
void link_published_ready(struct relay *r, struct watch *w, uint32_t events);
void link_more(struct relay *r);                        /* a turn for each of `again` */
void link_tick(struct relay *r, uint64_t now);
void link_end(struct relay *r);                         /* the box is gone */
void link_publish(struct relay *r);                     /* as sockets come and go */
/* udp.c */
int udp_add(struct relay *r, uint32_t port, int *fd);   /* a port */
void udp_take(struct relay *r, int *fd);                /* a socket of the box's namespace */
void udp_publish(struct relay *r);
void udp_tick(struct relay *r, uint64_t now);
void udp_end(struct relay *r);
