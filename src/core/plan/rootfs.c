/* The file system of a box: skeleton, base, /proc, /dev. What the policy mounts on top is in plan/mounts.c. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "plan/mounts.h"
#include "plan/steps.h"

enum {
    RO = PX_STEPS_RO,
    RW = PX_STEPS_RW,
    PROC_ATTR = PX_MOUNT_NOSUID | PX_MOUNT_NODEV | PX_MOUNT_NOEXEC,
    ROOT_BYTES = 8 << 20,       /* of the skeleton: directories and a few small files */
    ROOT_INODES = 4096,
    PTYS = 64,
};

const char px_rootfs_home[] = "/home/sandbox";

/* ---- the base ---- */

/* Directories of the host's programs, unless they are links. */
static const char *const base_dirs[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};

/* /bin, /lib and others: links where the host has merged them into /usr, binds where it has not. */
static void add_merged(struct px_plan *plan)
{
    for (size_t i = 1; i < PX_COUNT_OF(base_dirs); i++) {
        char to[PATH_MAX];
        struct stat st;
        const char *name = base_dirs[i];
        ssize_t n = readlink(name, to, sizeof to - 1);
        if (n > 0) {
            to[n] = '\0';
            px_steps_link(plan, to, name);
        } else if (stat(name, &st) == 0 && S_ISDIR(st.st_mode)) {
            px_steps_dir(plan, name, 0755, 0);
            px_steps_bind(plan, name, name, RO, &st);
        }
    }
}

/* Debian has python3 and no python, which most people and models write. The files here appear in /usr where the
 * host's /usr has none of that name. A box of a template has only everybody's permissions on them. */
static const char added[] = "/etc/px/usr", added_python[] = "/etc/px/usr/bin/python";

/* An overlay over the binds, which a template's boxes share, gives each box inodes of its own. Links need none. */
static void add_own_inodes(struct px_plan *plan)
{
    for (uint32_t i = 0, count = plan->count; i < count; i++) {
        const char *path = px_plan_text(plan, plan->steps[i].dst);
        if (plan->steps[i].op != PX_OP_BIND || plan->steps[i].flags & PX_STEP_FILE || px_equal(path, "/etc/alternatives"))
            continue;
        bool adds = px_equal(path, "/usr") && px_steps_has(plan, PX_OP_SYMLINK, added_python);
        struct px_step *s = px_steps_at(plan, PX_OP_OWN_INODES, path);
        s->attr = RO;
        s->src = adds ? px_steps_text(plan, added) : 0;         /* `path` is invalid after this: the arena may move */
    }
}

static void add_python(struct px_plan *plan)
{
    static const char *const places[] = {"/usr/local/bin/python", "/usr/bin/python", "/bin/python"};
    struct stat st;
    for (size_t i = 0; i < PX_COUNT_OF(places); i++)
        if (stat(places[i], &st) == 0)
            return;
    if (stat("/usr/bin/python3", &st) < 0)
        return;
    px_steps_dirs(plan, added_python, false, 0);
    px_steps_link(plan, "python3", added_python);
}

static int add_host_base(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    struct stat st;

    px_steps_dirs(plan, "/usr", true, 0);
    if (stat("/usr", &st) < 0)
        return px_fail(e, PX_E_MOUNT, errno, "the host has no /usr");
    px_steps_bind(plan, "/usr", "/usr", RO, &st);
    add_merged(plan);
    px_etc_made(plan, policy);
    px_etc_host(plan, policy);
    return 0;
}

static int add_root(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    const char *dir = px_policy_root_dir(policy);
    struct px_step *root = px_steps_add(plan, PX_OP_ROOT);
    root->num = ROOT_BYTES;
    root->num2 = ROOT_INODES;
    root->attr = RW;
    root->flags = policy->overlay ? PX_STEP_OWNED : 0;

    if (!dir)
        return add_host_base(plan, policy, e);
    struct stat st;
    if (stat(dir, &st) < 0)
        return px_fail(e, PX_E_ROOTFS, errno, "cannot use '%s' as a root", dir);
    if (!S_ISDIR(st.st_mode)) {
        px_fail(e, PX_E_ROOTFS, 0, "cannot use '%s' as a root: it is not a directory", dir);
        return px_fix(e, "Give a directory, or an archive that is a regular file.");
    }
    plan->root_dir = true;
    if (!policy->build)         /* a build box changes the accounts of the root itself */
        px_etc_made(plan, policy);
    return 0;
}

