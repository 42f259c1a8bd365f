/* run/run.h - a program of a project that is ready to be started, for the files that make, start and
 * describe it.
 *
 * Why:     on the host and in the sandbox a target is found the same way, gets the same environment and gives the
 *          same answer.
 * Owns:    struct px_launch, with leases on what its program needs while it runs.
 * Mustn't: write in the project. */
#pragma once

#include <limits.h>

#include "base/buf.h"
#include "env/env.h"
#include "project/image.h"
#include "project/snapshot.h"
#include "run/target.h"

struct px_launch {
    struct px_project *p;
    char command[8];
    bool sandbox, plan, capture;
    bool read_only;             /* the working tree, in the sandbox */
    bool strict;                /* --frozen, or CI: nothing is added automatically */
    size_t capture_max;
    char dir[PATH_MAX];         /* where it runs, on this machine */
    char workdir[PATH_MAX];     /* the same as it will see it */
    bool found;                 /* program and argv are known; false in a plan without an environment */
    struct px_program program;
    char *target;               /* as it was asked for; of tests, what runs them */
    char **argv;                /* the whole, ends with a NULL */
    size_t argc;
    char **env;                 /* on the host: the whole environment, ends with a NULL */
    size_t env_count;
    struct px_policy *policy;   /* in the sandbox */
    /* On the host; in the sandbox they are the image's. */
    struct px_snapshot look;
    struct px_env environment;
    bool looked, loaded;
    struct px_project_image image;
    bool has_image;
    const char *action;         /* of a plan: what would be done first, "noop", "sync_env" or "resolve_lock" */
    uint64_t ready_nsec;
    struct px_buf out, err;     /* its captured output, on the host */
};

/* NULL: there is none, in a plan. */
const struct px_env *px_run_env(const struct px_launch *l);

/* run/env.c: the variables, for a process of the host and for a policy. */
int px_run_host_env(struct px_launch *l, struct px_err *e);
int px_run_box_env(struct px_launch *l, struct px_err *e);

/* Sets a variable, unless the policy has it already: the caller's -e wins. */
int px_run_give(struct px_policy *policy, const char *name, const char *value, struct px_err *e);

/* run/box.c: fills l->policy for the box. */
int px_run_box_make(struct px_launch *l, const struct px_policy *asked, struct px_err *e);
