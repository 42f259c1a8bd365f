/* helpers/net/dns.h - the few messages of the name system that a box needs: one question, addresses for an answer.
 *
 * Why:     both sides are hostile: the box asks, strangers answer. The parser is bounded and knows nothing but this.
 * Owns:    nothing.
 * Mustn't: follow a pointer forward, read past the message, or take a record that does not belong to the question. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"
#include "net/rule.h"

enum { PX_DNS_A = 1, PX_DNS_CNAME = 5, PX_DNS_AAAA = 28 };
enum { PX_DNS_OK = 0, PX_DNS_FORMAT = 1, PX_DNS_FAILED = 2, PX_DNS_NO_NAME = 3, PX_DNS_NOT_DONE = 4, PX_DNS_REFUSED = 5 };
enum { PX_DNS_MESSAGE_MAX = 512, PX_DNS_REPLY_MAX = 4096, PX_DNS_ADDRESSES_MAX = 8 };

struct px_dns_question {
    uint16_t id, type;
    bool recursion;
    bool internet;              /* the class is IN */
    bool clean;                 /* name is one that px_net_name_clean made; else it is "" */
    char name[PX_NET_NAME_MAX];
    uint8_t raw[272];           /* the question as it came, for the answer */
    size_t raw_len;
};

/* A query from the box; -EBADMSG if nothing should be answered to it. */
int px_dns_read_question(const uint8_t *message, size_t size, struct px_dns_question *ret_question);
/* The answer, with `address` if it is not NULL (of the kind that was asked for). Its length. */
size_t px_dns_answer(const struct px_dns_question *q, int rcode, const struct px_address *address, uint32_t ttl,
                     uint8_t out[PX_DNS_MESSAGE_MAX]);

/* A query of ours. Its length. */
size_t px_dns_query(uint16_t id, const char *name, uint16_t type, uint8_t out[PX_DNS_MESSAGE_MAX]);

struct px_dns_reply {
    int rcode;
    size_t count;
    struct px_address addresses[PX_DNS_ADDRESSES_MAX];
    uint32_t ttl;               /* the smallest */
};

/* What was answered to it; -EBADMSG if it is no answer to that question. Other names' records count only as far as the name's own
 * CNAMEs lead to them. */
int px_dns_read_reply(const uint8_t *message, size_t size, uint16_t id, const char *name, uint16_t type, struct px_dns_reply *ret_reply);
