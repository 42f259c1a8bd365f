/* env/profile.h - the description of an environment as one object of the store; its oid is the profile_oid.
 *
 *     {"kind":"profile","payload":{"env_vars":{...},"packages":[{"name","pkg_build_oid","version"}...],
 *      "runtime_oid":"...","sys_path_order":["..."]}}
 *
 * Why:     a lock has more than one environment needs (other systems, comments); the profile has only what was
 *          selected.
 * Owns:    nothing.
 * Mustn't: hold anything of this machine: no path, no time, no address a package came from, so that two machines
 *          have one profile_oid.
 *
 * Choices, where the specifications differ. Objects hash as {"kind","payload"} (decision 1), with the fields of the
 * reference's profile header inside; the same fields in the reference's own wrapping give its golden id, which a
 * test keeps. LD_LIBRARY_PATH is not part of it: it would name a path of this machine, and wheels that bundle
 * libraries find them by RUNPATH. packages are sorted by name, version and oid; sys_path_order is the order of
 * names, which is the order of px.lock, whatever lock they came from. A project with packages of its own also has
 * "project" (layout/own.h), and one without has nothing of the kind. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "store/hash.h"

struct px_buf;
struct px_err;
struct px_pairs;
struct px_store;

struct px_profile_package {
    const char *name, *version; /* canonical name */
    const char *build;          /* pkg_build_oid */
};
struct px_profile {
    const char *runtime;        /* runtime_oid */
    const struct px_profile_package *packages;  /* in the order of sys.path */
    size_t count;
    const json_t *env;          /* NULL: none */
    const json_t *project;      /* the project's own packages (layout/own.h); NULL: none, and nothing of it is in the id */
};

/* The payload as canonical JSON. 0, -ENOMEM, -EINVAL. */
int px_env_profile_payload(const struct px_profile *profile, struct px_buf *out);
/* Stores it; its oid. */
int px_env_profile_put(struct px_store *store, const struct px_profile *profile, struct px_oid *ret_oid, struct px_err *e);

/* [tool.px.env] with `more` over it, a JSON object of texts (PX_PROFILE_ENV_VARS); NULL: nothing more. Names must be
 * valid shell names; those that px sets itself are left out. The caller owns the object. */
int px_env_profile_env(const struct px_pairs *said, const char *more, json_t **ret_env, struct px_err *e);

/* Variables that px sets itself, on the host, in a sandbox and in an image: programs find the environment by them. */
bool px_env_profile_is_own(const char *variable);

/* The Python that an environment is for. */
struct px_python {
    const char *base;           /* "debian-12" */
    const char *version;        /* "3.11.2" */
    unsigned minor;
    bool musl;
    unsigned libc_major, libc_minor;
    const char *machine;
    const char *program;        /* in the base: "/usr/bin/python3.11" */
};
/* Those of the bases that px knows, the default one's first; NULL past the end. */
const struct px_python *px_env_python_at(size_t index);
/* NULL: px does not know which Python that base has. */
const struct px_python *px_env_python_find(const char *base);
/* "cp311". */
void px_env_python_abi(const struct px_python *runtime, char *out, size_t size);
/* Stores the runtime object; its oid. It has the ABI of extensions, not the build of Python: the base identifies
 * that. */
int px_env_python_put(struct px_store *store, const struct px_python *runtime, struct px_oid *ret_oid, struct px_err *e);
