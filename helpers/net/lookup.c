/* Asking the host's name servers, on behalf of the box. A lookup asks for both kinds of addresses at once. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "helpers/net/relay.h"

enum { TRY_MSEC = 2000, TRIES_MAX = 4, PORT = 53, TTL_MIN = 30, TTL_MAX = 3600, FAILED_SECONDS = 5 };

static const uint16_t types[2] = {PX_DNS_A, PX_DNS_AAAA};

static void finish(struct relay *r, struct lookup *l, int rcode, uint32_t ttl)
{
    struct name *n = l->name;
    if (l->w.fd >= 0)
        relay_unwatch(r, &l->w);
    l->name = NULL;
    n->state = NAME_KNOWN;
    n->rcode = rcode;
    ttl = ttl < TTL_MIN ? TTL_MIN : ttl > TTL_MAX ? TTL_MAX : ttl;
    n->until_nsec = px_now_nsec() + (uint64_t)(rcode == PX_DNS_OK ? ttl : FAILED_SECONDS) * 1000000000u;
    serve_known(r, n);
}

/* Both answers are there. IPv4 comes first: more hosts have it. */
static void settle(struct relay *r, struct lookup *l)
{
    struct name *n = l->name;
    uint32_t ttl = UINT32_MAX;
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        const struct px_dns_reply *reply = &l->reply[i];
        for (size_t k = 0; k < reply->count; k++)
            n->addresses[count++] = reply->addresses[k];
        ttl = reply->count && reply->ttl < ttl ? reply->ttl : ttl;
    }
    n->count = count > 0 || !n->given ? count : n->count;      /* what was good once has to do */
    bool none = l->reply[0].rcode == PX_DNS_NO_NAME && l->reply[1].rcode == PX_DNS_NO_NAME;
    bool failed = n->count == 0 && !none && (l->reply[0].rcode != PX_DNS_OK || l->reply[1].rcode != PX_DNS_OK);
    finish(r, l, none ? PX_DNS_NO_NAME : failed ? PX_DNS_FAILED : PX_DNS_OK, ttl);
}

static void receive(struct relay *r, struct watch *w, uint32_t events);

static int ask(struct lookup *l)
{
    for (int i = 0; i < 2; i++) {
        uint8_t message[PX_DNS_MESSAGE_MAX];
        if (l->have[i])
            continue;
        size_t n = px_dns_query(l->id[i], l->name->text, types[i], message);
        if (send(l->w.fd, message, n, MSG_NOSIGNAL) < 0)
            return -errno;
    }
    return 0;
}

/* A new socket for every try, so that its port cannot be guessed. */
static int begin(struct relay *r, struct lookup *l)
{
    struct sockaddr_storage to;
    const struct px_address *server = &r->servers[l->tries % r->servers_count];
    socklen_t len = px_address_to_socket(server, PORT, &to);
    if (getrandom(l->id, sizeof l->id, GRND_NONBLOCK) != sizeof l->id)
        return -EIO;
    px_auto_fd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0)
        return -errno;
    l->w = (struct watch){.ready = receive, .fd = px_fd_take(&fd)};
    l->deadline_nsec = px_now_nsec() + (uint64_t)TRY_MSEC * 1000000;
    int e = relay_watch(r, &l->w, EPOLLIN);
    return e < 0 ? e : ask(l);
}

static void try_next(struct relay *r, struct lookup *l)
{
    while (l->tries < TRIES_MAX && r->servers_count > 0) {
        if (l->w.fd >= 0)
            relay_unwatch(r, &l->w);
        int e = begin(r, l);
        l->tries++;
        if (e >= 0)
            return;
    }
    finish(r, l, l->name->count > 0 ? PX_DNS_OK : PX_DNS_FAILED, 0);
}

static void receive(struct relay *r, struct watch *w, uint32_t events)
{
    struct lookup *l = (struct lookup *)w;
    uint8_t message[PX_DNS_REPLY_MAX];
    (void)events;
    for (int turns = 0; turns < 8 && l->name; turns++) {
        ssize_t n = recv(w->fd, message, sizeof message, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {                    /* refused: the server is not there */
            try_next(r, l);
            return;
        }
        for (int i = 0; i < 2; i++)
            if (!l->have[i] && px_dns_read_reply(message, (size_t)n, l->id[i], l->name->text, types[i], &l->reply[i]) == 0)
                l->have[i] = true;
        if (l->have[0] && l->have[1]) {
            settle(r, l);
            return;
        }
    }
}

/* The host's own table comes before its servers, as everywhere. */
static bool in_hosts(struct relay *r, struct name *n)
{
    size_t count = 0;
    for (size_t i = 0; i < r->hosts_count && count < PX_COUNT_OF(n->addresses); i++)
        if (px_equal(r->hosts[i].name, n->text))
            n->addresses[count++] = r->hosts[i].address;
    n->count = count > 0 ? count : n->count;
    return count > 0;
}

void lookup_start(struct relay *r, struct name *n)
{
    struct lookup *l = NULL;
    for (size_t i = 0; i < PX_NET_LOOKUPS_MAX && !l; i++)
        l = r->lookups[i].name ? NULL : &r->lookups[i];
    n->state = NAME_LOOKING;
    if (!l) {
        n->state = NAME_KNOWN;
        n->rcode = n->count > 0 ? PX_DNS_OK : PX_DNS_FAILED;
        serve_known(r, n);
        return;
    }
    *l = (struct lookup){.w = {.fd = -EBADF}, .name = n};
    if (in_hosts(r, n))
        finish(r, l, PX_DNS_OK, TTL_MIN);
    else
        try_next(r, l);
}

void lookup_tick(struct relay *r, uint64_t now)
{
    for (size_t i = 0; i < PX_NET_LOOKUPS_MAX; i++)
        if (r->lookups[i].name && now >= r->lookups[i].deadline_nsec) {
            struct lookup *l = &r->lookups[i];
            if (l->have[0] || l->have[1])       /* a server that never answers one kind: what there is has to do */
                settle(r, l);
            else
                try_next(r, l);
        }
}
