/* compose/compose.h - one image, from its description to a sealed manifest.
 *
 *     base, capabilities[, environment], list of packages[, application]
 *
 * Why:     images of capabilities and images of projects are assembled, named, stored and found in the same way.
 * Owns:    what struct px_compose holds, until px_compose_done.
 * Mustn't: know what a project is. */
#pragma once

#include <px/sandbox.h>

#include "catalog/catalog.h"
#include "distro/layer.h"
#include "env/part.h"
#include "image/oci.h"

/* A project as the last layer of an image. */
struct px_app {
    struct px_layer layer;              /* its names begin with app/ */
    const char *const *command;         /* what it runs, from /app; NULL-terminated. Derived from the files. */
};

/* What a lock pins: the exact packages. */
struct px_pinned {
    struct px_packages base;            /* none: nothing is pinned */
    /* the capabilities of `packages`; sorted, NULL-terminated */
    const char *capabilities[PX_CAPABILITIES_MAX + 1];
    struct px_packages packages;
    bool whole;                         /* false: only the base's packages are known */
};
void px_compose_pinned_done(struct px_pinned *pinned);

struct px_compose {
    /* what is asked for */
    struct px_sandbox *s;
    const struct px_image_build *how;
    const struct px_env *env;           /* of a project; NULL: none */
    const struct px_app *app;           /* the project itself; NULL: none */
    const struct px_pinned *pinned;     /* NULL: nothing is */
    const char *place;                  /* the name of a pinned or renewed base */
    bool renew;                         /* use today's packages, not pinned or cached ones */
    enum px_compression compression;
    /* what it is made of */
    struct px_base base;
    const struct px_base_row *row;      /* NULL: a base whose packages px does not know */
    struct px_capability_set set;
    struct px_oid profile, sbx_id;
    struct px_oid id;                   /* the record's id: the sbx_id, or with an application a hash of both */
    struct px_capability_layer capabilities;
    struct px_env_part part;            /* env: what is at /px */
    struct px_oid root;                 /* env: base and capabilities as one tree */
    struct px_packages lock;            /* the exact packages of the capabilities */
    struct px_oid system;               /* the id of that list; "": it is empty */
    struct px_oid expected;             /* the manifest's digest that a rebuild must give; "": none */
    struct px_image image;
    bool cached;
};

/* Checks the format, tag and output path in `how`; sets the compression. */
int px_compose_words(struct px_compose *b, struct px_err *e);
/* Which base, capabilities, packages and ids. Builds a base that px can build, and asks the archive. With `plan` it
 * does neither and returns 1 if it would have to; then the base exists, or has no id. */
int px_compose_find(struct px_compose *b, bool plan, struct px_err *e);
/* Whether all its packages are pinned: those of the base, and of these capabilities and no others. */
bool px_compose_is_pinned(const struct px_compose *b);
/* One process at a time: finds the complete image in the store, or makes and records it. */
int px_compose_make(struct px_compose *b, struct px_err *e);
void px_compose_done(struct px_compose *b);
/* Writes the image to a file and pushes it, as `how` says. */
int px_compose_deliver(struct px_compose *b, struct px_err *e);
/* The members of its record, for answers; NULL without memory. */
json_t *px_compose_json(const struct px_compose *b);

/* layers.c: makes the layers and labels, and seals the manifest. */
int px_compose_assemble(struct px_compose *b, struct px_err *e);
