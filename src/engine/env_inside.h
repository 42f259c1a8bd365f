/* engine/env_inside.h - what the files env*.c share and nobody else sees.
 *
 * Why:     finding archives, installing them and joining them are three things, in this order.
 * Owns:    nothing.
 * Mustn't: be included elsewhere. */
#pragma once

#include "engine/env.h"
#include "engine/sandbox.h"
#include "project/pins.h"
#include "project/tags.h"

struct px_env_work {
    struct px_sandbox *s;
    const struct px_env_ask *ask;
    const struct px_python *runtime;
    struct px_tags tags;
    char abi[16];               /* cp311 */
    struct px_fetch *fetch;     /* px-fetch, once it is needed */
    struct px_index *index;     /* the hosts that it may be sent to; the same */
};

/* env.c: the Python of the base, its tags and its name for extensions; and what it selects of the lock. */
int px_env_runtime(struct px_env_work *w, struct px_err *e);
int px_env_select(const struct px_env_work *w, struct px_chosen **ret_list, size_t *ret_count, struct px_err *e);

/* env.c: only these of its packages, under the name that they have then; it has no directory of its own. */
int px_env_keep(struct px_sandbox *s, struct px_env *env, const bool *kept, struct px_err *e);

/* env_source.c: the archive of a package as a blob of the store. Fills file, wheel and sha256. */
int px_env_source(struct px_env_work *w, const struct px_chosen *chosen, struct px_env_package *p, struct px_err *e);
void px_env_source_end(struct px_env_work *w);
/* env_links.c: looks in the --find-links directories. Opened, 1: it is not there. file_name gets what it is called (256
 * bytes); with 1 that of one with another hash, if there is one. */
int px_env_links(struct px_env_work *w, const struct px_chosen *chosen, char *file_name, int *ret_fd, struct px_err *e);

/* env_package.c: the archive as a tree. Fills the rest. */
int px_env_package(struct px_env_work *w, struct px_env_package *p, struct px_err *e);
void px_env_package_done(struct px_env_package *p);
/* All of it for a record, and back; NULL without memory, -EINVAL for what px did not write. */
json_t *px_env_package_json(const struct px_env_package *p);
int px_env_package_read(const json_t *object, struct px_env_package *ret_package);

/* env_sdist.c: a source archive, built in a box, becomes a wheel: a file without a name, and what it is called. Fills
 * options. */
int px_env_sdist(struct px_env_work *w, struct px_env_package *p, int *ret_wheel, char *file_name, size_t size,
                 struct px_err *e);
