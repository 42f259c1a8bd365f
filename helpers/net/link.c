/* Connections: made, moved forward, ended. */
#include "helpers/net/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"

enum { ORIGINAL_DST = 80, TURNS = 64, CONNECT_MSEC = 10000, HELLO_MSEC = 10000 };

static void end_ready(struct relay *r, struct watch *w, uint32_t events)
{
    struct end *e = (struct end *)w;
    if (!e->link->at)           /* it ended by an event that came with this one */
        return;
    e->in = e->in || events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP);
    e->out = e->out || events & (EPOLLOUT | EPOLLHUP | EPOLLERR);
    link_turn(r, e->link);
}

/* ---- made and ended ---- */

static uint64_t after(unsigned msec)
{
    return px_now_nsec() + (uint64_t)msec * 1000000;
}

struct link *link_new(struct relay *r, int box_fd, int far_fd)
{
    struct link *l = r->links_count < r->links_max ? calloc(1, sizeof *l) : NULL;
    if (!l)
        return NULL;
    l->box = (struct end){.w = {.ready = end_ready, .fd = box_fd}, .link = l};
    l->far = (struct end){.w = {.ready = end_ready, .fd = far_fd}, .link = l};
    flow_init(&l->up);
    flow_init(&l->down);
    l->next = r->links;
    l->at = &r->links;
    if (l->next)
        l->next->at = &l->next;
    r->links = l;
    r->links_count++;
    return l;
}

void link_refuse(struct relay *r, int fd)
{
    static const struct linger at_once = {.l_onoff = 1};
    (void)r;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)px_fd_close(fd);
}

/* A socket of the box's namespace goes back to the others: none can be made from here. */
static void put_back(struct relay *r, struct link *l)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, l->box.w.fd, NULL);
    (void)connect(l->box.w.fd, &nobody, sizeof nobody);
    r->inside[r->inside_count++] = l->box.w.fd;
    l->box.w.fd = -EBADF;
    link_publish(r);
}

static void close_end(struct relay *r, struct end *e, bool reset)
{
    if (e->w.fd < 0)
        return;
    if (reset)
        link_refuse(r, e->w.fd);
    else
        (void)px_fd_close(e->w.fd);
    e->w.fd = -EBADF;
}

static void queue(struct relay *r, struct link *l)
{
    if (l->queued)
        return;
    l->queued = true;
    l->next_again = r->again;
    r->again = l;
}

/* Its memory is freed by link_more: other events of this round may still point to it. */
void link_free(struct relay *r, struct link *l, bool reset)
{
    *l->at = l->next;
    if (l->next)
        l->next->at = l->at;
    r->links_count--;
    flow_done(r, &l->up);
    flow_done(r, &l->down);
    close_end(r, &l->far, reset);
    if (l->inside && l->box.w.fd >= 0)
        put_back(r, l);
    close_end(r, &l->box, reset);
    l->at = NULL;
    queue(r, l);
}

/* ---- connecting ---- */

static void set_options(int fd)
{
    static const int on = 1, idle = 60;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
}

/* The host's default is meant for real networks; bbr, which paces, was clearly slower than this within the machine. */
void link_stays(int fd)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, PX_NET_CONGESTION, sizeof PX_NET_CONGESTION - 1);
}

