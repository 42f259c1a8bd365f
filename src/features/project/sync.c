/* project/sync.c - from the manifest to the lock, from the lock to the environment; and the guards of run, test and
 * pack. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "layout/both.h"
#include "project/env.h"
#include "project/snapshot.h"
#include "project/system_pins.h"
#include "resolve/messages.h"
#include "resolve/resolve.h"
#include "resolve/resolved.h"

enum { LOCK_MAX = PX_TOML_BYTES_MAX, LOG_MAX = 1 << 20 };

/* What a sync did. */
struct done {
    bool wrote_lock, built_env;
    const char *tool;           /* that resolved; NULL: none was needed */
};

/* ---- the lock ---- */

static void tell(const struct px_project *p, const char *what)
{
    if (p->progress.tell)
        p->progress.tell(p->progress.user, what, 0, 0);
}

/* px does not write the lock of another tool. */
static int refuse_foreign(const struct px_snapshot *l, struct px_err *e)
{
    static const struct {
        const char *file, *command;
    } rows[] = {{"uv.lock", "uv lock"}, {"poetry.lock", "poetry lock"}, {"pylock.toml", "the tool that wrote it"}};
    const char *command = "the tool that wrote it";
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].file, l->lock_file))
            command = rows[i].command;
    if (l->lock_error.code) {
        *e = l->lock_error;
        (void)px_detail(e, "reason", "lock_invalid");
    } else {
        px_fail(e, PX_E_LOCK, 0, "'%s' does not fit the project's manifest", l->lock_file);
        (void)px_detail(e, "reason", "lock_drift");
        (void)px_why(e, "%s", l->drift.count ? l->drift.items[0] : "It was made for another manifest.");
    }
    (void)px_detail(e, "state", px_layout_state_id(l->state));
    return px_fix(e, "Run `%s`.\nOr remove %s: then `px sync` writes px.lock.", command, l->lock_file);
}

/* pip evaluates markers for its own Python, so its answer may lack packages for another one. */
static int check_answer(const struct px_project *p, const struct px_snapshot *l, const struct px_lock *pins, struct px_err *e)
{
    struct px_drift drift;
    if (px_snapshot_compare(&p->site, pins, &l->target, &drift, e) < 0)
        return -1;
    if (drift.count == 0)
        return 0;
    px_fail(e, PX_E_LOCK, 0, "what was resolved does not hold what Python %s needs", l->target.minor);
    (void)px_detail(e, "reason", "resolve_failed");
    (void)px_why(e, "%s", drift.items[0]);
    px_drift_done(&drift);
    return px_fix(e, "Install uv, or python%s with pip: then they resolve for it.", l->target.minor);
}

/* Writes the tool's output to a log for the user. If the log cannot be written, the error stays as it is. */
static int log_failure(struct px_project *p, struct px_buf *said, const char *tool, struct px_err *e)
{
    if (said->len == 0 || !strstr(e->details, "\"resolve_failed\""))
        return -1;
    int r = px_resolve_log(p->site.dir, said);
    free(p->said);
    p->said = px_buf_take(said);
    if (r < 0)
        return -1;
    (void)px_detail(e, "log", ".px/logs/sync.log");     /* state: a name for messages, nothing is opened by it */
    return px_fix(e,
                  "Correct the requirements in pyproject.toml, or the index that %s is set to.\n"
                  "All that %s said is in .px/logs/sync.log; `px -v sync` shows it.",
                  tool, tool);
}

static int write_lock(struct px_project *p, struct px_snapshot *l, const struct px_names *keep, struct done *done,
                      struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(LOCK_MAX);
    px_auto_buf struct px_buf said = PX_BUF(LOG_MAX);
    struct px_sandbox *s = NULL;
    struct px_lock pins = {0};
    const char *file = px_locate_lock_file(&p->site);
    tell(p, "resolving");
    if (px_project_sandbox(p, &s, e) < 0)
        return -1;
    if (px_resolve(s, &p->site, &l->target, keep, &pins, &done->tool, &said, e) < 0)
        return log_failure(p, &said, done->tool, e);
    int r = px_project_env_ask_builds(p, l, &pins, e) < 0 || px_resolved_write(&p->site, &pins, &out, e) < 0 ||
                    check_answer(p, l, &pins, e) < 0
                ? -1
                : 0;
    px_lock_put_system(&l->pins.system, &out);          /* what is pinned of the system stays */
    if (r == 0 && out.err < 0)
        r = px_fail(e, PX_E_LIMIT, out.err, "the lock is too long");
    px_lock_done(&pins);
    if (r < 0)
        return -1;
    r = p->edit ? px_both_write(&(struct px_both){.root = p->site.dir, .dir = p->edit->dir, .lock_file = file,
                                                  .manifest = p->edit->text, .lock = &out}, &p->edit->written)
                : px_layout_replace_file(p->site.dir, file, out.data, out.len);
    if (r < 0)
        return px_fail(e, PX_E_IO, r, "cannot write '%.200s/%s'%s", p->site.root, file, p->edit ? " and its manifest" : "");
    done->wrote_lock = true;
    return 0;
}

