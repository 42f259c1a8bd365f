/* store/hash.h - sha256 as a stream, and its 64 hexadecimal digits, the names of everything in the store.
 *
 * Why:     hides the crypto library behind a small interface; the core does not link it.
 * Owns:    the library's context.
 * Mustn't: be used in a child between clone and exec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An id: lower-case hexadecimal sha256 with its NUL. "" is not an id. */
struct px_oid {
    char hex[65];
};

struct px_hash {
    void *context;              /* NULL after an error, which px_hash_end reports */
};

void px_hash_begin(struct px_hash *h);
void px_hash_add(struct px_hash *h, const void *data, size_t size);
int px_hash_end(struct px_hash *h, struct px_oid *ret_oid);             /* frees the context; 0 or -errno */
void px_hash_drop(struct px_hash *h);                                   /* frees without a result; allowed after end */
int px_hash_bytes(const void *data, size_t size, struct px_oid *ret_oid);
/* The whole file from its start, at most max bytes (-EFBIG), with its length. */
int px_hash_fd(int fd, uint64_t max, struct px_oid *ret_oid, uint64_t *ret_size);

/* Exactly 64 digits 0-9a-f; with `prefix`, after "sha256:". otherwise -EINVAL. Nothing else becomes a file name. */
int px_hash_oid_parse(const char *text, bool prefix, struct px_oid *ret_oid);
bool px_hash_oid_equal(const struct px_oid *a, const struct px_oid *b);
