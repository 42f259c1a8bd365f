/* px-outside: makes a network, sockets and a certificate, confines itself, and serves until its engine hangs up. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/text.h"
#include "helpers/outside/outside.h"
#include "kernel/netns.h"
#include "net/address.h"
#include "net/batch.h"
#include "net/outside.h"

enum { MESSAGES_MAX = 16 << 10, BACKLOG = 128 };

static const struct {
    const char *address;
    uint16_t port;
    int type;
    bool tls;
} places[] = {
    {PX_OUTSIDE_NAMES, 53, SOCK_DGRAM, false},
    {"0.0.0.0", 80, SOCK_STREAM, false},
    {"0.0.0.0", 8080, SOCK_STREAM, false},
    {"0.0.0.0", 443, SOCK_STREAM, true},
};
enum { PLACES = PX_COUNT_OF(places), FIRST_CONNECTION = 1 + PLACES };

struct outside {
    int network;
    int sockets[PLACES];
    struct px_outside_ready ready;
    struct web web;
};

static int failed(struct outside *o, const char *step, int error)
{
    (void)px_fmt(o->ready.step, sizeof o->ready.step, "%s", step);
    o->ready.error = error;
    return -1;
}

/* An ordinary user may make one in a user namespace of his own. No id is needed there. */
static int make_network(struct outside *o)
{
    px_auto_buf struct px_buf routes = PX_BUF(MESSAGES_MAX);
    if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return failed(o, "make a network namespace", -errno);
    int r = px_netns_loopback_up();
    px_batch_routes4(&routes);
    if (r >= 0)
        r = routes.err < 0 ? routes.err : px_netns_netlink(NETLINK_ROUTE, routes.data, routes.len);
    if (r < 0)
        return failed(o, "make its addresses", r);
    o->network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return o->network < 0 ? failed(o, "open its network namespace", -errno) : 0;
}

static int listen_at(size_t i)
{
    struct px_address address;
    struct sockaddr_storage at;
    if (px_address_parse(places[i].address, &address) < 0)
        return -EINVAL;
    socklen_t length = px_address_to_socket(&address, places[i].port, &at);
    px_auto_fd int fd = socket(at.ss_family, places[i].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, length) < 0 ||
        (places[i].type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
        return -errno;
    return px_fd_take(&fd);
}

static int make_servers(struct outside *o)
{
    for (size_t i = 0; i < PLACES; i++)
        if ((o->sockets[i] = listen_at(i)) < 0)
            return failed(o, "listen", o->sockets[i]);
    for (size_t i = 0; i < WEB_MAX; i++)
        o->web.connections[i].fd = -EBADF;
    /* Without the machine's settings for OpenSSL: a certificate that they refuse would look like a box's fault. */
    o->web.context = OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 ? SSL_CTX_new(TLS_server_method()) : NULL;
    if (!o->web.context || certificate_make(o->web.context, o->ready.pem, sizeof o->ready.pem) < 0)
        return failed(o, "make a certificate", -EIO);
    return SSL_CTX_set_num_tickets(o->web.context, 0) == 1 ? 0 : failed(o, "set up HTTPS", -EIO);
}

static size_t watch_all(const struct outside *o, struct pollfd fds[FIRST_CONNECTION + WEB_MAX])
{
    fds[0] = (struct pollfd){.fd = OUTSIDE_ENGINE, .events = POLLIN};
    for (size_t i = 0; i < PLACES; i++)
        fds[1 + i] = (struct pollfd){.fd = o->sockets[i], .events = POLLIN};
    for (size_t i = 0; i < WEB_MAX; i++) {      /* of a slot that is free nothing is told */
        const struct connection *c = &o->web.connections[i];
        fds[FIRST_CONNECTION + i] = (struct pollfd){.fd = c->fd, .events = c->events};
    }
    return FIRST_CONNECTION + WEB_MAX;
}

/* Connections before newcomers, which may take their slots. */
static void serve(struct outside *o)
{
    struct pollfd fds[FIRST_CONNECTION + WEB_MAX];
    while (true) {
        if (poll(fds, watch_all(o, fds), -1) < 0 && errno != EINTR)
            return;
        if (fds[0].revents)
            return;
        for (size_t i = 0; i < WEB_MAX; i++)
            if (fds[FIRST_CONNECTION + i].revents)
                web_step(&o->web.connections[i]);
        if (fds[1].revents)
            names_serve(o->sockets[0]);
        for (size_t i = 1; i < PLACES; i++)
            if (fds[1 + i].revents)
                web_accept(&o->web, o->sockets[i], places[i].tls);
    }
}

/* The namespace travels before anything is given up: how many descriptors of a user may be on their way is bounded by
 * the limit of whoever sends one, for all processes of that user together. */
int main(void)
{
    static struct outside o = {.network = -EBADF};
    static const char confined = 1;
    (void)signal(SIGPIPE, SIG_IGN);     /* banned: a program of its own */
    bool made = make_network(&o) == 0 && make_servers(&o) == 0;
    if (px_pass_send(OUTSIDE_ENGINE, &o.ready, sizeof o.ready, &o.network, made, 0) < 0 || !made)
        return 1;
    o.network = px_fd_close(o.network);
    if (outside_confine() < 0 || px_pass_send(OUTSIDE_ENGINE, &confined, sizeof confined, NULL, 0, 0) < 0)
        return 1;
    serve(&o);
    return 0;
}
