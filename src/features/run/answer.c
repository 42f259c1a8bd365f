/* The answer about a program that ended, or that would be run. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "distro/capability.h"
#include "env/messages.h"
#include "run/run.h"
#include "store/document.h"

#define FIX \
    "Run 'px sandbox add %s%s%s' or set [tool.px.sandbox.capabilities].%s%s%s = true.\n" \
    "Re-run 'px %s --sandbox' or 'px pack image'."
#define MARKER "\n[...truncated...]\n"

/* ---- a library that is missing ---- */

static const struct px_wish *wish_of(const struct px_launch *l, const char *capability)
{
    const struct px_manifest *m = &l->p->site.manifest;
    for (size_t i = 0; i < m->wish_count; i++)
        if (px_equal(m->wishes[i].name, capability))
            return &m->wishes[i];
    return NULL;
}

static bool has_capability(const struct px_launch *l, const char *capability)
{
    for (const char *const *c = l->image.capabilities; *c; c++)
        if (px_equal(*c, capability))
            return true;
    return false;
}

/* The capabilities to add: its own, and `headers` for its development packages. */
struct lacking {
    const char *first, *second; /* second NULL: one is enough */
};

static bool is_of_headers(const struct px_missing *m)
{
    const struct px_capability *c = px_capability_find(m->capability);
    return m->build && c && *c->packages[PX_BASE_DEBIAN12].build;
}

static bool find_lacking(const struct px_launch *l, const struct px_missing *m, struct lacking *ret)
{
    bool headers = is_of_headers(m) && !has_capability(l, PX_CAPABILITY_HEADERS);
    bool own = !has_capability(l, m->capability);
    *ret = (struct lacking){own ? m->capability : headers ? PX_CAPABILITY_HEADERS : NULL,
                            own && headers ? PX_CAPABILITY_HEADERS : NULL};
    return ret->first != NULL;
}

/* On a terminal both streams are merged. */
static bool find_missing(const struct px_launch *l, const struct px_launch_end *end, struct px_missing *ret,
                         struct lacking *ret_lacking)
{
    const struct px_bytes *text = end->err.len ? &end->err : &end->out;
    return l->has_image && end->code != 0 && text->len && px_messages_missing(text->data, text->len, ret) &&
           find_lacking(l, ret, ret_lacking);
}

static int explain_missing(const struct px_missing *m, struct px_err *e)
{
    if (!is_of_headers(m))
        return px_why(e, "A system library needed by your env (%s) is missing from the sandbox image.", m->what);
    return px_why(e, "%s is in the development packages of '%s'; an image has them with the capability '%s'.", m->what,
                  m->capability, PX_CAPABILITY_HEADERS);
}

bool px_launch_missing(const struct px_launch *l, const struct px_launch_end *end, const char **ret_capability,
                       struct px_err *ret_error)
{
    struct px_missing m;
    struct lacking lacking;
    if (!find_missing(l, end, &m, &lacking))
        return false;
    bool open = l->p->site.manifest.sandbox_auto && !wish_of(l, lacking.first) && !l->strict;
    const char *second = lacking.second ? lacking.second : "";
    *ret_capability = open ? lacking.first : NULL;
    px_fail(ret_error, PX_E_SYSTEM_LIBRARY, 0, "%s is missing in the sandbox of this project", m.what);
    (void)px_detail(ret_error, "capability", lacking.first);
    (void)px_detail(ret_error, "missing", m.what);
    (void)explain_missing(&m, ret_error);
    (void)px_fix(ret_error, open ? FIX "\nOr let px add it for one run: --auto-add." : FIX, lacking.first,
                 *second ? " " : "", second, lacking.first, *second ? " = true and ." : "", second, l->command);
    return true;
}

/* ---- the answer ---- */

