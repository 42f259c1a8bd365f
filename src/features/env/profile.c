#include "env/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "pep/manifest.h"
#include "store/canonical.h"
#include "store/document.h"
#include "store/store.h"

enum { PAYLOAD_MAX = 8 << 20, VALUE_MAX = 64 << 10, SORTED_MAX = 64 << 20 };

/* ---- the object ---- */

static int compare_packages(const void *a, const void *b)
{
    const struct px_profile_package *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    order = order ? order : strcmp(x->version, y->version);
    return order ? order : strcmp(x->build, y->build);
}

static json_t *packages_json(const struct px_profile *p)
{
    px_auto_free struct px_profile_package *sorted = calloc(p->count + 1, sizeof *sorted);
    json_t *list = json_array();
    if (!sorted || !list) {
        json_decref(list);
        return NULL;
    }
    if (p->count) {
        memcpy(sorted, p->packages, p->count * sizeof *sorted);
        qsort(sorted, p->count, sizeof *sorted, compare_packages);
    }
    for (size_t i = 0; i < p->count; i++)
        if (json_array_append_new(list, json_pack("{ssssss}", "name", sorted[i].name, "version", sorted[i].version,
                                                  "pkg_build_oid", sorted[i].build)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static bool was_before(const struct px_profile *p, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (px_equal(p->packages[i].build, p->packages[at].build))
            return true;
    return false;
}

static json_t *order_json(const struct px_profile *p)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < p->count; i++)
        if (!was_before(p, i) && json_array_append_new(list, json_string(p->packages[i].build)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

int px_env_profile_payload(const struct px_profile *profile, struct px_buf *out)
{
    px_auto(px_document) json_t *env = profile->env ? json_deep_copy(profile->env) : json_object();
    px_auto(px_document) json_t *payload =
        json_pack("{sssososO}", "runtime_oid", profile->runtime, "packages", packages_json(profile), "sys_path_order",
                  order_json(profile), "env_vars", env);
    px_auto(px_document) json_t *own = profile->project ? json_deep_copy(profile->project) : NULL;
    if (!payload || (profile->project && json_object_set(payload, "project", own) < 0))
        return -ENOMEM;
    return px_canonical(payload, out);
}

int px_env_profile_put(struct px_store *store, const struct px_profile *profile, struct px_oid *ret_oid, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PAYLOAD_MAX);
    int r = px_env_profile_payload(profile, &text);
    if (r < 0)
        return px_fail(e, r == -EINVAL ? PX_E_INTERNAL : PX_E_MEMORY, r,
                       "the profile of the environment cannot be written");
    return px_object_put(store, "profile", px_buf_text(&text), ret_oid, e);
}

/* ---- variables ---- */

static bool is_variable(const char *name)
{
    if (!name[0] || (name[0] >= '0' && name[0] <= '9'))
        return false;
    return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

bool px_env_profile_is_own(const char *variable)
{
    static const char *const names[] = {"PATH",          "PX_PROJECT_ROOT", "PX_PYTHON", "PX_SANDBOX",
                                        "PX_SANDBOX_ID", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (px_equal(names[i], variable))
            return true;
    return false;
}

static int set_variable(json_t *env, const char *name, const char *value, const char *where, struct px_err *e)
{
    if (!is_variable(name) || !value || strlen(value) > VALUE_MAX) {
        (void)px_fail(e, PX_E_MANIFEST, 0, "'%.100s' in %s cannot be a variable of the environment", name, where);
        return px_fix(e, "Use letters, digits and '_' in its name, and a text for its value.");
    }
    if (px_env_profile_is_own(name))
        return 0;
    return json_object_set_new(env, name, json_string(value)) < 0 ? px_no_memory(e) : 0;
}

static int add_more(json_t *env, const char *more, struct px_err *e)
{
    px_auto(px_document) json_t *object = NULL;
    const char *name;
    json_t *value;
    if (px_document_read(more, strlen(more), "PX_PROFILE_ENV_VARS", PX_E_VALUE, &object, e) < 0)
        return -1;
    if (!json_is_object(object)) {
        (void)px_fail(e, PX_E_VALUE, 0, "PX_PROFILE_ENV_VARS is not a JSON object");
        return px_fix(e, "Write it like {\"NAME\": \"value\"}, or unset it.");
    }
    json_object_foreach(object, name, value)
        if (set_variable(env, name, json_string_value(value), "PX_PROFILE_ENV_VARS", e) < 0)
            return -1;
    return 0;
}

/* Sorted by name, as in a record, so that a new and a re-read environment print the same. */
static int sort_variables(json_t **env, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(SORTED_MAX);
    json_t *sorted = NULL;
    if (px_canonical(*env, &text) < 0)
        return px_no_memory(e);
    if (px_document_read(px_buf_text(&text), text.len, "the variables of the environment", PX_E_INTERNAL, &sorted, e) < 0)
        return -1;
    json_decref(*env);
    *env = sorted;
    return 0;
}

int px_env_profile_env(const struct px_pairs *said, const char *more, json_t **ret_env, struct px_err *e)
{
    px_auto(px_document) json_t *env = json_object();
    if (!env)
        return px_no_memory(e);
    for (size_t i = 0; said && i < said->count; i++)
        if (set_variable(env, said->items[i].key, said->items[i].value, "[tool.px.env]", e) < 0)
            return -1;
    if (more && more[0] && add_more(env, more, e) < 0)
        return -1;
    if (sort_variables(&env, e) < 0)
        return -1;
    *ret_env = px_take(&env);
    return 0;
}

/* ---- runtimes ---- */

static const struct px_python pythons[] = {
#define PX_PYTHON(...) {__VA_ARGS__},
#include "pythons.def"
#undef PX_PYTHON
};

const struct px_python *px_env_python_at(size_t index)
{
    return index < PX_COUNT_OF(pythons) ? &pythons[index] : NULL;
}

const struct px_python *px_env_python_find(const char *base)
{
    for (size_t i = 0; i < PX_COUNT_OF(pythons); i++)
        if (px_equal(pythons[i].base, base))
            return &pythons[i];
    return NULL;
}

void px_env_python_abi(const struct px_python *runtime, char *out, size_t size)
{
    (void)px_fmt(out, size, "cp3%u", runtime->minor);
}

int px_env_python_put(struct px_store *store, const struct px_python *runtime, struct px_oid *ret_oid, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 12);
    char abi[16], platform[64], version[16];
    px_env_python_abi(runtime, abi, sizeof abi);
    (void)px_fmt(version, sizeof version, "3.%u", runtime->minor);
    (void)px_fmt(platform, sizeof platform, "%s_%u_%u_%s", runtime->musl ? "musllinux" : "manylinux",
                 runtime->libc_major, runtime->libc_minor, runtime->machine);
    px_auto(px_document) json_t *payload =
        json_pack("{ssssssss}", "abi", abi, "exe_path", runtime->program, "platform", platform, "version", version);
    int r = payload ? px_canonical(payload, &text) : -ENOMEM;
    if (r < 0)
        return px_fail(e, PX_E_MEMORY, r, "the runtime of the environment");
    return px_object_put(store, "runtime", px_buf_text(&text), ret_oid, e);
}
