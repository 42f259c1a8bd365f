/* engine/target.h - the Python that locks are made for.
 *
 * Why:     which wheels and which requirements count hangs on it; sync, status and the resolver must mean the same one.
 * Owns:    its texts; env points into them, so a target is not to be copied.
 * Mustn't: run anything of the project. */
#pragma once

#include <limits.h>

#include "project/marker.h"
#include "project/tags.h"

struct px_err;

struct px_target {
    char python[PATH_MAX];      /* the interpreter of this machine that resolves */
    char version[32];           /* 3.11.2 */
    char minor[16];             /* 3.11 */
    char machine[65];
    char platform[96];          /* linux_x86_64 */
    struct px_tags tags;
    struct px_marker_env env;
};

/* -1: there is no Python (PX120, resolver_missing). */
int px_target_find(struct px_target *ret_target, struct px_err *e);
/* The default base's Python, where this machine has none. */
void px_target_default(struct px_target *ret_target);
