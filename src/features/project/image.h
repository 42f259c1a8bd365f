/* project/image.h - the sandbox of a project: base, system libraries and environment, as one image with one id and as a
 * root to run on.
 *
 *     root/               the base with the capabilities' packages
 *     root/px/env         the environment; root/px/store/pkg-builds/TREE: its packages
 *     root/app            the project: a bind when it runs, a layer when it is packed
 *
 * Why:     run, test, pack, explain and `px sandbox build` must use the same sandbox.
 * Owns:    what struct px_project_image holds, until px_project_image_done; its lease keeps everything.
 * Mustn't: write in the project, or know what will be run. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "compose/compose.h"
#include "distro/capability.h"
#include "env/env.h"
#include "env/infer.h"
#include "env/part.h"
#include "image/oci.h"
#include "project/snapshot.h"

struct px_app;
struct px_image_build;

struct px_project_image_ask {
    const struct px_ready *ready;               /* the guard to check first; not with `plan` */
    const char *const *extra;                   /* extra capabilities for this call, NULL-terminated; NULL: none */
    bool force;                                 /* build again and compare */
    bool shipped;                               /* without the groups of development */
    bool plan;                                  /* only compute it: nothing is built or written (explain) */
    bool renew;                                 /* from today's packages, ignoring the lock's pins */
    struct px_pinned *learn;                    /* gets the packages that it is made of, as far as they are known; or NULL */
};

struct px_project_image {
    struct px_snapshot look;
    struct px_pinned pinned;                    /* what the lock says of the system's packages */
    bool is_pinned;                             /* ... and that is all of them */
    struct px_env env;                          /* plan: may be empty (no runtime) if it does not exist yet */
    struct px_inferred inferred;
    char *base;                                 /* "debian-12" */
    struct px_oid base_os_oid, sbx_id;          /* plan: "" where base, packages or environment are not known yet */
    struct px_oid system;                       /* the id of the capabilities' package list; "": none */
    /* sorted, NULL-terminated; explicit, inferred and extra */
    const char *capabilities[PX_CAPABILITIES_MAX + 1];
    struct px_image image;                      /* base, capabilities, environment as layers; sealed */
    bool narrowed;                              /* shipped: packages of development were left out of the environment */
    bool cached;                                /* nothing had to be built; plan: it exists */
    char *root;                                 /* the base with its capabilities, a directory that never changes */
    char *inside;                               /* what is at /px in the box: one directory of the store, to be bound read-only */
    struct px_lease *lease;
};

/* PX900 (base), PX901 (capability), PX903 (building), PX904 (content differs), and the guard's errors. ret_image must
 * not be copied. On error it is empty. */
int px_project_image_make(struct px_project *p, const struct px_project_image_ask *ask, struct px_project_image *ret_image,
                          struct px_err *e);
void px_project_image_done(struct px_project_image *image);
/* {"sbx_id","base","base_os_oid","capabilities","system_oid","profile_oid","image_digest"}: details.sandbox of run and
 * test. */
json_t *px_project_image_json(const struct px_project_image *image);

/* The shipped image: this one with the project's files as its last layer (NULL: as it is), sealed and, as gzip,
 * recorded in the store. how: tag, out, format, compression, push and force count, as in px_sandbox_build. ret_json:
 * the members of its record. */
int px_project_image_ship(struct px_project *p, const struct px_project_image *image, const struct px_app *app,
                          const struct px_image_build *how, struct px_image *ret_image, json_t **ret_json, struct px_err *e);
