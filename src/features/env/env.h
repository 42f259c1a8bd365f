/* env/env.h - from a lock to an environment: the packages that it selects, installed once each, and a directory
 * that joins them.
 *
 *     PX_HOME/envs/PROFILE_OID -> ../store/trees/ID/root
 *         bin/python bin/SCRIPT... lib/pythonX.Y/site-packages/px.pth pyvenv.cfg manifest.json
 *
 * Why:     packages are trees of the store, shared by all environments; an environment is a small tree of links and
 *          text files. As a tree it has one builder, is never visible half done, is kept by its record
 *          (PX_RECORD_ENV), and is checked like other trees.
 * Owns:    what struct px_env holds, until px_env_done: its lease keeps everything that the environment needs.
 * Mustn't: resolve, run anything of a package outside of a box, use a file that is not what the lock says, or write
 *          in the project. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "env/profile.h"
#include "store/store.h"

struct px_err;
struct px_json;
struct px_manifest;
struct px_lock;
struct px_sandbox;

#define PX_ENV_OTHER_FILE "other_file"          /* reason: a file was found that is not in the lock */
#define PX_ENV_BUILD_FAILED "sdist_build_failed"        /* reason: a source archive could not be built */
enum { PX_ENV_LAYOUT = 2 };     /* of the directory; part of its tree's id, not of the profile's */

/* Resolves requirements: those of a source archive's build are known only when it is unpacked. */
struct px_names;
struct px_env_finder {
    int (*find)(void *user, const struct px_names *requirements, struct px_lock *ret_pins, struct px_err *e);
    void *user;
};

/* The root of the last build of a source archive. The same capabilities reuse it, so that the distribution is asked
 * only once. */
struct px_env_root {
    char capabilities[2048];
    struct px_oid tree, packages;
};

struct px_env_ask {
    const struct px_manifest *manifest;         /* for its variables and groups; NULL: none */
    const struct px_lock *pins;
    json_t *project;            /* the project's own packages (layout/own.h); NULL: none */
    const char *project_dir;    /* absolute: paths in the lock are relative to it; NULL: no paths are allowed */
    const char *base;           /* "debian-12" */
    const struct px_python *python;             /* of the base; NULL: the one that px knows it to have */
    const char *const *find_links;              /* directories with archives, NULL-terminated; NULL: none */
    bool frozen;                /* every file must have a hash in the lock */
    bool offline;               /* nothing is fetched */
    const struct px_env_finder *finder;         /* NULL: none */
    const struct px_lock *builds;               /* the lock with the build requirements; NULL: none */
    const char *capabilities;   /* for source archives, separated by blanks; NULL: what the manifest and the pins ask for */
    struct px_env_root *root;   /* kept by the caller, empty at first; NULL: none */
    unsigned depth;             /* 0: of a project; 1: of what it builds; and so on */
    bool compile;               /* the packages for runs on this machine, if it has this Python */
};

struct px_env_package {
    char *name, *version, *file;
    bool wheel;
    struct px_oid sha256;       /* of the archive */
    struct px_oid source, build;                /* objects: source_oid, pkg_build_oid */
    struct px_oid options;      /* the base and packages of a source build; "" for a wheel */
    char *capabilities;         /* whose development packages these were, separated by blanks; NULL for a wheel */
    json_t *tools;              /* the environment of a source's build: {"profile_oid", "packages"}; NULL: none of its own */
    struct px_oid tree;         /* the files */
    struct px_oid code;         /* the same with their byte code, for this machine (env_part.h); "": not compiled */
    char **needed;              /* libraries that it needs and does not contain */
    size_t needed_count;
    char **scripts;             /* names in bin/ */
    size_t script_count;
    bool has_pth;               /* its site-packages has .pth files of its own */
};
struct px_env {
    const struct px_python *runtime;
    struct px_oid profile, runtime_oid;
    struct px_oid tree;         /* of the environment's own directory */
    char path[PATH_MAX];        /* PX_HOME/envs/PROFILE_OID */
    char site_packages[PATH_MAX], python[PATH_MAX];             /* in it: lib/pythonX.Y/site-packages, bin/python */
    char platform[64];          /* "linux_x86_64" */
    struct px_env_package *packages;            /* in the order of sys.path */
    size_t count;
    json_t *variables;
    json_t *project;            /* the project's own packages; NULL: none */
    bool cached;                /* the directory was there already */
    struct px_lease *lease;
};

