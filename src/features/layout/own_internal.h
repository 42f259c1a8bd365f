/* layout/own_internal.h - the state of reading one manifest for its own package, for the files own*.c.
 *
 * Owns:    nothing.
 * Mustn't: be included elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "layout/locate.h"
#include "layout/own.h"

struct px_own_reading {
    const struct px_located *site;
    const struct px_manifest *m;
    const char *name;           /* of the package; NULL: none is said */
    const char *member;         /* its directory from the root; "": the root itself */
    bool wanted;                /* the manifest declares a package, in whatever directory */
    json_t *paths, *packages, *limits;
    struct px_err *e;
};

/* own.c: PX102 with a line of the manifest; adds a message, which begins with the file. */
int px_own_wrong(const struct px_own_reading *r, uint32_t node, const char *what);
int px_own_limit(const struct px_own_reading *r, uint32_t node, const char *what);
/* own_layout.c: the directories that its modules lie in, into r->paths. */
int px_own_layout(const struct px_own_reading *r);