static int watch_end(struct relay *r, struct end *e)
{
    return relay_watch(r, &e->w, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

/* Tries the next of its addresses. The socket reports a failure later, except one that connect returns at once. */
int link_connect_next(struct relay *r, struct link *l)
{
    int e = -ECONNREFUSED;
    while (l->to_at < l->to_count) {
        struct sockaddr_storage to;
        socklen_t len = px_address_to_socket(&l->to[l->to_at++], l->port, &to);
        if (l->far.w.fd >= 0)
            relay_unwatch(r, &l->far.w);
        l->far.w.fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        l->far.in = l->far.out = false;
        if (l->far.w.fd < 0)
            return -errno;
        set_options(l->far.w.fd);
        if (px_equal(px_address_special(&l->to[l->to_at - 1]), "loopback"))
            link_stays(l->far.w.fd);
        if (connect(l->far.w.fd, (struct sockaddr *)&to, len) == 0 || errno == EINPROGRESS) {
            l->deadline_nsec = after(CONNECT_MSEC);
            return watch_end(r, &l->far);
        }
        e = -errno;
    }
    return e;
}

/* Whether it is connected now. The side that connects is the box's if that is published. */
static int see_connect(struct relay *r, struct link *l)
{
    struct end *e = l->inside ? &l->box : &l->far;
    int error = 0;
    socklen_t len = sizeof error;
    if (!e->out && !e->in)
        return 0;
    if (getsockopt(e->w.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0)
        return l->inside ? -ECONNREFUSED : link_connect_next(r, l);
    l->state = LINK_OPEN;
    l->deadline_nsec = 0;
    return 0;
}

/* ---- forward ---- */

static int move(struct relay *r, struct link *l)
{
    struct px_net_traffic *t = &r->record->traffic[l->traffic];
    bool more = false;
    bool spoken = l->box.in;
    int checked = spoken ? route_check(r, l) : l->checked;
    if (checked < 0)
        return checked;
    if (checked == 0 && spoken && !l->deadline_nsec)
        l->deadline_nsec = after(HELLO_MSEC);           /* it has begun to send, and must complete its first message */
    if (checked > 0)
        l->deadline_nsec = 0;
    int e = checked > 0 ? flow_move(r, &l->up, &l->box, &l->far, &t->sent, &more) : 0;
    if (e >= 0)
        e = flow_move(r, &l->down, &l->far, &l->box, &t->received, &more);
    if (more)
        queue(r, l);
    return e;
}

void link_turn(struct relay *r, struct link *l)
{
    int e = l->state == LINK_CONNECTING ? see_connect(r, l) : 0;
    if (e >= 0 && l->state == LINK_OPEN)
        e = move(r, l);
    if (e < 0)
        link_free(r, l, true);
    else if (l->up.done && (l->down.done || r->ending))
        link_free(r, l, false);
}

void link_more(struct relay *r)
{
    struct link *l = r->again;
    r->again = NULL;
    while (l) {
        struct link *next = l->next_again;
        l->queued = false;
        if (!l->at)
            free(l);
        else
            link_turn(r, l);
        l = next;
    }
}

void link_tick(struct relay *r, uint64_t now)
{
    for (struct link *l = r->links, *next; l; l = next) {
        next = l->next;
        if (!l->deadline_nsec || now < l->deadline_nsec)
            continue;
        if (l->state == LINK_CONNECTING && !l->inside && link_connect_next(r, l) == 0)
            continue;
        link_free(r, l, true);
    }
}

/* ---- from the box ---- */

static int original(int fd, bool six, struct px_address *ret_to, uint16_t *ret_port)
{
    struct sockaddr_storage to = {0};
    socklen_t len = sizeof to;
    if (getsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DST, &to, &len) < 0)
        return -errno;
    return px_address_from_socket(&to, ret_to, ret_port);
}

static void take(struct relay *r, int fd, bool six)
{
    struct px_address to;
    uint16_t port;
    char where[PX_ADDRESS_TEXT + 16];
    /* the rules did not redirect it here: a program of the box connects to our own port */
    if (original(fd, six, &to, &port) < 0) {
        link_refuse(r, fd);
        return;
    }
    struct link *l = link_new(r, fd, -EBADF);
    if (!l) {
        px_address_print_port(&to, port, where, sizeof where);
        relay_deny(r, PX_NET_OP_CONNECT, PX_NET_WHY_LIMIT, where, "");
        link_refuse(r, fd);
        return;
    }
    set_options(fd);
    if (route_find(r, &to, port, l) < 0 || watch_end(r, &l->box) < 0 || link_connect_next(r, l) < 0) {
        link_free(r, l, true);
        return;
    }
    r->record->traffic[l->traffic].connections++;
}

void link_accept_ready(struct relay *r, struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < TURNS; i++) {
        int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        take(r, fd, ((struct listener *)w)->six);
    }
}

/* ---- into the box ---- */

static void bring_in(struct relay *r, int fd, uint16_t port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct link *l = link_new(r, r->inside[r->inside_count - 1], fd);
    char text[32];
    if (!l) {
        link_refuse(r, fd);
        return;
    }
    r->inside_count--;
    l->inside = l->checked = true;
    (void)px_fmt(text, sizeof text, "port %u of the box", port);
    l->traffic = relay_traffic(r, text);
    set_options(fd);
    l->deadline_nsec = after(CONNECT_MSEC);
    int e = connect(l->box.w.fd, (const struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS ? -errno : 0;
    if (e < 0 || watch_end(r, &l->box) < 0 || watch_end(r, &l->far) < 0)
        link_free(r, l, true);
    else
        r->record->traffic[l->traffic].connections++;
}

void link_published_ready(struct relay *r, struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < TURNS && r->inside_count > 0; i++) {
        int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        bring_in(r, fd, ((struct listener *)w)->port);
    }
    link_publish(r);
}

/* Published ports are polled as long as there is a socket for a new connection; the others wait in the kernel. */
void link_publish(struct relay *r)
{
    bool want = r->inside_count > 0 && !r->ending;
    if (want == r->publishing)
        return;
    r->publishing = want;
    for (size_t i = 0; i < r->published_count; i++) {
        struct epoll_event event = {.events = want ? EPOLLIN : 0, .data.ptr = &r->published[i].w};
        (void)epoll_ctl(r->epoll, EPOLL_CTL_MOD, r->published[i].w.fd, &event);
    }
}

/* Whether the box, which is gone, has left nothing to deliver. */
static bool is_silent(const struct link *l)
{
    char byte;
    return l->up.held == 0 && recv(l->box.w.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

/* Waiting data is still read, and what the box has sent is still delivered. No program of the box is left to read an
 * answer. */
void link_end(struct relay *r)
{
    for (int i = 0; i < 2; i++)
        if (r->tcp[i].w.fd >= 0) {
            link_accept_ready(r, &r->tcp[i].w, 0);
            relay_unwatch(r, &r->tcp[i].w);
        }
    for (struct link *l = r->links, *next; l; l = next) {
        next = l->next;
        if (l->inside || is_silent(l))
            link_free(r, l, false);
        else if (!l->queued)
            link_turn(r, l);
    }
}
