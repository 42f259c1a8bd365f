/* env/env.h - from a lock to an environment: the packages that it selects, installed once each, and a directory
 * that joins them.
 *
 *     PX_HOME/envs/PROFILE_OID -> ../store/trees/ID/root
 *         bin/python bin/SCRIPT... lib/pythonX.Y/site-packages/px.pth pyvenv.cfg manifest.json
 *
 * Why:     packages are trees of the store, shared by all environments; an environment is a small tree of links and
 *          texts over them. As a tree it is made by one, never seen half done, kept by its record (PX_RECORD_ENV),
 *          and checked like everything else.
 * Owns:    what struct px_env holds, until px_env_done: with its lease, all that the environment needs stays.
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

#define PX_ENV_OTHER_FILE "other_file"          /* the reason where a file was found that the lock does not name */
#define PX_ENV_BUILD_FAILED "sdist_build_failed"        /* the reason where a source archive does not become a wheel */
enum { PX_ENV_LAYOUT = 2 };     /* of the directory; part of its tree's id, not of the profile's */

/* Who finds packages for requirements: what the build of a source archive asks for is known only when it is unpacked. */
struct px_names;
struct px_env_finder {
    int (*find)(void *user, const struct px_names *requirements, struct px_lock *ret_pins, struct px_err *e);
    void *user;
};

/* The root that source archives were last built on, so that the distribution is asked for its packages once: for the same
 * capabilities it is the same. */
struct px_env_root {
    char capabilities[2048];
    struct px_oid tree, packages;
};

struct px_env_ask {
    const struct px_manifest *manifest;         /* for its variables and groups; NULL: none */
    const struct px_lock *pins;
    json_t *project;            /* the project's own packages (layout/own.h); NULL: none */
    const char *project_dir;    /* absolute: what paths in the lock begin at; NULL: none are allowed */
    const char *base;           /* "debian-12" */
    const struct px_python *python;             /* of the base; NULL: the one that px knows it to have */
    const char *const *find_links;              /* directories with archives, NULL-terminated; NULL: none */
    bool frozen;                /* every file has to have a hash in the lock */
    bool offline;               /* nothing is fetched */
    const struct px_env_finder *finder;         /* NULL: none */
    const struct px_lock *builds;               /* the lock that says what builds are given; NULL: none does */
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
    struct px_oid options;      /* what a source was built with: base and packages; "" for a wheel */
    char *capabilities;         /* whose development packages these were, separated by blanks; NULL for a wheel */
    json_t *tools;              /* the environment of a source's build: {"profile_oid", "packages"}; NULL: none of its own */
    struct px_oid tree;         /* the files */
    struct px_oid code;         /* the same with their byte code, for this machine (env_part.h); "": not compiled */
    char **needed;              /* libraries that it needs and does not bring */
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
 * there. 1, 0, -1; 2: all is there, and a source archive would be built with other capabilities now; 3: it is made for
 * other packages of the project's own (ask NULL: neither is looked at). The trees are what was stored, unless that
 * they are `known` is enough. */
int px_env_check(struct px_sandbox *s, const char *profile, const struct px_env_ask *ask, bool known, struct px_err *e);

/* Whether it is what is asked for, no more and no less, so that to build it would give the same. 1, 0, -1. What
 * px_env_check looks at is not looked at. */
int px_env_fits(const struct px_env_ask *ask, const struct px_env *env, struct px_err *e);

/* Finds out what the builds of the pins' source archives ask for, so that a lock can say it: every question goes to the
 * finder. An archive that is not to be had yet is passed over. */
int px_env_ask_builds(struct px_sandbox *s, const struct px_env_ask *ask, struct px_err *e);

/* Where the code of source archives is run before anything is known of them but their names: the base with a compiler and the
 * development packages of the project's capabilities and of those that these requirements are known for. The path of its root,
 * these capabilities, separated by blanks, and a hold on it; 1: there are no such capabilities. */
int px_env_build_root(struct px_sandbox *s, const struct px_env_ask *ask, const struct px_names *requirements, char *path,
                      size_t size, char **ret_capabilities, struct px_lease **ret_lease, struct px_err *e);
/* Whether a list of words has this one; NULL has none. */
bool px_env_has_word(const char *words, const char *word);

/* PX121: the lock has no hash for the file of this package. */
struct px_chosen;
int px_env_need_hash(const struct px_chosen *chosen, struct px_err *e);

/* Each package is made from its archive once more, beside what is there, and compared: a wheel is unpacked, a source
 * archive compiled. An archive that is not in the store any more is fetched, as `ask` says. PX904: one is another now. */
int px_env_compare_builds(struct px_sandbox *s, const struct px_env_ask *ask, const struct px_env *env,
                          struct px_err *e);

/* The same environment from its record, nothing looked for and nothing built; it has no lease. 1: there is none, or not one that says
 * everything (written by an older px). */
int px_env_load(struct px_sandbox *s, const char *profile, const struct px_python *python, struct px_env *ret_env, struct px_err *e);

/* A hold on what a run on this machine uses of it, until px_env_done. */
int px_env_hold(struct px_sandbox *s, struct px_env *env, struct px_err *e);

/* Without the packages that these requirements of development bring and the needed ones do not: what an image ships.
 * If any goes, it is another profile, of which there is no directory and no record. */
struct px_marker_env;
struct px_names;
int px_env_ship(struct px_sandbox *s, const struct px_names *needed, const struct px_names *development,
                const struct px_marker_env *markers, struct px_env *env, struct px_err *e);

/* What the project's wishes, its lock and the libraries of its packages ask for, with the reasons (env/infer.h); env
 * NULL: the lock alone, as the base would select from it. Names point into the manifest and the env. PX901: a wish for
 * something that px does not know. */
struct px_inferred;
int px_env_infer(const struct px_manifest *manifest, const struct px_lock *pins, const struct px_python *python,
                 const struct px_env *env, struct px_inferred *ret_inferred, struct px_err *e);
/* The same as JSON for people and machines: [{"capability","source","detail","counts","set_aside"?}...]. */
void px_env_explain(const struct px_inferred *inferred, struct px_json *j, const char *name);

/* The texts of an environment into an empty directory, for other places than PX_HOME: in an image, say. store: what the
 * paths of packages begin with ("/px/store/pkg-builds"); a package is at STORE/TREE and its files at
 * STORE/TREE/site-packages; `below` comes after TREE ("", or "/root" as in PX_HOME). root: where the project lies
 * ("/app"); NULL: where PX_PROJECT_ROOT says when Python starts, since projects in any place share an environment. here: it
 * is for this machine, where a package that was compiled has a tree of its own for that. */
struct px_env_place {
    const char *store, *below, *root;
    bool here;
};
int px_env_write(const struct px_env *env, int dir, const struct px_env_place *place, struct px_err *e);
