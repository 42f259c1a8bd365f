/* engine/project_env.h - from a project's lock to its environment.
 *
 * Why:     sync records what it made in the project; run and test make the same and record nothing.
 * Owns:    nothing.
 * Mustn't: change the lock. */
#pragma once

#include "engine/project.h"

/* Makes the environment of the lock that was looked at, or finds that it is there, and writes .px; the look then
 * knows it. */
int px_project_env_sync(struct px_project *p, struct px_look *look, bool frozen, bool *ret_built, struct px_err *e);
/* The same without a byte written in the project. */
int px_project_env_rebuild(struct px_project *p, struct px_look *look, bool *ret_built, struct px_err *e);
