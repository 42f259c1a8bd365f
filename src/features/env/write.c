/* Writes the directory of an environment: small text files, and links into the store. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "env/env_internal.h"
#include "env/part.h"
#include "pep/marker.h"
#include "pep/wheel.h"
#include "store/canonical.h"
#include "store/document.h"

enum { TEXT_MAX = 8 << 20 };

struct writing {
    const struct px_env *env;
    int dir;
    const struct px_env_place *place;
    char lib[64];               /* lib/python3.11/site-packages */
    char python[32];            /* python3.11 */
    struct px_err *e;
};

static int cannot(const struct writing *w, const char *path, int sys)
{
    return px_fail(w->e, sys == -ENOMEM ? PX_E_MEMORY : PX_E_STORE_WRITE, sys, "cannot write '%s' of the environment",
                   path);
}

static int put(const struct writing *w, const char *path, const struct px_buf *text, unsigned mode)
{
    int r = text->err < 0 ? text->err : px_wheel_paths_write(w->dir, path, px_buf_text(text), text->len, mode);
    return r < 0 ? cannot(w, path, r) : 0;
}

static int put_link(const struct writing *w, const char *path, const char *target)
{
    long r = px_sys(SYS_symlinkat, target, w->dir, path);
    return r < 0 ? cannot(w, path, (int)r) : 0;
}

/* STORE/TREE/root: where a package is. */
static int place_of(const struct writing *w, const struct px_env_package *p, const char *what, char *out, size_t size)
{
    if (w->place->here && *p->code.hex)
        return px_fmt(out, size, "%s/%s%s/" PX_CODE_PACKAGE "/%s", w->place->store, p->code.hex, w->place->below, what);
    return px_fmt(out, size, "%s/%s%s/%s", w->place->store, p->tree.hex, w->place->below, what);
}

/* ---- where Python looks ---- */

/* The project's own directories come before those of packages: if a package depends on the project, the lock also has a
 * published version of it. */
static void put_own_paths(const struct writing *w, struct px_buf *text)
{
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(w->env->project, "paths"), i, item) {
        const char *path = json_string_value(item), *slash = "/";
        if (px_equal(path, "."))
            path = slash = "";
        if (w->place->root)
            px_buf_printf(text, "%s%s%s\n", w->place->root, slash, path);
        else
            px_buf_printf(text, "import os, sys; root = os.environ.get('PX_PROJECT_ROOT'); own = str(root) + '%s%s'; "
                                "sys.path += [own] if root and own not in sys.path else []\n", slash, path);
    }
}

/* Writes the paths; for packages with .pth files also a line that makes Python process them. */
static int write_paths(const struct writing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    char path[PATH_MAX], file[96];
    put_own_paths(w, &text);
    for (size_t i = 0; i < w->env->count; i++) {
        const struct px_env_package *p = &w->env->packages[i];
        if (place_of(w, p, "site-packages", path, sizeof path) < 0 || strpbrk(path, "\n\r'\\"))
            return px_fail(w->e, PX_E_STORE_WRITE, 0,
                           "the path of the store cannot be one that Python looks in: '%.200s'", w->place->store);
        px_buf_printf(&text, "%s\n", path);
        if (p->has_pth)
            px_buf_printf(&text, "import site; site.addsitedir('%s')\n", path);
    }
    /* Also for -I and -E, where Python ignores its variables: no byte code is written into the store. */
    px_buf_puts(&text, "import sys; sys.dont_write_bytecode = sys.dont_write_bytecode or not sys.pycache_prefix\n");
    (void)px_fmt(file, sizeof file, "%s/px.pth", w->lib);
    return put(w, file, &text, 0644);
}

static int write_config(const struct writing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    const struct px_python *r = w->env->runtime;
    px_buf_printf(&text, "home = %.*s\ninclude-system-site-packages = false\nversion = %s\n",
                  (int)(strrchr(r->program, '/') - r->program), r->program, r->version);
    return put(w, "pyvenv.cfg", &text, 0644);
}

/* ---- programs ---- */

/* Quotes for a shell: within single quotes only a quote is special. */
static void quote(struct px_buf *out, const char *text)
{
    px_buf_putc(out, '\'');
    for (; *text; text++)
        px_buf_puts(out, *text == '\'' ? "'\\''" : (char[]){*text, '\0'});
    px_buf_putc(out, '\'');
}

/* Byte code is never written into the store: without a separate directory none is written. The caller's variables
 * override the project's. */
static int write_shim(const struct writing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    const char *name;
    json_t *value;
    px_buf_puts(&text, "#!/bin/sh\n# The python of one environment; made by px.\n"
                       "case $0 in */*) here=${0%/*} ;; *) here=. ;; esac\nunset PYTHONHOME\n");
    json_object_foreach(w->env->variables, name, value) {
        px_buf_printf(&text, "[ -n \"${%s+set}\" ] || export %s=", name, name);
        quote(&text, json_string_value(value));
        px_buf_putc(&text, '\n');
    }
    px_buf_printf(&text,
                  "export PX_PYTHON=\"$here/%s\" PYTHONUNBUFFERED=\"${PYTHONUNBUFFERED-1}\"\n"
                  "[ -n \"${PYTHONPYCACHEPREFIX-}\" ] || export PYTHONDONTWRITEBYTECODE=1\n"
                  "exec \"$here/%s\" \"$@\"\n",
                  w->python, w->python);
    return put(w, "bin/python", &text, 0755);
}

