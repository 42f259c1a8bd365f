/* image/sbom.h - which packages an image holds, as an SPDX 2.3 document.
 *
 * Why:     tools can list the packages of an image and match them against advisories without px.
 * Owns:    nothing.
 * Mustn't: write a time or a host: the same image has the same bytes. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Its path in an image, and the path prefix of its layer. */
#define PX_SBOM_PREFIX "usr/share/px/"
#define PX_SBOM_NAME "sbom.spdx.json"

struct px_sbom {
    const char *name;           /* "debian-12+postgres" */
    const char *sbx_id;
    const char *os_id;          /* "debian": the distribution of the packages; NULL: not known */
    const json_t *packages
        [2]; /* lists of {"arch","name","version"[,"sha256"]}; NULL: none. A later one replaces an earlier one. */
    const json_t *python;       /* the same of Python's packages; NULL: none */
};
int px_sbom_write(const struct px_sbom *sbom, struct px_buf *out);
