/* pep/version.h - versions and version ranges of Python packages (PEP 440).
 *
 * Why:     locks have exact versions, manifests have ranges; PEP 440 decides whether one fits the other.
 * Owns:    nothing: a version is a value.
 * Mustn't: accept what the standard calls invalid; numbers have at most 18 digits, a release at most 16 parts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PX_RELEASE_MAX = 16, PX_LOCAL_MAX = 64 };

struct px_version {
    uint64_t epoch;
    uint64_t release[PX_RELEASE_MAX];
    uint32_t release_count;
    char pre;                   /* 'a', 'b', 'r' (rc), or 0 */
    bool has_post, has_dev;
    uint64_t pre_number, post, dev;
    char local[PX_LOCAL_MAX];   /* normal form, "" if none */
};

/* The first `length` bytes of text, blanks around them allowed. 0 or -EINVAL. */
int px_version_parse(const char *text, size_t length, struct px_version *ret_version);
/* < 0, 0, > 0. */
int px_version_compare(const struct px_version *a, const struct px_version *b);

/* Whether a version fits ">=1.2,<2" ("" fits all). Pre-releases are treated like other versions. 1, 0, or -EINVAL for
 * an invalid range. */
int px_version_fits(const char *version, const char *range);
/* The same, and a plain version matches its releases: "3.11" matches 3.11.2, as in [tool.px] python. */
int px_version_asked(const char *version, const char *range);
/* One clause, in two parts: ("~=", "1.4"). */
int px_version_clause(const char *version, const char *op, size_t op_length, const char *bound, size_t bound_length);
