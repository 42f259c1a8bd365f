#include "env/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "env/env_internal.h"
#include "env/part.h"
#include "pep/manifest.h"
#include "pep/marker.h"
#include "state/home.h"
#include "store/canonical.h"
#include "store/document.h"

enum { TEXT_MAX = 16 << 20 };

void px_env_done(struct px_env *env)
{
    for (size_t i = 0; i < env->count; i++)
        px_env_package_done(&env->packages[i]);
    free(env->packages);
    json_decref(env->variables);
    json_decref(env->project);
    px_lease_drop(env->lease);
    *env = (struct px_env){0};
}

/* ---- which packages ---- */

int px_env_runtime(struct px_env_work *w, struct px_err *e)
{
    const char *base = w->ask->base ? w->ask->base : "debian-12";
    w->runtime = w->ask->python ? w->ask->python : px_env_python_find(base);
    if (!w->runtime) {
        (void)px_fail(e, PX_E_BASE, 0, "px does not know which Python the base '%.100s' has", base);
        return px_fix(
            e, "Use base = \"debian-12\" in [tool.px.sandbox], or a base that is imported under a name px knows.");
    }
    w->tags = (struct px_tags){.python_minor = w->runtime->minor,
                               .musl = w->runtime->musl,
                               .libc_major = w->runtime->libc_major,
                               .libc_minor = w->runtime->libc_minor,
                               .machine = w->runtime->machine};
    px_env_python_abi(w->runtime, w->abi, sizeof w->abi);
    return 0;
}

/* The active groups; NULL: all. */
static int list_groups(const struct px_manifest *m, const char ***ret_groups, struct px_err *e)
{
    size_t n = m ? m->active_groups.count : 0;
    const char **groups = n ? calloc(n + 1, sizeof *groups) : NULL;
    if (n && !groups)
        return px_no_memory(e);
    for (size_t i = 0; i < n; i++)
        groups[i] = m->active_groups.items[i];
    *ret_groups = groups;
    return 0;
}

int px_env_select(const struct px_env_work *w, struct px_chosen **ret_list, size_t *ret_count, struct px_err *e)
{
    char python[16];
    px_auto_free const char **groups = NULL;
    (void)px_fmt(python, sizeof python, "3.%u", w->runtime->minor);
    const struct px_marker_env env = {
        .implementation_name = "cpython",
        .implementation_version = w->runtime->version,
        .os_name = "posix",
        .platform_machine = w->runtime->machine,
        .platform_python_implementation = "CPython",
        .platform_system = "Linux",
        .python_full_version = w->runtime->version,
        .python_version = python,
        .sys_platform = "linux",
        .extras = w->ask->manifest ? w->ask->manifest->extras.items : NULL,
    };
    if (list_groups(w->ask->manifest, &groups, e) < 0)
        return -1;
    return px_lock_select(w->ask->pins, &env, &w->tags, groups, ret_list, ret_count, e);
}

static int make_packages(struct px_env_work *w, struct px_env *env, struct px_err *e)
{
    px_auto_free struct px_chosen *chosen = NULL;
    size_t count = 0;
    if (px_env_select(w, &chosen, &count, e) < 0)
        return -1;
    env->packages = calloc(count + 1, sizeof *env->packages);
    if (!env->packages)
        return px_no_memory(e);
    for (; env->count < count; env->count++) {
        struct px_env_package *p = &env->packages[env->count];
        if (px_env_source(w, &chosen[env->count], p, e) < 0 || px_env_package(w, p, e) < 0) {
            px_env_package_done(p);
            return -1;
        }
    }
    return 0;
}

/* If no box can be started, packages stay without byte code. */
static void compile_packages(struct px_env_work *w, struct px_env *env)
{
    struct px_err failed = {0};
    for (size_t i = 0; w->ask->compile && i < env->count; i++) {
        struct px_oid code = {0};
        int r = px_env_compile_here(w->s, w->runtime, &env->packages[i], &code, &failed);
        if (r != 0)
            break;
        env->packages[i].code = code;
    }
    char what[160];
    (void)px_fmt(what, sizeof what, "packages are left without byte code: %.110s", failed.what);
    if (failed.code && w->s->progress.tell)
        w->s->progress.tell(w->s->progress.user, what, 0, 0);
}

/* ---- what it is called ---- */

