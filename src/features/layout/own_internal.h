/* layout/own_internal.h - one manifest that is read for its own package, for the files own*.c.
 *
 * Owns:    nothing.
 * Mustn't: be seen elsewhere. */
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
    bool wanted;                /* it says that it is a package: there is one, wherever it may lie */
    json_t *paths, *packages, *limits;
    struct px_err *e;
};

/* own.c: PX102 at a place of the manifest; a line for people, which begins with the file. */
int px_own_wrong(const struct px_own_reading *r, uint32_t node, const char *what);
int px_own_limit(const struct px_own_reading *r, uint32_t node, const char *what);
/* own_layout.c: the directories that its modules lie in, into r->paths. */
int px_own_layout(const struct px_own_reading *r);
