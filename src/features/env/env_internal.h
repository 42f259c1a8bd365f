/* env/env_internal.h - what the files of env/ share.
 *
 * Why:     finding archives, installing them and joining them are separate files.
 * Owns:    nothing.
 * Mustn't: be included elsewhere. */
#pragma once

#include "catalog/catalog.h"
#include "env/env.h"
#include "lock/lock.h"
#include "pep/tags.h"

struct px_env_work {
    struct px_sandbox *s;
    const struct px_env_ask *ask;
    const struct px_python *runtime;
    struct px_tags tags;
    char abi[16];               /* cp311 */
    struct px_fetch *fetch;     /* px-fetch, once it is needed */
    struct px_index *index;     /* the hosts that it may be sent to; the same */
};

/* env.c: the Python of the base, its tags and its extension suffix; and the packages that it selects from the lock. */
int px_env_runtime(struct px_env_work *w, struct px_err *e);
int px_env_select(const struct px_env_work *w, struct px_chosen **ret_list, size_t *ret_count, struct px_err *e);

/* env.c: reduces it to these packages, with their profile; it has no directory. */
int px_env_keep(struct px_sandbox *s, struct px_env *env, const bool *kept, struct px_err *e);

/* env_source.c: the archive of a package as a blob of the store. Fills file, wheel and sha256. */
int px_env_source(struct px_env_work *w, const struct px_chosen *chosen, struct px_env_package *p, struct px_err *e);
void px_env_source_end(struct px_env_work *w);
/* env_links.c: looks in the --find-links directories. Returns the open file; 1: not found. file_name (256 bytes) gets
 * its name; with 1 the name of a file with another hash, if there is one. */
int px_env_links(struct px_env_work *w, const struct px_chosen *chosen, char *file_name, int *ret_fd, struct px_err *e);

/* env_package.c: the archive as an object; then as a tree. Fills the rest. */
int px_env_package_begin(struct px_env_work *w, struct px_env_package *p, struct px_err *e);
int px_env_package(struct px_env_work *w, struct px_env_package *p, struct px_err *e);
void px_env_package_done(struct px_env_package *p);
/* Whether the tree of a package is the one that a build would give now: 1, 0, -1. */
int px_env_package_fits(struct px_env_work *w, const struct px_env_package *p, struct px_err *e);
/* All of it for a record, and back; NULL without memory, -EINVAL for what px did not write. */
json_t *px_env_package_json(const struct px_env_package *p);
int px_env_package_read(const json_t *object, struct px_env_package *ret_package);

/* env_infer.c: the capabilities whose development packages the build of a source archive gets: those of the project's
 * manifest and lock, and those that the tables have for the package. Names in their order, separated by blanks; the
 * caller's to free(). */
int px_env_needs(const struct px_env_ask *ask, const char *name, char **ret_words, struct px_err *e);
/* The same for requirements, before there is a lock. */
int px_env_needs_of(const struct px_env_ask *ask, const struct px_names *requirements, char **ret_words,
                    struct px_err *e);

/* What a source archive is built with. */
struct px_tools {
    struct px_oid root;         /* a tree: the base with a compiler and development packages */
    struct px_oid packages;     /* what these are */
    /* its [build-system] requirements, as an environment; else the tool chain's setuptools */
    bool own;
    struct px_env env;
    char inside[PATH_MAX];      /* the tree of that environment as it is shown at /px */
    struct px_lease *lease;
};

/* env_tools.c: finds and installs it, as the archive requires, or as in the last build (tools of package.c). */
int px_env_tools(struct px_env_work *w, const struct px_env_package *p, struct px_tools *ret_tools, struct px_err *e);
int px_env_tools_again(struct px_env_work *w, const struct px_env_package *p, struct px_tools *ret_tools,
                       struct px_err *e);
void px_env_tools_done(struct px_tools *t);
/* For the record of what was built: the environment, NULL if there is none; and a name for all of it. */
json_t *px_env_tools_json(const struct px_tools *t);
int px_env_tools_name(const struct px_tools *t, struct px_oid *ret_name);

/* env_sdist.c: the root for the capabilities of a package. */
int px_sdist_root(struct px_env_work *w, const struct px_env_package *p, struct px_oid *ret_tree,
                  struct px_oid *ret_packages, struct px_err *e);
/* Runs one query of data/sdist.py in a box; its answer. */
int px_sdist_ask(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t, const char *stage,
                 struct px_buf *out, struct px_err *e);
/* Builds a source archive in a box: an unnamed file with the wheel, and the wheel's name. */
int px_env_sdist(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t, int *ret_wheel,
                 char *file_name, size_t size, struct px_err *e);
/* Adds the package and a fix to an error of a build; other errors stay as they are. Returns -1. */
int px_sdist_failed(const struct px_env_package *p, struct px_err *e);
