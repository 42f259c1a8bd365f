/* base/json.h - the one JSON writer: cannot produce an unbalanced or unescaped document.
 *
 * Owns:    the nesting state; the bytes go to a px_buf.
 * Mustn't: write floats in a locale, or invalid UTF-8 (each bad byte becomes U+FFFD). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_buf;

enum { PX_JSON_DEPTH = 16 };

struct px_json {
    struct px_buf *out;
    bool pretty;                /* two spaces, one member per line */
    int depth;
    char close[PX_JSON_DEPTH];  /* '}' or ']' for each open level */
    bool any[PX_JSON_DEPTH];    /* whether the level has a member yet */
};

/* name is NULL inside arrays and at the top. Misuse (a name in an array, too deep, end without begin) sets out->err = -EINVAL. */
void px_json_object(struct px_json *j, const char *name);
void px_json_array(struct px_json *j, const char *name);
void px_json_end(struct px_json *j);
void px_json_text(struct px_json *j, const char *name, const char *text);       /* NULL text writes null */
void px_json_bytes(struct px_json *j, const char *name, const void *data, size_t len);
void px_json_int(struct px_json *j, const char *name, int64_t value);
void px_json_uint(struct px_json *j, const char *name, uint64_t value);
void px_json_bool(struct px_json *j, const char *name, bool value);
void px_json_null(struct px_json *j, const char *name);
/* A whole value that this writer (or jansson) wrote before, on one line; a newline at its end is left out. */
void px_json_value(struct px_json *j, const char *name, const char *json);
/* value / 10^decimals, exactly: px_json_decimal(j, "wall_s", 1500, 3) writes 1.500. */
void px_json_decimal(struct px_json *j, const char *name, uint64_t value, int decimals);
