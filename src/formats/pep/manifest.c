#include "pep/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <px/px.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "pep/marker.h"
#include "pep/version.h"

enum { GROUP_DEPTH_MAX = 16, NAME_MAX_BYTES = 256 };

struct reading {
    struct px_manifest *m;
    const char *shown;
    struct px_err *e;
};

/* ---- errors ---- */

static int wrong(const struct reading *r, uint32_t node, const char *what)
{
    uint32_t line, column;
    px_toml_place(r->m->toml, px_toml_at(r->m->toml, node)->from, &line, &column);
    px_fail(r->e, PX_E_MANIFEST, 0, "%s:%u: '%s' %s", r->shown, line, px_toml_key(r->m->toml, node), what);
    return -1;
}

/* ---- pieces ---- */

static uint32_t find(const struct reading *r, const char *a, const char *b, const char *c, const char *d)
{
    const char *path[] = {a, b, c, d};
    size_t n = 0;
    while (n < 4 && path[n])
        n++;
    return px_toml_find(r->m->toml, path, n);
}

static uint32_t first_of(const struct reading *r, uint32_t node)
{
    return node ? px_toml_at(r->m->toml, node)->first : PX_TOML_NONE;
}

static uint32_t next_of(const struct reading *r, uint32_t node)
{
    return px_toml_at(r->m->toml, node)->next;
}

static int check_table(const struct reading *r, uint32_t node)
{
    return !node || px_toml_at(r->m->toml, node)->type == PX_TOML_TABLE ? 0 : wrong(r, node, "is not a table");
}

/* Stores a string that is not a slice of the document; freed with the manifest. */
static const char *keep(const struct reading *r, const char *from, size_t length)
{
    struct px_manifest *m = r->m;
    char **made = realloc(m->made, (m->made_count + 1) * sizeof *made);
    if (!made)
        return NULL;
    m->made = made;
    char *copy = strndup(from, length);
    if (copy)
        made[m->made_count++] = copy;
    return copy;
}

static const char *keep_trimmed(const struct reading *r, const char *text)
{
    size_t n;
    text += strspn(text, " \t\r\n");
    for (n = strlen(text); n && strchr(" \t\r\n", text[n - 1]);)
        n--;
    return keep(r, text, n);
}

static int read_text(const struct reading *r, uint32_t node, const char **ret_text)
{
    if (!node)
        return 0;
    const char *text = px_toml_text(r->m->toml, node);
    if (!text)
        return wrong(r, node, "is not a string");
    if (strlen(text) != px_toml_at(r->m->toml, node)->text_length)
        return wrong(r, node, "has a NUL in it");
    *ret_text = keep_trimmed(r, text);
    return *ret_text ? 0 : px_no_memory(r->e);
}

/* A range of versions; with `alone`, "3.11" is also a range and means all of its releases. */
static int read_range(const struct reading *r, uint32_t node, bool alone, const char **ret_text)
{
    if (read_text(r, node, ret_text) < 0)
        return -1;
    if (!node || (alone ? px_version_asked("0", *ret_text) : px_version_fits("0", *ret_text)) >= 0)
        return 0;
    (void)wrong(r, node, "is not a range of versions");
    return px_why(r->e, "'%.100s' does not follow the grammar of version specifiers (PEP 440), such as >=3.11.",
                  *ret_text);
}

static int read_flag(const struct reading *r, uint32_t node, bool *ret_flag)
{
    if (!node)
        return 0;
    if (px_toml_at(r->m->toml, node)->type != PX_TOML_BOOL)
        return wrong(r, node, "is not true or false");
    *ret_flag = px_toml_at(r->m->toml, node)->truth;
    return 0;
}

static int add_name(const struct reading *r, struct px_names *list, const char *text)
{
    if (list->count >= PX_MANIFEST_LIST_MAX)
        return px_fail(r->e, PX_E_LIMIT, 0, "%s: a list has more than %d items", r->shown, PX_MANIFEST_LIST_MAX);
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items)
        return px_no_memory(r->e);
    list->items = items;
    items[list->count++] = text;
    return 0;
}

