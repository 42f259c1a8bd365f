/* compose/compose.h - one image on its way from words to a sealed manifest.
 *
 *     base, capabilities[, environment], list of packages[, application]
 *
 * Why:     an image of capabilities and one of a project are put together, named, kept and found again in the same way.
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
    const char *const *command;         /* what it runs, from /app; NULL-terminated. It follows from the files. */
};

/* What a lock pins: each package to the byte. */
struct px_pinned {
    struct px_packages base;            /* none: nothing is pinned */
    const char *capabilities[PX_CAPABILITIES_MAX + 1];          /* that `packages` are for; sorted, NULL-terminated */
    struct px_packages packages;
    bool whole;                         /* they are known; false: of the base alone */
};
void px_compose_pinned_done(struct px_pinned *pinned);

struct px_compose {
    /* what is asked for */
    struct px_sandbox *s;
    const struct px_image_build *how;
    const struct px_env *env;           /* of a project; NULL: none */
    const struct px_app *app;           /* the project itself; NULL: none */
    const struct px_pinned *pinned;     /* NULL: nothing is */
    const char *place;                  /* what a base that is pinned, or renewed, is called */
    bool renew;                         /* today's packages, whatever is pinned or known */
    enum px_compression compression;
    /* what it is made of */
    struct px_base base;
    const struct px_base_row *row;      /* NULL: a base whose packages px does not know */
    struct px_capability_set set;
    struct px_oid profile, sbx_id;
    struct px_oid id;                   /* of its record: the sbx_id, or, with an application, of both */
    struct px_capability_layer capabilities;
    struct px_env_part part;            /* env: what is at /px */
    struct px_oid root;                 /* env: base and capabilities as one tree */
    struct px_packages lock;            /* of the capabilities: each to the byte */
    struct px_oid system;               /* what that list is called; "": it is empty */
    struct px_oid expected;             /* the manifest's digest that building it again has to give; "": none */
    struct px_image image;
    bool cached;
};

/* Whether what `how` says about form, tag and place can be; sets the compression. */
int px_compose_words(struct px_compose *b, struct px_err *e);
/* Which base, capabilities, packages and ids. A base that px can build is built, and an archive asked; with `plan`
 * neither is, and 1 says that they would have to be: then the base is there, or has no id. */
int px_compose_find(struct px_compose *b, bool plan, struct px_err *e);
/* Whether all its packages are pinned: those of the base, and of these capabilities and no others. */
bool px_compose_is_pinned(const struct px_compose *b);
/* By one process at a time: finds it in the store, whole, or makes and records it. */
int px_compose_make(struct px_compose *b, struct px_err *e);
void px_compose_done(struct px_compose *b);
/* Writes it out and pushes it, as `how` says. */
int px_compose_deliver(struct px_compose *b, struct px_err *e);
/* The members of its record, for answers; NULL without memory. */
json_t *px_compose_json(const struct px_compose *b);

/* sandbox_assemble.c: the layers; labels; sealed. */
int px_compose_assemble(struct px_compose *b, struct px_err *e);
