/* seccomp/reader.h - members of a profile's JSON, with errors that name the place.
 *
 * Why:     a profile has hundreds of entries; an error must name the entry: "syscalls[3].args[0].op is ...".
 * Owns:    nothing.
 * Mustn't: know what the members mean. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include <px/px.h>

struct px_draft;

enum { PX_NOWHERE = -1 };

/* The current position: syscalls[entry].args[arg].member, syscalls[entry].group.member. */
struct px_reader {
    struct px_draft *draft;
    const char *name;           /* the file's */
    int entry, arg;             /* or PX_NOWHERE */
    const char *group;          /* or NULL */
    struct px_err *e;
};

/* A table of words ends with a NULL. */
struct px_word {
    const char *name;
    uint32_t value;
};

/* The document of a text with a NUL behind it; NULL after an error. */
json_t *px_reader_load(const struct px_reader *r, const char *text, size_t len);

/* "profile 'FILE': PLACE WORDS"; member NULL is the object itself. Both return -1. */
int px_reader_wrong(const struct px_reader *r, const char *member, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int px_reader_no_memory(const struct px_reader *r);

/* 1 if the member is there, 0 if not, -1 with an error if it has another type; null counts as absent, because writers
 * of the format use it so. */
int px_reader_text(const struct px_reader *r, json_t *object, const char *name, const char **ret_text);
int px_reader_number(const struct px_reader *r, json_t *object, const char *name, uint64_t max, uint64_t *ret_value);
int px_reader_array(const struct px_reader *r, json_t *object, const char *name, json_t **ret_array);
int px_reader_object(const struct px_reader *r, json_t *object, const char *name, json_t **ret_object);
/* The i-th text of a list; NULL after an error. */
const char *px_reader_text_at(const struct px_reader *r, const char *name, json_t *array, size_t i);
/* The value of a word; the error lists the valid words. */
int px_reader_word(const struct px_reader *r, const char *member, const struct px_word *words, const char *name,
                   uint32_t *ret_value);
/* Warns of unknown members: a misspelt one would silently drop a restriction. */
void px_reader_warn_of_others(const struct px_reader *r, json_t *object, const char *const *known);