static int put_profile(struct px_sandbox *s, struct px_env *env, struct px_err *e)
{
    px_auto_free struct px_profile_package *list = calloc(env->count + 1, sizeof *list);
    if (!list)
        return px_no_memory(e);
    for (size_t i = 0; i < env->count; i++)
        list[i] =
            (struct px_profile_package){env->packages[i].name, env->packages[i].version, env->packages[i].build.hex};
    const struct px_profile profile = {.runtime = env->runtime_oid.hex,
                                       .packages = list,
                                       .count = env->count,
                                       .env = env->variables,
                                       .project = env->project};
    return px_env_profile_put(s->store, &profile, &env->profile, e);
}

static int find_variables(const struct px_env_ask *ask, json_t **ret_variables, struct px_err *e)
{
    const char *more = ask->depth ? NULL : getenv("PX_PROFILE_ENV_VARS");
    return px_env_profile_env(ask->manifest ? &ask->manifest->env : NULL, more, ret_variables, e);
}

static int name_profile(struct px_env_work *w, struct px_env *env, struct px_err *e)
{
    if (find_variables(w->ask, &env->variables, e) < 0 ||
        px_env_python_put(w->s->store, w->runtime, &env->runtime_oid, e) < 0)
        return -1;
    env->project = json_incref(w->ask->project);
    return put_profile(w->s, env, e);
}

int px_env_keep(struct px_sandbox *s, struct px_env *env, const bool *kept, struct px_err *e)
{
    size_t count = 0;
    for (size_t i = 0; i < env->count; i++)
        if (kept[i])
            env->packages[count++] = env->packages[i];
        else
            px_env_package_done(&env->packages[i]);
    if (count == env->count)
        return 0;
    env->count = count;
    env->tree = (struct px_oid){0};
    env->path[0] = env->site_packages[0] = env->python[0] = '\0';
    return put_profile(s, env, e);
}

static int add_oid(json_t *list, const struct px_oid *oid)
{
    return json_array_append_new(list, json_string(oid->hex));
}

/* The trees of those that are compiled; NULL without memory. */
static json_t *code_json(const struct px_env *env)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < env->count; i++)
        if (*env->packages[i].code.hex && add_oid(list, &env->packages[i].code) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* The paths are part of the directory's id, but not of the profile's. */
static int name_tree(struct px_env_work *w, struct px_env *env, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *key =
        json_pack("{sssisssssssiso}", "kind", "env", "layout", PX_ENV_LAYOUT, "profile_oid", env->profile.hex, "store",
                  px_store_path(w->s->store), "program", w->runtime->program, "minor", (int)w->runtime->minor, "code",
                  code_json(env));
    if (!key || px_canonical(key, &text) < 0 || px_hash_bytes(text.data, text.len, &env->tree) < 0)
        return px_no_memory(e);
    return 0;
}

/* ---- the directory ---- */

static int make_tree(struct px_env_work *w, struct px_env *env, struct px_err *e)
{
    struct px_tree_build *build = NULL;
    char trees[PATH_MAX];
    if (px_fmt(trees, sizeof trees, "%s/trees", px_store_path(w->s->store)) < 0)
        return px_fail(e, PX_E_STORE_WRITE, ENAMETOOLONG, "the path of the store is too long");
    int r = px_tree_begin(w->s->store, &env->tree, &build, e);
    env->cached = r == 1;
    if (r != 0)
        return r < 0 ? -1 : 0;
    const struct px_env_place place = {.store = trees, .below = "/root", .here = true};
    if (px_env_write(env, px_tree_build_fd(build), &place, e) < 0) {
        px_tree_drop(build);
        return -1;
    }
    return px_tree_commit(build, "{\"kind\":\"env\"}", e);
}

/* Keeps what a package was built with as long as the package: --check-repro builds it again. */
static int add_tools(json_t *trees, const json_t *tools)
{
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(tools, "packages"), i, item) {
        if (json_array_append(trees, json_object_get(item, "tree")) < 0)
            return -1;
    }
    return 0;
}

