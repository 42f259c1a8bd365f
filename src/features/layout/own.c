#include "layout/own.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "layout/own_internal.h"
#include "pep/marker.h"
#include "pep/version.h"
#include "pep/wheel.h"
#include "store/document.h"

enum { TEXT_MAX = 1 << 20, NAME_BYTES = 128, VERSION_BYTES = 64, SETUP_MAX = 1 << 18, LIMITS_MAX = 32 };

/* ---- words ---- */

/* "libs/core/pyproject.toml:12: 'where' ", or the file alone. */
static void put_place(const struct px_own_reading *r, uint32_t node, struct px_buf *out)
{
    uint32_t line, column;
    px_buf_printf(out, "%s%s" PX_MANIFEST_FILE, r->member, *r->member ? "/" : "");
    if (!node)
        return;
    px_toml_place(r->m->toml, px_toml_at(r->m->toml, node)->from, &line, &column);
    const char *key = px_toml_key(r->m->toml, node);
    px_buf_printf(out, ":%u:", line);
    if (*key && strlen(key) < 128)
        px_buf_printf(out, " '%s'", key);
}

int px_own_wrong(const struct px_own_reading *r, uint32_t node, const char *what)
{
    px_auto_buf struct px_buf place = PX_BUF(PATH_MAX + 256);
    put_place(r, node, &place);
    return px_fail(r->e, PX_E_MANIFEST, 0, "%s %s", px_buf_text(&place), what);
}

int px_own_limit(const struct px_own_reading *r, uint32_t node, const char *what)
{
    px_auto_buf struct px_buf text = PX_BUF(PATH_MAX + 1024);
    if (json_array_size(r->limits) >= LIMITS_MAX)
        return 0;
    put_place(r, node, &text);
    px_buf_printf(&text, " %s", what);
    json_t *line = text.err < 0 ? NULL : json_string(px_buf_text(&text));
    return json_array_append_new(r->limits, line) < 0 ? px_no_memory(r->e) : 0;
}

/* ---- entry points ---- */

/* The value in [tool.poetry], for a project without it in [project]. */
static uint32_t find_poetry(const struct px_own_reading *r, const char *key)
{
    const char *const path[] = {"tool", "poetry", key};
    return px_toml_find(r->m->toml, path, 3);
}

static uint32_t find(const struct px_own_reading *r, const char *table, const char *key)
{
    const char *const path[] = {table, key};
    return px_toml_find(r->m->toml, path, 2);
}

static uint32_t first_of(const struct px_own_reading *r, uint32_t node)
{
    return node ? px_toml_at(r->m->toml, node)->first : PX_TOML_NONE;
}

static uint32_t next_of(const struct px_own_reading *r, uint32_t node)
{
    return px_toml_at(r->m->toml, node)->next;
}

static bool is_word(const char *text)
{
    static const char more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t n = strlen(text);
    return n > 0 && n < 128 && *text != '-' && *text != '.' && strspn(text, more) == n;
}

/* Checks one line of entry_points.txt: it must not start a section or a comment. */
static bool is_line(const char *text)
{
    size_t n = strlen(text);
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return false;
    return n > 0 && n < 512 && !strchr(" [#;=", *text) && text[n - 1] != ' ';
}

static int seen_one(void *user, const struct px_script *script)
{
    (void)script;
    ++*(size_t *)user;
    return 0;
}

/* By the same rules as the scripts of any wheel. */
static bool is_script(const char *name, const char *value)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    size_t line, count = 0;
    px_buf_printf(&text, "[console_scripts]\n%s = %s\n", name, value);
    return text.err == 0 && px_wheel_scripts(px_buf_text(&text), text.len, seen_one, &count, &line) == 0 && count == 1;
}

static int refuse_entry(const struct px_own_reading *r, uint32_t node, const char *what, const char *fix)
{
    (void)px_own_wrong(r, node, what);
    return px_fix(r->e, "%s", fix);
}

static int add_entry(const struct px_own_reading *r, uint32_t node, bool script, struct px_buf *out)
{
    const char *name = px_toml_key(r->m->toml, node), *value = px_toml_text(r->m->toml, node);
    if (!value || strlen(value) != px_toml_at(r->m->toml, node)->text_length || !is_line(value))
        return refuse_entry(r, node, "is not the place of an object", "Write it like \"package.module:function\".");
    if (script ? !is_word(name) : !is_line(name) || strchr(name, '='))
        return refuse_entry(r, node,
                            script ? "cannot be the name of a program" : "cannot be the name of an entry point",
                            "Use letters, digits, '_', '.' and '-', and begin with a letter, a digit or '_'.");
    if (script && px_wheel_is_python(name))
        return refuse_entry(r, node, "would stand in the place of the environment's Python",
                            "Give the script another name.");
    if (script && !is_script(name, value))
        return refuse_entry(r, node, "does not name a function", "Write it like \"package.module:function\".");
    px_buf_printf(out, "%s = %s\n", name, value);
    return 0;
}

