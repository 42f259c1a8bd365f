/* Reads the layout of a package from the settings of the common build tools in pyproject.toml. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "layout/own_internal.h"

enum { MODULE_MAX = 256 };

static uint32_t first_of(const struct px_own_reading *r, uint32_t node)
{
    return px_toml_at(r->m->toml, node)->first;
}

static uint32_t next_of(const struct px_own_reading *r, uint32_t node)
{
    return px_toml_at(r->m->toml, node)->next;
}

static bool is_a(const struct px_own_reading *r, uint32_t node, enum px_toml_type type)
{
    return px_toml_at(r->m->toml, node)->type == type;
}

/* A text without NUL, or NULL. */
static const char *text_of(const struct px_own_reading *r, uint32_t node)
{
    const char *text = node ? px_toml_text(r->m->toml, node) : NULL;
    return text && strlen(text) == px_toml_at(r->m->toml, node)->text_length ? text : NULL;
}

/* ---- one directory ---- */

/* From the package's directory to the root's: "src" of "libs/core" is "libs/core/src"; both may be "". */
static int from_root(const struct px_own_reading *r, const char *path, char *out, size_t size)
{
    bool both = *r->member && *path;
    return *r->member || *path ? px_fmt(out, size, "%s%s%s", r->member, both ? "/" : "", path) : px_fmt(out, size, ".");
}

static bool is_listed(const json_t *list, const char *text)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
        if (px_equal(json_string_value(item), text))
            return true;
    return false;
}

static int add_path(const struct px_own_reading *r, const char *path)
{
    if (is_listed(r->paths, path))
        return 0;
    return json_array_append_new(r->paths, json_string(path)) < 0 ? px_no_memory(r->e) : 0;
}

/* The path is written into a .pth file, which Python reads line by line, and within quotes. */
static bool is_plain(const char *path)
{
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127 || strchr("'\"\\", *p))
            return false;
    return true;
}

static int leaves(const struct px_own_reading *r, uint32_t node)
{
    (void)px_own_wrong(r, node, "names a directory that is not in the project");
    (void)px_why(r->e, "px looks for the project's own modules below its root, and for members below the workspace's.");
    return px_fix(r->e, "Name a directory by a relative path without '..', and without a link that leads out.");
}

/* An untrusted directory, relative to its pyproject.toml. */
static int add_dir(const struct px_own_reading *r, uint32_t node, const char *text)
{
    char absolute[PATH_MAX], clean[PATH_MAX], path[PATH_MAX];
    if (*text == '/' || px_fmt(absolute, sizeof absolute, "/%s", text) < 0 ||
        px_path_clean(absolute, clean, sizeof clean) < 0 || from_root(r, clean + 1, path, sizeof path) < 0)
        return leaves(r, node);
    if (!is_plain(path))
        return px_own_wrong(r, node, "names a directory with quotes, backslashes or control characters in it");
    px_auto_fd int fd = px_open_beneath(r->site->dir, path, O_PATH | O_DIRECTORY, 0);
    if (fd == -EXDEV || fd == -ELOOP)
        return leaves(r, node);
    return fd < 0 ? px_own_limit(r, node, "names a directory that is not there") : add_path(r, path);
}

static int not_simple(const struct px_own_reading *r, uint32_t node)
{
    return px_own_limit(r, node, "is not a layout that px reads: it puts directories on sys.path, and renames none");
}

/* ---- what the tools call it ---- */

static int read_dir(const struct px_own_reading *r, uint32_t node)
{
    const char *text = text_of(r, node);
    return text ? add_dir(r, node, text) : not_simple(r, node);
}

static int read_each(const struct px_own_reading *r, uint32_t node, enum px_toml_type type,
                     int (*read)(const struct px_own_reading *, uint32_t))
{
    int status = 0;
    if (!is_a(r, node, type))
        return not_simple(r, node);
    if (px_toml_at(r->m->toml, node)->count > PX_MANIFEST_LIST_MAX)
        return px_own_wrong(r, node, "has more items than px reads");
    for (uint32_t c = first_of(r, node); status == 0 && c; c = next_of(r, c))
        status = read(r, c);
    return status;
}