static int link_scripts(const struct writing *w, const struct px_env_package *p)
{
    char path[PATH_MAX], target[PATH_MAX], below[NAME_MAX + 8];
    for (size_t i = 0; i < p->script_count; i++) {
        if (px_wheel_is_python(p->scripts[i]))
            continue;
        if (px_fmt(path, sizeof path, "bin/%s", p->scripts[i]) < 0 ||
            px_fmt(below, sizeof below, "bin/%s", p->scripts[i]) < 0 ||
            place_of(w, p, below, target, sizeof target) < 0)
            return cannot(w, p->scripts[i], -ENAMETOOLONG);
        if (faccessat(w->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;           /* two packages have it: the first in sys.path wins */
        if (put_link(w, path, target) < 0)
            return -1;
    }
    return 0;
}

/* ---- the project's own packages ---- */

static int put_script(void *user, const struct px_script *script)
{
    const struct writing *w = user;
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    char path[NAME_MAX + 8];
    if (px_fmt(path, sizeof path, "bin/%s", script->name) < 0)
        return cannot(w, script->name, -ENAMETOOLONG);
    if (faccessat(w->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;               /* two members have this script: the first wins */
    px_wheel_script_write(&text, script);
    return put(w, path, &text, 0755);
}

static int put_info(const struct writing *w, const char *dir, const char *name, const char *content)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    char path[NAME_MAX + 128];
    if (px_fmt(path, sizeof path, "%s/%s", dir, name) < 0)
        return cannot(w, name, -ENAMETOOLONG);
    px_buf_puts(&text, content);
    return put(w, path, &text, 0644);
}

/* demo_app-1.0.dist-info: the name that importlib.metadata looks for. A dash would end the name or the version. */
static int name_info(const struct writing *w, const char *name, const char *version, char *out, size_t size)
{
    char words[2][NAME_MAX];
    if (px_marker_package_name(name, strlen(name), words[0], sizeof words[0]) < 0 ||
        px_fmt(words[1], sizeof words[1], "%s", version) < 0)
        return -EINVAL;
    for (size_t i = 0; i < 2; i++)
        for (char *dash = words[i]; (dash = strchr(dash, '-'));)
            *dash = '_';
    return px_fmt(out, size, "%s/%s-%s.dist-info", w->lib, words[0], words[1]);
}

static int write_own_package(const struct writing *w, const json_t *package)
{
    const char *name = px_document_text(package, "name"), *version = px_document_text(package, "version"),
               *entries = px_document_text(package, "entry_points");
    char dir[NAME_MAX + 64];
    px_auto_buf struct px_buf metadata = PX_BUF(TEXT_MAX);
    size_t line;
    if (!name || !version || !entries || name_info(w, name, version, dir, sizeof dir) < 0)
        return px_fail(w->e, PX_E_RECORD, 0, "the record of the project's own packages is not what px writes");
    int r = px_wheel_paths_make(w->dir, dir);
    if (r < 0)
        return cannot(w, dir, r);
    px_buf_printf(&metadata, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version);
    if (put_info(w, dir, "METADATA", px_buf_text(&metadata)) < 0 || put_info(w, dir, "INSTALLER", "px\n") < 0 ||
        put_info(w, dir, "entry_points.txt", entries) < 0)
        return -1;
    return px_wheel_scripts(entries, strlen(entries), put_script, (void *)w, &line) < 0 ? -1 : 0;
}

static int write_own(const struct writing *w)
{
    const json_t *package;
    size_t i;
    json_array_foreach(json_object_get(w->env->project, "packages"), i, package)
        if (write_own_package(w, package) < 0)
            return -1;
    return 0;
}

/* ---- all programs ---- */

static int write_programs(const struct writing *w)
{
    char path[64];
    (void)px_fmt(path, sizeof path, "bin/%s", w->python);
    if (write_shim(w) < 0 || put_link(w, "bin/python3", "python") < 0 ||
        put_link(w, path, w->env->runtime->program) < 0 || write_own(w) < 0)
        return -1;
    for (size_t i = 0; i < w->env->count; i++)
        if (link_scripts(w, &w->env->packages[i]) < 0)
            return -1;
    return 0;
}

/* ---- the manifest ---- */

static json_t *packages_json(const struct px_env *env, bool order)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < env->count; i++) {
        const struct px_env_package *p = &env->packages[i];
        json_t *item = order ? json_string(p->build.hex)
                             : json_pack("{ssssssss}", "name", p->name, "version", p->version, "pkg_build_oid",
                                         p->build.hex, "tree", p->tree.hex);
        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int write_manifest(const struct writing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    const struct px_env *env = w->env;
    px_auto(px_document) json_t *manifest = json_pack(
        "{sisssssososOsO*}", "layout", PX_ENV_LAYOUT, "profile_oid", env->profile.hex, "runtime_oid",
        env->runtime_oid.hex, "packages", packages_json(env, false), "sys_path_order", packages_json(env, true),
        "env_vars", env->variables, "project", env->project);
    if (!manifest || px_canonical(manifest, &text) < 0)
        return cannot(w, "manifest.json", -ENOMEM);
    px_buf_putc(&text, '\n');
    return put(w, "manifest.json", &text, 0644);
}

int px_env_write(const struct px_env *env, int dir, const struct px_env_place *place, struct px_err *e)
{
    struct writing w = {.env = env, .dir = dir, .place = place, .e = e};
    (void)px_fmt(w.python, sizeof w.python, "python3.%u", env->runtime->minor);
    (void)px_fmt(w.lib, sizeof w.lib, "lib/%s/site-packages", w.python);
    int r = px_wheel_paths_make(dir, w.lib);
    if (r == 0)
        r = px_wheel_paths_make(dir, "bin");
    if (r < 0)
        return cannot(&w, "lib", r);
    return write_programs(&w) < 0 || write_paths(&w) < 0 || write_config(&w) < 0 || write_manifest(&w) < 0 ? -1 : 0;
}