/* Poetry also has scripts that are files. */
static bool is_simple(const struct px_own_reading *r, uint32_t table)
{
    for (uint32_t c = first_of(r, table); c; c = next_of(r, c))
        if (!px_toml_text(r->m->toml, c))
            return false;
    return px_toml_at(r->m->toml, table)->type == PX_TOML_TABLE;
}

static int add_section(const struct px_own_reading *r, uint32_t table, const char *section, bool script,
                       struct px_buf *out)
{
    if (table && px_toml_at(r->m->toml, table)->type != PX_TOML_TABLE)
        return px_own_wrong(r, table, "is not a table");
    if (!first_of(r, table))
        return 0;
    px_buf_printf(out, "%s[%s]\n", out->len ? "\n" : "", section);
    for (uint32_t c = first_of(r, table); c; c = next_of(r, c))
        if (add_entry(r, c, script, out) < 0)
            return -1;
    return 0;
}

static int add_groups(const struct px_own_reading *r, uint32_t groups, struct px_buf *out)
{
    if (groups && px_toml_at(r->m->toml, groups)->type != PX_TOML_TABLE)
        return px_own_wrong(r, groups, "is not a table");
    for (uint32_t c = first_of(r, groups); c; c = next_of(r, c)) {
        const char *name = px_toml_key(r->m->toml, c);
        if (!is_word(name) || px_equal(name, "console_scripts") || px_equal(name, "gui_scripts"))
            return refuse_entry(r, c, "cannot be a group of entry points",
                                "Use letters, digits, '_', '.' and '-'; programs are in [project.scripts].");
        if (add_section(r, c, name, false, out) < 0)
            return -1;
    }
    return 0;
}

static int read_entries(const struct px_own_reading *r, struct px_buf *out)
{
    uint32_t scripts = find(r, "project", "scripts"), poetry = scripts ? PX_TOML_NONE : find_poetry(r, "scripts");
    if (poetry && !is_simple(r, poetry)) {
        if (px_own_limit(r, poetry, "has scripts that are no functions: none of them is installed") < 0)
            return -1;
        poetry = PX_TOML_NONE;
    }
    return add_section(r, scripts ? scripts : poetry, "console_scripts", true, out) < 0 ||
                   add_section(r, find(r, "project", "gui-scripts"), "gui_scripts", true, out) < 0
               ? -1 : add_groups(r, find(r, "project", "entry-points"), out);
}

/* ---- what is compiled ---- */

static bool builds_with(const char *backend)
{
    static const char *const begins[] = {"mesonpy", "scikit_build_core", "maturin", "py_build_cmake", "sipbuild"};
    for (size_t i = 0; i < PX_COUNT_OF(begins); i++)
        if (px_starts_with(backend, begins[i]))
            return true;
    return false;
}

static bool setup_builds(const struct px_own_reading *r)
{
    px_auto_buf struct px_buf text = PX_BUF(SETUP_MAX);
    px_auto_fd int dir = px_open_beneath(r->site->dir, *r->member ? r->member : ".", O_RDONLY | O_DIRECTORY, 0);
    return dir >= 0 && px_buf_read_file(dir, "setup.py", SETUP_MAX, &text) == 0 &&
           memmem(text.data, text.len, "ext_modules", strlen("ext_modules")) != NULL;
}

static int look_for_compiled(const struct px_own_reading *r)
{
    const char *backend = px_toml_text(r->m->toml, find(r, "build-system", "build-backend"));
    if (!(backend && builds_with(backend)) && !setup_builds(r))
        return 0;
    return px_own_limit(r, 0, "is of a package with compiled modules: px does not build the project itself, and they "
                              "can be imported only if they lie built beside its other modules");
}

/* ---- one package ---- */

static const char *version_of(const struct px_own_reading *r)
{
    struct px_version parsed;
    const char *said = r->m->version ? r->m->version : px_toml_text(r->m->toml, find_poetry(r, "version"));
    bool good = said && strlen(said) < VERSION_BYTES && px_version_parse(said, strlen(said), &parsed) == 0;
    return good && !strpbrk(said, " \t\r\n") ? said : PX_OWN_UNKNOWN_VERSION;
}

static bool is_named(const struct px_own_reading *r, const char *canonical)
{
    const json_t *package;
    char other[NAME_BYTES];
    size_t i;
    json_array_foreach(r->packages, i, package) {
        const char *name = px_document_text(package, "name");
        if (px_marker_package_name(name, strlen(name), other, sizeof other) == 0 && px_equal(other, canonical))
            return true;
    }
    return false;
}

static int add_package(const struct px_own_reading *r, const struct px_buf *entries)
{
    return json_array_append_new(r->packages, json_pack("{ssssss}", "entry_points", px_buf_text(entries), "name",
                                                        r->name, "version", version_of(r))) < 0
               ? px_no_memory(r->e) : 0;
}

