/* lock/drift.h - in what a lock does not fit the requirements that it should be made for.
 *
 * Why:     a fingerprint only says that something changed; people want to know what, and locks of other tools have
 *          none.
 * Owns:    the texts of the list, until px_drift_done.
 * Mustn't: resolve: a pin within the range that is asked for fits, whether or not a newer one exists. */
#pragma once

#include <stddef.h>

#include "lock/lock.h"
#include "pep/manifest.h"

struct px_err;
struct px_marker_env;

enum { PX_DRIFT_MAX = 32 };     /* more are not told */

struct px_drift {
    char *items[PX_DRIFT_MAX];  /* "psycopg2>=2.9 is not in the lock" */
    size_t count;               /* 0: it fits */
};

struct px_drift_asked {
    const char *project;        /* NULL: the lock may be of any name */
    const char *python;         /* what [python] has to repeat */
    const struct px_names *requirements;
    const struct px_marker_env *env;            /* requirements whose markers do not hold are not asked for */
};

int px_drift_find(const struct px_drift_asked *asked, const struct px_lock *pins, struct px_drift *ret_drift,
                  struct px_err *e);
void px_drift_done(struct px_drift *drift);
