#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "base/text.h"

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static uint32_t at(const struct px_address *a, unsigned from)
{
    const uint8_t *b = a->bytes + from;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

struct px_address px_address_v4(uint32_t address)
{
    struct px_address a;
    memcpy(a.bytes, mapped, sizeof mapped);
    for (int i = 0; i < 4; i++)
        a.bytes[12 + i] = (uint8_t)(address >> (24 - 8 * i));
    return a;
}

int px_address_parse(const char *text, struct px_address *ret_address)
{
    struct in_addr four;
    struct px_address six;
    if (inet_pton(AF_INET, text, &four) == 1)
        *ret_address = px_address_v4(ntohl(four.s_addr));
    else if (inet_pton(AF_INET6, text, six.bytes) == 1)
        *ret_address = six;
    else
        return -EINVAL;
    return 0;
}

bool px_address_is_v4(const struct px_address *a)
{
    return memcmp(a->bytes, mapped, sizeof mapped) == 0;
}

uint32_t px_address_get_v4(const struct px_address *a)
{
    return at(a, 12);
}

/* ---- one form ---- */

/* Networks whose addresses contain an IPv4 address: the length of their prefix, and the byte where it begins. */
static const struct {
    uint8_t prefix[12];
    uint8_t bits, from;
} carriers[] = {
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12},         /* NAT64 */
    {{0x20, 0x02}, 16, 2},                      /* 6to4 */
    {{0}, 96, 12},                              /* IPv4-compatible */
};

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

/* :: and ::1 do not contain an IPv4 address. */
static bool is_zero_or_one(const struct px_address *a)
{
    return at(a, 0) == 0 && at(a, 4) == 0 && at(a, 8) == 0 && at(a, 12) <= 1;
}

struct px_address px_address_plain(const struct px_address *a, unsigned *bits)
{
    unsigned all = 128, *left = bits ? bits : &all;
    for (size_t i = 0; i < PX_COUNT_OF(carriers) && !is_zero_or_one(a); i++) {
        if (*left <= carriers[i].bits || !same_bits(a->bytes, carriers[i].prefix, carriers[i].bits))
            continue;
        unsigned carried = *left - carriers[i].bits;
        *left = 96 + (carried < 32 ? carried : 32);
        return px_address_v4(at(a, carriers[i].from));
    }
    return *a;
}

bool px_address_equal(const struct px_address *a, const struct px_address *b)
{
    struct px_address one = px_address_plain(a, NULL), other = px_address_plain(b, NULL);
    return same_bits(one.bytes, other.bytes, 128);
}

void px_address_print(const struct px_address *a, char out[PX_ADDRESS_TEXT])
{
    bool four = px_address_is_v4(a);
    if (!inet_ntop(four ? AF_INET : AF_INET6, four ? a->bytes + 12 : a->bytes, out, PX_ADDRESS_TEXT))
        out[0] = '\0';
}

void px_address_print_port(const struct px_address *a, uint16_t port, char *out, size_t size)
{
    char text[PX_ADDRESS_TEXT];
    px_address_print(a, text);
    if (px_fmt(out, size, px_address_is_v4(a) ? "%s:%u" : "[%s]:%u", text, port) < 0)
        out[0] = '\0';
}

bool px_address_within(const struct px_address *a, const struct px_address *network, unsigned bits)
{
    return bits <= 128 && px_address_is_v4(a) == px_address_is_v4(network) && same_bits(a->bytes, network->bytes, bits);
}

bool px_address_reaches(const struct px_address *a, const struct px_address *network, unsigned bits)
{
    unsigned carried = bits;
    struct px_address plain = px_address_plain(a, NULL), there = px_address_plain(network, &carried);
    return px_address_within(a, network, bits) || px_address_within(&plain, &there, carried);
}

/* ---- which are not of the open network ---- */

static const struct {
    uint32_t network;
    unsigned bits;
    const char *word;
} ranges4[] = {
    {0x00000000, 8, "unspecified"},     {0x0a000000, 8, "private"},    {0x64400000, 10, "shared"},
    {0x7f000000, 8, "loopback"},        {0xa9fe0000, 16, "link-local"}, {0xac100000, 12, "private"},
    {0xc0000000, 24, "special"},        {0xc0586300, 24, "special"},   {0xc0a80000, 16, "private"},
    {0xc6120000, 15, "special"},        {0xe0000000, 4, "multicast"},  {0xf0000000, 4, "reserved"},
};

