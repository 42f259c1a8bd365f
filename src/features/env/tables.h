/* env/tables.h - the capability of a package, a library, a header or a program.
 *
 * Why:     the tables are compiled in and part of the sandbox's version, so that two machines infer the same.
 * Mustn't: match prefixes or substrings: `ldap3` is not ldap, `libzmq` is not libz. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum px_dist_how { PX_DIST_LINK, PX_DIST_DLOPEN, PX_DIST_EXEC, PX_DIST_BUILD, PX_DIST_NOTHING };
enum px_dist_wheel { PX_DIST_BUNDLES, PX_DIST_NEEDS, PX_DIST_NONE, PX_DIST_PURE };

struct px_dist {
    const char *name;           /* canonical */
    const char *capabilities;   /* separated by blanks */
    enum px_dist_how how;
    enum px_dist_wheel wheel;
};
struct px_soname {
    const char *name, *capability;              /* "": known, needs no capability */
    int in_base;                /* true, false, or PX_IN_DEBIAN12 */
};
enum { PX_IN_DEBIAN12 = 2 };    /* debian-13 does not have it */
enum px_probe_kind { PX_PROBE_PROGRAM, PX_PROBE_PKG_CONFIG, PX_PROBE_TOOL };

/* NULL: not known. */
const struct px_dist *px_tables_dist_find(const char *canonical_name);
/* The exact name, else any of the same library with another version ("libpq.so.6"). */
const struct px_soname *px_tables_soname_find(const char *soname);
/* Whether a base has it without a capability; NULL: an unknown base, treated as the default one. */
bool px_tables_soname_in(const struct px_soname *row, const char *base);
/* The library that -lpq finds. */
const struct px_soname *px_tables_soname_of_flag(const char *name);
const char *px_tables_header_capability(const char *header);
/* A tool is a program, too. */
const char *px_tables_probe_capability(enum px_probe_kind kind, const char *name);
