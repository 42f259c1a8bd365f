/* engine/sandbox_build.h - one image on its way from words to a sealed manifest.
 *
 * Owns:    what struct px_building holds, until the build is over.
 * Mustn't: be seen outside sandbox_build.c and sandbox_assemble.c. */
#pragma once

#include <px/sandbox.h>

#include "engine/sandbox.h"
#include "engine/sandbox_layer.h"
#include "image/oci.h"

struct px_building {
    struct px_sandbox *s;
    const struct px_image_build *how;
    enum px_compression compression;
    struct px_base base;
    const struct px_base_row *row;      /* NULL: a base whose packages px does not know */
    struct px_capability_set set;
    struct px_oid profile, sbx_id;
    struct px_capability_layer capabilities;
    struct px_packages lock;            /* of the record that there was */
    bool locked;
    struct px_oid expected;             /* the manifest's digest that building it again has to give; "": none */
    struct px_image image;
    bool cached;
};

/* Base, capabilities and list of packages as layers; labels; sealed. */
int px_building_assemble(struct px_building *b, struct px_err *e);
