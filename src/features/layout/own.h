/* layout/own.h - the project's own packages: where their modules lie, and what an installed package would say of them.
 *
 *     {"packages":[{"entry_points":"[console_scripts]\ndemo = demo:main\n","name":"demo","version":"1.0"}],
 *      "paths":["src"]}
 *
 * Why:     a project is used as it lies there, without running its build: what pyproject.toml says about its layout is
 *          read, and the directories go on sys.path. Of a workspace these are the packages of all members.
 * Owns:    what struct px_own holds, until px_own_done.
 * Mustn't: run anything of the project, or name a directory outside of it. */
#pragma once

#include <jansson.h>

struct px_err;
struct px_located;

#define PX_OWN_UNKNOWN_VERSION "0+unknown"      /* of a package whose version its build would find out */

struct px_own {
    json_t *facts;              /* as above; paths begin at the project's root, "." is the root. NULL: no package */
    json_t *limits;             /* texts for people: what px does not do for this project. NULL: nothing */
};

/* PX102: a path that leaves the project, or a script that cannot be one. */
int px_own_find(const struct px_located *site, struct px_own *ret_own, struct px_err *e);
void px_own_done(struct px_own *own);

/* Called with the name of each script of the facts; non-zero ends it and is returned. */
int px_own_scripts(const json_t *facts, int (*seen)(void *user, const char *name), void *user);