static int read_names(const struct reading *r, uint32_t node, struct px_names *list)
{
    if (node && px_toml_at(r->m->toml, node)->type != PX_TOML_ARRAY)
        return wrong(r, node, "is not an array");
    for (uint32_t c = first_of(r, node); c; c = next_of(r, c)) {
        const char *text = NULL;
        if (!px_toml_text(r->m->toml, c))
            return wrong(r, node, "holds something that is not a string");
        if (read_text(r, c, &text) < 0 || add_name(r, list, text) < 0)
            return -1;
    }
    return 0;
}

static int check_requirements(const struct reading *r, uint32_t node, const struct px_names *list)
{
    struct px_requirement parts;
    for (size_t i = 0; i < list->count; i++)
        if (px_marker_requirement_parse(list->items[i], &parts) < 0) {
            (void)wrong(r, node, "holds something that is not a requirement");
            return px_why(r->e, "'%s' does not follow the grammar of dependency specifiers (PEP 508).", list->items[i]);
        }
    return 0;
}

static int read_requirements(const struct reading *r, uint32_t node, struct px_names *list)
{
    return read_names(r, node, list) < 0 || check_requirements(r, node, list) < 0 ? -1 : 0;
}

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const struct px_pair *)a)->key, ((const struct px_pair *)b)->key);
}

/* A value as text: a string, a number or a boolean. */
static int value_text(const struct reading *r, uint32_t node, const char **ret_text)
{
    const struct px_toml_node *n = px_toml_at(r->m->toml, node);
    if (n->type == PX_TOML_STRING)
        return read_text(r, node, ret_text);
    if (n->type >= PX_TOML_ARRAY)
        return wrong(r, node, "is not a single value");
    *ret_text = keep(r, r->m->toml->source + n->from, n->to - n->from);
    return *ret_text ? 0 : px_no_memory(r->e);
}

static int read_pairs(const struct reading *r, uint32_t table, struct px_pairs *list)
{
    if (check_table(r, table) < 0)
        return -1;
    for (uint32_t c = first_of(r, table); c; c = next_of(r, c)) {
        struct px_pair pair = {.key = px_toml_key(r->m->toml, c)};
        if (value_text(r, c, &pair.value) < 0)
            return -1;
        if (!*pair.value)
            continue;
        struct px_pair *items = realloc(list->items, (list->count + 1) * sizeof *items);
        if (!items)
            return px_no_memory(r->e);
        list->items = items;
        items[list->count++] = pair;
    }
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_pairs);
    return 0;
}

/* ---- groups: lists that may include each other ---- */

static int read_group(const struct reading *r, uint32_t table, uint32_t node, int depth, struct px_names *list)
{
    if (depth > GROUP_DEPTH_MAX)
        return wrong(r, node, "includes itself, or groups nest too deep");
    if (px_toml_at(r->m->toml, node)->type != PX_TOML_ARRAY)
        return wrong(r, node, "is not an array");
    for (uint32_t c = first_of(r, node); c; c = next_of(r, c)) {
        const char *text = NULL;
        if (px_toml_text(r->m->toml, c)) {
            if (read_text(r, c, &text) < 0 || add_name(r, list, text) < 0)
                return -1;
            continue;
        }
        const char *other = px_toml_text(r->m->toml, px_toml_get(r->m->toml, c, "include-group"));
        uint32_t included = other ? px_toml_get(r->m->toml, table, other) : PX_TOML_NONE;
        if (!included)
            return wrong(r, node, "holds something that is neither a requirement nor a group that exists");
        if (read_group(r, table, included, depth + 1, list) < 0)
            return -1;
    }
    return check_requirements(r, node, list);
}

static int unknown_name(const struct reading *r, uint32_t node, const char *where, const struct px_near *near)
{
    px_fail(r->e, PX_E_MANIFEST, 0, "%s: '%s' names '%.100s', which %s does not have", r->shown,
            px_toml_key(r->m->toml, node), near->written, where);
    (void)px_detail(r->e, "reason", "unknown_name");
    return near->found ? px_fix(r->e, "Write %s.", near->found)
                       : px_fix(r->e, "Add it to %s, or remove it here.", where);
}

static int check_group(const struct reading *r, uint32_t node, const char *name)
{
    struct px_near near = {.written = name};
    for (size_t i = 0; i < r->m->group_count; i++) {
        if (px_equal(r->m->groups[i].name, name))
            return 0;
        px_near_try(&near, r->m->groups[i].name);
    }
    return unknown_name(r, node, "[dependency-groups]", &near);
}

