/* Published UDP ports. Whoever sends to one is a visitor, with a socket of the box's namespace that speaks for him: what he sends leaves
 * by it, and what comes back to it is for him.
 *
 * (1) There are as many visitors as the box has handed sockets over, and none can be made from here. Who has been silent the longest
 *     gives his up for a newcomer, and everybody who is silent for PX_NET_VISITOR_MSEC.
 * (2) The socket is connected to the published port, so that nothing but that port can answer, and nobody in the box can use it to
 *     reach whom it likes: only who has sent something first, and is still remembered, gets anything.
 * (3) Before another visitor gets it, it is taken from the port and emptied: no answer goes to the wrong one. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "helpers/net/relay.h"

enum { TURNS = 64, DATAGRAM_MAX = 65536 };

static uint8_t datagram[DATAGRAM_MAX];

/* ---- addresses ---- */

/* By which of the host's addresses he came, as what makes the answer leave by the same. */
static void note_way(struct visitor *v, struct msghdr *m)
{
    v->way_length = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        struct cmsghdr *way = &v->way.header;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO && c->cmsg_len == CMSG_LEN(sizeof(struct in_pktinfo))) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            info.ipi_ifindex = 0;
            memcpy(CMSG_DATA(way), &info, sizeof info);
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO && c->cmsg_len == CMSG_LEN(sizeof(struct in6_pktinfo))) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))        /* address: whether it needs its device beside it */
                info.ipi6_ifindex = 0;
            memcpy(CMSG_DATA(way), &info, sizeof info);
        } else {
            continue;
        }
        *way = *c;
        v->way_length = CMSG_SPACE(c->cmsg_len - CMSG_LEN(0));
    }
}

static bool is_from(const struct visitor *v, const struct listener *port, const struct sockaddr_storage *from, socklen_t length)
{
    return v->port == port && v->from_length == length && memcmp(&v->from, from, length) == 0;
}

/* ---- visitors ---- */

static void dismiss(struct relay *r, struct visitor *v)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, v->w.fd, NULL);
    (void)connect(v->w.fd, &nobody, sizeof nobody);
    while (recv(v->w.fd, datagram, 1, MSG_DONTWAIT) >= 0 || errno == ECONNREFUSED)
        ;
    v->port = NULL;
    r->visitors_here--;
}

/* A socket that no visitor has, or that of the visitor that was silent the longest. */
static struct visitor *make_room(struct relay *r)
{
    struct visitor *oldest = NULL;
    for (size_t i = 0; i < r->visitors_count; i++) {
        struct visitor *v = &r->visitors[i];
        if (!v->port)
            return v;
        if (!oldest || v->used_nsec < oldest->used_nsec)
            oldest = v;
    }
    if (oldest)
        dismiss(r, oldest);
    return oldest;
}

static struct visitor *welcome(struct relay *r, struct listener *port, const struct sockaddr_storage *from, socklen_t length)
{
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char text[40];
    struct visitor *v = make_room(r);
    if (!v || connect(v->w.fd, (const struct sockaddr *)&to, sizeof to) < 0 || relay_watch(r, &v->w, EPOLLIN) < 0)
        return NULL;
    v->port = port;
    v->from = *from;
    v->from_length = length;
    (void)px_fmt(text, sizeof text, "udp port %u of the box", port->port);
    v->traffic = relay_traffic(r, text);
    r->visitors_here++;
    r->record->traffic[v->traffic].connections++;
    return v;
}

static struct visitor *find(struct relay *r, struct listener *port, const struct sockaddr_storage *from, socklen_t length)
{
    for (size_t i = 0; i < r->visitors_count; i++)
        if (is_from(&r->visitors[i], port, from, length))
            return &r->visitors[i];
    return welcome(r, port, from, length);
}

/* ---- datagrams ---- */

/* A datagram that cannot be sent now is lost, as on any way. */
static void answer_ready(struct relay *r, struct watch *w, uint32_t events)
{
    struct visitor *v = (struct visitor *)w;
    (void)events;
    for (int i = 0; v->port && i < TURNS; i++) {
        ssize_t n = recv(w->fd, datagram, sizeof datagram, MSG_DONTWAIT);
        if (n < 0 && errno != ECONNREFUSED)     /* that is the box's: nothing listens there */
            return;
        if (n < 0)
            continue;
        struct iovec data = {.iov_base = datagram, .iov_len = (size_t)n};
        struct msghdr m = {.msg_name = &v->from, .msg_namelen = v->from_length, .msg_iov = &data, .msg_iovlen = 1,
                           .msg_control = v->way_length ? &v->way : NULL, .msg_controllen = v->way_length};
        if (sendmsg(v->port->w.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            r->record->traffic[v->traffic].received += (uint64_t)n;
        v->used_nsec = px_now_nsec();
    }
}

static void visit_ready(struct relay *r, struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < TURNS; i++) {
        struct sockaddr_storage from = {0};
        union udp_way way;
        struct iovec data = {.iov_base = datagram, .iov_len = sizeof datagram};
        struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &data, .msg_iovlen = 1, .msg_control = &way,
                           .msg_controllen = sizeof way};
        ssize_t n = recvmsg(w->fd, &m, MSG_DONTWAIT);
        if (n < 0)
            return;
        struct visitor *v = find(r, (struct listener *)w, &from, m.msg_namelen);
        if (!v)
            continue;
        note_way(v, &m);
        v->used_nsec = px_now_nsec();
        if (send(v->w.fd, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
            (errno == ECONNREFUSED && send(v->w.fd, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0))
            r->record->traffic[v->traffic].sent += (uint64_t)n;
    }
}

/* ---- its life ---- */

int udp_add(struct relay *r, uint32_t port, int *fd)
{
    static const int on = 1;
    if (r->udp_ports_count >= PX_NET_PORTS_MAX || *fd < 0)
        return -EINVAL;
    struct listener *l = &r->udp_ports[r->udp_ports_count++];
    *l = (struct listener){.w = {.ready = visit_ready, .fd = px_fd_take(fd)}, .port = (uint16_t)port};
    if (setsockopt(l->w.fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) < 0)
        (void)setsockopt(l->w.fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    return relay_watch(r, &l->w, 0);
}

void udp_take(struct relay *r, int *fd)
{
    if (r->visitors_count < PX_NET_VISITORS_MAX)
        r->visitors[r->visitors_count++] = (struct visitor){.w = {.ready = answer_ready, .fd = px_fd_take(fd)}};
}

/* What comes before there is a socket for it waits in the kernel. */
void udp_publish(struct relay *r)
{
    for (size_t i = 0; i < r->udp_ports_count; i++) {
        struct epoll_event event = {.events = r->visitors_count > 0 && !r->ending ? EPOLLIN : 0, .data.ptr = &r->udp_ports[i].w};
        (void)epoll_ctl(r->epoll, EPOLL_CTL_MOD, r->udp_ports[i].w.fd, &event);
    }
}

void udp_tick(struct relay *r, uint64_t now)
{
    for (size_t i = 0; i < r->visitors_count; i++) {
        struct visitor *v = &r->visitors[i];
        if (v->port && now - v->used_nsec >= (uint64_t)PX_NET_VISITOR_MSEC * 1000000)
            dismiss(r, v);
    }
}

void udp_end(struct relay *r)
{
    for (size_t i = 0; i < r->visitors_count; i++)
        answer_ready(r, &r->visitors[i].w, 0);
    udp_publish(r);
}
