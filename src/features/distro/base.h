/* distro/base.h - a base identified by its packages.
 *
 * Why:     a project's lock names packages; the same packages give the same base on every machine.
 * Owns:    nothing.
 * Mustn't: give a base a name in use: the base that one project pins must not become "debian-12" for others. */
#pragma once

#include <stdbool.h>

#include "catalog/catalog.h"
#include "catalog/record.h"
#include "distro/capability.h"
#include "distro/packages.h"

struct px_distro_base_make {
    const struct px_base_row *row;              /* one that px can build */
    const struct px_packages *packages;         /* exactly these; NULL: the archive's current ones */
    const char *place;          /* the name that it gets */
    bool plan;                  /* nothing is built or named */
};
/* Found in the store, or built. 1: plan, and it is not here. */
int px_distro_base_make(struct px_sandbox *s, const struct px_distro_base_make *how, struct px_base *ret_base, struct px_err *e);
/* The packages of a base of the store. 1: it was imported. */
int px_distro_base_packages(struct px_sandbox *s, const struct px_base *base, struct px_packages *ret_list, struct px_err *e);
/* Builds it again from its packages, fetches missing ones, and compares the result. PX904: the result differs. 1: it
 * was imported and cannot be rebuilt. */
int px_distro_base_again(struct px_sandbox *s, const struct px_base *base, struct px_err *e);