static int read_groups(const struct reading *r)
{
    uint32_t table = find(r, "dependency-groups", NULL, NULL, NULL);
    if (check_table(r, table) < 0)
        return -1;
    for (uint32_t c = first_of(r, table); c; c = next_of(r, c)) {
        struct px_group *groups = realloc(r->m->groups, (r->m->group_count + 1) * sizeof *groups);
        if (!groups)
            return px_no_memory(r->e);
        r->m->groups = groups;
        groups[r->m->group_count++] = (struct px_group){.name = px_toml_key(r->m->toml, c)};
        if (read_group(r, table, c, 0, &groups[r->m->group_count - 1].requirements) < 0)
            return -1;
    }
    uint32_t named = find(r, "tool", "px", "dependencies", "include-groups");
    if (read_names(r, named, &r->m->active_groups) < 0)
        return -1;
    for (size_t i = 0; i < r->m->active_groups.count; i++)
        if (check_group(r, named, r->m->active_groups.items[i]) < 0)
            return -1;
    return 0;
}

/* ---- extras: lists of the project that are asked for by name ---- */

static bool is_same_name(const char *a, size_t length, const char *b)
{
    char x[NAME_MAX_BYTES], y[NAME_MAX_BYTES];
    return b && px_marker_package_name(a, length, x, sizeof x) == 0 && px_marker_package_name(b, strlen(b), y, sizeof y) == 0 &&
           px_equal(x, y);
}

/* The list of one extra. NONE: there is no such extra; ret_near then has the most similar name, if any. */
static uint32_t find_extra(const struct reading *r, const char *name, size_t length, struct px_near *ret_near)
{
    uint32_t table = find(r, "project", "optional-dependencies", NULL, NULL), c = first_of(r, table);
    for (; c && !is_same_name(name, length, px_toml_key(r->m->toml, c)); c = next_of(r, c))
        if (ret_near)
            px_near_try(ret_near, px_toml_key(r->m->toml, c));
    return c;
}

static int read_extra(const struct reading *r, uint32_t node, int depth);

/* "demo[web,cli]" in an extra of demo includes the lists of demo's extras web and cli. */
static int read_own_extras(const struct reading *r, uint32_t node, const struct px_requirement *q, int depth)
{
    for (size_t at = 0, n; at < q->extras_length; at += n + 1) {
        const char *name = q->extras + at;
        for (n = 0; at + n < q->extras_length && name[n] != ',';)
            n++;
        size_t skip = strspn(name, " \t"), end = n;
        while (end > skip && strchr(" \t", name[end - 1]))
            end--;
        uint32_t other = end > skip ? find_extra(r, name + skip, end - skip, NULL) : PX_TOML_NONE;
        if (!other)
            return wrong(r, node, "asks for an extra of the project that is not there");
        if (read_extra(r, other, depth + 1) < 0)
            return -1;
    }
    return 0;
}

static int read_extra(const struct reading *r, uint32_t node, int depth)
{
    struct px_names list = {0};
    if (depth > GROUP_DEPTH_MAX)
        return wrong(r, node, "includes itself, or extras nest too deep");
    int status = read_requirements(r, node, &list);
    for (size_t i = 0; status == 0 && i < list.count; i++) {
        struct px_requirement q;
        bool own = px_marker_requirement_parse(list.items[i], &q) == 0 && is_same_name(q.name, q.name_length, r->m->name);
        status = own ? read_own_extras(r, node, &q, depth) : add_name(r, &r->m->extra_requirements, list.items[i]);
    }
    free(list.items);
    return status;
}

static int select_extra(const struct reading *r, uint32_t node, const char *name)
{
    char plain[NAME_MAX_BYTES];
    struct px_near near = {.written = name};
    uint32_t extra = find_extra(r, name, strlen(name), &near);
    if (!extra || px_marker_package_name(name, strlen(name), plain, sizeof plain) < 0)
        return unknown_name(r, node, "[project.optional-dependencies]", &near);
    const char *kept = keep(r, plain, strlen(plain));
    return !kept ? px_no_memory(r->e) : add_name(r, &r->m->extras, kept) < 0 ? -1 : read_extra(r, extra, 0);
}

