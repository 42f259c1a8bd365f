/* What a box needs before anything runs: directories that take changes, writable files, ids, cgroup, limits. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "box/lend.h"
#include "box/supervise.h"
#include "kernel/abi.h"
#include "kernel/pidfd.h"
#include "kernel/tree.h"
#include "plan/mounts.h"

static uint64_t add_saturating(uint64_t value, uint64_t more)
{
    return value < UINT64_MAX - more ? value + more : UINT64_MAX;
}

static int make_cgroup(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    struct px_cgroup_limits limits = {
        .memory_bytes = px_policy_limited(policy->memory_bytes) ? policy->memory_bytes : 0,
        .cpu_milli = px_policy_limited(policy->cpus_milli) ? policy->cpus_milli : 0,
        .one_by_one = box->plan->stays,
        .shared = true,
    };
    bool must = limits.memory_bytes || limits.cpu_milli;
    const char *which = "cgroup";

    if ((!must && !policy->pids_counted) || px_policy_without(policy, PX_WITHOUT_CGROUP))
        return 0;
    /* The limit also counts px-init and the processes of the network driver. */
    limits.pids = px_policy_limited(policy->pids) ? add_saturating(policy->pids, 1 + (box->carrier ? box->carrier->processes : 0)) : 0;
    int r = px_cgroup_create(&limits, box->id, &box->cgroup, &which);
    box->has_cgroup = r >= 0;
    struct px_plan *plan = box->plan;
    if (r >= 0) {
        const uint64_t set[PX_CG_COUNT] = {limits.memory_bytes, limits.pids, limits.cpu_milli};
        static const char *const fields[PX_CG_COUNT] = {"memory", "pids", "cpus"};
        for (int i = 0; i < PX_CG_COUNT; i++)
            if (set[i])
                px_plan_has(plan, "%s=cgroup%d", fields[i], box->cgroup.on_v2[i] ? 2 : 1);
        return 0;
    }
    if (must && policy->limits == PX_LIMITS_REQUIRE)
        return px_fail(e, PX_E_CGROUP, r, "--%s needs a cgroup, and the '%s' controller cannot be used here",
                       limits.memory_bytes ? "memory" : "cpus", which);
    if (limits.memory_bytes)
        px_plan_lacks(plan, "memory: no cgroup, RLIMIT_AS per process instead");
    if (limits.cpu_milli)
        px_plan_lacks(plan, "cpus: no cgroup");
    if (!must)
        px_plan_lacks(plan, "pids: no cgroup to count it, rlimit holds");
    return 0;
}

/* Where a cgroup enforces a limit, the rlimit of the same kind is raised, so that the cgroup's limit is hit first.
 * Where there is none and the policy said "try", each process gets the limit that was meant for all of them. */
static void settle_rlimits(struct px_box *box, const struct px_policy *policy)
{
    for (uint32_t i = 0; i < box->plan->count; i++) {
        struct px_step *s = &box->plan->steps[i];
        if (s->op != PX_OP_RLIMIT)
            continue;
        if (s->attr == RLIMIT_NPROC && box->has_cgroup)
            s->num = s->num2 = add_saturating(policy->pids, 64);
        if (s->attr == RLIMIT_AS)
            s->num = s->num2 = box->has_cgroup ? RLIM_INFINITY : policy->memory_bytes;
    }
}

/* The kernel counts descriptors in flight through sockets per user, and refuses to send one more from a process whose
 * RLIMIT_NOFILE is below that count. A box with the caller's own id that leaves many in flight would block every
 * socket of the caller, px's own to its boxes first. So the box may open at most half of what the caller may. */
uint64_t px_supervise_files_max(void)
{
    struct rlimit now = {.rlim_cur = RLIM_INFINITY};
    (void)px_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &now);
    return now.rlim_cur / 2;
}

static void share_files(struct px_plan *plan)
{
    uint64_t max = px_supervise_files_max();
    for (uint32_t i = 0; i < plan->count; i++) {
        struct px_step *s = &plan->steps[i];
        if (s->op != PX_OP_RLIMIT || s->attr != RLIMIT_NOFILE || s->num2 <= max)
            continue;
        s->num = s->num2 = max;
        px_plan_lacks(plan, "nofile: half of the caller's, whose id it has");
    }
}

