/* The base that a project names: a known one, one of the store, or a path or reference to import. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/sandbox.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "catalog/import.h"
#include "catalog/record.h"
#include "config/found.h"
#include "distro/capability.h"
#include "env/base_python.h"
#include "project/snapshot.h"

#define DEFAULT_BASE "debian-12"

/* debian-12, also by the names that tell its Python: debian-12-py311, px/base:debian-12-py311. */
static const char *known_name(const char *text)
{
    static const char prefix[] = "px/base:";
    const char *name = px_starts_with(text, prefix) ? text + strlen(prefix) : text;
    const struct px_python *row;
    char full[64];
    for (size_t i = 0; (row = px_env_python_at(i)); i++)
        if (px_equal(name, row->base) ||
            (px_fmt(full, sizeof full, "%s-py3%u", row->base, row->minor) >= 0 && px_equal(name, full)))
            return row->base;
    return *name ? name : text;
}

static const char *said(const struct px_project *p)
{
    return p->site.manifest.sandbox_base ? known_name(p->site.manifest.sandbox_base) : DEFAULT_BASE;
}

/* ---- where it is ---- */

static int place_of(const struct px_project *p, const char *text, char *out, size_t size)
{
    static const char *const kinds[] = {"oci:", "oci-archive:", "docker-archive:"};
    const char *root = p->site.root;
    if (px_starts_with(text, "docker://") || *text == '/')
        return px_fmt(out, size, "%s", text);
    for (size_t i = 0; i < PX_COUNT_OF(kinds); i++) {
        const char *rest = text + strlen(kinds[i]);
        if (px_starts_with(text, kinds[i]))
            return px_fmt(out, size, "%s%s%s%s", kinds[i], *rest == '/' ? "" : root, *rest == '/' ? "" : "/", rest);
    }
    if (*text == '.' || faccessat(p->site.dir, text, F_OK, 0) == 0)
        return px_fmt(out, size, "%s/%s", root, text);
    return px_fmt(out, size, "docker://%s", text);
}

/* The path of a location; NULL: it is in a registry. */
static const char *path_of(const char *place)
{
    static const char *const kinds[] = {"oci:", "oci-archive:", "docker-archive:"};
    for (size_t i = 0; i < PX_COUNT_OF(kinds); i++)
        if (px_starts_with(place, kinds[i]))
            return place + strlen(kinds[i]);
    return px_starts_with(place, "docker://") ? NULL : place;
}

static int outside(const struct px_project *p, const char *place, bool link, struct px_err *e)
{
    (void)px_fail(e, PX_E_BASE, 0, "the base '%.100s' is not a part of the project", said(p));
    (void)px_detail(e, "base", said(p));
    (void)px_detail(e, "reason", "outside_project");
    (void)px_why(e, "%s; what else of this machine the sandbox shows is for you to say, and not for pyproject.toml.",
                 link ? "A link is on the way to it" : "It lies elsewhere");
    return px_fix(e,
                  "If you trust the project with it: px sandbox base import NAME %.200s\n"
                  "Then write base = \"NAME\" in [tool.px.sandbox].",
                  place);
}

/* A manifest is untrusted: it may name only files of the project and public images. */
static int check_place(const struct px_project *p, const char *place, struct px_err *e)
{
    const char *root = p->site.root, *path = path_of(place);
    char below[PATH_MAX];
    size_t n = strlen(root);
    if (!path)
        return 0;
    if (strncmp(path, root, n) != 0 || path[n] != '/')
        return outside(p, place, false, e);
    path += n + strspn(path + n, "/");
    if (px_fmt(below, sizeof below, "%.*s", (int)(path_of(place) == place ? strlen(path) : strcspn(path, ":")), path) <
        0)
        return outside(p, place, false, e);
    int r = px_found_below(p->site.dir, *below ? below : ".");
    return r == -EXDEV || r == -ELOOP ? outside(p, place, r == -ELOOP, e) : 0;
}

/* A path or a reference has one of these in it; a name has not. */
static bool is_place(const char *text)
{
    return strpbrk(text, "/:") != NULL;
}

const char *px_project_base_said(const struct px_project *p)
{
    return said(p);
}

const char *px_project_base(const struct px_project *p)
{
    return p->base ? p->base : said(p);
}

const struct px_python *px_project_python(const struct px_project *p)
{
    return p->python ? &p->python->python : px_env_python_find(said(p));
}

/* ---- its Python ---- */

static int no_python(const struct px_project *p, struct px_err *e)
{
    (void)px_fail(e, PX_E_BASE, 0, "the base '%.100s' has no Python that px can use", said(p));
    (void)px_detail(e, "base", said(p));
    (void)px_detail(e, "reason", "no_python");
    (void)px_why(e, "It has no usr/bin/python3.N or usr/local/bin/python3.N for this machine, or not the C library that it needs.");
    return px_fix(e, "Install Python 3 in that root, or change [tool.px.sandbox].base to one that has it: debian-12.");
}

static int take_python(struct px_project *p, const struct px_base *base, struct px_err *e)
{
    px_auto_fd int root = -EBADF;
    px_auto_free struct px_base_python *found = calloc(1, sizeof *found);
    if (!found)
        return px_no_memory(e);
    if (px_catalog_base_whole(p->sandbox, base, e) < 0 || px_tree_open(p->sandbox->store, &base->tree, &root, e) < 0)
        return -1;
    int r = px_env_base_python_find(root, px_project_base(p), found);
    if (r < 0)
        return px_fail(e, PX_E_BASE, r, "cannot look for the Python of the base '%.100s'", said(p));
    if (r > 0)
        return no_python(p, e);
    p->python = px_take(&found);
    return 0;
}

