#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "helpers/net/dns.h"
#include "helpers/outside/outside.h"
#include "net/outside.h"

enum { TURNS = 64 };

static const struct {
    const char *name, *address;
} astray[] = {PX_OUTSIDE_ASTRAY};

static const char *address_of(const char *name)
{
    for (size_t i = 0; i < PX_COUNT_OF(astray); i++)
        if (px_equal(astray[i].name, name))
            return astray[i].address;
    const char *end = strrchr(name, '.');
    return px_equal(end, ".test") ? PX_OUTSIDE_HOST : NULL;
}

static size_t answer(const struct px_dns_question *q, uint8_t out[PX_DNS_MESSAGE_MAX])
{
    const char *text = q->clean && q->internet ? address_of(q->name) : NULL;
    struct px_address address;
    bool has = text && q->type == PX_DNS_A && px_address_parse(text, &address) == 0;
    return px_dns_answer(q, text ? PX_DNS_OK : PX_DNS_NO_NAME, has ? &address : NULL, 0, out);
}

void names_serve(int socket)
{
    for (int i = 0; i < TURNS; i++) {
        struct sockaddr_storage from;
        struct sockaddr *who = (struct sockaddr *)&from;
        socklen_t length = sizeof from;
        struct px_dns_question q;
        uint8_t message[PX_DNS_REPLY_MAX], reply[PX_DNS_MESSAGE_MAX];
        ssize_t n = recvfrom(socket, message, sizeof message, MSG_DONTWAIT | MSG_TRUNC, who, &length);
        if (n < 0)
            return;
        if ((size_t)n <= sizeof message && px_dns_read_question(message, (size_t)n, &q) == 0)
            (void)sendto(socket, reply, answer(&q, reply), MSG_DONTWAIT | MSG_NOSIGNAL, who, length);
    }
}
