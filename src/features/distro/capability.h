/* distro/capability.h - the table of capabilities, and the packages of a set of capabilities on a base.
 *
 * Why:     a capability ("postgres") is a need for system libraries; its packages differ from base to base.
 * Owns:    nothing: tables are constant, sets borrow their names from them.
 * Mustn't: match anything but whole names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "catalog/bases.h"

struct px_err;

struct px_capability {          /* data/capabilities.def */
    const char *name, *summary;
    struct {
        const char *run, *build;        /* packages, separated by blanks; "": none */
    } packages[PX_BASE_COLUMNS];
};
const struct px_capability *px_capability_at(size_t index);
const struct px_capability *px_capability_find(const char *name);
size_t px_capability_count(void);

enum { PX_CAPABILITIES_MAX = 128 };
struct px_capability_set {
    const struct px_capability *items[PX_CAPABILITIES_MAX];             /* sorted by name, each once */
    size_t count;
};
/* names: NULL-terminated, may be NULL. PX901 for an unknown name, with the most similar known one. */
int px_capability_set_make(const char *const *names, struct px_capability_set *ret_set, struct px_err *e);
/* The name of the capability that adds the development packages of the others. */
#define PX_CAPABILITY_HEADERS "headers"
bool px_capability_set_has(const struct px_capability_set *set, const char *name);
/* PX901 if one of them has no packages on the base. */
int px_capability_set_check(const struct px_capability_set *set, const struct px_base_row *base, struct px_err *e);