/* The record refers to everything that the environment needs, except the packages' archives. */
static int make_record(struct px_env_work *w, const struct px_env *env, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    json_t *blobs = json_array(), *trees = json_array(), *packages = json_array();
    px_auto(px_document) json_t *record = json_pack(
        "{sssssisssssssosOsO*s{soso}}", "kind", "env", "base", w->runtime->base, "layout", PX_ENV_LAYOUT, "profile_oid",
        env->profile.hex, "runtime_oid", env->runtime_oid.hex, "tree", env->tree.hex, "packages", packages, "env_vars",
        env->variables, "project", env->project, "refs", "blobs", blobs, "trees", trees);
    int r =
        record ? add_oid(blobs, &env->profile) + add_oid(blobs, &env->runtime_oid) + add_oid(trees, &env->tree) : -1;
    for (size_t i = 0; r == 0 && i < env->count; i++)
        r = add_oid(blobs, &env->packages[i].source) + add_oid(blobs, &env->packages[i].build) +
            add_oid(trees, &env->packages[i].tree) + add_tools(trees, env->packages[i].tools) +
            (*env->packages[i].code.hex ? add_oid(trees, &env->packages[i].code) : 0) +
            json_array_append_new(packages, px_env_package_json(&env->packages[i]));
    if (r < 0 || px_canonical(record, &text) < 0)
        return px_no_memory(e);
    return px_record_put(w->s->store, PX_RECORD_ENV, &env->profile, px_buf_text(&text), e);
}

static int name_paths(struct px_sandbox *s, struct px_env *env, struct px_err *e)
{
    const char *store = px_store_path(s->store);
    const struct px_python *runtime = env->runtime;
    if (px_fmt(env->path, sizeof env->path, "%.*s/envs/%s", (int)(strlen(store) - strlen("/store")), store,
               env->profile.hex) < 0 ||
        px_fmt(env->python, sizeof env->python, "%s/bin/python", env->path) < 0 ||
        px_fmt(env->site_packages, sizeof env->site_packages, "%s/lib/python3.%u/site-packages", env->path,
               runtime->minor) < 0 ||
        px_fmt(env->platform, sizeof env->platform, "linux_%s", runtime->machine) < 0)
        return px_fail(e, PX_E_STORE_WRITE, ENAMETOOLONG, "the path of the environments is too long");
    return 0;
}

/* Creates PX_HOME/envs and, atomically, the link with the environment's name. */
static int show(struct px_env_work *w, struct px_env *env, struct px_err *e)
{
    static const struct px_home_use use = {PX_E_STORE_WRITE, "environments"};
    char home[PATH_MAX], envs[PATH_MAX], target[160], now[160], temporary[96];
    px_auto_fd int top = -EBADF, dir = -EBADF;
    const char *store = px_store_path(w->s->store);
    if (name_paths(w->s, env, e) < 0)
        return -1;
    if (px_fmt(home, sizeof home, "%.*s", (int)(strlen(store) - strlen("/store")), store) < 0 ||
        px_fmt(envs, sizeof envs, "%s/envs", home) < 0)
        return px_fail(e, PX_E_STORE_WRITE, ENAMETOOLONG, "the path of the environments is too long");
    if (px_home_enter(AT_FDCWD, home, home, true, 022, &use, &top, e) < 0 ||
        px_home_enter(top, "envs", envs, true, 022, &use, &dir, e) < 0)
        return -1;
    (void)px_fmt(target, sizeof target, "../store/trees/%s/root", env->tree.hex);
    ssize_t n = readlinkat(dir, env->profile.hex, now, sizeof now - 1);
    if (n > 0 && (size_t)n == strlen(target) && memcmp(now, target, (size_t)n) == 0)
        return 0;
    (void)px_fmt(temporary, sizeof temporary, ".%.16s.%d", env->profile.hex, (int)getpid());
    (void)px_sys(SYS_unlinkat, dir, temporary, 0);
    long r = px_sys(SYS_symlinkat, target, dir, temporary);
    if (r == 0)
        r = px_sys(SYS_renameat, dir, temporary, dir, env->profile.hex);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, (int)r, "cannot make '%s'", env->path) : 0;
}

/* run: only what a run on this machine uses. */
static int hold(struct px_sandbox *s, struct px_env *env, bool run, struct px_err *e)
{
    px_auto_free struct px_oid *trees = calloc(2 * env->count + 1, sizeof *trees);
    const struct px_oid blobs[] = {env->profile, env->runtime_oid};
    size_t n = 0;
    if (!trees)
        return px_no_memory(e);
    for (size_t i = 0; i < env->count; i++) {
        const struct px_env_package *p = &env->packages[i];
        if (*p->code.hex)
            trees[n++] = p->code;
        if (!run || !*p->code.hex)
            trees[n++] = p->tree;
    }
    trees[n++] = env->tree;
    return px_lease_take(s->store, trees, n, blobs, run ? 0 : PX_COUNT_OF(blobs), &env->lease, e);
}