static int read_extras(const struct reading *r)
{
    struct px_names asked = {0};
    uint32_t node = find(r, "tool", "px", "dependencies", "extras");
    int status = check_table(r, find(r, "project", "optional-dependencies", NULL, NULL)) < 0
                     ? -1 : read_names(r, node, &asked);
    for (size_t i = 0; status == 0 && i < asked.count; i++)
        status = select_extra(r, node, asked.items[i]);
    free(asked.items);
    if (status == 0 && r->m->extras.count) {
        status = add_name(r, &r->m->extras, NULL);
        r->m->extras.count--;
    }
    return status;
}

/* ---- [tool.px] ---- */

static bool is_listed(const char *const *keys, const char *key)
{
    while (*keys && !px_equal(*keys, key))
        keys++;
    return *keys != NULL;
}

/* Refuses unknown keys: ignoring one would silently use the default. In a table that other tools share (`open`), only a
 * key that resembles a key of px is refused. */
static int check_keys(const struct reading *r, uint32_t table, const char *const *keys, bool open)
{
    for (uint32_t c = first_of(r, table); c; c = next_of(r, c)) {
        struct px_near near = {.written = px_toml_key(r->m->toml, c)};
        if (is_listed(keys, near.written))
            continue;
        for (size_t i = 0; keys[i]; i++)
            px_near_try(&near, keys[i]);
        if (open && !near.found)
            continue;
        (void)wrong(r, c, "is not a key that px knows here");
        (void)px_detail(r->e, "reason", "unknown_key");
        (void)px_why(r->e, "What it says would be passed over.");
        return near.found ? px_fix(r->e, "Write %s.", near.found) : px_fix(r->e, "Remove it.");
    }
    return 0;
}

static int read_wishes(const struct reading *r, uint32_t table)
{
    if (check_table(r, table) < 0)
        return -1;
    for (uint32_t c = first_of(r, table); c; c = next_of(r, c)) {
        struct px_wish wish = {.name = px_toml_key(r->m->toml, c)};
        if (read_flag(r, c, &wish.enabled) < 0)
            return -1;
        struct px_wish *wishes = realloc(r->m->wishes, (r->m->wish_count + 1) * sizeof *wishes);
        if (!wishes)
            return px_no_memory(r->e);
        r->m->wishes = wishes;
        wishes[r->m->wish_count++] = wish;
    }
    return 0;
}

static int read_tree(const struct reading *r, uint32_t node)
{
    const char *said = "read-write";
    if (read_text(r, node, &said) < 0)
        return -1;
    r->m->sandbox_read_only = px_equal(said, "read-only");
    if (r->m->sandbox_read_only || px_equal(said, "read-write"))
        return 0;
    (void)wrong(r, node, "is neither read-only nor read-write");
    return px_fix(r->e, "Write working-tree = \"read-only\" or working-tree = \"read-write\".");
}

static int read_sandbox(const struct reading *r)
{
    static const char *const keys[] = {"auto", "base", "capabilities", "working-tree", NULL};
    struct px_manifest *m = r->m;
    uint32_t table = find(r, "tool", "px", "sandbox", NULL);
    m->sandbox_defined = table != PX_TOML_NONE;
    m->sandbox_auto = true;
    if (check_table(r, table) < 0 || check_keys(r, table, keys, false) < 0 ||
        read_text(r, find(r, "tool", "px", "sandbox", "base"), &m->sandbox_base) < 0 ||
        read_flag(r, find(r, "tool", "px", "sandbox", "auto"), &m->sandbox_auto) < 0)
        return -1;
    if (m->sandbox_base && !*m->sandbox_base)
        m->sandbox_base = NULL;
    if (read_tree(r, find(r, "tool", "px", "sandbox", "working-tree")) < 0)
        return -1;
    return read_wishes(r, find(r, "tool", "px", "sandbox", "capabilities"));
}

static int read_workspace(const struct reading *r)
{
    struct px_manifest *m = r->m;
    uint32_t table = find(r, "tool", "px", "workspace", NULL);
    m->is_workspace = table != PX_TOML_NONE;
    return check_table(r, table) < 0 || read_names(r, find(r, "tool", "px", "workspace", "members"), &m->members) < 0 ||
                   read_text(r, find(r, "tool", "px", "workspace", "name"), &m->workspace_name) < 0 ||
                   read_range(r, find(r, "tool", "px", "workspace", "python"), true, &m->workspace_python) < 0
               ? -1 : 0;
}

