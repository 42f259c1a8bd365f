/* The build tools of a source archive (PEP 517): its [build-system] requirements and those of its backend, in a
 * separate environment. An archive without that table is built with the tool chain's setuptools. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "env/env_internal.h"
#include "env/part.h"
#include "pep/manifest.h"
#include "pep/marker.h"
#include "store/canonical.h"
#include "store/document.h"

enum { ANSWER_MAX = 1 << 20, REQUIRES_MAX = 256, REQUIREMENT_MAX = 1024, NAME_BYTES = 256, DEPTH_MAX = 6 };

void px_env_tools_done(struct px_tools *t)
{
    px_env_done(&t->env);
    px_lease_drop(t->lease);
    *t = (struct px_tools){0};
}

/* ---- what is asked for ---- */

static int refuse(const struct px_env_package *p, const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_BUILD, 0, "building a package failed");
    (void)px_why(e, "%s", why);
    return px_sdist_failed(p, e);
}

/* Accepts only names and ranges: a URL would bypass the user's index. */
static int check_requirement(const struct px_env_package *p, const char *text, struct px_err *e)
{
    struct px_requirement q;
    bool plain = text && strlen(text) <= REQUIREMENT_MAX && px_marker_requirement_parse(text, &q) == 0 && q.url_length == 0;
    for (const char *at = plain ? text : ""; *at; at++)
        plain &= (unsigned char)*at >= ' ' && *at != 0x7f;
    if (plain)
        return 0;
    char why[512];
    (void)px_fmt(why, sizeof why, "Its build asks for '%.200s', which is no name with a range of versions.",
                 text ? text : "");
    return refuse(p, why, e);
}

static bool holds(const json_t *list, const char *text)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item) {
        if (px_equal(json_string_value(item), text))
            return true;
    }
    return false;
}

/* Adds the box's answer to a list without duplicates; null means that there is no list. */
static int take_answer(const struct px_env_package *p, const struct px_buf *answer, json_t *list, bool *ret_null,
                       struct px_err *e)
{
    json_error_t ignored;
    json_t *item;
    size_t i;
    px_auto(px_document) json_t *found = json_loadb(px_buf_text(answer), answer->len, JSON_DECODE_ANY, &ignored);
    *ret_null = json_is_null(found);
    if (!*ret_null && (!json_is_array(found) || json_array_size(found) + json_array_size(list) > REQUIRES_MAX))
        return refuse(p, "What it says its build needs is no list, or too long a one.", e);
    json_array_foreach(found, i, item) {
        const char *text = json_string_value(item);
        if (check_requirement(p, text, e) < 0)
            return -1;
        if (!holds(list, text) && json_array_append(list, item) < 0)
            return px_no_memory(e);
    }
    return 0;
}

static int ask(struct px_env_work *w, const struct px_env_package *p, const struct px_tools *t, const char *stage,
               json_t *list, bool *ret_null, struct px_err *e)
{
    px_auto_buf struct px_buf answer = PX_BUF(ANSWER_MAX);
    return px_sdist_ask(w, p, t, stage, &answer, e) < 0 ? -1 : take_answer(p, &answer, list, ret_null, e);
}

static bool is_package(const char *requirement, const char *name)
{
    struct px_requirement q;
    char canonical[NAME_BYTES];
    return px_marker_requirement_parse(requirement, &q) == 0 &&
           px_marker_package_name(q.name, q.name_length, canonical, sizeof canonical) == 0 && px_equal(canonical, name);
}

/* ---- Rust ---- */

/* Reports it now; the build would fail only after minutes. */
static int check_rust(const struct px_env_package *p, const json_t *list, struct px_err *e)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item) {
        const char *text = json_string_value(item);
        if ((!is_package(text, "maturin") && !is_package(text, "setuptools-rust")) || px_env_has_word(p->capabilities, "rust"))
            continue;
        (void)px_fail(e, PX_E_BUILD, 0, "cannot build %s %s from its source: it needs Rust", p->name, p->version);
        (void)px_detail(e, "reason", PX_ENV_BUILD_FAILED);
        (void)px_detail(e, "capability", "rust");
        (void)px_why(e, "Its build asks for '%.100s', and there is no Rust compiler.", text);
        return px_fix(e,
                      "Take a wheel of it: another version, or one built elsewhere and given by --find-links.\n"
                      "Or run `px sandbox add rust`: the crates have to be in the archive, for builds have no network.");
    }
    return 0;
}

