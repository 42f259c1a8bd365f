/* helpers/net/link.h - one connection: two sockets, and the bytes between them. */
#pragma once

#include "helpers/net/relay.h"

enum link_state { LINK_CONNECTING, LINK_OPEN };

struct end {
    struct watch w;
    struct link *link;
    bool in, out;               /* ready, as far as we know */
};

/* One direction. Its pipe is there only while bytes are in it, or are expected at once. */
struct flow {
    int pipe[2];
    bool large;
    size_t held;
    bool ended;                 /* the source has sent all */
    bool done;                  /* ... and the other side has got the end */
};

struct link {
    struct link *next, **at;    /* of all that live */
    struct link *next_again;
    bool queued;
    struct end box, far;        /* the box's side, and the side outside */
    struct flow up, down;       /* from the box, to the box */
    enum link_state state;
    bool inside;                /* published: the box's side is a socket of its namespace that is used again */
    bool checked;               /* its first bytes name no server that it may not have, or need not be looked at */
    unsigned looks;
    struct px_address asked;    /* what the box has connected to */
    struct name *name;          /* NULL: it was made to an address */
    uint16_t port;
    struct px_address to[2 * PX_DNS_ADDRESSES_MAX];     /* where it may go; what is left to try */
    size_t to_count, to_at;
    int traffic;
    uint64_t deadline_nsec;     /* of connecting, and of the first bytes once there are any; 0: none */
};

/* link.c */
struct link *link_new(struct relay *r, int box_fd, int far_fd);
void link_free(struct relay *r, struct link *l, bool reset);
int link_connect_next(struct relay *r, struct link *l);
void link_turn(struct relay *r, struct link *l);
void link_refuse(struct relay *r, int fd);              /* closes it so that the other side knows at once */
/* route.c: where a new connection of the box goes. 0, or -1 if it was refused (and noted). */
int route_find(struct relay *r, const struct px_address *to, uint16_t port, struct link *l);
/* route.c: checks its first bytes. 1 allowed, 0 not known yet, -1 refused (and recorded). */
int route_check(struct relay *r, struct link *l);
/* flow.c: as many bytes as can be moved in one turn. -errno if the connection is broken. */
int flow_move(struct relay *r, struct flow *f, struct end *from, struct end *to, uint64_t *count, bool *ret_more);
void flow_init(struct flow *f);
void flow_done(struct relay *r, struct flow *f);
