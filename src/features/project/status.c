/* project/status.c - the state of a project, as an answer. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "project/snapshot.h"

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *member_paths(const struct px_located *site)
{
    json_t *list = json_array();
    for (size_t i = 0; i < site->member_count; i++)
        json_array_append_new(list, json_string(site->members[i].path));
    return list;
}

static const char *member_here(const struct px_located *site)
{
    const char *path = NULL;
    for (size_t i = 0; i < site->member_count; i++)
        if (site->members[i].here)
            path = site->members[i].path;      /* of nested members the inner one: it sorts later */
    return path;
}

static json_t *context(const struct px_located *site)
{
    return json_pack("{s:s, s:s, s:o}", "kind", site->workspace ? "workspace" : "project", "root", site->root, "member",
                     text_or_null(member_here(site)));
}

static json_t *flags(const struct px_flags *f)
{
    return json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "manifest_exists", f->manifest_exists, "lock_exists",
                     f->lock_exists, "env_exists", f->env_exists, "manifest_clean", f->manifest_clean, "env_clean",
                     f->env_clean, "deps_empty", f->deps_empty, "lock_issue", f->lock_issue);
}

static json_t *reasons(const struct px_project *p, const struct px_snapshot *l)
{
    json_t *list = json_array();
    const struct px_python *python = l->target.runtime;
    const char *range = px_locate_misses(&p->site, python->version);
    if (range)
        json_array_append_new(list, json_sprintf("the base '%s' has Python %s, and the project asks for %s",
                                                 python->base, python->version, range));
    if (l->state == PX_STATE_UNINITIALIZED)
        json_array_append_new(list, json_string("there is a lock and no pyproject.toml"));
    else if (!l->flags.lock_exists)
        json_array_append_new(list, json_sprintf("there is no %s", l->lock_file));
    else if (l->lock_error.code)
        json_array_append_new(list, json_string(l->lock_error.what));
    else if (!l->flags.manifest_clean)
        json_array_append_new(list, json_sprintf("pyproject.toml was changed since %s was written", l->lock_file));
    for (size_t i = 0; i < l->drift.count; i++)
        json_array_append_new(list, json_string(l->drift.items[i]));
    return list;
}

static void add_env_reason(json_t *list, const char *reason)
{
    static const struct {
        const char *reason, *words;
    } rows[] = {
        {"missing_env", "the environment was not made yet, or was removed"},
        {"env_outdated", "the lock was changed since the environment was made"},
        {"runtime_mismatch", "the environment was made for another Python"},
        {"invalid_state", ".px holds a state that cannot be read"},
        {"invalid_env", "the environment's files are not what they were"},
        {"project_changed", "the project's scripts, version or layout were changed since the environment was made"},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].reason, reason))
            json_array_append_new(list, json_string(rows[i].words));
}

static json_t *project(const struct px_project *p, const struct px_snapshot *l)
{
    const struct px_located *site = &p->site;
    json_t *why = reasons(p, l);
    if (l->state == PX_STATE_NEEDS_ENV)
        add_env_reason(why, l->env_reason);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "name", px_locate_name(site), "root", site->root, "state",
                     px_layout_state_label(l->state, site->workspace), "state_id", px_layout_state_id(l->state), "flags",
                     flags(&l->flags), "reasons", why);
}

static json_t *workspace(const struct px_located *site, const struct px_snapshot *l)
{
    if (!site->workspace)
        return json_null();
    return json_pack("{s:s, s:s, s:s, s:o}", "name", px_locate_name(site), "root", site->root, "state",
                     px_layout_state_label(l->state, true), "members", member_paths(site));
}

static json_t *runtime(const struct px_snapshot *l)
{
    const struct px_python *python = l->target.runtime;
    return json_pack("{s:s, s:s, s:s, s:s}", "path", python->program, "version", python->version, "platform",
                     l->target.platform, "base", python->base);
}

