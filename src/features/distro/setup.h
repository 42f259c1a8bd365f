/* distro/setup.h - from packages to files: the distribution's own dpkg, run in a setup box.
 *
 * Why:     packages have scripts; they run in a box without access, and files that depend on time, host or user are
 *          removed (data/setup.sh).
 * Owns:    nothing; `scratch` belongs to the caller.
 * Mustn't: fetch: the packages are in the store. */
#pragma once

#include "catalog/catalog.h"
#include "distro/packages.h"

struct px_setup {
    struct px_sandbox *sandbox;
    const struct px_packages *packages;
    int scratch;
    enum px_compression compression;    /* of the layer */
};

/* A base from nothing but its packages, as one layer and as a tree. */
int px_setup_base(const struct px_setup *setup, struct px_layer *ret_layer, struct px_oid *ret_tree, struct px_err *e);
/* The changes of the packages on a base, as a layer. */
int px_setup_layer(const struct px_setup *setup, const struct px_oid *base_tree, struct px_layer *ret_layer,
                   struct px_err *e);
