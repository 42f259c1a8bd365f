#include "net/batch.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "net/wire.h"

enum { LO = 1, NFT = NFNL_SUBSYS_NFTABLES << 8, DATA_MAX = 64 };

/* ---- messages and attributes: lengths are written when the end is known ---- */

static size_t open_message(struct px_buf *out, unsigned type, unsigned flags, const void *head, size_t head_len)
{
    size_t at = out->len;
    struct nlmsghdr h = {.nlmsg_type = (uint16_t)type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags), .nlmsg_seq = (uint32_t)at + 1};
    px_buf_add(out, &h, sizeof h);
    px_buf_add(out, head, head_len);
    return at;
}

static void set_length(struct px_buf *out, size_t at, bool wide)
{
    uint32_t n = (uint32_t)(out->len - at);
    uint16_t narrow = (uint16_t)n;
    if (out->err == 0)
        memcpy(out->data + at, wide ? (const void *)&n : (const void *)&narrow, wide ? sizeof n : sizeof narrow);
}

static void close_message(struct px_buf *out, size_t at)
{
    set_length(out, at, true);
}

static void put_attr(struct px_buf *out, unsigned type, const void *data, size_t len)
{
    static const char zero[4] = {0};
    struct nlattr a = {.nla_len = (uint16_t)(sizeof a + len), .nla_type = (uint16_t)type};
    px_buf_add(out, &a, sizeof a);
    px_buf_add(out, data, len);
    px_buf_add(out, zero, (4 - len % 4) % 4);
}

static void put_text(struct px_buf *out, unsigned type, const char *text)
{
    put_attr(out, type, text, strlen(text) + 1);
}

static void put_be32(struct px_buf *out, unsigned type, uint32_t value)
{
    uint32_t be = htonl(value);
    put_attr(out, type, &be, sizeof be);
}

static size_t open_attr(struct px_buf *out, unsigned type)
{
    size_t at = out->len;
    struct nlattr a = {.nla_type = (uint16_t)(type | NLA_F_NESTED)};
    px_buf_add(out, &a, sizeof a);
    return at;
}

static void close_attr(struct px_buf *out, size_t at)
{
    set_length(out, at, false);
}

/* ---- routes ---- */

static void put_address(struct px_buf *out, int family, const void *address, size_t len)
{
    struct ifaddrmsg head = {.ifa_family = (uint8_t)family, .ifa_prefixlen = (uint8_t)(8 * len), .ifa_flags = IFA_F_PERMANENT | (family == AF_INET6 ? IFA_F_NODAD : 0),
                             .ifa_index = LO};
    size_t at = open_message(out, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &head, sizeof head);
    put_attr(out, IFA_LOCAL, address, len);
    put_attr(out, IFA_ADDRESS, address, len);
    close_message(out, at);
}

static void put_route(struct px_buf *out, int family, const void *source, size_t len)
{
    static const uint32_t lo = LO;
    struct rtmsg head = {.rtm_family = (uint8_t)family, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC,
                         .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE, .rtm_type = RTN_LOCAL};
    size_t at = open_message(out, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &head, sizeof head);
    put_attr(out, RTA_OIF, &lo, sizeof lo);
    put_attr(out, RTA_PREFSRC, source, len);
    size_t metrics = open_attr(out, RTA_METRICS);
    put_text(out, RTAX_CC_ALGO, PX_NET_CONGESTION);
    close_attr(out, metrics);
    close_message(out, at);
}

static void put_routes(struct px_buf *out, int family, const char *own)
{
    uint8_t address[16];
    size_t len = family == AF_INET ? 4 : 16;
    (void)inet_pton(family, own, address);
    put_address(out, family, address, len);
    put_route(out, family, address, len);
}

void px_batch_routes4(struct px_buf *out)
{
    put_routes(out, AF_INET, PX_NET_OWN);
}

void px_batch_routes6(struct px_buf *out)
{
    put_routes(out, AF_INET6, PX_NET_OWN6);
}

/* ---- rules ---- */

static const char table[] = "px", chain_nat[] = "out", chain_hold[] = "hold";

static size_t open_nft(struct px_buf *out, unsigned type, unsigned flags)
{
    const struct nfgenmsg head = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};
    return open_message(out, NFT | type, flags, &head, sizeof head);
}

static void put_border(struct px_buf *out, unsigned type)
{
    const struct nfgenmsg head = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    close_message(out, open_message(out, type, 0, &head, sizeof head));
}

