#include "layout/state.h"

#include <stddef.h>
#include <strings.h>

#include "base/err.h"
#include "base/text.h"

enum px_state px_layout_state_of(const struct px_flags *f)
{
    if (!f->manifest_exists)
        return PX_STATE_UNINITIALIZED;
    if (!f->lock_exists || !f->manifest_clean || f->lock_issue)
        return PX_STATE_NEEDS_LOCK;
    if (!f->env_clean)
        return PX_STATE_NEEDS_ENV;
    return f->deps_empty ? PX_STATE_INITIALIZED_EMPTY : PX_STATE_CONSISTENT;
}

bool px_layout_state_is_consistent(enum px_state state)
{
    return state == PX_STATE_CONSISTENT || state == PX_STATE_INITIALIZED_EMPTY;
}

static const struct {
    const char *id, *label;
} names[PX_STATES] = {
    [PX_STATE_UNINITIALIZED] = {"uninitialized", "WUninitialized"},
    [PX_STATE_INITIALIZED_EMPTY] = {"initialized-empty", "WInitializedEmpty"},
    [PX_STATE_NEEDS_LOCK] = {"needs-lock", "WNeedsLock"},
    [PX_STATE_NEEDS_ENV] = {"needs-env", "WNeedsEnv"},
    [PX_STATE_CONSISTENT] = {"consistent", "WConsistent"},
};

const char *px_layout_state_id(enum px_state state)
{
    return names[state].id;
}

const char *px_layout_state_label(enum px_state state, bool workspace)
{
    return names[state].label + !workspace;
}

/* ---- guards ---- */

static int refuse(const struct px_guard *g, enum px_code code, const char *reason, struct px_err *e, const char *what,
                  const char *why)
{
    px_fail(e, code, 0, "%s", what);
    (void)px_detail(e, "reason", reason);
    (void)px_detail(e, "state", px_layout_state_id(px_layout_state_of(&g->flags)));
    if (g->root)
        (void)px_detail(e, "root", g->root);
    return why ? px_why(e, "%s", why) : -1;
}

static int refuse_lock(const struct px_guard *g, struct px_err *e)
{
    if (!g->flags.lock_exists)
        (void)refuse(g, PX_E_LOCK, "missing_lock", e, "the project has no lock",
                     "There is no px.lock beside its pyproject.toml.");
    else
        (void)refuse(g, PX_E_LOCK, "lock_drift", e, "the project's lock does not fit its manifest",
                     g->first_issue ? g->first_issue : "The manifest was changed since the lock was written.");
    return g->strict ? px_fix(e, "Run `px sync` without --frozen and where CI is not set, and commit the lock.") : -1;
}

static int refuse_env(const struct px_guard *g, struct px_err *e)
{
    static const struct {
        const char *reason, *why;
    } rows[] = {
        {"missing_env", "It was not made yet, or was removed."},
        {"env_outdated", "The lock was changed since it was made."},
        {"runtime_mismatch", "It was made for another Python."},
        {"invalid_state", "The project's .px/state.json cannot be read."},
        {"invalid_env", "Its files are not what they were."},
        {"project_changed", "The project's scripts, version or layout were changed since it was made."},
    };
    const char *reason = g->env_reason ? g->env_reason : "missing_env", *why = NULL;
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (px_equal(rows[i].reason, reason))
            why = rows[i].why;
    return refuse(g, PX_E_ENV, reason, e, "the project's environment cannot be used as it is", why);
}

static int decide_lock(const struct px_guard *g, enum px_act *ret_act, struct px_err *e)
{
    /* A mismatch that only the lock's content shows is not a recent change of the user, so the user must check it. */
    bool drift = !g->flags.lock_exists || !g->flags.manifest_clean;
    bool may_sync = !g->strict && g->terminal && (g->asker == PX_ASKER_RUN || g->asker == PX_ASKER_TEST);
    if (!drift || !may_sync)
        return refuse_lock(g, e);
    *ret_act = PX_ACT_SYNC;
    return 0;
}

int px_layout_decide(const struct px_guard *g, enum px_act *ret_act, struct px_err *e)
{
    enum px_state state = px_layout_state_of(&g->flags);
    if (state == PX_STATE_UNINITIALIZED)
        return refuse(g, PX_E_NO_PROJECT, "missing_manifest", e,
                      "No px project found: there is a lock and no pyproject.toml", NULL);
    if (g->asker == PX_ASKER_PACK && !px_layout_state_is_consistent(state))
        return refuse(g, PX_E_ENV, "env_outdated", e,
                      "an image is made from a project whose lock and environment fit, and these do not",
                      g->flags.lock_exists ? g->first_issue : "There is no px.lock beside its pyproject.toml.");
    if (state == PX_STATE_NEEDS_LOCK)
        return decide_lock(g, ret_act, e);
    if (state == PX_STATE_NEEDS_ENV && g->strict && g->asker != PX_ASKER_SYNC_FROZEN)
        return refuse_env(g, e);
    *ret_act = state == PX_STATE_NEEDS_ENV ? PX_ACT_REBUILD : PX_ACT_GO;
    return 0;
}
