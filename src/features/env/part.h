/* env/part.h - an environment inside a sandbox: the content of /px, as a tree of the store and as a layer.
 *
 *     env/bin/python env/lib/pythonX.Y/site-packages/px.pth ...    store/pkg-builds/TREE/site-packages/...
 *
 * and the byte code of the packages' modules, which is not in their own trees: those are for other Pythons, too.
 *
 * Why:     a project's box and its shipped image have the same bytes at the same path; so one tree is bound in the
 *          box and packed for the image.
 * Owns:    nothing: tree and layer are the store's.
 * Mustn't: hold anything of this machine, or compiled files with times. */
#pragma once

#include "env/env.h"
#include "transfer/layer.h"

#define PX_INSIDE "/px"
#define PX_INSIDE_ENV PX_INSIDE "/env"
#define PX_INSIDE_PACKAGES PX_INSIDE "/store/pkg-builds"
#define PX_INSIDE_APP "/app"    /* the project itself, which is not part of it */

struct px_base;
struct px_env_part {
    struct px_oid tree;
    struct px_layer layer;      /* its names begin with px/ */
};
/* The id of its tree, which includes the version of the layout. base: its Python compiles the packages; NULL: they are
 * not compiled. */
int px_env_part_name(const struct px_env *env, const struct px_base *base, struct px_oid *ret_tree, struct px_err *e);
/* Files are hard links to those of the packages' trees. force: pack it again and compare. */
int px_env_part_make(struct px_sandbox *s, const struct px_env *env, const struct px_base *base,
                     enum px_compression compression, bool force, struct px_env_part *ret_part, struct px_err *e);
/* Every file below one directory by the same name below another. 0, -errno. */
int px_env_link_files(int from, int to);

/* env_compile.c: part holds the packages; base is the tree whose Python compiles them. */
int px_env_compile(struct px_sandbox *s, const struct px_env *env, const struct px_oid *base, int part,
                   struct px_err *e);
/* One package for runs on this machine, compiled by this Python: a tree of the store with PX_CODE_PACKAGE in it, its files and
 * their byte code. 1: this machine does not have this Python, or its byte code is not kept. */
#define PX_CODE_PACKAGE "package"
int px_env_compile_here(struct px_sandbox *s, const struct px_python *python, const struct px_env_package *p,
                        struct px_oid *ret_tree, struct px_err *e);