/* ---- finding it ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int not_found(const struct px_env_package *p, const struct px_names *names, struct px_err *e)
{
    px_auto_buf struct px_buf list = PX_BUF(1 << 16);
    char why[sizeof e->why];
    if (e->code != PX_E_LOCK && e->code != PX_E_BUILD)
        return -1;
    for (size_t i = 0; i < names->count; i++)
        px_buf_printf(&list, "%s%s", i ? ", " : "", names->items[i]);
    (void)px_fmt(why, sizeof why, "%s", *e->why ? e->why : e->what);
    (void)px_fail(e, PX_E_BUILD, 0, "cannot build %s %s from its source: what its build needs cannot be found", p->name,
                  p->version);
    (void)px_detail(e, "reason", PX_ENV_BUILD_FAILED);
    (void)px_why_lines(e, why);
    return px_fix(e,
                  "Its build asks for: %.300s. Give an index or a --find-links directory that has them.\n"
                  "Or take a wheel of it: another version, or one built elsewhere and given by --find-links.",
                  px_buf_text(&list));
}

static int find(struct px_env_work *w, const struct px_env_package *p, const struct px_names *names,
                struct px_lock *ret_pins, struct px_err *e)
{
    const struct px_env_finder *finder = w->ask->finder;
    if (names->count == 0) {
        *ret_pins = (struct px_lock){.format = PX_PINS_PX, .version = 1};
        return 0;
    }
    const struct px_lock *known =
        w->ask->builds ? px_lock_build_find(w->ask->builds, names->items, names->count) : NULL;
    if (known)
        return px_lock_copy(known, ret_pins, e);
    if (!finder)
        return refuse(p, "Its build needs packages, and nothing says where they are.", e);
    return finder->find(finder->user, names, ret_pins, e) < 0 ? not_found(p, names, e) : 0;
}

/* ---- installing it ---- */

static int join_env(struct px_env_work *w, struct px_tools *t, struct px_err *e)
{
    struct px_env_part part;
    if (px_env_part_make(w->s, &t->env, NULL, PX_COMPRESS_NONE, false, &part, e) < 0)
        return -1;
    t->own = true;
    px_lease_drop(t->lease);
    t->lease = NULL;
    if (px_lease_take(w->s->store, (struct px_oid[]){t->root, part.tree}, 2, NULL, 0, &t->lease, e) < 0)
        return -1;
    return px_tree_path(w->s->store, &part.tree, t->inside, sizeof t->inside, e);
}

static int install(struct px_env_work *w, const struct px_env_package *p, const struct px_lock *pins,
                   struct px_tools *t, struct px_err *e)
{
    const struct px_env_ask more = {.pins = pins,
                                    .project_dir = w->ask->project_dir,
                                    .base = w->ask->base,
                                    .python = w->runtime,
                                    .find_links = w->ask->find_links,
                                    .frozen = w->ask->frozen,
                                    .offline = w->ask->offline,
                                    .finder = w->ask->finder,
                                    .builds = w->ask->builds,
                                    .root = w->ask->root,
                                    .capabilities = p->capabilities,
                                    .depth = w->ask->depth + 1};
    px_env_done(&t->env);
    t->own = false;
    return px_env_build(w->s, &more, &t->env, e) < 0 ? -1 : join_env(w, t, e);
}

static int equip(struct px_env_work *w, const struct px_env_package *p, const json_t *list, struct px_tools *t,
                 struct px_err *e)
{
    size_t count = json_array_size(list);
    px_auto_free const char **items = calloc(count + 1, sizeof *items);
    struct px_lock pins = {0};
    if (!items)
        return px_no_memory(e);
    for (size_t i = 0; i < count; i++)
        items[i] = json_string_value(json_array_get(list, i));
    if (count)
        qsort(items, count, sizeof *items, compare_texts);
    const struct px_names names = {items, count};
    if (check_rust(p, list, e) < 0 || find(w, p, &names, &pins, e) < 0)
        return -1;
    int r = install(w, p, &pins, t, e);
    px_lock_done(&pins);
    return r;
}

/* ---- the whole ---- */

/* The requirements in the setup.py of an archive without the table, beyond the tool chain's packages. */
static int drop_usual(json_t *list)
{
    for (size_t i = json_array_size(list); i-- > 0;) {
        const char *text = json_string_value(json_array_get(list, i));
        if (is_package(text, "setuptools") || is_package(text, "wheel"))
            (void)json_array_remove(list, i);
    }
    return json_array_size(list) > 0;
}

static int equip_old(struct px_env_work *w, const struct px_env_package *p, json_t *list, struct px_tools *t,
                     struct px_err *e)
{
    bool ignored;
    if (ask(w, p, t, "requires", list, &ignored, e) < 0)
        return -1;
    if (!drop_usual(list))
        return 0;
    if (json_array_append_new(list, json_string("setuptools")) < 0 || json_array_append_new(list, json_string("wheel")) < 0)
        return px_no_memory(e);
    return equip(w, p, list, t, e);
}

static int equip_all(struct px_env_work *w, const struct px_env_package *p, struct px_tools *t, struct px_err *e)
{
    px_auto(px_document) json_t *list = json_array();
    bool none = false, ignored;
    if (!list)
        return px_no_memory(e);
    if (px_sdist_root(w, p, &t->root, &t->packages, e) < 0 || ask(w, p, t, "look", list, &none, e) < 0)
        return -1;
    if (none)
        return equip_old(w, p, list, t, e);
    size_t asked = json_array_size(list);
    if (equip(w, p, list, t, e) < 0 || ask(w, p, t, "requires", list, &ignored, e) < 0)
        return -1;
    return json_array_size(list) > asked ? equip(w, p, list, t, e) : 0;
}

