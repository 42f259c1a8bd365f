/* net/address.h - IP addresses, both families in one form, and which of them are not of the open network.
 *
 * Why:     every decision about an address is made on one form, so that 127.0.0.1, ::ffff:127.0.0.1 and
 *          64:ff9b::7f00:1 are equal.
 * Owns:    nothing.
 * Mustn't: accept any spelling but dotted quads and RFC 4291's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* IPv4 is stored as ::ffff:a.b.c.d. */
struct px_address {
    uint8_t bytes[16];
};

enum { PX_ADDRESS_TEXT = 48 };

int px_address_parse(const char *text, struct px_address *ret_address);        /* 0 or -EINVAL */
struct px_address px_address_v4(uint32_t address);      /* in the host's byte order */
bool px_address_is_v4(const struct px_address *a);
uint32_t px_address_get_v4(const struct px_address *a);
/* The one form of an address: the IPv4 address that it contains (NAT64 with the well-known prefix, 6to4,
 * IPv4-compatible), else itself. bits (NULL: 128) is the prefix length of a network, and becomes that of the result.
 * A network that is not part of such a range stays as it is. Every comparison below except px_address_within uses
 * this form. */
struct px_address px_address_plain(const struct px_address *a, unsigned *bits);
bool px_address_equal(const struct px_address *a, const struct px_address *b);
void px_address_print(const struct px_address *a, char out[PX_ADDRESS_TEXT]);
/* "1.2.3.4:80", "[2001:db8::1]:80" */
void px_address_print_port(const struct px_address *a, uint16_t port, char *out, size_t size);
/* Whether both are of one family and the first `bits` (of 128) are equal: for allow rules, which never match more
 * than is written. */
bool px_address_within(const struct px_address *a, const struct px_address *network, unsigned bits);
/* The same for any spelling of both: for deny rules. */
bool px_address_reaches(const struct px_address *a, const struct px_address *network, unsigned bits);
/* NULL for an address of the open network; else a word for its kind: "private", "loopback", ... An IPv6 address that
 * contains an IPv4 address (NAT64, 6to4) counts as that. */
const char *px_address_special(const struct px_address *a);
/* The networks of special addresses, one after the other; false past the last. */
bool px_address_special_range(size_t index, struct px_address *ret_network, unsigned *ret_bits);
/* Addresses of this machine that are not special; how many, or -errno (-E2BIG: more than max). */
int px_address_own(struct px_address *out, size_t max);
socklen_t px_address_to_socket(const struct px_address *a, uint16_t port, struct sockaddr_storage *ret_to);
int px_address_from_socket(const struct sockaddr_storage *from, struct px_address *ret_address, uint16_t *ret_port);