static int read_dirs(const struct px_own_reading *r, uint32_t node)
{
    return read_each(r, node, PX_TOML_ARRAY, read_dir);
}

/* "src/demo" is imported as demo, so the directory for sys.path is src. */
static int add_parent(const struct px_own_reading *r, uint32_t node, const char *text)
{
    char parent[PATH_MAX];
    size_t n = strlen(text);
    while (n && text[n - 1] == '/')
        n--;
    while (n && text[n - 1] != '/')
        n--;
    if (px_fmt(parent, sizeof parent, "%.*s", (int)n, text) < 0)
        return leaves(r, node);
    return *text == '/' ? leaves(r, node) : add_dir(r, node, parent);
}

static int read_parent(const struct px_own_reading *r, uint32_t node)
{
    const char *text = text_of(r, node);
    return text ? add_parent(r, node, text) : not_simple(r, node);
}

static int read_parents(const struct px_own_reading *r, uint32_t node)
{
    return read_each(r, node, PX_TOML_ARRAY, read_parent);
}

/* {include = "demo", from = "src"}. */
static int read_include(const struct px_own_reading *r, uint32_t node)
{
    uint32_t from = is_a(r, node, PX_TOML_TABLE) ? px_toml_get(r->m->toml, node, "from") : PX_TOML_NONE;
    if (!is_a(r, node, PX_TOML_TABLE) || px_toml_get(r->m->toml, node, "to"))
        return not_simple(r, node);
    return from ? read_dir(r, from) : add_dir(r, node, "");
}

