/* base/text.h - numbers, sizes, times and UTF-8, strictly.
 *
 * Mustn't: accept anything outside of its grammar: no sign, no leading or trailing blank, no overflow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PX_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* All return 0, -EINVAL (syntax) or -ERANGE (too large). */
int px_parse_u64(const char *text, uint64_t max, uint64_t *ret_value);
/* 512, 512k 512m 512g 512t (also upper case, also KiB/MiB/..: binary), 512KB/MB/GB/TB: decimal; fractions allowed: 1.5g. */
int px_parse_bytes(const char *text, uint64_t *ret_bytes);
/* 10 10s 250ms 1m30s 2h 1d, fractions allowed in the last part: 1.5s. Milliseconds. */
int px_parse_msec(const char *text, uint64_t *ret_msec);
/* 1.5 -> 1500; at most three decimals. */
int px_parse_milli(const char *text, uint64_t *ret_milli);

/* snprintf that fails (-ENAMETOOLONG) instead of truncating. */
int px_fmt(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Length of the valid UTF-8 sequence at text (1..4), or 0 if there is none. Surrogates and overlong forms are invalid. */
size_t px_utf8_length(const char *text, size_t len);
/* Whether a valid sequence of that length is a character that a terminal interprets: C0, DEL, C1 (U+009B starts an
 * escape sequence), line separators, and the marks that reorder text, so that a person reads something else. */
bool px_utf8_is_control(const char *text, size_t len);

bool px_starts_with(const char *text, const char *prefix);
/* Strings that may be NULL. */
bool px_equal(const char *a, const char *b);
/* Whether an environment variable means yes: set, and not "", "0", "false", "no" or "off". */
bool px_truthy(const char *value);
