/* project/env.h - from a project's lock to its environment.
 *
 * Why:     sync records what it made in the project; run and test make the same and record nothing.
 * Owns:    nothing.
 * Mustn't: change the lock. */
#pragma once

#include "project/snapshot.h"

struct px_env;

/* What the builds of a new lock's source archives are given goes into it. */
struct px_lock;
int px_project_env_ask_builds(struct px_project *p, struct px_snapshot *look, struct px_lock *lock, struct px_err *e);
/* Makes the environment of the lock that was looked at, or finds that it is there, and writes .px; the look then
 * knows it. */
int px_project_env_sync(struct px_project *p, struct px_snapshot *look, bool frozen, bool *ret_built, struct px_err *e);
/* The same without a byte written in the project: the store has its name, so that the next one finds it. */
int px_project_env_rebuild(struct px_project *p, struct px_snapshot *look, bool *ret_built, struct px_err *e);
/* The environment that the look knows, whole, from its record; 1: there is none that says everything. */
int px_project_env_recall(struct px_project *p, const struct px_snapshot *look, struct px_env *ret_env, struct px_err *e);
/* The one of the sandbox: the same where the base has the same Python, else one of its own, from the same lock. The
 * base has to be known by now. recall: 1 where it is not there yet; need: it is made. */
int px_project_env_box_recall(struct px_project *p, const struct px_snapshot *look, struct px_env *ret_env,
                              struct px_err *e);
int px_project_env_box_need(struct px_project *p, const struct px_snapshot *look, bool frozen, struct px_env *ret_env,
                            struct px_err *e);
/* Whether the lock's archives give this environment once more; PX904 if not. Nothing of it is changed. */
int px_project_env_compare(struct px_project *p, const struct px_snapshot *look, const struct px_env *env, struct px_err *e);
