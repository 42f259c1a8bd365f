/* store/hash.h - sha256 as a stream, and the 64 hexadecimal digits by which everything in the store is called.
 *
 * Why:     one crypto library, behind one small interface; the core of px has none.
 * Owns:    the library's context.
 * Mustn't: be used in a child between clone and exec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What something is called: lower-case hexadecimal sha256 with its NUL. "" is no id. */
struct px_oid {
    char hex[65];
};

struct px_hash {
    void *context;              /* NULL after an error, which px_hash_end reports */
};

void px_hash_begin(struct px_hash *h);
void px_hash_add(struct px_hash *h, const void *data, size_t size);
int px_hash_end(struct px_hash *h, struct px_oid *ret_oid);             /* frees the context; 0 or -errno */
void px_hash_drop(struct px_hash *h);                                   /* the same without an answer; fine after end */
int px_hash_bytes(const void *data, size_t size, struct px_oid *ret_oid);
/* The whole file from its start, at most max bytes (-EFBIG), with its length. */
int px_hash_fd(int fd, uint64_t max, struct px_oid *ret_oid, uint64_t *ret_size);

/* Exactly 64 digits 0-9a-f; with `prefix`, after "sha256:". -EINVAL else: nothing else ever becomes a file name. */
int px_hash_oid_parse(const char *text, bool prefix, struct px_oid *ret_oid);
bool px_hash_oid_equal(const struct px_oid *a, const struct px_oid *b);
