/* distro/base.h - a base by the packages that it is made of.
 *
 * Why:     a project's lock names packages, not a base that happens to be here; the same packages are the same base,
 *          whoever built it.
 * Owns:    nothing.
 * Mustn't: give a base a name that somebody else uses: what one project pins is no other's "debian-12". */
#pragma once

#include <stdbool.h>

#include "catalog/catalog.h"
#include "catalog/record.h"
#include "distro/capability.h"
#include "distro/packages.h"

struct px_distro_base_make {
    const struct px_base_row *row;              /* one that px can build */
    const struct px_packages *packages;         /* exactly these; NULL: what the archive has now */
    const char *place;          /* the name that it gets */
    bool plan;                  /* nothing is built or named */
};
/* Found in the store, or built. 1: plan, and it is not here. */
int px_distro_base_make(struct px_sandbox *s, const struct px_distro_base_make *how, struct px_base *ret_base, struct px_err *e);
/* The packages of a base of the store. 1: it was imported. */
int px_distro_base_packages(struct px_sandbox *s, const struct px_base *base, struct px_packages *ret_list, struct px_err *e);
/* Builds it once more from its packages, beside what is there, fetching those that are lost, and compares. PX904: it is
 * another. 1: it was imported, and there is nothing to build it from. */
int px_distro_base_again(struct px_sandbox *s, const struct px_base *base, struct px_err *e);
