/* The capabilities of an environment: from the manifest, the lock, and the libraries of its packages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "distro/capability.h"
#include "env/env_internal.h"
#include "env/infer.h"
#include "env/tables.h"
#include "pep/manifest.h"
#include "pep/marker.h"

static int unknown(const char *name, struct px_err *e)
{
    (void)px_fail(e, PX_E_CAPABILITY, 0, "px does not know the capability '%.100s'", name);
    (void)px_why(e, "[tool.px.sandbox.capabilities] names it.");
    (void)px_detail(e, "capability", name);
    return px_fix(e, "Run `px sandbox capabilities` to see those it knows, and correct or remove the line.");
}

static int take_wishes(const struct px_manifest *m, struct px_infer_wish **ret_wishes, size_t *ret_count,
                       struct px_err *e)
{
    size_t count = m ? m->wish_count : 0;
    px_auto_free struct px_infer_wish *wishes = calloc(count + 1, sizeof *wishes);
    if (!wishes)
        return px_no_memory(e);
    for (size_t i = 0; i < count; i++) {
        if (!px_capability_find(m->wishes[i].name))
            return unknown(m->wishes[i].name, e);
        wishes[i] = (struct px_infer_wish){m->wishes[i].name, m->wishes[i].enabled};
    }
    *ret_wishes = px_take(&wishes);
    *ret_count = count;
    return 0;
}

static struct px_infer_package *from_env(const struct px_env *env)
{
    struct px_infer_package *list = calloc(env->count + 1, sizeof *list);
    for (size_t i = 0; list && i < env->count; i++)
        list[i] =
            (struct px_infer_package){env->packages[i].name, env->packages[i].file,
                                      (const char *const *)env->packages[i].needed, env->packages[i].needed_count};
    return list;
}

static int from_lock(const struct px_env_ask *ask, struct px_infer_package **ret_list, size_t *ret_count,
                     struct px_err *e)
{
    struct px_env_work w = {.ask = ask};
    px_auto_free struct px_chosen *chosen = NULL;
    size_t count = 0;
    if (px_env_runtime(&w, e) < 0 || px_env_select(&w, &chosen, &count, e) < 0)
        return -1;
    struct px_infer_package *list = calloc(count + 1, sizeof *list);
    if (!list)
        return px_no_memory(e);
    for (size_t i = 0; i < count; i++)
        list[i] = (struct px_infer_package){.name = chosen[i].pin->name,
                                            .file = chosen[i].file ? chosen[i].file->name : NULL};
    *ret_list = list;
    *ret_count = count;
    return 0;
}

int px_env_infer(const struct px_manifest *manifest, const struct px_lock *pins, const struct px_python *python,
                 const struct px_env *env, struct px_inferred *ret_inferred, struct px_err *e)
{
    const struct px_env_ask lock = {.manifest = manifest, .pins = pins, .python = python};
    px_auto_free struct px_infer_wish *wishes = NULL;
    px_auto_free struct px_infer_package *packages = NULL;
    struct px_infer_ask ask = {.automatic = !manifest || manifest->sandbox_auto, .base = python ? python->base : NULL};
    if (take_wishes(manifest, &wishes, &ask.wish_count, e) < 0)
        return -1;
    if (env && !(packages = from_env(env)))
        return px_no_memory(e);
    if (!env && from_lock(&lock, &packages, &ask.package_count, e) < 0)
        return -1;
    ask.wishes = wishes;
    ask.packages = packages;
    ask.package_count = env ? env->count : ask.package_count;
    int r = px_infer(&ask, ret_inferred);
    return r < 0 ? px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_LIMIT, r,
                           "cannot say which capabilities the environment needs")
                 : 0;
}

/* ---- for building ---- */

struct names {
    const char *items[PX_CAPABILITIES_MAX + 1];
    size_t count;
};

/* Names in the table, without duplicates; others are left out. */
static void add_words(struct names *n, const char *words)
{
    char name[64];
    for (const char *at = words; *(at += strspn(at, " ")); at += strcspn(at, " ")) {
        const struct px_capability *c = px_fmt(name, sizeof name, "%.*s", (int)strcspn(at, " "), at) < 0
                                            ? NULL
                                            : px_capability_find(name);
        size_t i = 0;
        while (c && i < n->count && n->items[i] != c->name)
            i++;
        if (c && i == n->count && n->count < PX_CAPABILITIES_MAX)
            n->items[n->count++] = c->name;
    }
}

static void add_known(struct names *n, const char *package)
{
    const struct px_dist *dist = px_tables_dist_find(package);
    add_words(n, dist ? dist->capabilities : "");
}

static int add_inferred(struct names *n, const struct px_env_ask *ask, const struct px_lock *pins, struct px_err *e)
{
    struct px_inferred inferred = {0};
    if (px_env_infer(ask->manifest, pins, ask->python, NULL, &inferred, e) < 0)
        return -1;
    for (size_t i = 0; i < inferred.effective_count; i++)
        add_words(n, inferred.effective[i]);
    px_infer_done(&inferred);
    return 0;
}

static int join(const struct names *n, char **ret_words, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 14);
    struct px_capability_set set;
    if (px_capability_set_make(n->items, &set, e) < 0)
        return -1;
    for (size_t i = 0; i < set.count; i++)
        px_buf_printf(&text, "%s%s", i ? " " : "", set.items[i]->name);
    *ret_words = text.err < 0 ? NULL : strdup(px_buf_text(&text));
    return *ret_words ? 0 : px_no_memory(e);
}

int px_env_needs(const struct px_env_ask *ask, const char *name, char **ret_words, struct px_err *e)
{
    struct names names = {.count = 0};
    if (ask->capabilities)
        add_words(&names, ask->capabilities);
    else if (add_inferred(&names, ask, ask->pins, e) < 0)
        return -1;
    add_known(&names, name);
    return join(&names, ret_words, e);
}

int px_env_needs_of(const struct px_env_ask *ask, const struct px_names *requirements, char **ret_words,
                    struct px_err *e)
{
    const struct px_lock none = {0};
    struct names names = {.count = 0};
    if (add_inferred(&names, ask, &none, e) < 0)
        return -1;
    for (size_t i = 0; i < requirements->count; i++) {
        struct px_requirement q;
        char name[256];
        if (px_marker_requirement_parse(requirements->items[i], &q) == 0 &&
            px_marker_package_name(q.name, q.name_length, name, sizeof name) == 0)
            add_known(&names, name);
    }
    return join(&names, ret_words, e);
}

void px_env_explain(const struct px_inferred *inferred, struct px_json *j, const char *name)
{
    px_json_array(j, name);
    for (size_t i = 0; i < inferred->count; i++) {
        px_json_object(j, NULL);
        px_json_text(j, "capability", inferred->reasons[i].capability);
        px_json_text(j, "source", px_infer_source_words[inferred->reasons[i].source]);
        px_json_text(j, "detail", inferred->reasons[i].detail);
        px_json_bool(j, "counts", inferred->reasons[i].counts);
        if (inferred->reasons[i].brought)
            px_json_text(j, "set_aside", "its wheel brings the libraries");
        px_json_end(j);
    }
    px_json_end(j);
}