/* Untrusted output as JSON: invalid UTF-8 is replaced. Above the limit the middle is left out. */
static json_t *output_json(const struct px_launch *l, const struct px_bytes *kept, uint64_t total)
{
    px_auto_buf struct px_buf text = PX_BUF(2 * l->capture_max + sizeof MARKER),
                              out = PX_BUF(14 * l->capture_max + 256);
    struct px_json j = {.out = &out};
    if (total <= l->capture_max) {
        px_buf_add(&text, kept->data, kept->len);
    } else {
        size_t tail = l->capture_max / 2, head = l->capture_max - tail;
        px_buf_add(&text, kept->data, head < kept->len ? head : kept->len);
        px_buf_puts(&text, MARKER);
        px_buf_add(&text, kept->data + (kept->len > tail ? kept->len - tail : 0), tail < kept->len ? tail : kept->len);
    }
    px_json_bytes(&j, NULL, px_buf_text(&text), text.len);
    return text.err < 0 || out.err < 0 ? NULL : json_loadb(out.data, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static const char *last_traceback(const char *text)
{
    static const char begin[] = "Traceback (most recent call last):";
    const char *found = NULL;
    for (const char *at = text; at && (at = strstr(at, begin)); at++)
        found = at;
    return found;
}

/* A fix as the envelope has it. */
static json_t *recommendation_json(const struct px_launch *l, const struct px_launch_end *end)
{
    struct px_err why = {0};
    struct px_missing m;
    struct lacking lacking;
    const char *capability = NULL;
    if (!find_missing(l, end, &m, &lacking) || !px_launch_missing(l, end, &capability, &why))
        return NULL;
    char command[256];
    (void)px_fmt(command, sizeof command, "px sandbox add %s%s%s", lacking.first, lacking.second ? " " : "",
                 lacking.second ? lacking.second : "");
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "code", "PX902", "capability", lacking.first, "missing", m.what,
                     "command", command, "hint", why.fix);
}

static json_t *details_json(const struct px_launch *l, const struct px_launch_end *end)
{
    json_t *out = output_json(l, &end->out, end->out_total), *err = output_json(l, &end->err, end->err_total);
    json_t *details = json_pack("{s:s, s:s, s:i, s:s, s:o, s:o}", "target", l->target, "kind", l->program.kind, "code",
                                end->code, "reason", end->reason, "stdout", out, "stderr", err);
    if (!details)
        return NULL;
    const char *traceback = last_traceback(json_string_value(err));
    json_t *advice = recommendation_json(l, end);
    if (traceback && end->code != 0)
        json_object_set_new(details, "traceback", json_string(traceback));
    if (advice)
        json_object_set_new(details, "recommendation", advice);
    if (l->has_image)
        json_object_set_new(details, "sandbox", px_project_image_json(&l->image));
    return details;
}

int px_launch_answer(const struct px_launch *l, const struct px_launch_end *end, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    char message[512];
    if (end->code == 0)
        (void)px_fmt(message, sizeof message, "%.200s ended well", l->target);
    else
        (void)px_fmt(message, sizeof message, "%.200s ended with status %d (%s)", l->target, end->code, end->reason);
    return px_project_answer(l->command, end->code == 0 ? "ok" : "user-error", message, details_json(l, end), false, ret_json,
                     e);
}

/* ---- the plan ---- */

static json_t *words_json(char *const *words, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++)
        json_array_append_new(list, json_string(words[i])); /* one that is not UTF-8 is left out */
    return list;
}

/* The search path of packages, in order, as the program sees it. */
static json_t *paths_json(const struct px_launch *l, const struct px_env *env)
{
    json_t *list = json_array();
    const json_t *own;
    const char *store = l->p->sandbox ? px_store_path(l->p->sandbox->store) : "";
    size_t k;
    json_array_foreach(json_object_get(env->project, "paths"), k, own) {
        const char *path = json_string_value(own), *root = l->sandbox ? PX_PROGRAM_APP : l->p->site.root;
        json_array_append_new(list, px_equal(path, ".") ? json_string(root) : json_sprintf("%s/%s", root, path));
    }
    for (size_t i = 0; list && i < env->count; i++)
        json_array_append_new(
            list, l->sandbox ? json_sprintf(PX_INSIDE_PACKAGES "/%s/site-packages", env->packages[i].tree.hex)
                             : json_sprintf("%s/trees/%s/root/site-packages", store, env->packages[i].tree.hex));
    return list;
}

static json_t *runtime_json(const struct px_env *env)
{
    return env ? json_pack("{s:s, s:s}", "program", env->runtime->program, "version", env->runtime->version)
               : json_null();
}

static json_t *sandbox_json(const struct px_launch *l)
{
    json_t *sandbox = l->has_image ? px_project_image_json(&l->image) : json_object();
    if (sandbox)
        json_object_set_new(sandbox, "enabled", json_boolean(l->sandbox));
    return sandbox;
}

int px_launch_explain(const struct px_launch *l, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    const struct px_env *env = px_run_env(l);
    char message[512];
    json_t *details = json_pack(
        "{s:i, s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:o, s:o}", "schema_version", 1, "engine",
        l->sandbox ? "box" : "host", "action", l->action, "kind", l->found ? l->program.kind : "unknown", "runtime",
        runtime_json(env), "argv", l->found ? words_json(l->argv, l->argc) : json_null(), "workdir", l->workdir,
        "root", l->p->site.root, "sys_path", env ? paths_json(l, env) : json_array(), "sandbox", sandbox_json(l));
    (void)px_fmt(message, sizeof message, "would run %.200s %s",
                 l->found ? l->target : "it once the environment is there",
                 l->sandbox ? "in the sandbox" : "on this machine");
    return px_project_answer("explain", "ok", message, details, false, ret_json, e);
}
