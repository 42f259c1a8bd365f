/* layout/locate.h - which project or workspace a directory belongs to.
 *
 * Why:     all commands of a project must find the same project.
 * Owns:    the manifests and the open directory, until px_locate_done.
 * Mustn't: write. A pyproject.toml above without [tool.px] is skipped, even if it is invalid. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "pep/manifest.h"

struct px_err;

#define PX_MANIFEST_FILE "pyproject.toml"

enum { PX_MEMBERS_MAX = 1024 };

struct px_member {
    char *path;                 /* as the workspace lists it, cleaned: "libs/core" */
    struct px_manifest manifest;
    bool here;                  /* the given directory is in it */
};

struct px_located {
    char root[PATH_MAX];
    int dir;                    /* the same, open; -EBADF: none */
    bool manifest_exists;       /* false: there is only a lock */
    bool workspace;
    struct px_manifest manifest;                /* of the root */
    struct px_member *members;  /* of a workspace, sorted by path */
    size_t member_count;
};

/* dir: an absolute path without links, as realpath() gives it. PX100, PX102. */
int px_locate_find(const char *dir, struct px_located *ret_place, struct px_err *e);
void px_locate_done(struct px_located *site);

/* Its name for messages: the manifest's, else the directory's. Borrowed. */
const char *px_locate_name(const struct px_located *site);
const char *px_locate_lock_file(const struct px_located *site);           /* px.lock, px.workspace.lock */
/* The fingerprint that the lock must have; of a workspace, that of all members. */
int px_locate_fingerprint(const struct px_located *site, struct px_oid *ret_fingerprint, struct px_err *e);
/* All requirements of all members, except on members themselves. Sorted, without duplicates; the caller frees the
 * list. */
int px_locate_requirements(const struct px_located *site, struct px_names *ret_list, struct px_err *e);
/* The value for the lock's [python]: the project's requires-python, the workspace's python. */
const char *px_locate_python(const struct px_located *site);
/* The range of the manifest, or of a member's, that this Python does not satisfy. NULL: it fits. */
const char *px_locate_misses(const struct px_located *site, const char *version);