static void put_chain(struct px_buf *out, const char *name, const char *type, int priority)
{
    size_t at = open_nft(out, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_ACK);
    put_text(out, NFTA_CHAIN_TABLE, table);
    put_text(out, NFTA_CHAIN_NAME, name);
    size_t hook = open_attr(out, NFTA_CHAIN_HOOK);
    put_be32(out, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    put_be32(out, NFTA_HOOK_PRIORITY, (uint32_t)priority);
    close_attr(out, hook);
    put_text(out, NFTA_CHAIN_TYPE, type);
    put_be32(out, NFTA_CHAIN_POLICY, NF_ACCEPT);
    close_message(out, at);
}

/* A rule is a list of expressions, each with a name and data. */
struct rule {
    struct px_buf *out;
    size_t message, list;
};

static struct rule open_rule(struct px_buf *out, const char *chain)
{
    struct rule r = {.out = out, .message = open_nft(out, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK)};
    put_text(out, NFTA_RULE_TABLE, table);
    put_text(out, NFTA_RULE_CHAIN, chain);
    r.list = open_attr(out, NFTA_RULE_EXPRESSIONS);
    return r;
}

static void close_rule(struct rule *r)
{
    close_attr(r->out, r->list);
    close_message(r->out, r->message);
}

struct expression {
    size_t element, data;
};

static struct expression open_expression(struct rule *r, const char *name)
{
    struct expression x = {.element = open_attr(r->out, NFTA_LIST_ELEM)};
    put_text(r->out, NFTA_EXPR_NAME, name);
    x.data = open_attr(r->out, NFTA_EXPR_DATA);
    return x;
}

static void close_expression(struct rule *r, struct expression x)
{
    close_attr(r->out, x.data);
    close_attr(r->out, x.element);
}

static void put_value(struct px_buf *out, unsigned type, const void *data, size_t len)
{
    size_t at = open_attr(out, type);
    put_attr(out, NFTA_DATA_VALUE, data, len);
    close_attr(out, at);
}

static void put_meta(struct rule *r, uint32_t key)
{
    struct expression x = open_expression(r, "meta");
    put_be32(r->out, NFTA_META_DREG, NFT_REG_1);
    put_be32(r->out, NFTA_META_KEY, key);
    close_expression(r, x);
}

static void put_payload(struct rule *r, uint32_t base, uint32_t offset, uint32_t len)
{
    struct expression x = open_expression(r, "payload");
    put_be32(r->out, NFTA_PAYLOAD_DREG, NFT_REG_1);
    put_be32(r->out, NFTA_PAYLOAD_BASE, base);
    put_be32(r->out, NFTA_PAYLOAD_OFFSET, offset);
    put_be32(r->out, NFTA_PAYLOAD_LEN, len);
    close_expression(r, x);
}

static void put_bound(struct rule *r, uint32_t op, const void *data, size_t len)
{
    struct expression x = open_expression(r, "cmp");
    put_be32(r->out, NFTA_CMP_SREG, NFT_REG_1);
    put_be32(r->out, NFTA_CMP_OP, op);
    put_value(r->out, NFTA_CMP_DATA, data, len);
    close_expression(r, x);
}

static void put_compare(struct rule *r, const void *data, size_t len)
{
    put_bound(r, NFT_CMP_EQ, data, len);
}

static void put_verdict(struct rule *r, uint32_t verdict)
{
    struct expression x = open_expression(r, "immediate");
    put_be32(r->out, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t data = open_attr(r->out, NFTA_IMMEDIATE_DATA), inner = open_attr(r->out, NFTA_DATA_VERDICT);
    put_be32(r->out, NFTA_VERDICT_CODE, verdict);
    close_attr(r->out, inner);
    close_attr(r->out, data);
    close_expression(r, x);
}

static void put_redirect(struct rule *r, uint16_t port)
{
    uint16_t be = htons(port);
    struct expression x = open_expression(r, "immediate");
    put_be32(r->out, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    put_value(r->out, NFTA_IMMEDIATE_DATA, &be, sizeof be);
    close_expression(r, x);
    x = open_expression(r, "redir");
    put_be32(r->out, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    put_be32(r->out, NFTA_REDIR_REG_PROTO_MAX, NFT_REG_1);
    close_expression(r, x);
}

/* Accepts what is for the box itself: 127.0.0.0/8 by its first byte, the others by the whole address. */
static void put_local(struct px_buf *out, const char *chain)
{
    static const struct {
        uint8_t protocol;
        const char *address;
        uint32_t len;
    } rows[] = {{NFPROTO_IPV4, "127.0.0.1", 1}, {NFPROTO_IPV4, PX_NET_OWN, 4}, {NFPROTO_IPV6, "::1", 16}, {NFPROTO_IPV6, PX_NET_OWN6, 16}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        bool four = rows[i].protocol == NFPROTO_IPV4;
        uint8_t address[16];
        (void)inet_pton(four ? AF_INET : AF_INET6, rows[i].address, address);
        struct rule r = open_rule(out, chain);
        put_meta(&r, NFT_META_NFPROTO);
        put_compare(&r, &rows[i].protocol, 1);
        put_payload(&r, NFT_PAYLOAD_NETWORK_HEADER, four ? 16 : 24, rows[i].len);
        put_compare(&r, address, rows[i].len);
        put_verdict(&r, NF_ACCEPT);
        close_rule(&r);
    }
}

/* A port of 0 means every port. */
static void put_carry(struct px_buf *out, uint8_t protocol, uint16_t port, uint16_t to)
{
    uint16_t be = htons(port);
    struct rule r = open_rule(out, chain_nat);
    put_meta(&r, NFT_META_L4PROTO);
    put_compare(&r, &protocol, 1);
    if (port) {
        put_payload(&r, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
        put_compare(&r, &be, sizeof be);
    }
    put_redirect(&r, to);
    close_rule(&r);
}

static void put_hold(struct px_buf *out)
{
    uint16_t group = htons(PX_NET_LOG_GROUP);
    struct rule r = open_rule(out, chain_hold);
    struct expression x = open_expression(&r, "log");
    put_attr(out, NFTA_LOG_GROUP, &group, sizeof group);
    put_be32(out, NFTA_LOG_SNAPLEN, DATA_MAX);
    close_expression(&r, x);
    put_verdict(&r, NF_DROP);
    close_rule(&r);
}

enum { PRIORITY_NAT = -100, PRIORITY_FILTER = 0 };

static void open_batch(struct px_buf *out)
{
    put_border(out, NFNL_MSG_BATCH_BEGIN);
    size_t at = open_nft(out, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK);
    put_text(out, NFTA_TABLE_NAME, table);
    close_message(out, at);
}

void px_batch_rules(struct px_buf *out, const uint16_t *ports, size_t count)
{
    open_batch(out);
    put_chain(out, chain_nat, "nat", PRIORITY_NAT);
    put_chain(out, chain_hold, "filter", PRIORITY_FILTER);
    for (size_t i = 0; i < count; i++)
        put_carry(out, IPPROTO_TCP, ports[i], PX_NET_PORT_TCP);
    put_local(out, chain_nat);
    put_carry(out, IPPROTO_UDP, 53, PX_NET_PORT_DNS);
    put_carry(out, IPPROTO_TCP, 53, PX_NET_PORT_DNS);
    put_carry(out, IPPROTO_TCP, 0, PX_NET_PORT_TCP);
    put_local(out, chain_hold);
    put_hold(out);
    put_border(out, NFNL_MSG_BATCH_END);
}

/* ---- drop rules around the open network ---- */

/* The networks in order: the special ones, then the host's addresses. */
static bool fenced(const struct px_fence *fence, size_t index, struct px_address *ret_network, unsigned *ret_bits)
{
    if (index >= fence->own_count)
        return px_address_special_range(index - fence->own_count, ret_network, ret_bits);
    *ret_network = fence->own[index];
    *ret_bits = 128;
    return true;
}

/* A network with a name server in it is left to the rules. */
static bool has_server(const struct px_fence *fence, const struct px_address *network, unsigned bits)
{
    for (size_t i = 0; i < fence->servers_count; i++)
        if (px_address_within(&fence->servers[i], network, bits))
            return true;
    return false;
}

void px_batch_fence_routes(struct px_buf *out, int family, const struct px_fence *fence)
{
    struct px_address a;
    unsigned bits;
    for (size_t i = 0; fenced(fence, i, &a, &bits); i++) {
        bool four = px_address_is_v4(&a);
        if (four != (family == AF_INET) || has_server(fence, &a, bits))
            continue;
        struct rtmsg head = {.rtm_family = (uint8_t)family, .rtm_dst_len = (uint8_t)(four ? bits - 96 : bits), .rtm_table = RT_TABLE_MAIN,
                             .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_PROHIBIT};
        size_t at = open_message(out, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, &head, sizeof head);
        put_attr(out, RTA_DST, four ? a.bytes + 12 : a.bytes, four ? 4 : 16);
        close_message(out, at);
    }
}

/* Destinations in a network: the bytes that its prefix covers lie between its lowest and its highest address. */
static void put_destination(struct rule *r, const struct px_address *network, unsigned bits)
{
    bool four = px_address_is_v4(network);
    const uint8_t protocol = four ? NFPROTO_IPV4 : NFPROTO_IPV6, *low = four ? network->bytes + 12 : network->bytes;
    unsigned own_bits = four ? bits - 96 : bits, len = (own_bits + 7) / 8;
    uint8_t high[16];
    memcpy(high, low, len);
    high[len - 1] |= (uint8_t)(0xff >> ((own_bits + 7) % 8 + 1));
    put_meta(r, NFT_META_NFPROTO);
    put_compare(r, &protocol, 1);
    put_payload(r, NFT_PAYLOAD_NETWORK_HEADER, four ? 16 : 24, len);
    put_bound(r, NFT_CMP_GTE, low, len);
    put_bound(r, NFT_CMP_LTE, high, len);
}

/* Accepts everything to an address (protocol 0), or name queries. */
static void put_pass(struct px_buf *out, const struct px_address *to, uint8_t protocol)
{
    const uint16_t port = htons(PX_NET_PORT_DNS);
    struct rule r = open_rule(out, chain_hold);
    put_destination(&r, to, 128);
    if (protocol) {
        put_meta(&r, NFT_META_L4PROTO);
        put_compare(&r, &protocol, 1);
        put_payload(&r, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
        put_compare(&r, &port, sizeof port);
    }
    put_verdict(&r, NF_ACCEPT);
    close_rule(&r);
}

/* Accepts what goes through lo, but not packets through the device that claim to come from 127.0.0.1. */
static void put_own_device(struct px_buf *out)
{
    static const uint32_t lo = LO;
    struct rule r = open_rule(out, chain_hold);
    put_meta(&r, NFT_META_OIF);
    put_compare(&r, &lo, sizeof lo);
    put_verdict(&r, NF_ACCEPT);
    close_rule(&r);
}

/* Neighbour discovery by the kernel; no program of the box can send these. */
static void put_neighbours(struct px_buf *out)
{
    static const uint8_t protocol = IPPROTO_ICMPV6, first = 133, last = 137;
    struct rule r = open_rule(out, chain_hold);
    put_meta(&r, NFT_META_L4PROTO);
    put_compare(&r, &protocol, 1);
    put_payload(&r, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
    put_bound(&r, NFT_CMP_GTE, &first, 1);
    put_bound(&r, NFT_CMP_LTE, &last, 1);
    put_verdict(&r, NF_ACCEPT);
    close_rule(&r);
}

void px_batch_fence_rules(struct px_buf *out, const struct px_fence *fence)
{
    struct px_address a;
    unsigned bits;
    open_batch(out);
    put_chain(out, chain_hold, "filter", PRIORITY_FILTER);
    put_own_device(out);
    put_neighbours(out);
    for (size_t i = 0; i < fence->servers_count; i++) {
        put_pass(out, &fence->servers[i], IPPROTO_UDP);
        put_pass(out, &fence->servers[i], IPPROTO_TCP);
    }
    if (fence->servers_count == 0 && px_address_parse(PX_NET_RESOLVER, &a) == 0)
        put_pass(out, &a, IPPROTO_UDP);
    if (fence->host_loopback && px_address_parse(PX_NET_HOST_LOOPBACK, &a) == 0)
        put_pass(out, &a, 0);
    for (size_t i = 0; fenced(fence, i, &a, &bits); i++) {
        struct rule r = open_rule(out, chain_hold);
        put_destination(&r, &a, bits);
        put_verdict(&r, NF_DROP);
        close_rule(&r);
    }
    put_border(out, NFNL_MSG_BATCH_END);
}

/* ---- the log ---- */

void px_batch_log(struct px_buf *out)
{
    const struct nfgenmsg head = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(PX_NET_LOG_GROUP)};
    const struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
    const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(DATA_MAX), .copy_mode = NFULNL_COPY_PACKET};
    enum { CONFIG = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG };
    size_t at = open_message(out, CONFIG, NLM_F_ACK, &head, sizeof head);
    put_attr(out, NFULA_CFG_CMD, &bind, sizeof bind);
    close_message(out, at);
    at = open_message(out, CONFIG, NLM_F_ACK, &head, sizeof head);
    put_attr(out, NFULA_CFG_MODE, &mode, sizeof mode);
    put_be32(out, NFULA_CFG_QTHRESH, 1);        /* reported at once: the box may have ended a moment later */
    close_message(out, at);
}
