/* runtime/stage.h - the plan of the processes around a runtime's container.
 *
 *   host            px           supervises, holds the cgroup
 *   around          px-init      pid 1 of its own user, mount and pid namespace; its root is the host's /usr and PX_BUNDLE_DIR
 *                   runc         makes the container from PX_BUNDLE_DIR/config.json
 *   container       px-start     pid 1; applies what no runtime does, runs the command
 *                   the command
 *
 * Why:     a runtime that runs in a box of ours needs no privilege of the host, whoever calls: it is bound to px by life and
 *          death, sees no file but those it has to show, and everything it makes is on a tmpfs that goes with it. Nothing is
 *          left on the host by a crash, so there is nothing to sweep.
 * Owns:    the texts, in the plan.
 * Mustn't: make a mount point in a tree of the caller's, nor let a runtime do it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct px_buf;
struct px_err;
struct px_plan;
struct px_policy;
struct px_runtime_kind;

struct px_stage {
    struct px_plan *plan;       /* of the processes around */
    const struct px_plan *native;       /* of the box as px itself would make it */
    const struct px_policy *policy;
    const struct px_runtime_kind *kind;
    uint32_t config, orders;    /* steps whose contents come later */
    uint32_t *argv, *envp, *init_argv;  /* texts of the plan; counts below */
    unsigned argv_count, envp_count, init_argv_count;
};

/* socket, log: descriptors that the runtime gets, of which the plan takes hold; socket may be -1. */
int px_stage_init(struct px_stage *stage, const struct px_policy *policy, const struct px_plan *native,
                  const struct px_runtime_kind *kind, bool bind_to_thread, int socket, int log, struct px_err *e);
void px_stage_done(struct px_stage *stage);     /* not the plan, once it was taken */
/* The two files, now that they are known. The plan is complete afterwards, and not to be added to. */
int px_stage_fill(struct px_stage *stage, const struct px_buf *config, const struct px_buf *orders, struct px_err *e);
