/* config/toml.h - TOML 1.0 with the position of every node, so that a file can be edited in place.
 *
 * Why:     `px sandbox add` changes one line of a file that people wrote; their comments, order and spaces must
 *          stay.
 * Owns:    a copy of the text, the nodes and the decoded strings.
 * Mustn't: accept what TOML 1.0 does not, need more than linear time, or convert numbers by the locale (a float stays text). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum px_toml_type {
    PX_TOML_STRING, PX_TOML_INTEGER, PX_TOML_FLOAT, PX_TOML_BOOL,
    PX_TOML_DATETIME, PX_TOML_LOCAL_DATETIME, PX_TOML_LOCAL_DATE, PX_TOML_LOCAL_TIME,
    PX_TOML_ARRAY, PX_TOML_TABLE,
};

/* How a table or array was created, which decides whether it may be extended. */
enum px_toml_made {
    PX_TOML_BY_VALUE,           /* a scalar, an array or an inline table: may not be extended */
    PX_TOML_BY_HEADER,          /* [a] */
    PX_TOML_ON_THE_WAY,         /* a of [a.b], until [a] comes */
    PX_TOML_BY_KEY,             /* a of a.b = 1 */
    PX_TOML_BY_ITEMS,           /* the array of [[a]] */
};

enum { PX_TOML_BYTES_MAX = 16 << 20, PX_TOML_DEPTH_MAX = 64, PX_TOML_NONE = 0 };

/* A node is a number; 0 is the root, which as a child means none. Places are offsets in the text. */
struct px_toml_node {
    uint8_t type, made;
    bool truth;
    int64_t number;
    uint32_t parent, first, last, next, count;
    uint32_t key, key_length;   /* decoded, in `strings` */
    uint32_t text, text_length; /* decoded string, or a float's or date's digits without '_' */
    uint32_t key_at;            /* where its key begins: of a dotted one, the part of this node */
    uint32_t line_at;           /* where the line of the key or header begins */
    uint32_t from, to;          /* the value's own bytes; of a table with a header, the header's */
    uint32_t body_to;           /* a table with a header: the end of the last line that belongs to its own section */
};

struct px_toml {
    char *source;
    size_t length;
    struct px_toml_node *nodes;
    uint32_t count, capacity;
    uint32_t *index;            /* of (parent, key) -> node; a power of two, grows with the nodes */
    uint32_t index_size;
    struct px_buf strings;
    uint32_t root_to;           /* the end of the last line that belongs to the root itself */
};

struct px_toml_fault {
    uint32_t line, column;      /* from 1; columns count bytes */
    char message[120];
};

/* 0; -EINVAL with the fault; -EFBIG, -ENOMEM. */
int px_toml_parse(const char *text, size_t length, struct px_toml **ret_toml, struct px_toml_fault *ret_fault);
void px_toml_free(struct px_toml *t);

const struct px_toml_node *px_toml_at(const struct px_toml *t, uint32_t node);
/* PX_TOML_NONE if there is no such key. */
uint32_t px_toml_get(const struct px_toml *t, uint32_t table, const char *key);
uint32_t px_toml_find(const struct px_toml *t, const char *const *path, size_t length);
const char *px_toml_key(const struct px_toml *t, uint32_t node);
/* NULL if it is not a string. */
const char *px_toml_text(const struct px_toml *t, uint32_t node);
/* The line and column of an offset, for messages. */
void px_toml_place(const struct px_toml *t, uint32_t at, uint32_t *ret_line, uint32_t *ret_column);

/* ---- edits (toml_edit.c): the new text into `out`; 0, 1 if nothing had to change, -EEXIST if another kind of value is
 * there ---- */

/* path[0..length-1] = value, where value is TOML text. Missing tables are created in the style of the file. */
int px_toml_set(const struct px_toml *t, const char *const *path, size_t length, const char *value, struct px_buf *out);
/* Removes the key and its line; a header that becomes empty stays. 1 if the key was not there. */
int px_toml_remove(const struct px_toml *t, const char *const *path, size_t length, struct px_buf *out);
/* toml_list.c: replaces item `i` of an array by the text. The index after the last item appends, and creates a missing
 * array. NULL removes the item, with its line if no other item is on it. 1: nothing to change. */
int px_toml_item(const struct px_toml *t, const char *const *path, size_t length, uint32_t index, const char *text,
                 struct px_buf *out);
/* Writes any text as a quoted TOML string. */
void px_toml_put_string(struct px_buf *out, const char *text);
