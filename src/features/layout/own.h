/* layout/own.h - the project's own packages: the directories of their modules, and their metadata.
 *
 *     {"packages":[{"entry_points":"[console_scripts]\ndemo = demo:main\n","name":"demo","version":"1.0"}],
 *      "paths":["src"]}
 *
 * Why:     a project is used in place, without running its build: its directories are read from pyproject.toml and
 *          added to sys.path. Of a workspace these are the packages of all members.
 * Owns:    what struct px_own holds, until px_own_done.
 * Mustn't: run anything of the project, or name a directory outside of it. */
#pragma once

#include <jansson.h>

struct px_err;
struct px_located;

#define PX_OWN_UNKNOWN_VERSION "0+unknown"      /* of a package with a dynamic version */

struct px_own {
    json_t *facts;              /* as above; paths begin at the project's root, "." is the root. NULL: no package */
    json_t *limits;             /* messages: what px does not support for this project. NULL: nothing */
};

/* PX102: a path that leaves the project, or an invalid script. */
int px_own_find(const struct px_located *site, struct px_own *ret_own, struct px_err *e);
void px_own_done(struct px_own *own);

/* Called with the name of each script of the facts; a non-zero return stops and is returned. */
int px_own_scripts(const json_t *facts, int (*seen)(void *user, const char *name), void *user);