static const char *special4(uint32_t address)
{
    for (size_t i = 0; i < PX_COUNT_OF(ranges4); i++)
        if ((address ^ ranges4[i].network) >> (32 - ranges4[i].bits) == 0)
            return ranges4[i].word;
    return NULL;
}

/* Everything outside 2000::/3. */
static const char *special6(const struct px_address *a)
{
    if (a->bytes[0] == 0xff)
        return "multicast";
    if (a->bytes[0] == 0xfe && a->bytes[1] >= 0x80)
        return "link-local";
    if ((a->bytes[0] & 0xfe) == 0xfc)
        return "private";
    if (at(a, 0) == 0 && at(a, 4) == 0 && at(a, 8) == 0)
        return at(a, 12) == 1 ? "loopback" : "unspecified";
    if (a->bytes[0] >> 5 != 1)
        return "reserved";
    return at(a, 0) == 0x20010000 ? "tunnel" : NULL;    /* a Teredo address contains an IPv4 address in another form */
}

/* A translated address is treated as the IPv4 address that it contains. An IPv4-compatible one is always special:
 * nothing routes it. */
const char *px_address_special(const struct px_address *a)
{
    struct px_address plain = px_address_plain(a, NULL);
    bool compatible = !px_address_is_v4(a) && at(a, 0) == 0 && at(a, 4) == 0 && at(a, 8) == 0;
    return px_address_is_v4(&plain) && !compatible ? special4(at(&plain, 12)) : special6(a);
}

/* The same as whole networks. A translated address is special as such, whatever it contains. */
bool px_address_special_range(size_t index, struct px_address *ret_network, unsigned *ret_bits)
{
    static const struct {
        uint8_t first[4];
        unsigned bits;
    } ranges6[] = {{{0}, 3}, {{0x40}, 2}, {{0x80}, 1}, {{0x20, 0x01, 0, 0}, 32}, {{0x20, 0x02}, 16}};
    struct px_address a = {0};
    if (index < PX_COUNT_OF(ranges4)) {
        *ret_network = px_address_v4(ranges4[index].network);
        *ret_bits = 96 + ranges4[index].bits;
        return true;
    }
    index -= PX_COUNT_OF(ranges4);
    if (index >= PX_COUNT_OF(ranges6))
        return false;
    memcpy(a.bytes, ranges6[index].first, sizeof ranges6[index].first);
    *ret_network = a;
    *ret_bits = ranges6[index].bits;
    return true;
}

int px_address_own(struct px_address *out, size_t max)
{
    struct ifaddrs *list = NULL;
    size_t count = 0;
    if (getifaddrs(&list) < 0)
        return -errno;
    for (struct ifaddrs *i = list; i && count <= max; i = i->ifa_next) {
        struct sockaddr_storage from = {0};
        struct px_address a;
        uint16_t port;
        if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        memcpy(&from, i->ifa_addr, i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        if (px_address_from_socket(&from, &a, &port) == 0 && !px_address_special(&a) && count++ < max)
            out[count - 1] = a;
    }
    freeifaddrs(list);
    return count > max ? -E2BIG : (int)count;
}

/* ---- sockets ---- */

socklen_t px_address_to_socket(const struct px_address *a, uint16_t port, struct sockaddr_storage *ret_to)
{
    memset(ret_to, 0, sizeof *ret_to);
    if (px_address_is_v4(a)) {
        struct sockaddr_in *to = (struct sockaddr_in *)ret_to;
        to->sin_family = AF_INET;
        to->sin_port = htons(port);
        memcpy(&to->sin_addr, a->bytes + 12, 4);
        return sizeof *to;
    }
    struct sockaddr_in6 *to = (struct sockaddr_in6 *)ret_to;
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(port);
    memcpy(&to->sin6_addr, a->bytes, 16);
    return sizeof *to;
}

int px_address_from_socket(const struct sockaddr_storage *from, struct px_address *ret_address, uint16_t *ret_port)
{
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)from;
        *ret_address = px_address_v4(ntohl(four->sin_addr.s_addr));
        *ret_port = ntohs(four->sin_port);
        return 0;
    }
    if (from->ss_family != AF_INET6)
        return -EAFNOSUPPORT;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    memcpy(ret_address->bytes, &six->sin6_addr, 16);
    *ret_port = ntohs(six->sin6_port);
    return 0;
}
