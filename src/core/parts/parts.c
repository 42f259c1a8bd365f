/* Starts a box from a policy whose root is a directory, and from the parts that the caller found. */
#include "parts/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/supervise.h"
#include "kernel/idmap.h"
#include "kernel/landlock.h"
#include "relay/relay.h"
#include "state/homes.h"

void px_parts_probe(const struct px_policy *policy, struct px_host *host)
{
    *host = (struct px_host){.uid = geteuid(), .gid = getegid(), .landlock_abi = px_landlock_abi(), .user_namespaces = true};
    if (!policy->apparmor)
        return;
    char answer[4] = "";
    host->apparmor = px_read_file(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", answer, sizeof answer) > 0 && answer[0] == 'Y';
}

static int refuse_missing(struct px_err *e)
{
    return px_fail(e, PX_E_NOT_BUILT, 0, "this needs px-main, not the launcher");
}

int px_parts_connect(struct px_plan *plan, const struct px_policy *policy, const struct px_parts *parts, struct px_err *e)
{
    if (plan->joins && (plan->join = parts->join ? parts->join(policy, e) : refuse_missing(e)) < 0)
        return -1;
    if (!plan->carried)
        return 0;
    if (policy->net != PX_NET_PASTA)
        return px_relay_start(policy, &plan->carrier, e);
    return parts->pasta ? parts->pasta(policy, &plan->carrier, e) : refuse_missing(e);
}

static int start_planned(const struct px_policy *policy, const char *const argv[], const struct px_io *io, const struct px_host *host,
                 const struct px_parts *parts, struct px_box **ret_box, struct px_err *e)
{
    struct px_plan *plan = NULL;
    if (px_plan_new(policy, argv, host, io->bind_to_thread, &plan, e) < 0)
        return -1;
    plan->after = policy->after;
    plan->gate = policy->gate;
    if (policy->changes && !policy->after && (parts->changes ? parts->changes(policy, &plan->after, e) : refuse_missing(e)) < 0) {
        px_plan_free(plan);
        return -1;
    }
    if (px_parts_connect(plan, policy, parts, e) < 0) {
        if (plan->after)
            plan->after->done(plan->after);
        px_plan_free(plan);
        return -1;
    }
    return px_supervise_start(plan, policy, io, ret_box, e);
}

/* The clone may fail, or a security module lets a namespace be made but takes its capabilities away. */
bool px_parts_no_namespaces(const struct px_err *e)
{
    bool refused = e->sys == EPERM || e->sys == EACCES || e->sys == EROFS;      /* EROFS: a container's /proc/sys */
    return e->code == PX_E_USERNS || ((e->code == PX_E_MOUNT || e->code == PX_E_NAMESPACE) && refused);
}

/* The home directory of the weaker tiers, which exists as long as the box. */
static int make_scratch(char *out, size_t size, int *ret_lock, struct px_err *e)
{
    const char *tmp = getenv("TMPDIR");
    return px_homes_make(tmp && *tmp == '/' ? tmp : "/tmp", true, out, size, ret_lock, e);
}

static int start_weaker(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_host *host,
                        const struct px_parts *parts, struct px_box **ret_box, struct px_err *e)
{
    char scratch[1024];
    px_auto_fd int lock = -EBADF;
    if (make_scratch(scratch, sizeof scratch, &lock, e) < 0)
        return -1;
    host->user_namespaces = false;
    host->is_root = px_idmap_caller_is_root();
    host->scratch = scratch;
    int r = start_planned(policy, argv, io, host, parts, ret_box, e);
    host->scratch = NULL;       /* the plan has its own copy */
    if (r < 0)
        px_homes_drop(scratch);
    else
        (*ret_box)->scratch_lock = px_fd_take(&lock);
    return r;
}

int px_parts_start(const struct px_policy *policy, const char *const argv[], const struct px_io *io, struct px_host *host,
                   const struct px_parts *parts, struct px_box **ret_box, struct px_err *e)
{
    if (policy->plain)
        return start_weaker(policy, argv, io, host, parts, ret_box, e);
    int r = start_planned(policy, argv, io, host, parts, ret_box, e);
    if (r < 0 && policy->require == PX_TIER_LANDLOCK && px_parts_no_namespaces(e))
        r = start_weaker(policy, argv, io, host, parts, ret_box, e);
    return r;
}

int px_parts_plan_json(const struct px_policy *policy, const char *const argv[], const struct px_host *host, char **ret_json,
                       struct px_err *e)
{
    struct px_plan *plan = NULL;
    if (px_plan_new(policy, argv, host, false, &plan, e) < 0)
        return -1;
    int r = px_plan_print(plan, ret_json, e);
    px_plan_free(plan);
    return r;
}
