/* Reads the packets that the rules of the namespace dropped from the kernel's log. */
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>

#include "base/text.h"
#include "helpers/net/relay.h"

enum { TURNS = 64, PACKET = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET };

static unsigned get16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static void note(struct relay *r, const struct px_address *to, unsigned protocol, const uint8_t *transport, size_t left)
{
    char where[PX_ADDRESS_TEXT + 16], text[PX_ADDRESS_TEXT + 64];
    bool ports = (protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE || protocol == IPPROTO_SCTP) && left >= 4;
    if (protocol == IPPROTO_TCP)        /* the rest of a connection that is over */
        return;
    if (ports)
        px_address_print_port(to, (uint16_t)get16(transport + 2), where, sizeof where);
    else
        px_address_print(to, where);
    const char *word = protocol == IPPROTO_UDP ? "udp" : protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6 ? "icmp" : NULL;
    int e = word ? px_fmt(text, sizeof text, "%s %s", word, where) : px_fmt(text, sizeof text, "protocol %u %s", protocol, where);
    if (e >= 0)
        relay_deny(r, PX_NET_OP_SEND, PX_NET_WHY_PROTOCOL, text, "");
}

static void read_packet(struct relay *r, const uint8_t *p, size_t n)
{
    struct px_address to;
    if (n >= 20 && p[0] >> 4 == 4) {
        size_t head = (size_t)(p[0] & 15) * 4;
        to = px_address_v4((uint32_t)get16(p + 16) << 16 | get16(p + 18));
        if (head >= 20 && head <= n)
            note(r, &to, p[9], p + head, n - head);
    } else if (n >= 40 && p[0] >> 4 == 6) {
        memcpy(to.bytes, p + 24, 16);
        note(r, &to, p[6], p + 40, n - 40);
    }
}

static void read_message(struct relay *r, const uint8_t *data, size_t size)
{
    size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
    while (at + sizeof(struct nlattr) <= size) {
        struct nlattr a;
        memcpy(&a, data + at, sizeof a);
        if (a.nla_len < sizeof a || a.nla_len > size - at)
            return;
        if ((a.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD)
            read_packet(r, data + at + sizeof a, a.nla_len - sizeof a);
        at += NLA_ALIGN(a.nla_len);
    }
}

void relay_log_ready(struct relay *r, struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < TURNS; i++) {
        _Alignas(8) uint8_t data[8192];
        ssize_t n = recv(w->fd, data, sizeof data, MSG_DONTWAIT);
        if (n < 0)
            return;
        for (size_t at = 0; at + NLMSG_HDRLEN <= (size_t)n;) {
            struct nlmsghdr h;
            memcpy(&h, data + at, sizeof h);
            if (h.nlmsg_len < sizeof h || h.nlmsg_len > (size_t)n - at)
                break;
            if (h.nlmsg_type == PACKET)
                read_message(r, data + at, h.nlmsg_len);
            at += NLMSG_ALIGN(h.nlmsg_len);
        }
    }
}
