/* px-net: takes its orders, confines itself, and carries until its engine hangs up. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pass.h"
#include "base/text.h"
#include "base/time.h"
#include "helpers/net/relay.h"

enum { TICK_MSEC = 250, EVENTS = 64, SPARE_FILES = 256 };

int relay_watch(struct relay *r, struct watch *w, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = w};
    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, w->fd, &event) < 0 ? -errno : 0;
}

void relay_unwatch(struct relay *r, struct watch *w)
{
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = px_fd_close(w->fd);
}

/* ---- orders ---- */

static int add_rule(struct px_net_rule **rules, size_t *count, const struct px_net_rule *rule)
{
    if (*count >= PX_NET_RULES_MAX)
        return -E2BIG;
    struct px_net_rule *more = realloc(*rules, (*count + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    *rules = more;
    more[(*count)++] = *rule;
    return 0;
}

static int add_host(struct relay *r, const struct px_net_order *o)
{
    if (r->hosts_count >= PX_NET_HOSTS_MAX)
        return 0;               /* the name servers will know the rest */
    struct host_entry *more = realloc(r->hosts, (r->hosts_count + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    r->hosts = more;
    more[r->hosts_count].address = o->address;
    memcpy(more[r->hosts_count++].name, o->name, sizeof o->name);
    return 0;
}

static int add_port(struct relay *r, uint32_t port)
{
    r->host_loopback = r->host_loopback || port == 0;
    if (r->host_ports_count >= PX_NET_PORTS_MAX)
        return -E2BIG;
    r->host_ports[r->host_ports_count++] = (uint16_t)port;
    return 0;
}

static int add_published(struct relay *r, uint32_t port, int *fd)
{
    if (r->published_count >= PX_NET_PORTS_MAX || *fd < 0)
        return -EINVAL;
    struct listener *l = &r->published[r->published_count++];
    *l = (struct listener){.w = {.ready = link_published_ready, .fd = px_fd_take(fd)}, .port = (uint16_t)port};
    return relay_watch(r, &l->w, 0);
}

/* Into a network namespace of the caller's, by way of the user namespace that owns it if he has no privilege here. */
static int enter(int network)
{
    if (network < 0 || setns(network, CLONE_NEWNET) == 0)
        return network < 0 ? -EBADF : 0;
    px_auto_fd int user = ioctl(network, NS_GET_USERNS);
    return user < 0 || setns(user, CLONE_NEWUSER) < 0 || setns(network, CLONE_NEWNET) < 0 ? -errno : 0;
}

static int obey(struct relay *r, const struct px_net_order *o, int *fd)
{
    switch ((enum px_net_order_kind)o->kind) {
    case PX_ORDER_ALLOW:
        r->rules.listed = true;
        return add_rule(&r->rules.allow, &r->rules.allow_count, &o->rule);
    case PX_ORDER_DENY:
        return add_rule(&r->rules.deny, &r->rules.deny_count, &o->rule);
    case PX_ORDER_FORGET_ALLOW:         /* an empty list allows nothing */
        r->rules.listed = true;
        r->rules.allow_count = 0;
        return 0;
    case PX_ORDER_FORGET_DENY:
        r->rules.deny_count = 0;
        return 0;
    case PX_ORDER_SERVER:
        if (r->servers_count < PX_NET_SERVERS_MAX)
            r->servers[r->servers_count++] = o->address;
        return 0;
    case PX_ORDER_HOST:
        return add_host(r, o);
    case PX_ORDER_HOST_PORT:
        return add_port(r, o->port);
    case PX_ORDER_PUBLISH:
        return add_published(r, o->port, fd);
    case PX_ORDER_PUBLISH_UDP:
        return udp_add(r, o->port, fd);
    case PX_ORDER_OUTSIDE:
        return enter(*fd);
    case PX_ORDER_GO:
        return 1;
    }
    return -EINVAL;
}

static int take_orders(struct relay *r)
{
    static struct px_net_order order;
    int done = 0;
    while (done == 0) {
        px_auto_fd int fd = -EBADF;
        if (px_pass_receive(PX_NET_FD_ENGINE, &order, sizeof order, 0, &fd, 1, NULL) != sizeof order)
            return -EPROTO;
        done = obey(r, &order, &fd);
    }
    return done < 0 ? done : 0;
}

/* ---- sockets of the box ---- */

static void take_watch(struct relay *r, struct watch *w, int *fd, void (*ready)(struct relay *, struct watch *, uint32_t))
{
    if (w->fd >= 0)
        return;
    *w = (struct watch){.ready = ready, .fd = px_fd_take(fd)};
    if (relay_watch(r, w, EPOLLIN) < 0)
        w->fd = px_fd_close(w->fd);
}

static void take_socket(struct relay *r, int kind, int *fd)
{
    switch (kind) {
    case PX_NET_TCP4:
    case PX_NET_TCP6:
        link_stays(*fd);
        take_watch(r, &r->tcp[kind - PX_NET_TCP4].w, fd, link_accept_ready);
        return;
    case PX_NET_UDP4:
    case PX_NET_UDP6:
        take_watch(r, &r->dns_udp[kind - PX_NET_UDP4], fd, serve_udp_ready);
        return;
    case PX_NET_DNS4:
    case PX_NET_DNS6:
        take_watch(r, &r->dns_tcp[kind - PX_NET_DNS4].w, fd, serve_tcp_ready);
        return;
    case PX_NET_LOG:
        take_watch(r, &r->log, fd, relay_log_ready);
        return;
    case PX_NET_INSIDE:
        link_stays(*fd);
        if (r->inside_count < PX_NET_INSIDE_MAX)
            r->inside[r->inside_count++] = px_fd_take(fd);
        return;
    case PX_NET_INSIDE_UDP:
        udp_take(r, fd);
        return;
    default:
        return;
    }
}

static void box_ready(struct relay *r, struct watch *w, uint32_t events)
{
    (void)events;
    while (true) {
        px_auto_fd int fd = -EBADF;
        char kind = 0;
        ssize_t n = px_pass_receive(w->fd, &kind, 1, MSG_DONTWAIT, &fd, 1, NULL);
        if (n == 1 && fd >= 0)
            take_socket(r, kind, &fd);
        else if (n == -EAGAIN)
            break;
        else if (n <= 0) {
            relay_unwatch(r, w);        /* the payload has left the set-up: that was all */
            break;
        }
    }
    link_publish(r);
    udp_publish(r);
}

/* ---- the loop ---- */

/* 1 if an order was there, 0 if none is, -1 if there will be none any more. */
static int obey_now(struct relay *r, int engine)
{
    static struct px_net_order order;
    px_auto_fd int fd = -EBADF;
    ssize_t n = px_pass_receive(engine, &order, sizeof order, MSG_DONTWAIT, &fd, 1, NULL);
    if (n == -EAGAIN)
        return 0;
    if (n != sizeof order)
        return -1;
    int32_t answer = -EINVAL;
    if (order.kind <= PX_ORDER_FORGET_DENY || order.kind == PX_ORDER_PUBLISH || order.kind == PX_ORDER_PUBLISH_UDP)
        answer = obey(r, &order, &fd);
    r->publishing = false;      /* a new port is listened to like the others */
    link_publish(r);
    udp_publish(r);
    return send(engine, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1;
}

static void engine_ready(struct relay *r, struct watch *w, uint32_t events)
{
    int more;
    (void)events;
    while ((more = obey_now(r, w->fd)) > 0)
        ;
    if (more == 0)
        return;
    relay_unwatch(r, w);
    if (r->box.fd >= 0)
        box_ready(r, &r->box, 0);
    r->ending = true;
    r->end_nsec = px_now_nsec() + (uint64_t)PX_NET_LINGER_MSEC * 1000000;
    if (r->log.fd >= 0)
        relay_log_ready(r, &r->log, 0);
    udp_end(r);
    link_end(r);
}

static bool is_busy(const struct relay *r)
{
    bool busy = r->ending || r->links || r->visitors_here;
    for (size_t i = 0; i < PX_NET_LOOKUPS_MAX; i++)
        busy = busy || r->lookups[i].name;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        busy = busy || r->clients[i].used;
    return busy;
}

static int loop(struct relay *r)
{
    uint64_t ticked = px_now_nsec();
    while (!r->ending || (r->links && px_now_nsec() < r->end_nsec)) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(r->epoll, events, EVENTS, r->again ? 0 : is_busy(r) ? TICK_MSEC : -1);
        if (n < 0 && errno != EINTR)
            return 1;
        for (int i = 0; i < n; i++) {
            struct watch *w = events[i].data.ptr;
            w->ready(r, w, events[i].events);
        }
        link_more(r);
        uint64_t now = px_now_nsec();
        if (now - ticked < (uint64_t)TICK_MSEC * 1000000)
            continue;
        ticked = now;
        lookup_tick(r, now);
        serve_tick(r, now);
        link_tick(r, now);
        udp_tick(r, now);
    }
    return 0;
}

static int prepare(struct relay *r)
{
    struct watch *const closed[] = {&r->log, &r->tcp[0].w, &r->tcp[1].w, &r->dns_tcp[0].w, &r->dns_tcp[1].w, &r->dns_udp[0], &r->dns_udp[1]};
    struct rlimit files;
    for (size_t i = 0; i < PX_COUNT_OF(closed); i++)
        closed[i]->fd = -EBADF;
    r->tcp[1].six = true;
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    void *page = mmap(NULL, sizeof *r->record, PROT_READ | PROT_WRITE, MAP_SHARED, PX_NET_FD_RECORD, 0);
    if (r->epoll < 0 || page == MAP_FAILED || getrandom(&r->seed, sizeof r->seed, 0) != sizeof r->seed)
        return -errno;
    r->record = page;
    (void)px_fd_close(PX_NET_FD_RECORD);
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return -errno;
    /* A connection has two sockets and at most two pipes. */
    r->links_max = files.rlim_max > SPARE_FILES + 60 ? (files.rlim_max - SPARE_FILES) / 6 : 10;
    r->links_max = r->links_max > PX_NET_LINKS_MAX ? PX_NET_LINKS_MAX : r->links_max;
    int e = take_orders(r);
    if (e < 0 || (e = relay_confine()) < 0)
        return e;
    r->engine = (struct watch){.ready = engine_ready, .fd = PX_NET_FD_ENGINE};
    r->box = (struct watch){.ready = box_ready, .fd = PX_NET_FD_BOX};
    e = relay_watch(r, &r->engine, EPOLLIN);
    return e < 0 ? e : relay_watch(r, &r->box, EPOLLIN);
}

int main(void)
{
    struct relay *r = calloc(1, sizeof *r);
    (void)signal(SIGPIPE, SIG_IGN);  /* banned: a program of its own */
    /* The thread that started px-net may end before the box does: a hang-up of px's socket means the end. */
    (void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    if (!r || prepare(r) < 0)
        return 1;
    r->record->ready = 1;
    return loop(r);
}