int px_env_build(struct px_sandbox *s, const struct px_env_ask *ask, struct px_env *ret_env, struct px_err *e);
void px_env_done(struct px_env *env);
/* Whether the environment of that name can be used as it is: its record, its link, and every tree that it needs are
 * there. 1, 0, -1; 2: all is there, and a source archive would be built with other capabilities now; 3: it was made for
 * other packages of the project's own (ask NULL: 2 and 3 are not checked). Unless `known` suffices, also checks that
 * the trees are unchanged. */
int px_env_check(struct px_sandbox *s, const char *profile, const struct px_env_ask *ask, bool known, struct px_err *e);

/* Whether it is exactly what is asked for, so that building it would give the same. 1, 0, -1. Does not repeat the
 * checks of px_env_check. */
int px_env_fits(const struct px_env_ask *ask, const struct px_env *env, struct px_err *e);

/* Resolves the build requirements of the pins' source archives for the lock, through the finder. Skips an archive that
 * is not available yet. */
int px_env_ask_builds(struct px_sandbox *s, const struct px_env_ask *ask, struct px_err *e);

/* The root in which source archives run before more than their names is known: the base with a compiler and the
 * development packages of the project's capabilities and of those that these requirements are known for. The path of
 * its root, these capabilities, separated by blanks, and a hold on it; 1: there are no such capabilities. */
int px_env_build_root(struct px_sandbox *s, const struct px_env_ask *ask, const struct px_names *requirements, char *path,
                      size_t size, char **ret_capabilities, struct px_lease **ret_lease, struct px_err *e);
/* Whether a space-separated list has this word; NULL is empty. */
bool px_env_has_word(const char *words, const char *word);

/* PX121: the lock has no hash for the file of this package. */
struct px_chosen;
int px_env_need_hash(const struct px_chosen *chosen, struct px_err *e);

/* Makes each package again from its archive and compares: a wheel is unpacked, a source archive built. An archive that
 * is no longer in the store is fetched, as `ask` says. PX904: a package differs. */
int px_env_compare_builds(struct px_sandbox *s, const struct px_env_ask *ask, const struct px_env *env,
                          struct px_err *e);

/* Reads the environment from its record, without searching or building; it has no lease. 1: there is no record, or an
 * older px wrote an incomplete one. */
int px_env_load(struct px_sandbox *s, const char *profile, const struct px_python *python, struct px_env *ret_env, struct px_err *e);

/* Takes a lease on what a run on this machine uses of it, until px_env_done. */
int px_env_hold(struct px_sandbox *s, struct px_env *env, struct px_err *e);

/* Removes the packages that only the development requirements need, for an image. If any is removed, the result is
 * another profile without a directory and a record. */
struct px_marker_env;
struct px_names;
int px_env_ship(struct px_sandbox *s, const struct px_names *needed, const struct px_names *development,
                const struct px_marker_env *markers, struct px_env *env, struct px_err *e);

/* The capabilities from the manifest, the lock and the libraries of the packages, with the reasons (env/infer.h); env
 * NULL: the lock alone, as the base would select from it. Names point into the manifest and the env. PX901: the
 * manifest names an unknown capability. */
struct px_inferred;
int px_env_infer(const struct px_manifest *manifest, const struct px_lock *pins, const struct px_python *python,
                 const struct px_env *env, struct px_inferred *ret_inferred, struct px_err *e);
/* The same as JSON for people and machines: [{"capability","source","detail","counts","set_aside"?}...]. */
void px_env_explain(const struct px_inferred *inferred, struct px_json *j, const char *name);

/* Writes the files of an environment into an empty directory, for example for an image. store: the prefix of the
 * packages' paths ("/px/store/pkg-builds"); a package is at STORE/TREE and its files at STORE/TREE/site-packages;
 * `below` comes after TREE ("", or "/root" as in PX_HOME). root: the project's directory ("/app"); NULL:
 * PX_PROJECT_ROOT when Python starts, because projects in different directories share an environment. here: for this
 * machine, where a compiled package has its own tree. */
struct px_env_place {
    const char *store, *below, *root;
    bool here;
};
int px_env_write(const struct px_env *env, int dir, const struct px_env_place *place, struct px_err *e);