/* Takes a new snapshot: writing the lock made the old one stale. */
static int bring_lock(struct px_project *p, struct px_snapshot *l, const struct px_names *keep, struct done *done,
                      struct px_err *e)
{
    if (l->lock_foreign)
        return refuse_foreign(l, e);
    if (write_lock(p, l, keep, done, e) < 0)
        return -1;
    px_snapshot_done(l);
    if (px_snapshot_at(p, l, e) < 0) {
        *l = (struct px_snapshot){0};
        return -1;
    }
    if (l->state != PX_STATE_NEEDS_LOCK)
        return 0;
    px_fail(e, PX_E_LOCK, 0, "the lock that was just written does not fit the manifest");
    (void)px_detail(e, "reason", "lock_drift");
    return px_why(e, "%s", px_snapshot_first_issue(l) ? px_snapshot_first_issue(l) : "The manifest was changed meanwhile.");
}

int px_snapshot_relock(struct px_project *p, struct px_snapshot *look, const struct px_names *keep, struct px_err *e)
{
    struct done done = {0};
    return bring_lock(p, look, keep, &done, e);
}

/* ---- answers ---- */

static json_t *sync_details(const struct px_project *p, const struct px_snapshot *l, const struct done *done,
                            const char *action, bool dry_run)
{
    json_t *details = json_pack("{s:s, s:s, s:s, s:b, s:s, s:b, s:b}", "action", action, "root", p->site.root, "state",
                                px_layout_state_id(l->state), "dry_run", dry_run, "lock", l->lock_file, "wrote_lock",
                                done->wrote_lock, "built_env", done->built_env);
    if (details && l->lock_read)
        json_object_set_new(details, "lock_id", json_string(px_lock_id(&l->pins)));
    if (details && done->tool)
        json_object_set_new(details, "resolver", json_string(done->tool));
    if (details && l->env.env_path && !l->env_reason) {
        json_object_set_new(details, "env", json_string(l->env.env_path));
        json_object_set_new(details, "profile_oid", json_string(l->env.profile_oid));
    }
    json_t *warnings = px_snapshot_warnings(p, l);
    if (details && json_array_size(warnings))
        json_object_set(details, "warnings", warnings);
    json_decref(warnings);
    return details;
}

static const char *action_of(const struct px_snapshot *l)
{
    return l->state == PX_STATE_NEEDS_LOCK ? "resolve_lock" : l->state == PX_STATE_NEEDS_ENV ? "sync_env" : "noop";
}

static int answer_dry(const struct px_project *p, const struct px_snapshot *l, char **ret_json, struct px_err *e)
{
    static const struct {
        const char *action, *words;
    } rows[] = {{"resolve_lock", "would resolve the requirements, write %s and make the environment"},
                {"sync_env", "would make the environment from %s"}, {"noop", "already up to date"}};
    const char *action = action_of(l);
    char message[256] = "";
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].action, action))
            (void)px_fmt(message, sizeof message, rows[i].words, l->lock_file);
    return px_project_answer("sync", "ok", message, sync_details(p, l, &(struct done){0}, action, true), false, ret_json, e);
}

static int answer_sync(const struct px_project *p, const struct px_snapshot *l, const struct done *done, bool frozen,
                       const char *action, char **ret_json, struct px_err *e)
{
    char message[256];
    const char *words = done->wrote_lock ? done->built_env ? "wrote %s and refreshed the environment" : "wrote %s"
                        : done->built_env ? frozen ? "synced from the existing %s" : "refreshed the environment from %s"
                        : "already up to date";
    (void)px_fmt(message, sizeof message, words, l->lock_file);
    return px_project_answer("sync", "ok", message, sync_details(p, l, done, action, false), false, ret_json, e);
}

/* ---- the whole ---- */

bool px_project_frozen(bool asked)
{
    return asked || px_truthy(getenv("CI"));
}

