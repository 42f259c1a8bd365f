/* Uses the SHA256_* functions: EVP reads OpenSSL's configuration and fills its tables first, which adds a millisecond
 * to every start. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "store/hash.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGEST_BYTES = SHA256_DIGEST_LENGTH, CHUNK = 64 << 10 };

void px_hash_begin(struct px_hash *h)
{
    h->context = malloc(sizeof(SHA256_CTX));
    if (h->context && SHA256_Init(h->context) != 1)
        px_hash_drop(h);
}

void px_hash_drop(struct px_hash *h)
{
    free(h->context);
    h->context = NULL;
}

void px_hash_add(struct px_hash *h, const void *data, size_t size)
{
    if (h->context && SHA256_Update(h->context, data, size) != 1)
        px_hash_drop(h);
}

int px_hash_end(struct px_hash *h, struct px_oid *ret_oid)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[DIGEST_BYTES];
    bool good = h->context && SHA256_Final(digest, h->context) == 1;

    px_hash_drop(h);
    if (!good)
        return -ENOMEM;         /* the only failure of these functions */
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        ret_oid->hex[2 * i] = digits[digest[i] >> 4];
        ret_oid->hex[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_oid->hex[64] = '\0';
    return 0;
}

int px_hash_bytes(const void *data, size_t size, struct px_oid *ret_oid)
{
    struct px_hash h;

    px_hash_begin(&h);
    px_hash_add(&h, data, size);
    return px_hash_end(&h, ret_oid);
}

/* Uses pread: the descriptor's file offset may be shared. */
int px_hash_fd(int fd, uint64_t max, struct px_oid *ret_oid, uint64_t *ret_size)
{
    char chunk[CHUNK];
    struct px_hash h;
    uint64_t at = 0;
    ssize_t n = 1;

    px_hash_begin(&h);
    while (n > 0 && at <= max) {
        n = pread(fd, chunk, sizeof chunk, (off_t)at);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0) {
            px_hash_add(&h, chunk, (size_t)n);
            at += (uint64_t)n;
        }
    }
    int r = n < 0 ? -errno : at > max ? -EFBIG : px_hash_end(&h, ret_oid);
    px_hash_drop(&h);
    if (r >= 0 && ret_size)
        *ret_size = at;
    return r;
}

int px_hash_oid_parse(const char *text, bool prefix, struct px_oid *ret_oid)
{
    static const char algorithm[] = "sha256:";

    if (!text || (prefix && strncmp(text, algorithm, sizeof algorithm - 1) != 0))
        return -EINVAL;
    text += prefix ? sizeof algorithm - 1 : 0;
    if (strspn(text, "0123456789abcdef") != 64 || text[64] != '\0')
        return -EINVAL;
    memcpy(ret_oid->hex, text, sizeof ret_oid->hex);
    return 0;
}

bool px_hash_oid_equal(const struct px_oid *a, const struct px_oid *b)
{
    return strcmp(a->hex, b->hex) == 0;
}
