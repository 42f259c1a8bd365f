/* pep/manifest.h - pyproject.toml: the name, requirements and settings of a project.
 *
 * Why:     status, sync, run, pack and the sandbox use one reader.
 * Owns:    the document; texts point into it.
 * Mustn't: write, look for other files, or guess: a value of the wrong type is an error with its line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/toml.h"
#include "store/hash.h"

struct px_err;

enum { PX_MANIFEST_LIST_MAX = 4096 };

struct px_names {               /* strings of the document, in file order */
    const char **items;
    size_t count;
};

struct px_pair {
    const char *key, *value;
};
struct px_pairs {
    struct px_pair *items;
    size_t count;
};

struct px_group {
    const char *name;
    struct px_names requirements;
};

struct px_wish {                /* [tool.px.sandbox.capabilities] */
    const char *name;
    bool enabled;
};

struct px_manifest {
    struct px_toml *toml;
    const char *name, *version;                 /* NULL if absent */
    const char *requires_python;                /* ">=3.11" if absent */
    struct px_names dependencies, build_requires;
    struct px_group *groups;                    /* [dependency-groups]; included groups are resolved */
    size_t group_count;
    struct px_names active_groups;              /* [tool.px.dependencies].include-groups; all groups if absent */
    struct px_names extras;                     /* [tool.px.dependencies].extras, canonical; a NULL behind the last */
    struct px_names extra_requirements;         /* the requirements of those extras */
    struct px_pairs scripts;                    /* [project.scripts] */
    bool is_px;                                 /* the file has [tool.px] */
    const char *px_python, *manage_command;
    bool pin_manifest;
    struct px_names plugins;
    struct px_pairs env;                        /* [tool.px.env], values trimmed, empty ones left out, sorted */
    struct px_names members;                    /* [tool.px.workspace].members */
    bool is_workspace;
    const char *workspace_name, *workspace_python;
    bool sandbox_defined, sandbox_auto;
    const char *sandbox_base;                   /* NULL: absent */
    bool sandbox_read_only;                     /* [tool.px.sandbox].working-tree */
    struct px_wish *wishes;
    size_t wish_count;
    char **made;                /* strings that are not slices of the document */
    size_t made_count;
};

/* `shown` is the file's name in messages. PX102 with the line. */
int px_manifest_parse(const char *text, size_t length, const char *shown, struct px_manifest *ret_manifest, struct px_err *e);
void px_manifest_done(struct px_manifest *m);

/* The hash of everything that a lock depends on; [tool.px.sandbox] is not included. */
int px_manifest_fingerprint(const struct px_manifest *m, struct px_oid *ret_fingerprint, struct px_err *e);
/* All active requirements: dependencies, those of selected extras and active groups, build requirements. Sorted by
 * name, then text, without duplicates. The manifest owns the strings; the caller frees the list. */
int px_manifest_requirements(const struct px_manifest *m, bool with_build, struct px_names *ret_list, struct px_err *e);
