/* lock/lock_internal.h - what the readers of the five formats share. */
#pragma once

#include "config/toml.h"
#include "lock/lock.h"

struct px_lock_reading {
    struct px_lock *pins;
    struct px_toml *toml;       /* NULL for requirements.txt */
    const char *shown;
    bool lost;                  /* a text could not be kept, and r->e says why; no reader has to look */
    struct px_err *e;
};

/* ---- texts; all live as long as the pins ---- */
const char *px_lock_keep(struct px_lock_reading *r, const char *text, size_t length);
/* A list of `count` items of `size` bytes grows by one, zeroed; NULL and an error when there is no room. */
void *px_lock_grow(struct px_lock_reading *r, void *list, size_t *count, size_t size, size_t max);

/* ---- TOML ---- */
int px_lock_wrong(struct px_lock_reading *r, uint32_t node, const char *what);
/* NULL if the key is not there or is no string. */
const char *px_lock_text(struct px_lock_reading *r, uint32_t table, const char *key);
int px_lock_number(struct px_lock_reading *r, uint32_t table, const char *key, uint64_t *ret_number);
/* The items of an array, or none. -1 with an error if it is something else. */
int px_lock_array(struct px_lock_reading *r, uint32_t table, const char *key, uint32_t *ret_first);
int px_lock_texts(struct px_lock_reading *r, uint32_t table, const char *key, const char ***ret_list, size_t *ret_count);

/* ---- pins ---- */
/* A new one with its canonical name; NULL with an error. Pointers to pins move as more come. */
struct px_lock_pin *px_lock_add(struct px_lock_reading *r, uint32_t node, const char *name, const char *version);
/* "sha256:HEX"; other kinds leave the file without a hash. */
int px_lock_add_file(struct px_lock_reading *r, uint32_t node, const char *name, const char *url, const char *hash, uint64_t size);
/* What comes behind the last slash, without a query. */
const char *px_lock_base_name(struct px_lock_reading *r, const char *url);

/* What the lock's id takes of them; nothing where there are none. */
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