static int read_px(const struct reading *r)
{
    static const char *const keys[] = {"dependencies", "env",     "manage-command", "pin-manifest", "plugins",
                                       "python",       "sandbox", "worker",         "workspace",    NULL};
    static const char *const dependency_keys[] = {"extras", "include-groups", NULL};
    struct px_manifest *m = r->m;
    uint32_t table = find(r, "tool", "px", NULL, NULL), dependencies = find(r, "tool", "px", "dependencies", NULL);
    m->is_px = table != PX_TOML_NONE;
    if (check_table(r, table) < 0 || check_keys(r, table, keys, true) < 0 || check_table(r, dependencies) < 0 ||
        check_keys(r, dependencies, dependency_keys, false) < 0 || read_extras(r) < 0 ||
        read_range(r, find(r, "tool", "px", "python", NULL), true, &m->px_python) < 0 ||
        read_text(r, find(r, "tool", "px", "manage-command", NULL), &m->manage_command) < 0 ||
        read_flag(r, find(r, "tool", "px", "pin-manifest", NULL), &m->pin_manifest) < 0 ||
        read_names(r, find(r, "tool", "px", "plugins", NULL), &m->plugins) < 0 ||
        read_pairs(r, find(r, "tool", "px", "env", NULL), &m->env) < 0)
        return -1;
    return read_workspace(r) < 0 ? -1 : read_sandbox(r);
}

static int read_project(const struct reading *r)
{
    struct px_manifest *m = r->m;
    m->requires_python = ">=3.11";
    return check_table(r, find(r, "project", NULL, NULL, NULL)) < 0 || check_table(r, find(r, "tool", NULL, NULL, NULL)) < 0 ||
                   read_text(r, find(r, "project", "name", NULL, NULL), &m->name) < 0 ||
                   read_text(r, find(r, "project", "version", NULL, NULL), &m->version) < 0 ||
                   read_range(r, find(r, "project", "requires-python", NULL, NULL), false, &m->requires_python) < 0 ||
                   read_requirements(r, find(r, "project", "dependencies", NULL, NULL), &m->dependencies) < 0 ||
                   read_requirements(r, find(r, "build-system", "requires", NULL, NULL), &m->build_requires) < 0 ||
                   read_pairs(r, find(r, "project", "scripts", NULL, NULL), &m->scripts) < 0
               ? -1 : 0;
}

int px_manifest_parse(const char *text, size_t length, const char *shown, struct px_manifest *ret_manifest, struct px_err *e)
{
    struct px_manifest m = {0};
    struct px_toml_fault fault;
    struct reading r = {.m = &m, .shown = shown, .e = e};
    int status = px_toml_parse(text, length, &m.toml, &fault);
    if (status == -EINVAL) {
        px_fail(e, PX_E_MANIFEST, 0, "%s:%u:%u: %s", shown, fault.line, fault.column, fault.message);
        return px_why(e, "The file is not valid TOML.");
    }
    if (status < 0)
        return px_fail(e, PX_E_MANIFEST, status, "cannot read '%s'", shown);
    if (read_project(&r) < 0 || read_groups(&r) < 0 || read_px(&r) < 0) {
        px_manifest_done(&m);
        return -1;
    }
    *ret_manifest = m;
    return 0;
}

void px_manifest_done(struct px_manifest *m)
{
    for (size_t i = 0; i < m->group_count; i++)
        free(m->groups[i].requirements.items);
    for (size_t i = 0; i < m->made_count; i++)
        free(m->made[i]);
    free(m->made);
    free(m->groups);
    free(m->dependencies.items);
    free(m->build_requires.items);
    free(m->active_groups.items);
    free(m->extras.items);
    free(m->extra_requirements.items);
    free(m->plugins.items);
    free(m->members.items);
    free(m->scripts.items);
    free(m->env.items);
    free(m->wishes);
    px_toml_free(m->toml);
    *m = (struct px_manifest){0};
}

/* ---- what a lock is made for ---- */