int px_env_tools(struct px_env_work *w, const struct px_env_package *p, struct px_tools *ret_tools, struct px_err *e)
{
    struct px_tools t = {0};
    if (w->ask->depth >= DEPTH_MAX)
        return refuse(p, "Its build needs packages whose builds need packages, and so on: too deep.", e);
    if (equip_all(w, p, &t, e) < 0) {
        px_env_tools_done(&t);
        return -1;
    }
    *ret_tools = t;
    return 0;
}

/* ---- for a lock ---- */

static int ask_build(struct px_env_work *w, const struct px_chosen *chosen, struct px_env_package *p, struct px_err *e)
{
    struct px_err absent = {0};
    struct px_tools tools;
    if (px_env_source(w, chosen, p, &absent) < 0) {
        if (absent.code == PX_E_BUILD)
            return 0;           /* px_env_make reports the error, or finds it */
        *e = absent;
        return -1;
    }
    if (px_env_package_begin(w, p, e) < 0 || px_env_tools(w, p, &tools, e) < 0)
        return -1;
    px_env_tools_done(&tools);
    return 0;
}

int px_env_ask_builds(struct px_sandbox *s, const struct px_env_ask *ask, struct px_err *e)
{
    struct px_env_work w = {.s = s, .ask = ask};
    px_auto_free struct px_chosen *chosen = NULL;
    size_t count = 0;
    if (px_env_runtime(&w, e) < 0 || px_env_select(&w, &chosen, &count, e) < 0)
        return -1;
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct px_env_package p = {0};
        if (!chosen[i].wheel && chosen[i].file)
            r = ask_build(&w, &chosen[i], &p, e);
        px_env_package_done(&p);
    }
    px_env_source_end(&w);
    return r;
}

int px_env_build_root(struct px_sandbox *s, const struct px_env_ask *ask, const struct px_names *requirements, char *path,
                      size_t size, char **ret_capabilities, struct px_lease **ret_lease, struct px_err *e)
{
    struct px_env_work w = {.s = s, .ask = ask};
    struct px_env_package p = {.name = (char *)"a package", .version = (char *)""};
    struct px_oid tree, packages;
    if (px_env_runtime(&w, e) < 0 || px_env_needs_of(ask, requirements, &p.capabilities, e) < 0)
        return -1;
    px_auto_free char *words = p.capabilities;
    if (!*words)
        return 1;
    if (px_sdist_root(&w, &p, &tree, &packages, e) < 0)
        return -1;
    if (px_tree_path(s->store, &tree, path, size, e) < 0 || px_lease_take(s->store, &tree, 1, NULL, 0, ret_lease, e) < 0)
        return -1;
    *ret_capabilities = px_take(&words);
    return 0;
}

/* ---- what it was ---- */

json_t *px_env_tools_json(const struct px_tools *t)
{
    json_t *packages = json_array();
    for (size_t i = 0; packages && i < t->env.count; i++)
        if (json_array_append_new(packages, px_env_package_json(&t->env.packages[i])) < 0) {
            json_decref(packages);
            return NULL;
        }
    return json_pack("{ssso}", "profile_oid", t->env.profile.hex, "packages", packages);
}

int px_env_tools_name(const struct px_tools *t, struct px_oid *ret_name)
{
    char words[256];
    if (!t->own) {
        *ret_name = t->packages;
        return 0;
    }
    (void)px_fmt(words, sizeof words, "build options %s %s", t->packages.hex, t->env.profile.hex);
    return px_hash_bytes(words, strlen(words), ret_name);
}

static int read_tools(struct px_env_work *w, const json_t *tools, struct px_env *env)
{
    const json_t *list = json_object_get(tools, "packages"), *item;
    size_t i;
    env->runtime = w->runtime;
    env->variables = json_object();
    env->packages = calloc(json_array_size(list) + 1, sizeof *env->packages);
    if (!env->variables || !env->packages || px_hash_oid_parse(px_document_text(tools, "profile_oid"), false, &env->profile) < 0)
        return -EINVAL;
    json_array_foreach(list, i, item) {
        if (px_env_package_read(item, &env->packages[env->count]) < 0)
            return -EINVAL;
        env->count++;
    }
    return 0;
}

int px_env_tools_again(struct px_env_work *w, const struct px_env_package *p, struct px_tools *ret_tools,
                       struct px_err *e)
{
    struct px_tools t = {0};
    int r = px_sdist_root(w, p, &t.root, &t.packages, e);
    if (r == 0 && p->tools && read_tools(w, p->tools, &t.env) < 0)
        r = px_fail(e, PX_E_RECORD, 0, "the record of the package %s is not what px writes", p->name);
    if (r == 0 && p->tools)
        r = join_env(w, &t, e);
    if (r < 0)
        px_env_tools_done(&t);
    else
        *ret_tools = t;
    return r;
}