/* What takes the changes of the root. A directory is inspected when the box starts (box/upper.c): a plan makes none. */
static void add_upper(struct px_plan *plan, const struct px_policy *policy)
{
    bool memory = *policy->overlay == '\0';
    uint32_t src = px_steps_text(plan, policy->overlay);
    struct px_step *s = px_steps_at(plan, PX_OP_UPPER, "/sys");
    s->src = src;
    s->attr = RW;
    if (memory) {
        s->num = px_mounts_upper_bytes(policy);
        s->num2 = px_mounts_inodes(s->num);
    }
    plan->writable_binds = plan->writable_binds || !memory;
    px_plan_has(plan, "overlay=%s", memory ? "memory" : policy->persist ? "directory, kept" : "directory");
}

static unsigned overlay_flags(const struct px_policy *policy)
{
    return (policy->overlay ? PX_STEP_UPPER : 0u) | (policy->overlay && !policy->persist ? PX_STEP_VOLATILE : 0u) |
           (px_mounts_shares_upper(policy) ? PX_STEP_SHARED : 0u);
}

/* Comes after every MKDIR, SYMLINK and FILE of the skeleton and before the first mount. */
static int add_overlay(struct px_plan *plan, const struct px_policy *policy, const char *dir, struct px_err *e)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return px_fail(e, PX_E_ROOTFS, errno, "cannot use '%s' as a root", dir);
    uint32_t src = px_steps_host_path(plan, dir);
    struct px_step *s = px_steps_add(plan, PX_OP_OVERLAY);
    s->src = src;
    s->attr = policy->overlay ? RW : RO;
    s->flags = (uint16_t)overlay_flags(policy);
    s->num = st.st_dev;
    s->num2 = st.st_ino;
    return 0;
}

/* ---- /proc and /dev ---- */

static const char *const proc_readonly[] = {"/proc/sys", "/proc/irq", "/proc/bus", "/proc/pressure"};

/* Files that tell more about the host than a box should know. Entries that only the host's root may open cannot be
 * reached anyway (no id of a box is the host's 0) and cost no mount; tests check each name, not each mount. */
static const char *const proc_masks[] = {
    "kcore", "keys", "key-users", "kmsg", "kallsyms", "kpagecgroup", "kpagecount", "kpageflags", "timer_list", "sched_debug",
    "interrupts", "softirqs", "iomem", "ioports", "vmallocinfo", "slabinfo", "pagetypeinfo", "buddyinfo", "cmdline", "config.gz",
    "modules", "partitions", "diskstats", "swaps", "consoles", "sysrq-trigger", "latency_stats", "mtrr", "locks",
    "cgroups", "fs",
    "acpi", "scsi", "driver", "tty", "asound",
};

static int add_proc(struct px_plan *plan, struct px_err *e)
{
    px_steps_at(plan, PX_OP_PROC, "/proc")->attr = PROC_ATTR;
    for (size_t i = 0; i < PX_COUNT_OF(proc_readonly); i++)
        px_steps_at(plan, PX_OP_READONLY, proc_readonly[i])->attr = PROC_ATTR | PX_MOUNT_RDONLY;
    for (size_t i = 0; i < PX_COUNT_OF(proc_masks); i++) {
        char path[64];
        struct stat st;
        if (px_fmt(path, sizeof path, "/proc/%s", proc_masks[i]) < 0)
            continue;
        if (stat(path, &st) < 0) {
            if (errno == ENOENT)
                continue;
            return px_fail(e, PX_E_MOUNT, errno, "cannot see what '%s' is", path);
        }
        if (!(st.st_mode & 07))
            continue;
        struct px_step *s = px_steps_at(plan, PX_OP_MASK, path);
        /* A copy of /dev/null has its attributes already; the empty directory must not be writable. */
        s->attr = S_ISDIR(st.st_mode) ? RO | PX_MOUNT_NOEXEC : 0;
        s->flags = S_ISDIR(st.st_mode) ? PX_STEP_DIRECTORY : 0;
    }
    return 0;
}