static int compare_requirements(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    struct px_requirement p, q;
    char name_x[NAME_MAX_BYTES] = "", name_y[NAME_MAX_BYTES] = "";
    if (px_marker_requirement_parse(x, &p) == 0)
        (void)px_marker_package_name(p.name, p.name_length, name_x, sizeof name_x);
    if (px_marker_requirement_parse(y, &q) == 0)
        (void)px_marker_package_name(q.name, q.name_length, name_y, sizeof name_y);
    int order = strcmp(name_x, name_y);
    return order ? order : strcmp(x, y);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_once(struct px_names *list, int (*compare)(const void *, const void *))
{
    size_t kept = 0;
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || !px_equal(list->items[kept - 1], list->items[i]))
            list->items[kept++] = list->items[i];
    list->count = kept;
}

static bool is_active(const struct px_manifest *m, const char *group)
{
    for (size_t i = 0; i < m->active_groups.count; i++)
        if (px_equal(m->active_groups.items[i], group))
            return true;
    return m->active_groups.count == 0;
}

static int add_all(const struct reading *r, struct px_names *list, const struct px_names *more)
{
    for (size_t i = 0; i < more->count; i++)
        if (add_name(r, list, more->items[i]) < 0)
            return -1;
    return 0;
}

int px_manifest_requirements(const struct px_manifest *m, bool with_build, struct px_names *ret_list, struct px_err *e)
{
    struct reading r = {.shown = "the manifest", .e = e};
    struct px_names list = {0};
    int status = add_all(&r, &list, &m->dependencies) < 0 ? -1 : add_all(&r, &list, &m->extra_requirements);
    for (size_t i = 0; status == 0 && i < m->group_count; i++)
        if (is_active(m, m->groups[i].name))
            status = add_all(&r, &list, &m->groups[i].requirements);
    if (status == 0 && with_build)
        status = add_all(&r, &list, &m->build_requires);
    if (status < 0) {
        free(list.items);
        return -1;
    }
    sort_once(&list, compare_requirements);
    *ret_list = list;
    return 0;
}

static void hash_text(struct px_hash *h, const char *text)
{
    if (text)
        px_hash_add(h, text, strlen(text));
}

static void hash_line(struct px_hash *h, const char *prefix, const char *text)
{
    hash_text(h, prefix);
    hash_text(h, text);
    hash_text(h, "\n");
}

static void hash_name(struct px_hash *h, const char *name)
{
    for (; name && *name; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        px_hash_add(h, &c, 1);
    }
}

static int hash_groups(const struct px_manifest *m, struct px_hash *h, struct px_err *e)
{
    struct reading r = {.shown = "the manifest", .e = e};
    struct px_names names = {0};
    int status = 0;
    for (size_t i = 0; status == 0 && i < m->group_count; i++)
        if (is_active(m, m->groups[i].name))
            status = add_name(&r, &names, m->groups[i].name);
    sort_once(&names, compare_texts);
    for (size_t i = 0; status == 0 && i < names.count; i++)
        hash_line(h, "group:", names.items[i]);
    free(names.items);
    return status;
}

int px_manifest_fingerprint(const struct px_manifest *m, struct px_oid *ret_fingerprint, struct px_err *e)
{
    struct px_names requirements;
    struct px_hash h;
    if (px_manifest_requirements(m, true, &requirements, e) < 0)
        return -1;
    px_hash_begin(&h);
    hash_name(&h, m->name);
    hash_text(&h, m->requires_python);
    for (size_t i = 0; i < requirements.count; i++)
        hash_line(&h, "", requirements.items[i]);
    free(requirements.items);
    if (hash_groups(m, &h, e) < 0) {
        px_hash_drop(&h);
        return -1;
    }
    for (size_t i = 0; i < m->extras.count; i++)
        hash_line(&h, "extra:", m->extras.items[i]);
    hash_text(&h, m->px_python);
    if (m->manage_command) {
        hash_text(&h, "manage:");
        hash_text(&h, m->manage_command);
    }
    for (size_t i = 0; i < m->plugins.count; i++)
        hash_line(&h, "plugin:", m->plugins.items[i]);
    for (size_t i = 0; i < m->env.count; i++) {
        hash_text(&h, "env:");
        hash_text(&h, m->env.items[i].key);
        hash_line(&h, "=", m->env.items[i].value);
    }
    if (m->pin_manifest)
        hash_text(&h, "pin-manifest:1\n");
    int status = px_hash_end(&h, ret_fingerprint);
    return status < 0 ? px_fail(e, PX_E_MEMORY, status, "the manifest's fingerprint") : 0;
}
