/* catalog/bases.h - the table of bases that px knows by name.
 *
 * Owns:    nothing: the table is constant.
 * Mustn't: match anything but whole names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct px_buf;

enum px_base_column { PX_BASE_DEBIAN12, PX_BASE_DEBIAN13, PX_BASE_ALPINE320, PX_BASE_COLUMNS };

struct px_base_row {            /* data/bases.def */
    enum px_base_column column;
    const char *name, *variant;
    int version;
    const char *os_id, *os_release;
    const char *suite;          /* NULL: can only be imported */
    const char *wants;          /* what apt is asked for, each with its NUL, ends with an empty one */
    const char *mirror, *security, *keyring;
};
const struct px_base_row *px_bases_at(size_t index);                 /* NULL past the end */
const struct px_base_row *px_bases_find(const char *name);
/* "debian-12, debian-13": all, or those that px builds; and the one that is nearest to what was written, or NULL. */
const char *px_bases_names(bool built, const char *written, struct px_buf *out);
/* The row whose packages fit a system that says this in its os-release; NULL: none. */
const struct px_base_row *px_bases_for(const char *os_id, const char *os_release);