static int read_package(struct px_own_reading *r)
{
    px_auto_buf struct px_buf entries = PX_BUF(TEXT_MAX);
    char canonical[NAME_BYTES];
    size_t before = json_array_size(r->paths);
    if (read_entries(r, &entries) < 0)
        return -1;
    if (entries.err < 0)
        return px_fail(r->e, PX_E_LIMIT, entries.err, "the entry points of a package are too long");
    r->name = r->m->name ? r->m->name : px_toml_text(r->m->toml, find_poetry(r, "name"));
    r->wanted |= entries.len > 0 || find(r, "build-system", "requires") || find(r, "build-system", "build-backend");
    if (!r->name || px_marker_package_name(r->name, strlen(r->name), canonical, sizeof canonical) < 0)
        return r->wanted ? px_own_limit(r, 0, "has no name that a package can have: its own package is not installed")
                         : 0;
    if (is_named(r, canonical))
        return px_own_limit(r, 0, "has the name of a member before it, and is not installed");
    if (px_own_layout(r) < 0)
        return -1;
    if (!r->wanted && json_array_size(r->paths) == before)
        return 0;
    return add_package(r, &entries) < 0 ? -1 : look_for_compiled(r);
}

/* ---- all of them ---- */

static int note_names(const struct px_own_reading *r, const struct px_names *list, json_t *names)
{
    struct px_requirement q;
    char name[NAME_BYTES];
    for (size_t i = 0; i < list->count; i++)
        if (px_marker_requirement_parse(list->items[i], &q) == 0 &&
            px_marker_package_name(q.name, q.name_length, name, sizeof name) == 0 &&
            json_object_set_new(names, name, json_true()) < 0)
            return px_no_memory(r->e);
    return 0;
}

/* Every package that a member requires, by its canonical name. */
static int note_required(const struct px_own_reading *r, json_t *names)
{
    for (size_t i = 0; i < r->site->member_count; i++) {
        const struct px_manifest *m = &r->site->members[i].manifest;
        int status = note_names(r, &m->dependencies, names);
        for (size_t k = 0; status == 0 && k < m->group_count; k++)
            status = note_names(r, &m->groups[k].requirements, names);
        if (status < 0)
            return -1;
    }
    return 0;
}

static bool is_required(const json_t *names, const char *name)
{
    char canonical[NAME_BYTES];
    return name && px_marker_package_name(name, strlen(name), canonical, sizeof canonical) == 0 &&
           json_object_get(names, canonical);
}

/* A member that another member requires is a package in any case. */
static int read_members(struct px_own_reading *r)
{
    px_auto(px_document) json_t *required = json_object();
    if (!required)
        return px_no_memory(r->e);
    if (note_required(r, required) < 0)
        return -1;
    for (size_t i = 0; i < r->site->member_count; i++) {
        r->m = &r->site->members[i].manifest;
        r->member = r->site->members[i].path;
        r->wanted = is_required(required, r->m->name);
        if (read_package(r) < 0)
            return -1;
    }
    return 0;
}

static int read_all(struct px_own_reading *r)
{
    r->m = &r->site->manifest;
    return !r->site->manifest_exists ? 0 : r->site->workspace ? read_members(r) : read_package(r);
}

int px_own_find(const struct px_located *site, struct px_own *ret_own, struct px_err *e)
{
    px_auto(px_document) json_t *paths = json_array();
    px_auto(px_document) json_t *packages = json_array();
    px_auto(px_document) json_t *limits = json_array();
    struct px_own_reading r = {
        .site = site, .member = "", .paths = paths, .packages = packages, .limits = limits, .e = e};
    if (!paths || !packages || !limits)
        return px_no_memory(r.e);
    if (read_all(&r) < 0)
        return -1;
    struct px_own own = {0};
    bool any = json_array_size(packages) > 0;
    if (any && !(own.facts = json_pack("{sOsO}", "packages", packages, "paths", paths)))
        return px_no_memory(r.e);
    own.limits = json_array_size(limits) > 0 ? px_take(&limits) : NULL;
    *ret_own = own;
    return 0;
}

void px_own_done(struct px_own *own)
{
    json_decref(own->facts);
    json_decref(own->limits);
    *own = (struct px_own){0};
}

/* ---- its programs ---- */

struct telling {
    int (*seen)(void *user, const char *name);
    void *user;
};

static int tell_script(void *user, const struct px_script *script)
{
    const struct telling *t = user;
    return t->seen(t->user, script->name);
}

int px_own_scripts(const json_t *facts, int (*seen)(void *user, const char *name), void *user)
{
    struct telling t = {seen, user};
    const json_t *package;
    size_t i, line;
    int r = 0;
    json_array_foreach(json_object_get(facts, "packages"), i, package) {
        const char *text = px_document_text(package, "entry_points");
        if (r == 0 && text)
            r = px_wheel_scripts(text, strlen(text), tell_script, &t, &line);
    }
    return r;
}
