/* base/field.h - a request struct described once: name, type, offset, texts.
 *
 * Why:     flags, JSON, help, man pages and completion all come from one table, so they cannot disagree.
 * Owns:    text values (allocated copies). Everything else is a plain member of the request struct.
 * Mustn't: know any particular request. A layer above may add types of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_err;
struct px_field;
struct px_json;

struct px_field_type {
    const char *name;           /* for man pages: "size", "time" */
    /* Parses text into *at; on failure fills e with PX_E_VALUE and leaves *at as it was. */
    int (*parse)(void *at, const struct px_field *field, const char *text, struct px_err *e);
    void (*print)(const void *at, const struct px_field *field, struct px_json *json);
    void (*done)(void *at);     /* NULL if nothing is owned */
};

enum px_field_flags {
    PX_FIELD_FLAG = 1 << 0,     /* an option without a value; parse is called with "true" */
    PX_FIELD_REPEAT = 1 << 1,   /* may be given several times; each adds */
    PX_FIELD_HIDDEN = 1 << 2,   /* not in --help */
    PX_FIELD_ABSENT = 1 << 3,   /* designed, but not part of this build: refused with PX_E_NOT_BUILT */
    PX_FIELD_OPTIONAL = 1 << 4, /* the value may be left out: --overlay or --overlay=DIR */
    PX_FIELD_INTERNAL = 1 << 5, /* set only by px itself: no front end offers it */
};

struct px_field {
    const char *name;           /* "memory": --memory, "memory" in JSON. A table ends with a NULL name. */
    char letter;                /* 'm' for -m; 0 if none */
    const struct px_field_type *type;
    size_t offset;
    unsigned flags;
    const char *arg;            /* "SIZE", for help */
    const char *help;           /* one line */
    const char *const *words;   /* for px_field_choice: NULL-terminated, value = index */
};

extern const struct px_field_type px_field_text;        /* char *, owned */
extern const struct px_field_type px_field_bytes;       /* uint64_t; "unlimited" = UINT64_MAX */
extern const struct px_field_type px_field_msec;        /* uint64_t; "unlimited" = UINT64_MAX */
extern const struct px_field_type px_field_count;       /* uint64_t; "unlimited" = UINT64_MAX */
extern const struct px_field_type px_field_milli;       /* uint64_t, thousandths; "unlimited" = UINT64_MAX */
extern const struct px_field_type px_field_bool;        /* bool; true/false/yes/no/1/0/on/off */
extern const struct px_field_type px_field_choice;      /* int */

const struct px_field *px_field_find(const struct px_field *table, const char *name, size_t name_len);
int px_field_set(const struct px_field *field, void *request, const char *text, struct px_err *e);
/* All fields as members of the open object. */
void px_field_print(const struct px_field *table, const void *request, struct px_json *json);
void px_field_done(const struct px_field *table, void *request);
