/* layout/state.h - the state of a project, and what each command may do in it.
 *
 * Why:     status, sync, run, test and pack must agree about it.
 * Owns:    nothing: flags in, a state or a decision out.
 * Mustn't: read files; the caller fills the flags. */
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
    bool lock_issue;            /* the lock's content does not fit, whatever its fingerprint */
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
    bool terminal;              /* stdin and stdout are terminals */
    const char *env_reason;     /* "missing_env", "env_outdated", "runtime_mismatch", ...; NULL: missing_env */
    const char *root;           /* for messages */
    const char *first_issue;    /* how the lock does not fit; NULL: not known */
};

/* What to do first; -1: PX100, PX120 or PX201 with details.reason and details.state. */
int px_layout_decide(const struct px_guard *guard, enum px_act *ret_act, struct px_err *e);

