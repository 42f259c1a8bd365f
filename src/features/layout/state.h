/* layout/state.h - where a project stands, and what each command may then do.
 *
 * Why:     status, sync, run, test and pack must never disagree about it.
 * Owns:    nothing: flags in, a state or a decision out.
 * Mustn't: look at files; who fills the flags does. */
#pragma once

#include <stdbool.h>

struct px_err;

enum px_state {
    PX_STATE_UNINITIALIZED,
    PX_STATE_INITIALIZED_EMPTY,
    PX_STATE_NEEDS_LOCK,
    PX_STATE_NEEDS_ENV,
    PX_STATE_CONSISTENT,
    PX_STATES,
};

struct px_flags {
    bool manifest_exists, lock_exists, env_exists, manifest_clean, env_clean, deps_empty;
    bool lock_issue;            /* the lock itself does not fit, whatever its fingerprint says */
};

enum px_state px_layout_state_of(const struct px_flags *flags);
bool px_layout_state_is_consistent(enum px_state state);
const char *px_layout_state_id(enum px_state state);           /* "needs-lock" */
const char *px_layout_state_label(enum px_state state, bool workspace);        /* "NeedsLock", "WNeedsLock" */

/* ---- guards ---- */

enum px_asker { PX_ASKER_RUN, PX_ASKER_TEST, PX_ASKER_SYNC_FROZEN, PX_ASKER_PACK };
enum px_act {
    PX_ACT_GO,
    PX_ACT_SYNC,
    PX_ACT_REBUILD
}; /* go on; resolve, write the lock and build; build from the lock */

struct px_guard {
    enum px_asker asker;
    struct px_flags flags;
    bool strict;                /* --frozen, or CI says so */
    bool terminal;              /* a person is at both ends: stdin and stdout */
    const char *env_reason;     /* "missing_env", "env_outdated", "runtime_mismatch", ...; NULL: missing_env */
    const char *root;           /* for the words */
    const char *first_issue;    /* of a lock that does not fit; NULL: not known */
};

/* What to do first; -1: PX100, PX120 or PX201 with details.reason and details.state. */
int px_layout_decide(const struct px_guard *guard, enum px_act *ret_act, struct px_err *e);

