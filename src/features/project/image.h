/* project/image.h - the sandbox of a project: base, system libraries and environment, as one image with one id and as a
 * root to run on.
 *
 *     root/               the base with the capabilities' packages
 *     root/px/env         the environment; root/px/store/pkg-builds/TREE: its packages
 *     root/app            the project: a bind when it runs, a layer when it is packed
 *
 * Why:     run, test, pack, explain and `px sandbox build` must never disagree about what a project's sandbox is.
 * Owns:    what struct px_project_image holds, until px_project_image_done; its lease keeps everything there meanwhile.
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
    const struct px_ready *ready;               /* the guard that is asked first; with `plan`: not asked */
    const char *const *extra;                   /* capabilities for this time alone, NULL-terminated; NULL: none */
    bool force;                                 /* build again, and compare */
    bool shipped;                               /* without the groups of development */
    bool plan;                                  /* only say what it would be: nothing is built or written (explain) */
    bool renew;                                 /* of today's packages, whatever the lock pins */
    struct px_pinned *learn;                    /* gets the packages that it is made of, as far as they are known; or NULL */
};

struct px_project_image {
    struct px_snapshot look;
    struct px_pinned pinned;                    /* what the lock says of the system's packages */
    bool is_pinned;                             /* ... and that is all of them */
    struct px_env env;                          /* plan: may be empty (no runtime), when it is not made yet */
    struct px_inferred inferred;
    char *base;                                 /* "debian-12" */
    struct px_oid base_os_oid, sbx_id;          /* plan: "" where base, packages or environment are not known yet */
    struct px_oid system;                       /* what the list of the capabilities' packages is called; "": none */
    const char *capabilities[PX_CAPABILITIES_MAX + 1];          /* sorted, NULL-terminated; what was said and inferred, and extra */
    struct px_image image;                      /* base, capabilities, environment as layers; sealed */
    bool narrowed;                              /* shipped: packages of development were left out of the environment */
    bool cached;                                /* nothing had to be built; plan: it is there */
    char *root;                                 /* the base with its capabilities, a directory that never changes */
    char *inside;                               /* what is at /px in the box: one directory of the store, to be bound read-only */
    struct px_lease *lease;
};

/* PX900 (base), PX901 (capability), PX903 (building), PX904 (what is there is not what it should be), and what the guard says.
 * ret_image is not to be copied. On error there is nothing in it. */
int px_project_image_make(struct px_project *p, const struct px_project_image_ask *ask, struct px_project_image *ret_image,
                          struct px_err *e);
void px_project_image_done(struct px_project_image *image);
/* {"sbx_id","base","base_os_oid","capabilities","system_oid","profile_oid","image_digest"}: details.sandbox of run and
 * test. */
json_t *px_project_image_json(const struct px_project_image *image);

/* The image that is shipped: that one with the project's own files as its last layer (NULL: as it is), sealed and, as gzip, recorded in
 * the store. how: tag, out, format, compression, push and force count, as in px_sandbox_build. ret_json: the members of its record. */
int px_project_image_ship(struct px_project *p, const struct px_project_image *image, const struct px_app *app,
                          const struct px_image_build *how, struct px_image *ret_image, json_t **ret_json, struct px_err *e);