static int read_includes(const struct px_own_reading *r, uint32_t node)
{
    return read_each(r, node, PX_TOML_ARRAY, read_include);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* {"" = "src"}: all packages are in src. {demo = "lib/demo"}: demo is in lib, if the directory has its name. */
static int read_mapping(const struct px_own_reading *r, uint32_t node)
{
    const char *key = px_toml_key(r->m->toml, node), *text = text_of(r, node);
    if (!text || (*key && !px_equal(last_part(text), key)))
        return not_simple(r, node);
    return *key ? add_parent(r, node, text) : add_dir(r, node, text);
}

static int read_mappings(const struct px_own_reading *r, uint32_t node)
{
    return read_each(r, node, PX_TOML_TABLE, read_mapping);
}

/* packages = ["demo"]: next to pyproject.toml, unless set above. A table only configures the search. */
static int read_list(const struct px_own_reading *r, uint32_t node)
{
    return is_a(r, node, PX_TOML_ARRAY) ? add_dir(r, node, "") : 0;
}

static int read_compiled(const struct px_own_reading *r, uint32_t node)
{
    return px_own_limit(r, node, "is compiled when the package is built, and px does not build the project: what is "
                                 "compiled can be imported only if it lies beside its modules");
}

enum { TOOL_DEPTH = 6 };
static const struct tool_row {
    const char *path[TOOL_DEPTH];
    int (*read)(const struct px_own_reading *r, uint32_t node);
    bool unless;                /* only if no row before it gave a directory */
} tool_rows[] = {
    {{"tool", "setuptools", "package-dir"}, read_mappings, false},
    {{"tool", "setuptools", "packages", "find", "where"}, read_dirs, false},
    {{"tool", "setuptools", "packages"}, read_list, true},
    {{"tool", "setuptools", "py-modules"}, read_list, true},
    {{"tool", "setuptools", "ext-modules"}, read_compiled, false},
    {{"tool", "hatch", "build", "dev-mode-dirs"}, read_dirs, false},
    {{"tool", "hatch", "build", "packages"}, read_parents, false},
    {{"tool", "hatch", "build", "sources"}, read_dirs, false},
    {{"tool", "hatch", "build", "targets", "wheel", "packages"}, read_parents, false},
    {{"tool", "hatch", "build", "targets", "wheel", "sources"}, read_dirs, false},
    {{"tool", "poetry", "packages"}, read_includes, false},
    {{"tool", "pdm", "build", "package-dir"}, read_dir, false},
    {{"tool", "uv", "build-backend", "module-root"}, read_dir, false},
    {{"tool", "maturin", "python-source"}, read_dir, false},
};

static uint32_t find(const struct px_own_reading *r, const char *const path[TOOL_DEPTH])
{
    size_t n = 0;
    while (n < TOOL_DEPTH && path[n])
        n++;
    return px_toml_find(r->m->toml, path, n);
}

static int read_tools(const struct px_own_reading *r)
{
    size_t before = json_array_size(r->paths);
    for (size_t i = 0; i < PX_COUNT_OF(tool_rows); i++) {
        uint32_t node = find(r, tool_rows[i].path);
        if (node && !(tool_rows[i].unless && json_array_size(r->paths) > before) && tool_rows[i].read(r, node) < 0)
            return -1;
    }
    return 0;
}

/* ---- where nothing says it ---- */

static bool is_there(const struct px_own_reading *r, const char *dir, const char *module, const char *file, int flags)
{
    char below[PATH_MAX], path[PATH_MAX];
    if (px_fmt(below, sizeof below, "%s%s%s", dir, module, file) < 0 || from_root(r, below, path, sizeof path) < 0)
        return false;
    px_auto_fd int fd = px_open_beneath(r->site->dir, path, O_PATH | flags, 0);
    return fd >= 0;
}

static bool has_module(const struct px_own_reading *r, const char *dir, const char *module)
{
    return *module && (is_there(r, dir, module, "/__init__.py", 0) || is_there(r, dir, module, ".py", 0));
}

/* "My-App.Core" is imported as My_App_Core or my_app_core. */
static void module_of(const char *name, bool small, char out[MODULE_MAX])
{
    size_t n = 0;
    for (; name[n] && n + 1 < MODULE_MAX; n++) {
        char c = strchr("-.", name[n]) ? '_' : name[n];
        out[n] = small && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    out[n] = '\0';
}

static bool has_own(const struct px_own_reading *r, const char *dir)
{
    static const char *const said[][TOOL_DEPTH] = {{"tool", "flit", "module", "name"},
                                                   {"tool", "uv", "build-backend", "module-name"}};
    char module[MODULE_MAX];
    for (size_t i = 0; i < PX_COUNT_OF(said); i++) {
        const char *text = text_of(r, find(r, said[i]));
        if (text && !strpbrk(text, "/.") && has_module(r, dir, text))
            return true;
    }
    for (int small = 0; small < 2; small++) {
        module_of(r->name, small, module);
        if (has_module(r, dir, module))
            return true;
    }
    return false;
}

/* A module of the project's name, in src or beside pyproject.toml. A declared package counts even if its modules have
 * other names. A project without a declaration counts if src has a module of its name; next to pyproject.toml any
 * script may have that name, and is found there without being installed. */
static int look(const struct px_own_reading *r)
{
    char path[PATH_MAX];
    bool src = is_there(r, "src", "", "", O_DIRECTORY), in_src = src && has_own(r, "src/"),
         beside = !in_src && r->wanted && has_own(r, "");
    if (!in_src && !r->wanted)
        return 0;
    if (from_root(r, in_src || (src && !beside) ? "src" : "", path, sizeof path) < 0)
        return px_fail(r->e, PX_E_LIMIT, ENAMETOOLONG, "the path of a member is too long");
    return is_plain(path) ? add_path(r, path)
                          : px_own_limit(r, 0, "lies in a directory with quotes, backslashes or control characters "
                                               "in its name, which cannot be on sys.path");
}

int px_own_layout(const struct px_own_reading *r)
{
    size_t before = json_array_size(r->paths);
    if (read_tools(r) < 0)
        return -1;
    return json_array_size(r->paths) > before ? 0 : look(r);
}
