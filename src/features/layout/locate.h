/* layout/locate.h - which project or workspace a directory belongs to.
 *
 * Why:     every command of a project begins with the same question and must get the same answer.
 * Owns:    the manifests and the open directory, until px_locate_done.
 * Mustn't: write. A pyproject.toml above that says nothing of px is passed over, even if px could not use it. */
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
    bool here;                  /* the directory that was asked for lies in it */
};

struct px_located {
    char root[PATH_MAX];
    int dir;                    /* the same, open; -EBADF: none */
    bool manifest_exists;       /* false: there is nothing but a lock */
    bool workspace;
    struct px_manifest manifest;                /* of the root */
    struct px_member *members;  /* of a workspace, sorted by path */
    size_t member_count;
};

/* dir: an absolute path without links, as realpath() gives it. PX100, PX102. */
int px_locate_find(const char *dir, struct px_located *ret_place, struct px_err *e);
void px_locate_done(struct px_located *site);

/* The name that people know it by: the manifest's, else the directory's. Borrowed. */
const char *px_locate_name(const struct px_located *site);
const char *px_locate_lock_file(const struct px_located *site);           /* px.lock, px.workspace.lock */
/* What the lock is made for: of a workspace, its members'. */
int px_locate_fingerprint(const struct px_located *site, struct px_oid *ret_fingerprint, struct px_err *e);
/* Every requirement, of all members; members themselves are not among them. Sorted, each once; the list is the
 * caller's to free(). */
int px_locate_requirements(const struct px_located *site, struct px_names *ret_list, struct px_err *e);
/* The text that the lock's [python] repeats: the project's requires-python, the workspace's python. */
const char *px_locate_python(const struct px_located *site);
/* What the project asks for and this Python is not: a range of its manifest or of a member's. NULL: it fits. */
const char *px_locate_misses(const struct px_located *site, const char *version);