/* A box that joins another is in that box's user namespace, whose id map is fixed. */
static int not_their_ids(const struct px_policy *policy, int err, struct px_err *e)
{
    bool known = err == -ENOENT || err == -EACCES;
    px_fail(e, PX_E_IDS, known ? 0 : err, "--net %s: the ids of that box do not do for this one", policy->net_box);
    if (err == -ENOENT) {
        px_why(e, "There is no user %u:%u in it.", policy->user.uid, policy->user.gid);
        return px_fix(e, "Give both boxes the same --user.");
    }
    if (err != -EACCES)
        return -1;
    px_why(e, "It was started without files of yours, so that your own id is not among them.");
    return px_fix(e, "Start it with a directory of yours (--work-dir DIR), or leave -v, --work-dir and --rootfs out here.");
}

static int choose_ids(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    struct px_plan *plan = box->plan;
    if (plan->tier != PX_TIER_FULL)
        return 0;
    bool files = plan->binds || plan->root_dir;
    int r = plan->joins ? px_idmap_join(px_pidfd_number(plan->join), policy->user.uid, policy->user.gid, files, &box->ids)
                        : px_idmap_choose(policy->user.uid, policy->user.gid, files, &box->ids);
    if (r < 0)
        return plan->joins ? not_their_ids(policy, r, e) : px_fail(e, PX_E_IDS, r, "no ids can be had for the box");
    px_plan_has(plan, "%s", px_idmap_name(&box->ids));
    if (box->ids.kind == PX_IDMAP_SINGLE) {
        /* There is only one id, so pid 1 has it too, and the kernel forbids setgroups. */
        for (uint32_t i = 0; i < plan->count; i++) {
            struct px_step *s = &plan->steps[i];
            bool init = s->op == PX_OP_INIT || s->op == PX_OP_STAY;
            if (s->op == PX_OP_WAIT || s->op == PX_OP_IDS || init)
                s->flags &= (uint16_t)~PX_STEP_SETGROUPS;
            if (init) {
                s->num = policy->user.uid;
                s->num2 = policy->user.gid;
            }
        }
        px_plan_spare_init(plan);
        share_files(plan);
        px_plan_lacks(plan, "ids: the payload has the caller's own id");
        if (px_sys(SYS_getgroups, 0, 0) > 0)
            px_plan_lacks(plan, "groups: the caller's groups are kept");
    }
    return px_plan_arm(plan, &box->ids, e) < 0 ? -1 : px_lend(box, e);
}

/* A file with privileges (set-id bits, capabilities) keeps them when it is written through a mapping, and no filter
 * can see such a write: the box could run code with the file owner's rights on the host. So the box gets for writing
 * no such file, no directory in which px cannot look for one, and no changes of another running box, which may hold
 * such files. */
static const struct {
    const char *what, *why, *fix;
} unfit[] = {
    [PX_TREE_SET_ID] =
        {"it holds a set-id file",
         "A box that can write such a file could leave a program on the host that runs with its owner's rights.",
         "Or take the bit away: chmod ug-s."},
    [PX_TREE_CAPABILITY] =
        {"it holds a file with capabilities",
         "A box that can write such a file could leave a program on the host that runs with these capabilities.",
         "Or take them away: setcap -r."},
    [PX_TREE_CLOSED] =
        {"it holds a directory that cannot be searched",
         "The box could open it: files with set-id bits or capabilities may be in there.",
         "Or open the directory: chmod u+rwx."},
    [PX_TREE_IN_USE] =
        {"the changes of a box that runs now are in it",
         "Until that box ends they may hold set-id files, which this box could move to where others can reach them.",
         "Or wait for the end of that box, or give it another directory."},
};

static int refuse_unfit(int found, const char *name, const char *path, struct px_err *e)
{
    if (found < 0)
        return px_fail(e, PX_E_BIND, found, "cannot search '%s' for set-id files", path);
    if (found == PX_TREE_NOTHING)
        return 0;
    px_fail(e, PX_E_BIND, 0, "cannot bind '%s' for writing: %s (%s)", path, unfit[found].what, *name ? name : "itself");
    px_why(e, "%s", unfit[found].why);
    return px_fix(e, "Bind it read-only: -v %s:...:ro.\n%s", path, unfit[found].fix);
}

static int check_bind(int fd, const char *path, struct px_err *e)
{
    struct stat st;
    struct px_kernel_tree_search search = {.mark = PX_UPPER_MARK};
    if (fstat(fd, &st) < 0)
        return px_fail(e, PX_E_BIND, errno, "cannot bind '%s'", path);
    int found = S_ISDIR(st.st_mode) ? px_kernel_tree_search(fd, &search) : px_kernel_tree_search_file(fd);
    return refuse_unfit(found, search.name, path, e);
}

