/* distro/layer.h - capabilities as one layer over a base.
 *
 * Why:     separate layers of capabilities would conflict in dpkg's own files. So the whole set is one layer, shared
 *          by all images with that base and those packages.
 * Owns:    what struct px_capability_layer holds, until its done.
 * Mustn't: depend on anything but the base and the packages, each with its hash. */
#pragma once

#include "catalog/record.h"
#include "distro/capability.h"
#include "distro/packages.h"

struct px_sandbox;

struct px_capability_layer {
    bool any;                   /* false: the base has everything already */
    struct px_layer layer;
    struct px_oid key;          /* a tree of the store that remembers it */
    struct px_packages packages;
};
void px_capability_layer_done(struct px_capability_layer *layer);

struct px_capability_ask {
    const struct px_base *base;
    const struct px_base_row *row;      /* whose packages it takes */
    const struct px_capability_set *set;
    enum px_compression compression;
    const struct px_packages *lock;     /* these packages; NULL: today's */
    bool force;                 /* build it again and compare */
    bool renew;                 /* px_capability_packages: ask the archive again, ignore cached answers */
    const char *build;          /* for building against them: these packages too, separated by blanks, and each capability's own; or NULL */
};
/* Which packages the set needs on that base, beside those it has: the archive's cached or new answer. With `plan` the
 * archive is not asked; 1: it would have to be. */
int px_capability_packages(struct px_sandbox *s, const struct px_capability_ask *ask, bool plan,
                           struct px_packages *ret_list, struct px_err *e);
int px_capability_layer_make(struct px_sandbox *s, const struct px_capability_ask *ask,
                             struct px_capability_layer *ret_layer, struct px_err *e);