static json_t *lock(const struct px_snapshot *l)
{
    const char *status = !l->flags.manifest_exists ? "unknown" : !l->flags.lock_exists ? "missing"
                         : l->flags.manifest_clean && !l->flags.lock_issue ? "clean" : "mismatch";
    return json_pack("{s:s, s:s, s:o, s:o}", "file", l->lock_file, "status", status, "lock_id",
                     text_or_null(l->lock_read ? px_lock_id(&l->pins) : NULL), "fingerprint",
                     text_or_null(*l->fingerprint.hex ? l->fingerprint.hex : NULL));
}

static json_t *env(const struct px_snapshot *l)
{
    const char *status = !l->env_reason ? "clean" : px_equal(l->env_reason, "missing_env") ? "missing"
                         : px_equal(l->env_reason, "invalid_state") ? "unknown" : "stale";
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "status", status, "reason", text_or_null(l->env_reason), "path",
                     text_or_null(l->env.env_path), "profile_oid", text_or_null(l->env.profile_oid), "lock_id",
                     text_or_null(l->env.lock_id));
}

static json_t *next_action(const struct px_located *site, const struct px_snapshot *l)
{
    if (l->state == PX_STATE_UNINITIALIZED)
        return json_pack("{s:s, s:s}", "kind", "init", "command", "px init");
    if (px_layout_state_is_consistent(l->state))
        return json_pack("{s:s, s:n}", "kind", "none", "command");
    return json_pack("{s:s, s:s}", "kind", site->workspace ? "sync_workspace" : "sync", "command", "px sync");
}

/* The host's Python may fit while the base's does not: then the sandbox is refused. */
static void add_base_warning(const struct px_project *p, const struct px_snapshot *l, json_t *list)
{
    const struct px_python *python = px_project_python(p);
    const char *range = python ? px_locate_misses(&p->site, python->version) : NULL;
    if (range && !px_locate_misses(&p->site, l->target.runtime->version))
        json_array_append_new(
            list, json_sprintf("--sandbox needs another base: '%s' has Python %s, and the project asks for %s",
                               px_project_base(p), python->version, range));
}

json_t *px_snapshot_warnings(const struct px_project *p, const struct px_snapshot *l)
{
    const struct px_pairs *said = &p->site.manifest.env;
    json_t *list = l->own.limits ? json_copy(l->own.limits) : json_array();
    for (size_t i = 0; i < said->count; i++)
        if (px_env_profile_is_own(said->items[i].key))
            json_array_append_new(list, json_sprintf("[tool.px.env] names %s, which px sets itself: it does not count",
                                                     said->items[i].key));
    return list;
}

static json_t *warnings(const struct px_project *p, const struct px_snapshot *l)
{
    const struct px_located *site = &p->site;
    json_t *list = px_snapshot_warnings(p, l);
    add_base_warning(p, l, list);
    for (size_t i = 0; i < site->member_count; i++)
        if (site->members[i].manifest.sandbox_defined)
            json_array_append_new(
                list,
                json_sprintf("%s/pyproject.toml has [tool.px.sandbox], which does not count: the workspace's own does",
                             site->members[i].path));
    return list;
}

int px_project_status(struct px_project *p, char **ret_json, bool *ret_consistent, struct px_err *e)
{
    PX_ERR(e);
    struct px_snapshot l;
    if (px_snapshot_at(p, &l, e) < 0)
        return -1;
    const struct px_located *site = &p->site;
    bool consistent = px_layout_state_is_consistent(l.state);
    json_t *details =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "context", context(site), "project", project(p, &l),
                  "workspace", workspace(site, &l), "runtime", runtime(&l), "lock", lock(&l), "env", env(&l),
                  "next_action", next_action(site, &l), "warnings", warnings(p, &l));
    int r = px_project_answer("status", consistent ? "ok" : "user-error", px_layout_state_label(l.state, site->workspace), details,
                      true, ret_json, e);
    px_snapshot_done(&l);
    *ret_consistent = consistent;
    return r;
}
