/* env/target.h - the Python that a project's lock and environment are for: its base's. And the Python of this
 * machine that resolves.
 *
 * Why:     it decides which wheels and requirements apply; sync, status and the resolver must use the same one.
 * Owns:    its strings; env points into them, so a target must not be copied.
 * Mustn't: run anything of the project. */
#pragma once

#include <limits.h>

#include "env/profile.h"
#include "pep/marker.h"
#include "pep/tags.h"

struct px_err;

struct px_target {
    const struct px_python *runtime;
    char minor[16];             /* 3.11 */
    char platform[96];          /* linux_x86_64 */
    struct px_tags tags;
    struct px_marker_env env;
};

/* NULL (unknown) is treated as the default base; the build reports the error. */
void px_target_for(const struct px_python *runtime, struct px_target *ret_target);

struct px_resolver_python {
    char path[PATH_MAX];
    unsigned minor;
};
/* The interpreter of this machine. PX120, resolver_missing. */
int px_target_resolver(struct px_resolver_python *ret_python, struct px_err *e);
