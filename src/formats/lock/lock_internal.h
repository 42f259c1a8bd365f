/* lock/lock_internal.h - what the readers of the five formats share. */
#pragma once

#include "config/toml.h"
#include "lock/lock.h"

struct px_lock_reading {
    struct px_lock *pins;
    struct px_toml *toml;       /* NULL for requirements.txt */
    const char *shown;
    bool lost;                  /* a string could not be stored and r->e is filled; readers need not check */
    struct px_err *e;
};

/* ---- texts; all live as long as the pins ---- */
const char *px_lock_keep(struct px_lock_reading *r, const char *text, size_t length);
/* Adds one zeroed item of `size` bytes to a list; NULL and an error without memory. */
void *px_lock_grow(struct px_lock_reading *r, void *list, size_t *count, size_t size, size_t max);

/* ---- TOML ---- */
int px_lock_wrong(struct px_lock_reading *r, uint32_t node, const char *what);
/* NULL if the key is absent or not a string. */
const char *px_lock_text(struct px_lock_reading *r, uint32_t table, const char *key);
int px_lock_number(struct px_lock_reading *r, uint32_t table, const char *key, uint64_t *ret_number);
/* The items of an array, or none. -1 with an error if it is something else. */
int px_lock_array(struct px_lock_reading *r, uint32_t table, const char *key, uint32_t *ret_first);
int px_lock_texts(struct px_lock_reading *r, uint32_t table, const char *key, const char ***ret_list, size_t *ret_count);

/* ---- pins ---- */
/* Adds a pin with its canonical name; NULL with an error. Adding a pin invalidates pointers to other pins. */
struct px_lock_pin *px_lock_add(struct px_lock_reading *r, uint32_t node, const char *name, const char *version);
/* "sha256:HEX"; other algorithms leave the file without a hash. */
int px_lock_add_file(struct px_lock_reading *r, uint32_t node, const char *name, const char *url, const char *hash, uint64_t size);
/* The part of a URL after the last slash, without its query. */
const char *px_lock_base_name(struct px_lock_reading *r, const char *url);

/* Adds the build requirements to the text that is hashed for the lock's id. */
struct px_hash;
int px_lock_hash_builds(struct px_hash *h, const struct px_lock *pins);
int px_lock_hash_list(struct px_hash *h, const struct px_lock *pins);
int px_lock_hash_texts(struct px_hash *h, const char *const *list, size_t count);

int px_lock_read_px(struct px_lock_reading *r);
int px_lock_read_system(struct px_lock_reading *r);
int px_lock_read_uv(struct px_lock_reading *r);
int px_lock_read_pylock(struct px_lock_reading *r);
int px_lock_read_poetry(struct px_lock_reading *r);
int px_lock_read_requirements(struct px_lock_reading *r, const char *text, size_t length);
