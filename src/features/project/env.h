/* project/env.h - from a project's lock to its environment.
 *
 * Why:     sync records what it made in the project; run and test make the same and record nothing.
 * Owns:    nothing.
 * Mustn't: change the lock. */
#pragma once

#include "project/snapshot.h"

struct px_env;

/* Adds the build requirements of source archives to a new lock. */
struct px_lock;
int px_project_env_ask_builds(struct px_project *p, struct px_snapshot *look, struct px_lock *lock, struct px_err *e);
/* Makes or finds the environment of the snapshot's lock, writes .px, and records it in the snapshot. */
int px_project_env_sync(struct px_project *p, struct px_snapshot *look, bool frozen, bool *ret_built, struct px_err *e);
/* The same without writing in the project: its name in the store lets the next call find it. */
int px_project_env_rebuild(struct px_project *p, struct px_snapshot *look, bool *ret_built, struct px_err *e);
/* The environment of the snapshot, read from its record; 1: there is no complete record. */
int px_project_env_recall(struct px_project *p, const struct px_snapshot *look, struct px_env *ret_env, struct px_err *e);
/* The environment of the sandbox: the same if the base has the same Python, else another one from the same lock. The
 * base must be known. recall returns 1 if it does not exist; need makes it. */
int px_project_env_box_recall(struct px_project *p, const struct px_snapshot *look, struct px_env *ret_env,
                              struct px_err *e);
int px_project_env_box_need(struct px_project *p, const struct px_snapshot *look, bool frozen, struct px_env *ret_env,
                            struct px_err *e);
/* Checks that the lock's archives give this environment again; PX904 if not. Changes nothing. */
int px_project_env_compare(struct px_project *p, const struct px_snapshot *look, const struct px_env *env, struct px_err *e);