/* Opens the directories that take changes. The step after the UPPER step names the lower directory. */
static int open_uppers(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    int count = 0;
    for (uint32_t i = 0; i + 1 < box->plan->count && count < PX_UPPERS; i++) {
        struct px_step *s = &box->plan->steps[i];
        if (s->op != PX_OP_UPPER || !s->src || s->flags & PX_STEP_INSIDE)
            continue;
        bool changes = s[1].op == PX_OP_CHANGES;
        const struct px_upper_want want = {
            .path = px_plan_text(box->plan, s->src),
            .lower_path = px_plan_text(box->plan, s[1].src),
            .lower = s + 1,
            .keep = changes ? !policy->apply && !policy->discard : policy->persist,
            .reuse = changes,
            .note = changes && box->after ? box->after->note : NULL,
        };
        if (px_upper_open(&box->upper[count++], s, &want, e) < 0)
            return -1;
    }
    return 0;
}

/* The directory that takes the changes of this step, or NULL. */
static struct px_upper *upper_of(struct px_box *box, const struct px_step *s)
{
    for (int i = 0; i < PX_UPPERS; i++)
        if (box->upper[i].step == s)
            return &box->upper[i];
    return NULL;
}

/* A source that the caller may not read (-EBADF) is not the caller's to change, unless the caller owns it: then the
 * box could open it. */
static int open_closed(const char *path)
{
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC);
    return fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ? -EBADF : px_fd_take(&fd);
}

/* The source of a writable bind: a descriptor, -EBADF for none, or -1. */
static int open_bind(const struct px_box *box, const struct px_step *s, struct px_err *e)
{
    const char *path = px_plan_text(box->plan, s->src);
    if (s->op != PX_OP_BIND || !(s->flags & PX_STEP_CALLER) || s->attr & PX_MOUNT_RDONLY)
        return -EBADF;
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd == -EACCES)
        fd = open_closed(path);
    if (fd == -EBADF)
        return fd;
    if (fd < 0)
        return px_fail(e, PX_E_BIND, fd, "cannot bind '%s'", path);
    if (fstat(fd, &st) < 0 || st.st_dev != s->num || st.st_ino != s->num2)
        return px_fail(e, PX_E_BIND, ESTALE, "cannot bind '%s'", path);
    return check_bind(fd, path, e) < 0 ? -1 : px_fd_take(&fd);
}

/* Changes that an earlier run kept, or left when it was killed, lose their set-id bits and capabilities. */
static int open_changes(struct px_box *box, const struct px_upper *upper, const char *path, struct px_err *e)
{
    px_auto_fd int fd = (int)px_sys(SYS_fcntl, upper->upper, F_DUPFD_CLOEXEC, 3);
    int r = fd < 0 ? fd : px_kernel_tree_strip(fd, INT64_MIN);
    if (r < 0)
        return px_fail(e, PX_E_OVERLAY, r, "cannot search '%s' for set-id files", path);
    box->stripped += r;
    return px_fd_take(&fd);
}

static int open_writable(struct px_box *box, struct px_err *e)
{
    const struct px_plan *plan = box->plan;
    for (uint32_t i = 0; plan->writable_binds && i < plan->count; i++) {
        const struct px_step *s = &plan->steps[i];
        const struct px_upper *upper = upper_of(box, s);
        int fd = upper ? open_changes(box, upper, px_plan_text(plan, s->src), e) : open_bind(box, s, e);
        if (fd == -EBADF)
            continue;
        if (fd < 0)
            return -1;
        int *more = realloc(box->writable, (box->writable_count + 1) * sizeof *more);
        if (!more) {
            (void)px_fd_close(fd);
            return px_no_memory(e);
        }
        box->writable = more;
        box->writable[box->writable_count++] = fd;
    }
    if (!box->writable_count || !px_policy_limited(box->disk_bytes))
        return 0;
    px_disk_start(&box->disk, box->writable, box->writable_count, box->disk_bytes, px_mounts_inodes(box->disk_bytes));
    if (plan->stays)
        box->verdict = px_fd_above_stdio(px_fd_memory("px-verdict", "", 0, 0));
    return plan->stays && box->verdict < 0 ? px_fail(e, PX_E_IO, box->verdict, "cannot keep a record of the box") : 0;
}

int px_supervise_prepare(struct px_box *box, const struct px_policy *policy, struct px_err *e)
{
    if (open_uppers(box, policy, e) < 0 || open_writable(box, e) < 0 || choose_ids(box, policy, e) < 0 ||
        make_cgroup(box, policy, e) < 0)
        return -1;
    settle_rlimits(box, policy);
    return 0;
}
