/* fuzz/fuzz_dns.c - queries of a box and answers of strangers. */
#include <string.h>

#include "fuzz.h"
#include "helpers/net/dns.h"

/* What was accepted can be answered, and the answer is one to that question. */
static void check_question(const uint8_t *data, size_t size)
{
    struct px_dns_question q;
    struct px_dns_reply reply;
    uint8_t out[PX_DNS_MESSAGE_MAX];
    char again[PX_NET_NAME_MAX];
    if (px_dns_read_question(data, size, &q) < 0)
        return;
    CHECK(q.clean == (q.name[0] != '\0'));
    CHECK(!q.clean || (px_net_name_clean(q.name, strlen(q.name), again) == 0 && strcmp(q.name, again) == 0));
    struct px_address a = px_address_v4(0xc6120001);
    bool address = q.type == PX_DNS_A || q.type == PX_DNS_AAAA;
    size_t n = px_dns_answer(&q, PX_DNS_OK, address ? &a : NULL, 1, out);
    CHECK(n <= sizeof out);
    if (q.clean && address && q.internet) {
        CHECK(px_dns_read_reply(out, n, q.id, q.name, q.type, &reply) == 0);
        CHECK(reply.count == 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct px_dns_reply reply;
    char *copy = fuzz_text(data, size);         /* memory of its own, so that a byte too many is seen */
    const uint8_t *message = (const uint8_t *)copy;
    check_question(message, size);
    uint16_t id = size >= 2 ? (uint16_t)(message[0] << 8 | message[1]) : 0;
    for (int i = 0; i < 2; i++) {
        uint16_t type = i ? PX_DNS_AAAA : PX_DNS_A;
        if (px_dns_read_reply(message, size, id, "good.test", type, &reply) == 0)
            CHECK(reply.count <= PX_DNS_ADDRESSES_MAX);
    }
    free(copy);
    return 0;
}