int px_env_hold(struct px_sandbox *s, struct px_env *env, struct px_err *e)
{
    return hold(s, env, true, e);
}

/* ---- looking ---- */

static bool has_tree(struct px_sandbox *s, const json_t *text, bool known)
{
    struct px_oid id;
    return px_hash_oid_parse(json_string_value(text), false, &id) == 0 &&
           (known ? px_tree_known(s->store, &id) : px_tree_has(s->store, &id));
}

/* 1: this version of px made it, and every tree in the record exists. Unless `known` suffices, also checks that the
 * trees used by a run on this machine are unchanged; other trees are checked when they are opened. */
static int has_all(struct px_sandbox *s, const json_t *record, bool known)
{
    const json_t *list = json_object_get(json_object_get(record, "refs"), "trees"), *item;
    uint64_t layout = 0;
    size_t i;
    if (px_document_number(record, "layout", INT_MAX, &layout) != 1 || layout != PX_ENV_LAYOUT)
        return 0;
    json_array_foreach(list, i, item)
        if (!has_tree(s, item, true))
            return 0;
    if (known)
        return 1;
    json_array_foreach(json_object_get(record, "packages"), i, item) {
        const json_t *code = json_object_get(item, "code");
        if (!has_tree(s, code ? code : json_object_get(item, "tree"), false))
            return 0;
    }
    return has_tree(s, json_object_get(record, "tree"), false);
}

static bool is_for(const json_t *record, const json_t *project)
{
    const json_t *made = json_object_get(record, "project");
    return made && project ? json_equal(made, project) : !made && !project;
}

/* Whether each source archive was built with the capabilities that a build would use now. */
static int builds_fit(const json_t *record, const struct px_env_ask *ask, struct px_err *e)
{
    /* the capabilities of the manifest and the lock, computed once for all packages */
    px_auto_free char *project = NULL;
    struct px_env_ask each = *ask;
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(record, "packages"), i, item) {
        const char *name = px_document_text(item, "name"), *had = px_document_text(item, "capabilities");
        px_auto_free char *now = NULL;
        if (json_is_true(json_object_get(item, "wheel")))
            continue;
        if (!each.capabilities && px_env_needs(ask, "", &project, e) < 0)
            return -1;
        each.capabilities = each.capabilities ? each.capabilities : project;
        if (!name || px_env_needs(&each, name, &now, e) < 0)
            return -1;
        if (!had || !px_equal(had, now))
            return 2;
    }
    return 1;
}

int px_env_check(struct px_sandbox *s, const char *profile, const struct px_env_ask *ask, bool known, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *record = NULL;
    struct px_err damaged = {0};
    char path[PATH_MAX];
    struct px_oid id;
    const char *store = px_store_path(s->store);
    if (px_hash_oid_parse(profile, false, &id) < 0 ||
        px_fmt(path, sizeof path, "%.*s/envs/%s/manifest.json", (int)(strlen(store) - strlen("/store")), store,
               id.hex) < 0 ||
        access(path, R_OK) < 0)
        return 0;
    int r = px_record_get(s->store, PX_RECORD_ENV, &id, &text, e);
    if (r != 0)
        return r < 0 ? -1 : 0;
    if (px_document_read(px_buf_text(&text), text.len, "the record of an environment", PX_E_RECORD, &record, &damaged) <
        0)
        return 0;
    if (!has_all(s, record, known))
        return 0;
    return !ask ? 1 : !is_for(record, ask->project) ? 3 : builds_fit(record, ask, e);
}

/* ---- whether it is what is asked for ---- */

static const struct px_env_package *find_package(const struct px_env *env, const struct px_chosen *c)
{
    for (size_t i = 0; i < env->count; i++)
        if (px_equal(env->packages[i].name, c->pin->name))
            return &env->packages[i];
    return NULL;
}

