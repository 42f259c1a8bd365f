#include "base/mac.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4). */
static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

static uint32_t turn(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void spread(const uint8_t block[64], uint32_t w[64])
{
    memset(w, 0, 16 * sizeof *w);
    for (size_t i = 0; i < 16; i++)
        for (size_t k = 0; k < 4; k++)
            w[i] = w[i] << 8 | block[4 * i + k];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

static void mix(struct px_sha *sha)
{
    uint32_t w[64], s[8];
    spread(sha->block, w);
    memcpy(s, sha->state, sizeof s);
    for (size_t i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]), most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice + rounds[i] + w[i];
        uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + most;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (size_t i = 0; i < 8; i++)
        sha->state[i] += s[i];
}

static void sha_begin(struct px_sha *sha)
{
    *sha = (struct px_sha){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void sha_add(struct px_sha *sha, const void *data, size_t size)
{
    const uint8_t *p = data;
    while (size > 0) {
        size_t at = sha->bytes % 64, n = 64 - at < size ? 64 - at : size;
        memcpy(sha->block + at, p, n);
        sha->bytes += n;
        p += n;
        size -= n;
        if (at + n == 64)
            mix(sha);
    }
}

static void sha_end(struct px_sha *sha, uint8_t ret[PX_MAC_SIZE])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = sha->bytes * 8;
    uint8_t length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha_add(sha, padding, 1 + (119 - sha->bytes % 64) % 64);
    sha_add(sha, length, sizeof length);
    for (size_t i = 0; i < PX_MAC_SIZE; i++)
        ret[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void px_mac_begin(struct px_mac *mac, const uint8_t key[PX_MAC_SIZE])
{
    uint8_t inner[64], outer[64];
    memset(inner, 0x36, sizeof inner);
    memset(outer, 0x5c, sizeof outer);
    for (size_t i = 0; i < PX_MAC_SIZE; i++) {
        inner[i] ^= key[i];
        outer[i] ^= key[i];
    }
    sha_begin(&mac->inner);
    sha_begin(&mac->outer);
    sha_add(&mac->inner, inner, sizeof inner);
    sha_add(&mac->outer, outer, sizeof outer);
}

void px_mac_add(struct px_mac *mac, const void *data, size_t size)
{
    sha_add(&mac->inner, data, size);
}

void px_mac_end(struct px_mac *mac, uint8_t ret[PX_MAC_SIZE])
{
    sha_end(&mac->inner, ret);
    sha_add(&mac->outer, ret, PX_MAC_SIZE);
    sha_end(&mac->outer, ret);
}

void px_mac_hex(const uint8_t mac[PX_MAC_SIZE], char ret[PX_MAC_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < PX_MAC_SIZE; i++) {
        ret[2 * i] = digits[mac[i] >> 4];
        ret[2 * i + 1] = digits[mac[i] & 15];
    }
    ret[2 * PX_MAC_SIZE] = '\0';
}

bool px_mac_equal(const void *a, const void *b, size_t size)
{
    unsigned differ = 0;
    for (size_t i = 0; i < size; i++)
        differ |= (unsigned)((const uint8_t *)a)[i] ^ ((const uint8_t *)b)[i];
    return differ == 0;
}
