/* Names and their addresses in the pool. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "helpers/net/relay.h"

/* The box chooses the names, so the seed is none that it knows. */
static uint32_t bucket_of(const struct relay *r, const char *text)
{
    uint64_t h = r->seed;
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return (uint32_t)(h >> 32) % BUCKETS;
}

static struct name *new_name(struct relay *r)
{
    struct name *n = r->names_free;
    if (n) {
        uint32_t number = n->number;
        r->names_free = n->next;
        *n = (struct name){.number = number, .traffic = -1};
        return n;
    }
    if (r->names_count >= PX_NET_NAMES_MAX || !(n = calloc(1, sizeof *n)))
        return NULL;
    *n = (struct name){.number = r->names_count, .traffic = -1};
    r->names[r->names_count++] = n;
    return n;
}

struct name *names_find(struct relay *r, const char *text, bool make)
{
    struct name **at = &r->buckets[bucket_of(r, text)];
    for (struct name *n = *at; n; n = n->next)
        if (px_equal(n->text, text))
            return n;
    struct name *n = make ? new_name(r) : NULL;
    if (!n)
        return NULL;
    memcpy(n->text, text, strlen(text) + 1);
    n->next = *at;
    *at = n;
    return n;
}

void names_drop(struct relay *r, struct name *n)
{
    struct name **at = &r->buckets[bucket_of(r, n->text)];
    while (*at && *at != n)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = n->next;
    n->text[0] = '\0';
    n->next = r->names_free;
    r->names_free = n;
}

/* Number 0 is 198.18.0.1: the first address of a network looks like the network itself to some. */
struct px_address names_address(const struct name *n, bool six)
{
    struct px_address a = px_address_v4(PX_NET_POOL + 1 + n->number);
    if (six) {
        uint8_t last[4];
        memcpy(last, a.bytes + 12, 4);
        (void)inet_pton(AF_INET6, PX_NET_POOL6, a.bytes);
        memcpy(a.bytes + 12, last, 4);
    }
    return a;
}

struct name *names_by_address(struct relay *r, const struct px_address *a, bool *ret_pool)
{
    struct px_address pool = px_address_v4(PX_NET_POOL), pool6;
    (void)px_address_parse(PX_NET_POOL6, &pool6);
    uint32_t number = px_address_get_v4(a) - PX_NET_POOL - 1;
    *ret_pool = px_address_within(a, &pool, 96 + 15) || px_address_within(a, &pool6, 96);
    struct name *n = *ret_pool && number < r->names_count ? r->names[number] : NULL;
    return n && n->given ? n : NULL;
}
