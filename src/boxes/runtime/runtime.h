/* runtime/runtime.h - the same box, made by an OCI runtime.
 *
 * Why:     people who trust runc, crun or gVisor's runsc, or have to use them, get the same policy, limits, result and exit
 *          status.
 * Owns:    our ends of px-start's socket and of the runtime's log, as long as the box is.
 * Mustn't: believe the runtime where px-start can look for itself, or the command in anything. */
#pragma once

#include <px/px.h>

struct px_host;

/* policy->runtime names it. The box is an ordinary one from here on. */
int px_runtime_start(const struct px_policy *policy, const char *const argv[], const struct px_host *host,
                     const struct px_io *io, struct px_box **ret_box, struct px_err *e);
/* The plan of the processes around the container, as `--plan` shows it; free() it. */
int px_runtime_plan(const struct px_policy *policy, const char *const argv[], const struct px_host *host, char **ret_json,
                    struct px_err *e);