static int sync_looked(struct px_project *p, struct px_snapshot *l, const struct px_sync *how, char **ret_json,
                       struct px_err *e)
{
    struct done done = {0};
    enum px_act act;
    const char *action = action_of(l);
    if (l->state == PX_STATE_UNINITIALIZED || how->frozen)
        if (px_snapshot_decide(p, l, PX_ASKER_SYNC_FROZEN, true, false, &act, e) < 0)
            return -1;
    if (how->dry_run)
        return answer_dry(p, l, ret_json, e);
    if (!how->frozen && px_snapshot_settle(p, l, e) < 0)
        return -1;
    if (l->state == PX_STATE_NEEDS_LOCK && bring_lock(p, l, NULL, &done, e) < 0)
        return -1;
    if (l->state == PX_STATE_NEEDS_ENV) {
        tell(p, "making the environment");
        if (px_project_env_sync(p, l, how->frozen, &done.built_env, e) < 0)
            return -1;
    }
    bool pinned = false;
    if (!how->frozen && px_layout_state_is_consistent(l->state) && px_system_pins_settle(p, l, &pinned, e) < 0)
        return -1;
    if (pinned && px_equal(action, "noop"))
        action = "pin_system";
    done.wrote_lock |= pinned;
    return answer_sync(p, l, &done, how->frozen, action, ret_json, e);
}

int px_project_sync(struct px_project *p, const struct px_sync *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    const struct px_sync asked = {.frozen = px_project_frozen(how->frozen), .dry_run = how->dry_run};
    struct px_snapshot l;
    if (px_project_own_need(p, how->dry_run, e) < 0 || px_snapshot_at(p, &l, e) < 0)
        return -1;
    int r = sync_looked(p, &l, &asked, ret_json, e);
    px_snapshot_done(&l);
    return r;
}

/* ---- run, test, pack ---- */

static int find_asker(const char *command, enum px_asker *ret_asker, struct px_err *e)
{
    static const struct {
        const char *command;
        enum px_asker asker;
    } rows[] = {{"run", PX_ASKER_RUN}, {"test", PX_ASKER_TEST}, {"pack", PX_ASKER_PACK}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].command, command)) {
            *ret_asker = rows[i].asker;
            return 0;
        }
    return px_fail(e, PX_E_VALUE, 0, "no command '%.64s' uses a project's environment", command ? command : "");
}

/* Carries out the guard's decision. */
static int get_ready(struct px_project *p, struct px_snapshot *l, const struct px_ready *how, bool own, struct done *done,
                     const char **ret_action, struct px_err *e)
{
    enum px_asker asker = PX_ASKER_RUN;
    enum px_act act;
    bool strict = px_project_frozen(how->frozen);
    if (find_asker(how->command, &asker, e) < 0 || px_snapshot_decide(p, l, asker, strict, how->terminal, &act, e) < 0)
        return -1;
    if (act == PX_ACT_SYNC &&
        (bring_lock(p, l, NULL, done, e) < 0 || px_project_env_sync(p, l, false, &done->built_env, e) < 0))
        return -1;
    if (act == PX_ACT_REBUILD && own && px_project_env_rebuild(p, l, &done->built_env, e) < 0)
        return -1;
    *ret_action = act == PX_ACT_SYNC ? "resolve_lock" : act == PX_ACT_REBUILD ? "sync_env" : "noop";
    return 0;
}

int px_snapshot_ready(struct px_project *p, struct px_snapshot *look, const struct px_ready *how, struct px_err *e)
{
    struct done done = {0};
    const char *action;
    return get_ready(p, look, how, true, &done, &action, e);
}

int px_snapshot_box_ready(struct px_project *p, struct px_snapshot *look, const struct px_ready *how, struct px_err *e)
{
    struct done done = {0};
    const char *action;
    return get_ready(p, look, how, px_project_shares(p), &done, &action, e);
}

static int make_ready(struct px_project *p, struct px_snapshot *l, const struct px_ready *how, char **ret_json,
                      struct px_err *e)
{
    struct done done = {0};
    const char *action = NULL;
    if (get_ready(p, l, how, true, &done, &action, e) < 0)
        return -1;
    return px_project_answer(how->command, "ok", "ready", sync_details(p, l, &done, action, false), false, ret_json, e);
}

int px_project_ready(struct px_project *p, const struct px_ready *how, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    struct px_snapshot l;
    if (px_snapshot_at(p, &l, e) < 0)
        return -1;
    int r = make_ready(p, &l, how, ret_json, e);
    px_snapshot_done(&l);
    return r;
}
