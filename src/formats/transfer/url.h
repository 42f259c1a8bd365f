/* transfer/url.h - paths of this machine that are written as URLs.
 *
 * Owns:    nothing.
 * Mustn't: give a path with a NUL or with bytes that are not UTF-8. */
#pragma once

#include <stddef.h>

/* "a%20b" -> "a b". -EINVAL. */
int px_url_decode(const char *text, size_t length, char *out, size_t size);
/* "file:///a%20b" or "/a b" -> "/a b", cleaned. -EINVAL for anything else. */
int px_url_path(const char *url, char *out, size_t size);