/* ---- finding and bringing ---- */

/* 0: it is in the store, or known to px; 1: it is missing; -1. */
static int find(struct px_project *p, struct px_err *e)
{
    struct px_sandbox *s = NULL;
    struct px_base base = {0};
    char place[PATH_MAX];
    if (p->python || px_env_python_find(said(p)))
        return 0;
    if (is_place(said(p)) && !p->base) {
        if (place_of(p, said(p), place, sizeof place) < 0 || !(p->base = strdup(place)))
            return px_fail(e, PX_E_BASE, ENAMETOOLONG, "the base '%.100s...' cannot be found", said(p));
    }
    if (p->base && check_place(p, p->base, e) < 0)
        return -1;
    if (px_project_sandbox(p, &s, e) < 0)
        return -1;
    int r = px_catalog_base_find(s->store, px_project_base(p), &base, e);
    if (r == 0)
        r = take_python(p, &base, e);
    px_catalog_base_done(&base);
    return r;
}

void px_project_base_look(struct px_project *p)
{
    struct px_err ignored = {0};
    (void)find(p, &ignored);
}

static int unknown(const struct px_project *p, struct px_err *e)
{
    px_auto_buf struct px_buf names = PX_BUF(256);
    const char *near = px_bases_names(false, said(p), &names);
    (void)px_fail(e, PX_E_BASE, 0, "there is no sandbox base '%.100s'", said(p));
    (void)px_detail(e, "base", said(p));
    (void)px_detail(e, "reason", "unknown_base");
    (void)px_why(e, "Requested sandbox base '%.100s' is unknown or incompatible with this platform/px version.", said(p));
    return px_fix(e,
                  "Remove or change [tool.px.sandbox].base.%s%s%s\n"
                  "Upgrade px to a version that supports this base.\n"
                  "px knows %s; `px sandbox base list` has those of this machine, too.",
                  near ? " Is it \"" : "", near ? near : "", near ? "\"?" : "", px_buf_text(&names));
}

/* Turns an error of the import into PX900, because the manifest names it as a base. */
static int cannot_bring(const struct px_project *p, struct px_err *e)
{
    char why[sizeof e->why];
    if (e->code == PX_E_MEMORY || e->code == PX_E_STORE_WRITE || e->code == PX_E_STORE_BUSY)
        return -1;
    (void)px_fmt(why, sizeof why, "%.180s%s%.60s", e->what, e->sys ? ": " : "", e->sys ? strerrordesc_np(e->sys) : "");
    (void)px_fail(e, PX_E_BASE, 0, "the base '%.100s' cannot be imported", said(p));
    (void)px_detail(e, "base", said(p));
    (void)px_detail(e, "reason", "import_failed");
    (void)px_why(e, "%s", why);
    if (px_starts_with(px_project_base(p), "docker://"))
        return px_fix(
            e,
            "Correct [tool.px.sandbox].base, which gets no credentials of yours.\n"
            "For an image that needs some, or a registry of this network: px sandbox base import NAME %.200s\n"
            "Then write base = \"NAME\".",
            px_project_base(p));
    return px_fix(e, "Correct [tool.px.sandbox].base: a root as a directory or an archive, an OCI layout or archive, or an image's reference.");
}

/* A base that px can build, and whose Python fits. */
static const struct px_python *fitting(const struct px_project *p)
{
    const struct px_python *python;
    for (size_t i = 0; (python = px_env_python_at(i)); i++) {
        const struct px_base_row *row = px_bases_find(python->base);
        if (row && row->suite && !px_locate_misses(&p->site, python->version))
            return python;
    }
    return NULL;
}

static int check_range(const struct px_project *p, struct px_err *e)
{
    const struct px_python *python = px_project_python(p);
    const char *range = python ? px_locate_misses(&p->site, python->version) : NULL;
    if (!range)
        return 0;
    (void)px_fail(e, PX_E_BASE, 0, "the base '%.100s' has Python %s, and the project asks for %.60s", said(p),
                  python->version, range);
    (void)px_detail(e, "base", said(p));
    (void)px_detail(e, "reason", "python_version");
    (void)px_detail(e, "python", python->version);
    (void)px_why(e, "An environment for the one does not run with the other.");
    const struct px_python *other = fitting(p);
    if (other)
        return px_fix(e,
                      "Write base = \"%s\" in [tool.px.sandbox]: it has Python %s.\n"
                      "Or change requires-python, or [tool.px].python, and run `px sync`.",
                      other->base, other->version);
    return px_fix(e, "Change [tool.px.sandbox].base to one with that Python: `px sandbox base import` takes any image.\n"
                     "Or change requires-python, or [tool.px].python, and run `px sync`.");
}

int px_project_base_bring(struct px_project *p, bool plan, struct px_err *e)
{
    px_auto_free char *json = NULL;
    int r = find(p, e);
    if (r > 0 && !is_place(said(p)))
        return unknown(p, e);
    if (r > 0 && plan)
        return 0;
    if (r > 0) {
        const struct px_within within = {p->site.dir, p->site.root};
        if (px_import_base(p->sandbox, px_project_base(p), &within, &json, e) < 0)
            return cannot_bring(p, e);
        r = find(p, e);
    }
    return r < 0 ? -1 : check_range(p, e);
}
