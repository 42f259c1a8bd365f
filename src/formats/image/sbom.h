/* image/sbom.h - which packages an image holds, as an SPDX 2.3 document.
 *
 * Why:     whoever runs an image can ask it what is inside, and match that against advisories, without px.
 * Owns:    nothing.
 * Mustn't: say when or where it was made: the same image has the same bytes. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Where it lies in an image, and the path below which it is packed. */
#define PX_SBOM_PREFIX "usr/share/px/"
#define PX_SBOM_NAME "sbom.spdx.json"

struct px_sbom {
    const char *name;           /* "debian-12+postgres" */
    const char *sbx_id;
    const char *os_id;          /* "debian": whose packages they are; NULL: not known */
    const json_t *packages
        [2]; /* lists of {"arch","name","version"[,"sha256"]}; NULL: none. A later one replaces an earlier one. */
    const json_t *python;       /* the same of Python's packages; NULL: none */
};
int px_sbom_write(const struct px_sbom *sbom, struct px_buf *out);
