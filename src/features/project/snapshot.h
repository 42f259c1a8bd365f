/* project/snapshot.h - a snapshot of a project: its directory, lock, environment, and the resulting state.
 *
 * Why:     status, sync and the guards of run, test and pack use the same facts.
 * Owns:    struct px_project; what px_snapshot_at found, until px_snapshot_done.
 * Mustn't: write while taking the snapshot. */
#pragma once

#include <jansson.h>

#include <px/project.h>

#include "base/buf.h"
#include "catalog/catalog.h"
#include "env/target.h"
#include "layout/locate.h"
#include "layout/own.h"
#include "layout/state.h"
#include "layout/state_file.h"
#include "lock/drift.h"
#include "lock/lock.h"

struct px_project {
    struct px_located site;
    char *home;                 /* NULL: the default */
    struct px_sandbox *sandbox; /* opened when it is needed */
    char *base;                 /* the path or reference of a base; NULL: the manifest has a name */
    struct px_base_python *python;              /* of an unknown base; NULL: known, or not in the store */
    struct px_base_python *here;                /* what was found on this machine */
    const struct px_python *own;                /* px_project_own; NULL: not read yet */
    struct px_progress_to progress;
    bool by_image;              /* the environment is used as a part of its image, which checks its files */
    char *said;                 /* by uv or pip, when they failed */
    struct px_manifest_edit *edit;              /* its manifest is not written yet; NULL: it is what was read */
};

/* A manifest that is written together with its lock (layout/both.h). */
struct px_manifest_edit {
    int dir;
    const struct px_buf *text;
    bool written;
};

struct px_snapshot {
    struct px_flags flags;
    enum px_state state;
    struct px_target target;
    const char *lock_file;      /* what was read, or would be written */
    bool lock_foreign;          /* written by another tool */
    bool lock_read;             /* pins were read */
    bool lock_next;             /* from .px/next.lock (layout/both.h) */
    struct px_err lock_error;   /* the lock exists but cannot be used: PX121 */
    struct px_lock pins;
    struct px_drift drift;
    struct px_oid fingerprint;
    struct px_own own;          /* the project's own packages */
    struct px_made_env env;
    const char *env_reason;     /* NULL: the environment is clean */
};

int px_snapshot_at(struct px_project *p, struct px_snapshot *ret_look, struct px_err *e);
void px_snapshot_done(struct px_snapshot *look);
/* A list of messages: settings of the manifest that px does not support. */
json_t *px_snapshot_warnings(const struct px_project *p, const struct px_snapshot *look);
/* Finishes the write of manifest and lock that a killed px left, before anything else is written. */
int px_snapshot_settle(struct px_project *p, const struct px_snapshot *look, struct px_err *e);
/* The differences between the lock and the requirements. */
int px_snapshot_compare(const struct px_located *site, const struct px_lock *pins, const struct px_target *target,
                    struct px_drift *ret_drift, struct px_err *e);
/* "the lock has six 1.0, the manifest asks for six>=2"; NULL: nothing is known to be wrong. */
const char *px_snapshot_first_issue(const struct px_snapshot *look);
/* The guard's decision about it. */
int px_snapshot_decide(const struct px_project *p, const struct px_snapshot *look, enum px_asker asker, bool strict,
                   bool terminal, enum px_act *ret_act, struct px_err *e);

/* The same, and carries it out: afterwards the environment exists, or it is an error. */
/* Whether the lock must be used as it is: by --frozen, or because CI is set. */
bool px_project_frozen(bool asked);
int px_snapshot_ready(struct px_project *p, struct px_snapshot *look, const struct px_ready *how, struct px_err *e);
/* The same for the sandbox: if its environment is another, the host's is not made. */
int px_snapshot_box_ready(struct px_project *p, struct px_snapshot *look, const struct px_ready *how, struct px_err *e);

/* The Python that the lock and the environment on this machine are for, whatever the base is. Never NULL; if none fits,
 * one that does not. */
const struct px_python *px_project_own(struct px_project *p);
/* Checks that it fits; if none of this machine does, imports the base, whose Python must fit. PX900. */
int px_project_own_need(struct px_project *p, bool plan, struct px_err *e);
/* The minor version of another one of this machine that would fit; 0: there is none. */
unsigned px_project_other(const struct px_project *p);
/* At the same place, for the same packages. */
bool px_python_same(const struct px_python *a, const struct px_python *b);
/* Whether the base has that very Python, so that one environment is for both. */
bool px_project_shares(struct px_project *p);

/* The manifest's base, or the default one; a known base by px's own name. */
const char *px_project_base_said(const struct px_project *p);

/* Resolves again and writes px.lock, even if it fits. `keep` ("name==version") fixes versions; NULL: none. The caller
 * must take a new snapshot: the lock has changed. PX120 for the lock of another tool. */
int px_snapshot_relock(struct px_project *p, struct px_snapshot *look, const struct px_names *keep, struct px_err *e);

/* The name of its base in the store, and its Python; NULL: not known. */
const char *px_project_base(const struct px_project *p);
const struct px_python *px_project_python(const struct px_project *p);
/* Looks for an unknown base in the store; does not import it. */
void px_project_base_look(struct px_project *p);
/* The same, and imports a base given by path or reference, once; not with `plan`. PX900. */
int px_project_base_bring(struct px_project *p, bool plan, struct px_err *e);

int px_project_sandbox(struct px_project *p, struct px_sandbox **ret_sandbox, struct px_err *e);

/* {"status":STATUS,"message":"px COMMAND: MESSAGE","details":DETAILS}, indented, with a line end; takes details.
 * With `spread` the
 * members of details are at the top as well. */
int px_project_answer(const char *command, const char *status, const char *message, json_t *details, bool spread,
              char **ret_json, struct px_err *e);
