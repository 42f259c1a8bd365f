/* base/mac.h - HMAC-SHA256: a text that only the owner of a key can have written.
 *
 * Why:     the small launcher has no crypto library, and needs this one function of it.
 * Mustn't: be used for large files; store/hash.h is faster. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PX_MAC_SIZE = 32, PX_MAC_HEX = 2 * PX_MAC_SIZE + 1 };

struct px_sha {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

struct px_mac {
    struct px_sha inner, outer;
};

/* A key has PX_MAC_SIZE bytes. */
void px_mac_begin(struct px_mac *mac, const uint8_t key[PX_MAC_SIZE]);
void px_mac_add(struct px_mac *mac, const void *data, size_t size);
void px_mac_end(struct px_mac *mac, uint8_t ret[PX_MAC_SIZE]);
void px_mac_hex(const uint8_t mac[PX_MAC_SIZE], char ret[PX_MAC_HEX]);
/* Takes the same time wherever they differ. */
bool px_mac_equal(const void *a, const void *b, size_t size);