static const struct {
    const char *path;
    unsigned major, minor;
} devices[] = {
    {"/dev/null", 1, 3}, {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
    {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
};

const char *px_rootfs_device(size_t index)
{
    return index < PX_COUNT_OF(devices) ? devices[index].path : NULL;
}

static void add_dev_skeleton(struct px_plan *plan)
{
    static const char *const links[][2] = {
        {"pts/ptmx", "/dev/ptmx"},         {"/proc/self/fd", "/dev/fd"},       {"/proc/self/fd/0", "/dev/stdin"},
        {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
    };
    px_steps_dir(plan, "/dev", 0755, 0);
    for (size_t i = 0; i < PX_COUNT_OF(devices); i++)
        px_steps_file(plan, devices[i].path, "");
    px_steps_dir(plan, "/dev/pts", 0755, 0);
    for (size_t i = 0; i < PX_COUNT_OF(links); i++)
        px_steps_link(plan, links[i][0], links[i][1]);
}

static void add_dev_mounts(struct px_plan *plan)
{
    for (size_t i = 0; i < PX_COUNT_OF(devices); i++) {
        uint32_t at = px_steps_text(plan, devices[i].path);
        struct px_step *s = px_steps_add(plan, PX_OP_BIND);
        s->src = s->dst = at;
        s->flags = PX_STEP_DEVICE | PX_STEP_FILE;
        s->attr = PX_MOUNT_NOSUID | PX_MOUNT_NOEXEC;
        s->num = makedev(devices[i].major, devices[i].minor);
    }
    struct px_step *pts = px_steps_at(plan, PX_OP_DEVPTS, "/dev/pts");
    pts->attr = PX_MOUNT_NOSUID | PX_MOUNT_NOEXEC;
    pts->num = PTYS;
}

static int plan_with(struct px_plan *plan, const struct px_policy *policy, const struct px_mounts *places, struct px_err *e)
{
    const char *dir = px_policy_root_dir(policy);

    if (policy->overlay)        /* what the payload may change is its own, the skeleton too */
        px_steps_add(plan, PX_OP_FILE_IDS)->flags = PX_STEP_OWNED;
    if (add_root(plan, policy, e) < 0)
        return -1;
    px_steps_dirs(plan, px_rootfs_home, true, 0);
    px_steps_dir(plan, "/proc", 0555, 0);
    px_steps_dir(plan, "/sys", 0555, 0);
    if (!policy->overlay)       /* nobody may list it; a bind in it can be reached by name */
        px_steps_dir(plan, "/root", px_mounts_below(places, "/root") ? 0111 : 0, 0);
    if (!dir)
        add_python(plan);
    add_dev_skeleton(plan);
    px_mounts_skeleton(plan, places);
    if (!dir && !px_steps_has(plan, PX_OP_MKDIR, "/var/tmp")) {
        px_steps_dirs(plan, "/var", true, 0);
        px_steps_link(plan, "../tmp", "/var/tmp");
        px_steps_dirs(plan, "/run", true, 0);
    }
    if (policy->overlay)
        add_upper(plan, policy);
    if (dir && add_overlay(plan, policy, dir, e) < 0)
        return -1;
    if (policy->overlay)
        px_steps_add(plan, PX_OP_FILE_IDS);
    add_dev_mounts(plan);
    if (!dir)
        add_own_inodes(plan);
    if (add_proc(plan, e) < 0)
        return -1;
    px_mounts_mounts(plan, places);
    px_steps_add(plan, PX_OP_SEAL)->attr = policy->overlay ? RW : RO;
    px_steps_add(plan, PX_OP_PIVOT);
    return 0;
}

int px_rootfs_plan(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    struct px_mounts places;
    if (px_mounts_init(&places, policy, e) < 0)
        return -1;
    int r = plan_with(plan, policy, &places, e);
    px_mounts_done(&places);
    return r;
}