static int has_chosen(struct px_env_work *w, const struct px_env *env, const struct px_chosen *c, struct px_err *e)
{
    const struct px_env_package *p = find_package(env, c);
    if (!p || !px_equal(p->version, c->pin->version) ||
        (c->file && *c->file->sha256.hex && !px_hash_oid_equal(&c->file->sha256, &p->sha256)))
        return 0;
    return px_env_package_fits(w, p, e);
}

/* Whether its link refers to the Python that was found, whatever its record says. */
static bool has_program(const struct px_env *env)
{
    char link[PATH_MAX], program[PATH_MAX];
    if (px_fmt(link, sizeof link, "%s/bin/python3.%u", env->path, env->runtime->minor) < 0)
        return false;
    ssize_t n = readlink(link, program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    return px_equal(program, env->runtime->program);
}

int px_env_fits(const struct px_env_ask *ask, const struct px_env *env, struct px_err *e)
{
    struct px_env_work w = {.ask = ask};
    px_auto_free struct px_chosen *list = NULL;
    px_auto(px_document) json_t *variables = NULL;
    size_t count = 0;
    if (px_env_runtime(&w, e) < 0 || px_env_select(&w, &list, &count, e) < 0 || find_variables(ask, &variables, e) < 0)
        return -1;
    int r = count == env->count && json_equal(variables, env->variables) && has_program(env);
    for (size_t i = 0; r == 1 && i < count; i++)
        r = has_chosen(&w, env, &list[i], e);
    return r;
}

/* ---- reading it back ---- */

/* 0, or -EINVAL: not what this px writes. */
static int take_record(const json_t *record, struct px_env *env)
{
    const json_t *packages = json_object_get(record, "packages"), *item;
    json_t *variables = json_object_get(record, "env_vars"), *project = json_object_get(record, "project");
    size_t i;
    if (!json_is_array(packages) || !json_is_object(variables) || (project && !json_is_object(project)) ||
        px_hash_oid_parse(px_document_text(record, "runtime_oid"), false, &env->runtime_oid) < 0 ||
        px_hash_oid_parse(px_document_text(record, "tree"), false, &env->tree) < 0)
        return -EINVAL;
    env->variables = json_incref(variables);
    env->project = json_incref(project);
    env->packages = calloc(json_array_size(packages) + 1, sizeof *env->packages);
    if (!env->packages)
        return -ENOMEM;
    json_array_foreach(packages, i, item) {
        if (px_env_package_read(item, &env->packages[env->count]) < 0)
            return -EINVAL;
        env->count++;
    }
    return 0;
}

int px_env_load(struct px_sandbox *s, const char *profile, const struct px_python *python, struct px_env *ret_env, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(TEXT_MAX);
    px_auto(px_document) json_t *record = NULL;
    const struct px_env_ask ask = {.python = python};
    struct px_env_work w = {.s = s, .ask = &ask};
    struct px_env env = {.cached = true};
    struct px_err damaged = {0};
    if (px_hash_oid_parse(profile, false, &env.profile) < 0)
        return 1;
    if (px_env_runtime(&w, e) < 0)
        return -1;
    env.runtime = w.runtime;
    int r = px_record_get(s->store, PX_RECORD_ENV, &env.profile, &text, e);
    if (r == 0 && (px_document_read(px_buf_text(&text), text.len, "the record of an environment", PX_E_RECORD, &record, &damaged) < 0 ||
                   take_record(record, &env) < 0))
        r = 1;
    if (r == 0)
        r = name_paths(s, &env, e);
    if (r != 0)
        px_env_done(&env);
    else
        *ret_env = env;
    return r;
}

/* ---- */

int px_env_build(struct px_sandbox *s, const struct px_env_ask *ask, struct px_env *ret_env, struct px_err *e)
{
    struct px_env_work w = {.s = s, .ask = ask};
    struct px_env env = {0};
    if (px_env_runtime(&w, e) < 0)
        return -1;
    env.runtime = w.runtime;
    int r = make_packages(&w, &env, e);
    px_env_source_end(&w);
    if (r == 0)
        compile_packages(&w, &env);
    if (r < 0 || name_profile(&w, &env, e) < 0 || name_tree(&w, &env, e) < 0 || make_tree(&w, &env, e) < 0 ||
        make_record(&w, &env, e) < 0 || show(&w, &env, e) < 0 || hold(s, &env, false, e) < 0) {
        px_env_done(&env);
        return -1;
    }
    *ret_env = env;
    return 0;
}
