/* Starts a box from a plan, starts a command in a container, and frees what either of them holds. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/lend.h"
#include "box/supervise.h"

static int make_id(char out[20])
{
    uint64_t random = 0;
    long n = px_sys(SYS_getrandom, &random, sizeof random, 0);
    if (n != sizeof random)
        random = px_now_nsec() ^ ((uint64_t)px_sys(SYS_gettid) << 32);
    return px_fmt(out, 20, "%016llx", (unsigned long long)random);
}

char **px_supervise_copy_argv(char *const argv[])
{
    size_t count = 0, bytes = 0;
    for (; argv[count]; count++)
        bytes += strlen(argv[count]) + 1;
    char **copy = malloc((count + 1) * sizeof *copy + bytes);
    char *text = copy ? (char *)(copy + count + 1) : NULL;
    for (size_t i = 0; copy && i < count; i++) {
        size_t n = strlen(argv[i]) + 1;
        copy[i] = memcpy(text, argv[i], n);
        text += n;
    }
    if (copy)
        copy[count] = NULL;
    return copy;
}

/* Frees the plan, which a running box seldom needs: a process may supervise hundreds of boxes at once. */
static int let_go_of_plan(struct px_box *box)
{
    box->argv = px_supervise_copy_argv(box->partner ? box->partner->argv : box->plan->argv);
    if (!box->argv)
        return -1;
    px_report_isolation(box);
    box->keep_ids = box->ids.kind == PX_IDMAP_SINGLE;
    bool needed = box->stamps || box->plan->tier != PX_TIER_FULL;
    if (!needed) {
        px_plan_free(box->plan);
        box->plan = NULL;
        for (int i = 0; i < PX_UPPERS; i++)
            box->upper[i].step = NULL;
    }
    return 0;
}

#define AT(member) offsetof(struct px_box, member)
static const size_t descriptors[] = {AT(pidfd), AT(payload), AT(control), AT(timer), AT(oom_event), AT(ready_event), AT(terminal),
                                     AT(listener), AT(scratch_lock), AT(notes), AT(record), AT(verdict), AT(changes), AT(epoll)};

static int *descriptor_at(struct px_box *box, size_t i)
{
    return (int *)(void *)((char *)box + descriptors[i]);
}

/* streams false: a container, which moves no bytes itself. It is allocated without the chunks, as there may be
 * thousands. */
static struct px_box *empty_box(bool streams)
{
    struct px_box *box = calloc(1, streams ? sizeof *box : offsetof(struct px_box, chunks));
    if (!box)
        return NULL;
    box->ids.lock_fd = -EBADF;
    box->cgroup = (struct px_cgroup)PX_CGROUP_NONE;
    for (int i = 0; i < PX_UPPERS; i++)
        box->upper[i] = (struct px_upper)PX_UPPER_NONE;
    for (size_t i = 0; i < PX_COUNT_OF(descriptors); i++)
        *descriptor_at(box, i) = -EBADF;
    for (int i = 0; i < PX_FLOW_COUNT; i++) {
        box->flow[i].from = box->flow[i].to = -EBADF;
        box->flow[i].chunk = streams ? box->chunks[i] : NULL;
    }
    return box;
}

struct px_box *px_supervise_guest(void)
{
    struct px_box *box = empty_box(false);
    if (box)
        box->guest = true;
    return box;
}

