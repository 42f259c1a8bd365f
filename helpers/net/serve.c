/* The box's name server: an address of the pool for a name that may be reached, and nothing else. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "helpers/net/relay.h"

enum { TTL = 300, TURNS = 64, CLIENT_MSEC = 10000 };

/* ---- answering ---- */

static void send_answer(struct relay *r, const struct query *q, int rcode, const struct px_address *address)
{
    uint8_t message[2 + PX_DNS_MESSAGE_MAX];
    size_t n = px_dns_answer(&q->question, rcode, address, TTL, message + 2);
    if (q->from) {
        (void)sendto(q->from->fd, message + 2, n, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&q->to, q->to_len);
    } else if (q->client) {
        message[0] = (uint8_t)(n >> 8);
        message[1] = (uint8_t)n;
        (void)send(q->client->w.fd, message, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    (void)r;
}

/* A kind that is not asked for by programs that connect: there is such a name, and no such record. HTTPS records are among
 * them, so that no client learns how to hide its server's name. */
static bool asks_address(const struct px_dns_question *q)
{
    return q->type == PX_DNS_A || q->type == PX_DNS_AAAA;
}

static void answer(struct relay *r, const struct query *q, struct name *n)
{
    bool six = q->question.type == PX_DNS_AAAA;
    if (n->rcode != PX_DNS_OK || n->count == 0 || (six && r->tcp[1].w.fd < 0)) {
        send_answer(r, q, n->rcode, NULL);
        return;
    }
    struct px_address a = names_address(n, six);
    n->given = true;
    send_answer(r, q, PX_DNS_OK, &a);
}

void serve_known(struct relay *r, struct name *n)
{
    for (size_t i = 0; i < PX_NET_QUERIES_MAX; i++)
        if (r->queries[i].name == n) {
            answer(r, &r->queries[i], n);
            r->queries[i].name = NULL;
        }
    if (!n->given)
        names_drop(r, n);
}

static void wait_for(struct relay *r, const struct query *q, struct name *n)
{
    for (size_t i = 0; i < PX_NET_QUERIES_MAX; i++)
        if (!r->queries[i].name) {
            r->queries[i] = *q;
            r->queries[i].name = n;
            if (n->state != NAME_LOOKING)
                lookup_start(r, n);
            return;
        }
    send_answer(r, q, PX_DNS_FAILED, NULL);
    if (n->state == NAME_NEW)
        names_drop(r, n);
}

static void resolve(struct relay *r, const struct query *q)
{
    const char *text = q->question.name;
    struct name *n = names_find(r, text, true);
    if (!n) {
        relay_deny(r, PX_NET_OP_RESOLVE, PX_NET_WHY_LIMIT, text, "");
        send_answer(r, q, PX_DNS_FAILED, NULL);
    } else if (n->state == NAME_KNOWN && px_now_nsec() < n->until_nsec) {
        answer(r, q, n);
    } else {
        wait_for(r, q, n);
    }
}

static void handle(struct relay *r, const struct query *q)
{
    const struct px_dns_question *question = &q->question;
    if (!question->internet) {
        send_answer(r, q, PX_DNS_REFUSED, NULL);
        return;
    }
    if (!question->clean) {
        relay_deny(r, PX_NET_OP_RESOLVE, PX_NET_WHY_LIST, "what is no name of a host", "");
        send_answer(r, q, PX_DNS_NO_NAME, NULL);
        return;
    }
    enum px_net_verdict verdict = px_net_rules_resolve(&r->rules, question->name);
    if (verdict != PX_NET_YES) {
        bool denied = verdict == PX_NET_DENIED;
        relay_deny(r, PX_NET_OP_RESOLVE, denied ? PX_NET_WHY_DENIED : PX_NET_WHY_LIST, question->name, denied ? "" : question->name);
        send_answer(r, q, PX_DNS_NO_NAME, NULL);
    } else if (!asks_address(question)) {
        send_answer(r, q, PX_DNS_OK, NULL);
    } else if (px_equal(question->name, "localhost")) {
        struct px_address own = px_address_v4(0x7f000001);
        if (question->type == PX_DNS_AAAA)
            (void)px_address_parse("::1", &own);
        send_answer(r, q, PX_DNS_OK, &own);
    } else {
        resolve(r, q);
    }
}

/* ---- by UDP ---- */

void serve_udp_ready(struct relay *r, struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < TURNS; i++) {
        struct query q = {.from = w, .to_len = sizeof q.to};
        uint8_t message[PX_DNS_REPLY_MAX];
        ssize_t n = recvfrom(w->fd, message, sizeof message, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&q.to, &q.to_len);
        if (n < 0)
            return;
        if ((size_t)n <= sizeof message && px_dns_read_question(message, (size_t)n, &q.question) == 0)
            handle(r, &q);
    }
}

/* ---- by TCP ---- */

static void drop_client(struct relay *r, struct client *c)
{
    for (size_t i = 0; i < PX_NET_QUERIES_MAX; i++)
        if (r->queries[i].client == c)
            r->queries[i].client = NULL;
    relay_unwatch(r, &c->w);
    c->used = false;
}

static void client_ready(struct relay *r, struct watch *w, uint32_t events)
{
    struct client *c = (struct client *)w;
    struct query q = {.client = c};
    (void)events;
    if (!c->used)
        return;
    ssize_t n = recv(w->fd, c->in + c->have, sizeof c->in - c->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->have += n > 0 ? (size_t)n : 0;
    size_t want = c->have >= 2 ? 2 + ((size_t)c->in[0] << 8 | c->in[1]) : 2;
    if (n <= 0 || want > sizeof c->in) {
        drop_client(r, c);
        return;
    }
    while (c->have >= 2 && c->have >= (want = 2 + ((size_t)c->in[0] << 8 | c->in[1]))) {
        int bad = px_dns_read_question(c->in + 2, want - 2, &q.question);
        memmove(c->in, c->in + want, c->have - want);
        c->have -= want;
        if (bad < 0) {
            drop_client(r, c);
            return;
        }
        handle(r, &q);
    }
}

void serve_tcp_ready(struct relay *r, struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < TURNS; i++) {
        px_auto_fd int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct client *c = NULL;
        if (fd < 0)
            return;
        for (size_t k = 0; k < CLIENTS_MAX && !c; k++)
            c = r->clients[k].used ? NULL : &r->clients[k];
        if (!c)
            continue;           /* it is closed, and may ask again */
        *c = (struct client){.w = {.ready = client_ready, .fd = px_fd_take(&fd)}, .used = true,
                             .deadline_nsec = px_now_nsec() + (uint64_t)CLIENT_MSEC * 1000000};
        if (relay_watch(r, &c->w, EPOLLIN) < 0)
            drop_client(r, c);
    }
}

void serve_tick(struct relay *r, uint64_t now)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (r->clients[i].used && now >= r->clients[i].deadline_nsec)
            drop_client(r, &r->clients[i]);
}
