/* lock/drift.h - the differences between a lock and the requirements that it should satisfy.
 *
 * Why:     a fingerprint shows only that something changed, not what; and locks of other tools have none.
 * Owns:    the texts of the list, until px_drift_done.
 * Mustn't: resolve: a pin within the required range fits, whether or not a newer version exists. */
#pragma once

#include <stddef.h>

#include "lock/lock.h"
#include "pep/manifest.h"

struct px_err;
struct px_marker_env;

enum { PX_DRIFT_MAX = 32 };     /* further ones are not listed */

struct px_drift {
    char *items[PX_DRIFT_MAX];  /* "psycopg2>=2.9 is not in the lock" */
    size_t count;               /* 0: it fits */
};

struct px_drift_asked {
    const char *project;        /* NULL: any name is accepted */
    const char *python;         /* must equal [python] of the lock */
    const struct px_names *requirements;
    const struct px_marker_env *env;            /* requirements whose markers are false here are skipped */
};

int px_drift_find(const struct px_drift_asked *asked, const struct px_lock *pins, struct px_drift *ret_drift,
                  struct px_err *e);
void px_drift_done(struct px_drift *drift);