static struct px_box *new_box(struct px_plan *plan, const struct px_policy *policy)
{
    struct px_box *box = empty_box(!plan || !plan->stays);
    if (!box)
        return NULL;
    box->plan = plan;
    box->partner = plan ? plan->partner : NULL;
    box->after = plan ? plan->after : NULL;
    box->carrier = plan ? plan->carrier : NULL;
    bool timed = px_policy_limited(policy->timeout_msec) && !px_policy_without(policy, PX_WITHOUT_TIMEOUT);
    box->timeout_msec = timed ? policy->timeout_msec : 0;
    box->cpu_time_msec = policy->cpu_time_msec;
    box->file_bytes = policy->file_bytes;
    box->disk_bytes = policy->disk_bytes;
    box->pids = policy->pids;
    px_pace_start(&box->pace, px_policy_limited(policy->cpus_milli) ? policy->cpus_milli : 0, px_now_nsec());
    box->memory_bytes = px_policy_limited(policy->memory_bytes) ? policy->memory_bytes : 0;
    box->output_end = policy->output_end;
    box->own_filter = plan && plan->own_filter;
    box->strict = px_policy_strict(policy);
    box->reaper = plan && plan->tier != PX_TIER_FULL;
    box->tty = policy->tty;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    box->start_realtime_sec = now.tv_sec;
    box->start_nsec = px_now_nsec();
    void *handler[4] = {0};
    (void)px_sys(SYS_rt_sigaction, SIGPIPE, 0, handler, 8);
    box->sigpipe_ignored = handler[0] == (void *)SIG_IGN;
    if (policy->timings && plan)
        box->stamps = calloc(plan->count, sizeof *box->stamps);
    return box;
}

int px_supervise_start(struct px_plan *plan, const struct px_policy *policy, const struct px_io *io, struct px_box **ret_box,
                       struct px_err *e)
{
    struct px_box *box = new_box(plan, policy);
    if (!box) {
        if (plan->partner)
            plan->partner->done(plan->partner);
        if (plan->after)
            plan->after->done(plan->after);
        if (plan->carrier)
            plan->carrier->done(plan->carrier);
        px_plan_free(plan);
        return px_no_memory(e);
    }
    if ((plan->carried && !plan->carrier) || (plan->joins && plan->join < 0)) {
        px_supervise_free(box);
        return px_fail(e, PX_E_NOT_BUILT, 0,
                       "boxes made ahead of time with --net outbound, --net box or --publish are not part of this build");
    }
    if (make_id(box->id) < 0 || px_supervise_prepare(box, policy, e) < 0) {
        px_supervise_free(box);
        return -1;
    }
    if ((box->partner && box->partner->prepare(box, policy, e) < 0) || px_launch(box, policy, io, e) < 0 ||
        px_supervise_watch(box, e) < 0 || let_go_of_plan(box) < 0) {
        if (e->code == 0)
            px_no_memory(e);
        px_supervise_free(box);
        return -1;
    }
    *ret_box = box;
    return 0;
}

int px_supervise_exec(struct px_box *home, const struct px_policy *policy, const char *const argv[], const struct px_io *io,
                      struct px_box **ret_box, struct px_err *e)
{
    struct px_box *box = new_box(NULL, policy);
    if (!box)
        return px_no_memory(e);
    box->home = home;
    px_report_home(box);
    if (make_id(box->id) < 0 || px_command_start(box, policy, argv, io, e) < 0 || px_supervise_watch(box, e) < 0) {
        px_supervise_free(box);
        return -1;
    }
    *ret_box = box;
    return 0;
}

void px_supervise_free(struct px_box *box)
{
    if (!box)
        return;
    px_supervise_abandon(box);
    if (box->partner)
        box->partner->done(box->partner);
    for (int i = 0; i < PX_FLOW_COUNT; i++) {
        px_flow_close(box, i);
        px_headtail_done(&box->flow[i].kept);
    }
    if (box->carrier)           /* before the cgroup: the driver's process is in it */
        box->carrier->done(box->carrier);
    if (box->has_cgroup)
        (void)px_cgroup_done(&box->cgroup);
    if (box->after)
        box->after->done(box->after);
    for (int i = 0; i < PX_UPPERS; i++)
        px_upper_done(&box->upper[i]);
    (void)px_lend_back(box);    /* while the id range is still reserved for the box */
    px_idmap_done(&box->ids);
    for (size_t i = 0; i < PX_COUNT_OF(descriptors); i++)
        *descriptor_at(box, i) = px_fd_close(*descriptor_at(box, i));
    if (box->root_free)
        box->root_free(box->root);
    px_buf_done(&box->out_text);
    px_buf_done(&box->err_text);
    for (size_t i = 0; i < box->writable_count; i++)
        (void)px_fd_close(box->writable[i]);
    free(box->writable);
    free(box->carrier_mark);
    free(box->carrier_told);
    px_plan_free(box->plan);
    free(box->argv);
    free(box->stamps);
    free(box);
}
