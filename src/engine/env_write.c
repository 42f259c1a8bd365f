/* The directory of an environment: small texts, and links to what the store has. */
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
#include "engine/env_inside.h"
#include "project/wheel.h"
#include "store/canonical.h"
#include "store/document.h"

enum { TEXT_MAX = 8 << 20 };

struct writing {
    const struct px_env *env;
    int dir;
    const char *store, *below;
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
    int r = text->err < 0 ? text->err : px_paths_write(w->dir, path, px_buf_text(text), text->len, mode);
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
    return px_fmt(out, size, "%s/%s%s/%s", w->store, p->tree.hex, w->below, what);
}

/* ---- where Python looks ---- */

/* Paths as they are; and, for packages that have .pth files of their own, a line that has Python obey those. */
static int write_paths(const struct writing *w)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    char path[PATH_MAX], file[96];
    for (size_t i = 0; i < w->env->count; i++) {
        const struct px_env_package *p = &w->env->packages[i];
        if (place_of(w, p, "site-packages", path, sizeof path) < 0 || strpbrk(path, "\n\r'\\"))
            return px_fail(w->e, PX_E_STORE_WRITE, 0,
                           "the path of the store cannot be one that Python looks in: '%.200s'", w->store);
        px_buf_printf(&text, "%s\n", path);
        if (p->has_pth)
            px_buf_printf(&text, "import site; site.addsitedir('%s')\n", path);
    }
    /* Where Python does not look at its variables (-I, -E), nothing is compiled into the store, either. */
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

/* For a shell: inside quotes a quote is the only thing that is not itself. */
static void quote(struct px_buf *out, const char *text)
{
    px_buf_putc(out, '\'');
    for (; *text; text++)
        px_buf_puts(out, *text == '\'' ? "'\\''" : (char[]){*text, '\0'});
    px_buf_putc(out, '\'');
}

/* Compiled files never go into the store: without a place of their own for them, none are written. What the caller has
 * set is his word against the project's. */
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

/* What would stand in for the interpreter itself is not linked. */
static bool is_python(const char *name)
{
    return px_starts_with(name, "python") && name[6 + strspn(name + 6, "0123456789.")] == '\0';
}

static int link_scripts(const struct writing *w, const struct px_env_package *p)
{
    char path[PATH_MAX], target[PATH_MAX], below[NAME_MAX + 8];
    for (size_t i = 0; i < p->script_count; i++) {
        if (is_python(p->scripts[i]))
            continue;
        if (px_fmt(path, sizeof path, "bin/%s", p->scripts[i]) < 0 ||
            px_fmt(below, sizeof below, "bin/%s", p->scripts[i]) < 0 ||
            place_of(w, p, below, target, sizeof target) < 0)
            return cannot(w, p->scripts[i], -ENAMETOOLONG);
        if (faccessat(w->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;           /* two packages have it: the first one that Python would find wins */
        if (put_link(w, path, target) < 0)
            return -1;
    }
    return 0;
}

static int write_programs(const struct writing *w)
{
    char path[64];
    (void)px_fmt(path, sizeof path, "bin/%s", w->python);
    if (write_shim(w) < 0 || put_link(w, "bin/python3", "python") < 0 ||
        put_link(w, path, w->env->runtime->program) < 0)
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
        "{sisssssososO}", "layout", PX_ENV_LAYOUT, "profile_oid", env->profile.hex, "runtime_oid", env->runtime_oid.hex,
        "packages", packages_json(env, false), "sys_path_order", packages_json(env, true), "env_vars", env->variables);
    if (!manifest || px_canonical(manifest, &text) < 0)
        return cannot(w, "manifest.json", -ENOMEM);
    px_buf_putc(&text, '\n');
    return put(w, "manifest.json", &text, 0644);
}

int px_env_write(const struct px_env *env, int dir, const char *store, const char *below, struct px_err *e)
{
    struct writing w = {.env = env, .dir = dir, .store = store, .below = below, .e = e};
    (void)px_fmt(w.python, sizeof w.python, "python3.%u", env->runtime->minor);
    (void)px_fmt(w.lib, sizeof w.lib, "lib/%s/site-packages", w.python);
    int r = px_paths_make(dir, w.lib);
    if (r == 0)
        r = px_paths_make(dir, "bin");
    if (r < 0)
        return cannot(&w, "lib", r);
    return write_programs(&w) < 0 || write_paths(&w) < 0 || write_config(&w) < 0 || write_manifest(&w) < 0 ? -1 : 0;
}
