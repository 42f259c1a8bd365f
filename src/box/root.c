/* The file system of a box: skeleton, base, /proc, /dev, writable directories, the caller's files. */
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
#include "box/steps.h"
#include "kernel/abi.h"

enum {
    RO = PX_MOUNT_RDONLY | PX_MOUNT_NOSUID | PX_MOUNT_NODEV,
    RW = PX_MOUNT_NOSUID | PX_MOUNT_NODEV,
    PROC_ATTR = PX_MOUNT_NOSUID | PX_MOUNT_NODEV | PX_MOUNT_NOEXEC,
    ROOT_BYTES = 4 << 20,       /* of the skeleton: directories and a few small files */
    ROOT_INODES = 4096,
    PTYS = 64,
};

const char px_root_home[] = "/home/sandbox";

/* ---- the base ---- */

/* Files of the host's /etc that programs of /usr cannot do without. */
static const char *const etc_binds[] = {"/etc/alternatives", "/etc/ld.so.cache"};

static void add_etc(struct px_plan *plan, const struct px_policy *policy)
{
    char text[512];
    uint32_t uid = policy->user.uid, gid = policy->user.gid;

    px_steps_dirs(plan, "/etc", true, 0);
    (void)px_fmt(text, sizeof text,
                 "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:%u:%u:sandbox:%s:/bin/bash\n"
                 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", uid, gid, px_root_home);
    px_steps_file(plan, "/etc/passwd", text);
    (void)px_fmt(text, sizeof text, "root:x:0:\ntty:x:5:\nsandbox:x:%u:\nnogroup:x:65534:\n", gid);
    px_steps_file(plan, "/etc/group", text);
    (void)px_fmt(text, sizeof text, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 %s\n", policy->hostname);
    px_steps_file(plan, "/etc/hosts", text);
    (void)px_fmt(text, sizeof text, "%s\n", policy->hostname);
    px_steps_file(plan, "/etc/hostname", text);
    px_steps_file(plan, "/etc/resolv.conf", "");
    px_steps_file(plan, "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
}

/* /bin, /lib and friends: links where the host has merged them into /usr, binds where it has not. */
static void add_merged(struct px_plan *plan)
{
    static const char *const names[] = {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};
    for (size_t i = 0; i < PX_COUNT_OF(names); i++) {
        char to[PATH_MAX];
        struct stat st;
        ssize_t n = readlink(names[i], to, sizeof to - 1);
        if (n > 0) {
            to[n] = '\0';
            px_steps_link(plan, to, names[i]);
        } else if (stat(names[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            px_steps_dir(plan, names[i], 0755, 0);
            px_steps_bind(plan, names[i], names[i], RO, &st);
        }
    }
}

static int add_host_base(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    struct stat st;
    char zone[PATH_MAX];

    px_steps_dirs(plan, "/usr", true, 0);
    if (stat("/usr", &st) < 0)
        return px_fail(e, PX_E_MOUNT, errno, "the host has no /usr");
    px_steps_bind(plan, "/usr", "/usr", RO, &st);
    add_merged(plan);
    add_etc(plan, policy);
    for (size_t i = 0; i < PX_COUNT_OF(etc_binds); i++) {
        if (stat(etc_binds[i], &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode))
            px_steps_dir(plan, etc_binds[i], 0755, 0);
        else
            px_steps_file(plan, etc_binds[i], "");
        px_steps_bind(plan, etc_binds[i], etc_binds[i], RO, &st);
    }
    px_steps_link(plan, "../usr/lib/os-release", "/etc/os-release");
    ssize_t n = readlink("/etc/localtime", zone, sizeof zone - 1);
    if (n > 0) {
        zone[n] = '\0';
        if (px_starts_with(zone, "/usr/"))
            px_steps_link(plan, zone, "/etc/localtime");
    }
    return 0;
}

static int add_root(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    const char *dir = policy->rootfs ? policy->rootfs : px_equal(policy->base, "host") ? NULL : policy->base;
    struct px_step *root = px_steps_add(plan, PX_OP_ROOT);
    root->num = ROOT_BYTES;
    root->num2 = ROOT_INODES;
    root->attr = RW;

    if (!dir)
        return add_host_base(plan, policy, e);
    struct stat st;
    if (stat(dir, &st) < 0)
        return px_fail(e, PX_E_ROOTFS, errno, "cannot use '%s' as a root", dir);
    if (!S_ISDIR(st.st_mode)) {
        px_fail(e, PX_E_ROOTFS, 0, "cannot use '%s' as a root: it is not a directory", dir);
        return px_fix(e, "Unpack the archive into a directory and give that; archives are not part of this build.");
    }
    add_etc(plan, policy);
    return 0;
}

/* Comes after every MKDIR, SYMLINK and FILE of the skeleton and before the first mount. */
static int add_overlay(struct px_plan *plan, const char *dir, struct px_err *e)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return px_fail(e, PX_E_ROOTFS, errno, "cannot use '%s' as a root", dir);
    uint32_t src = px_steps_host_path(plan, dir);
    struct px_step *s = px_steps_add(plan, PX_OP_OVERLAY);
    s->src = src;
    s->attr = RO;
    s->num = st.st_dev;
    s->num2 = st.st_ino;
    return 0;
}

/* ---- /proc and /dev ---- */

static const char *const proc_readonly[] = {"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"};

/* What tells more about the host than a box should know. Entries that only the host's root may open are out of reach by
 * construction (no id of a box is host 0) and cost no mount; tests check each name, not each mount. */
static const char *const proc_masks[] = {
    "kcore", "keys", "key-users", "kmsg", "kallsyms", "kpagecgroup", "kpagecount", "kpageflags", "timer_list", "sched_debug",
    "interrupts", "softirqs", "iomem", "ioports", "vmallocinfo", "slabinfo", "pagetypeinfo", "buddyinfo", "cmdline", "config.gz",
    "modules", "partitions", "diskstats", "swaps", "consoles", "sysrq-trigger", "latency_stats", "mtrr",
    "acpi", "scsi", "driver", "tty", "asound",
};

static void add_proc(struct px_plan *plan)
{
    px_steps_at(plan, PX_OP_PROC, "/proc")->attr = PROC_ATTR;
    for (size_t i = 0; i < PX_COUNT_OF(proc_readonly); i++)
        px_steps_at(plan, PX_OP_READONLY, proc_readonly[i])->attr = PROC_ATTR | PX_MOUNT_RDONLY;
    for (size_t i = 0; i < PX_COUNT_OF(proc_masks); i++) {
        char path[64];
        struct stat st;
        if (px_fmt(path, sizeof path, "/proc/%s", proc_masks[i]) < 0 || stat(path, &st) < 0 || !(st.st_mode & 07))
            continue;
        struct px_step *s = px_steps_at(plan, PX_OP_MASK, path);
        /* A copy of our /dev/null has its attributes already; the empty directory must not be writable. */
        s->attr = S_ISDIR(st.st_mode) ? RO | PX_MOUNT_NOEXEC : 0;
        s->flags = S_ISDIR(st.st_mode) ? PX_STEP_DIRECTORY : 0;
    }
}

static const struct {
    const char *path;
    unsigned major, minor;
} devices[] = {
    {"/dev/null", 1, 3}, {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
    {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
};

const char *px_root_device(size_t index)
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

/* ---- writable directories and the caller's files ---- */

static bool bound(const struct px_policy *policy, const char *target)
{
    for (size_t i = 0; i < policy->binds.count; i++)
        if (px_equal(policy->binds.items[i].target, target))
            return true;
    return policy->work_dir && px_equal(policy->work_target, target);
}

static uint64_t inodes_for(uint64_t bytes)
{
    return bytes / 4096 < 1024 ? 1024 : bytes / 4096;
}

static const char scratch[] = "/.scratch";

static unsigned tmpfs_attr(const struct px_tmpfs *t)
{
    return RW | (t->noexec ? PX_MOUNT_NOEXEC : 0);
}

/* With --disk all writable directories are parts of one tmpfs, so that the bound holds for their sum. */
static void add_scratch_part(struct px_plan *plan, const struct px_tmpfs *t, size_t index)
{
    char part[64];
    (void)px_fmt(part, sizeof part, "%s/%zu", scratch, index);
    px_steps_dir(plan, part, 0755, PX_STEP_OWNED);
    uint32_t src = px_steps_text(plan, part);
    struct px_step *s = px_steps_at(plan, PX_OP_BIND, t->target);
    s->src = src;
    s->flags = PX_STEP_INSIDE;
    s->attr = tmpfs_attr(t);
}

static void add_writable(struct px_plan *plan, const struct px_policy *policy)
{
    bool shared = policy->disk_bytes && policy->disk_bytes != PX_UNLIMITED;
    if (shared) {
        struct px_step *s = px_steps_at(plan, PX_OP_TMPFS, scratch);
        s->num = policy->disk_bytes;
        s->num2 = inodes_for(policy->disk_bytes);
        s->attr = RW;
    }
    for (size_t i = 0; i < policy->tmpfs.count; i++) {
        const struct px_tmpfs *t = &policy->tmpfs.items[i];
        if (bound(policy, t->target))
            continue;
        if (shared) {
            add_scratch_part(plan, t, i);
            continue;
        }
        struct px_step *s = px_steps_at(plan, PX_OP_TMPFS, t->target);
        s->num = t->bytes;
        s->num2 = inodes_for(t->bytes);
        s->attr = tmpfs_attr(t);
        s->flags = px_equal(t->target, px_root_home) ? PX_STEP_OWNED : 0;
    }
    if (shared)
        px_steps_at(plan, PX_OP_DETACH, scratch);
}

static bool within_any(const char *path, const char *const list[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (px_path_within(path, list[i]))
            return true;
    return false;
}

static int check_source(const struct px_bind *b, const struct stat *st, struct px_err *e)
{
    if (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode))
        return 0;
    px_fail(e, PX_E_BIND, 0, "cannot bind '%s': it is a %s", b->source,
            S_ISSOCK(st->st_mode) ? "socket, and a socket is a door into the host" : "device or a pipe");
    return px_fix(e, "Bind a file or a directory.");
}

/* Whether the place belongs to the skeleton (then we make the mount point) or to somebody's tree (then it must exist). */
static bool ours(const struct px_policy *policy, size_t index, const char *target)
{
    if (px_path_within(target, "/usr"))
        return false;
    for (size_t i = 0; i < index; i++)
        if (px_path_within(target, policy->binds.items[i].target))
            return false;
    return !(policy->work_dir && px_path_within(target, policy->work_target));
}

static const struct px_tmpfs *tmpfs_around(const struct px_policy *policy, const char *target)
{
    for (size_t i = 0; i < policy->tmpfs.count; i++) {
        const struct px_tmpfs *t = &policy->tmpfs.items[i];
        if (px_path_within(target, t->target) && !px_equal(target, t->target) && !bound(policy, t->target))
            return t;
    }
    return NULL;
}

/* The mount point of a bind or tmpfs, in the skeleton. */
static void add_target(struct px_plan *plan, const char *target, bool file)
{
    px_steps_dirs(plan, target, !file, 0);
    if (file && !px_steps_has(plan, PX_OP_FILE, target))
        px_steps_file(plan, target, "");
}

static int bind_source(const struct px_bind *b, struct stat *st, struct px_err *e)
{
    static const char *const kernel_made[] = {"/proc", "/dev", "/sys"};
    if (within_any(b->target, kernel_made, PX_COUNT_OF(kernel_made))) {
        px_fail(e, PX_E_BIND, 0, "cannot bind '%s' to '%s': the box makes that directory itself", b->source, b->target);
        return px_fix(e, "Choose another place in the box, such as /workspace.");
    }
    if (stat(b->source, st) < 0)
        return px_fail(e, PX_E_BIND, errno, "cannot bind '%s'", b->source);
    return check_source(b, st, e);
}

static int add_user_bind(struct px_plan *plan, const struct px_policy *policy, const struct px_bind *b, size_t index,
                         struct px_err *e)
{
    struct stat st;
    if (bind_source(b, &st, e) < 0)
        return -1;
    const struct px_tmpfs *around = tmpfs_around(policy, b->target);
    if (around && ours(policy, index, b->target)) {     /* inside a tmpfs: made once that is mounted, the payload's own */
        px_steps_dirs(plan, b->target, S_ISDIR(st.st_mode), PX_STEP_OWNED);
        if (!S_ISDIR(st.st_mode))
            px_steps_file(plan, b->target, "");
    }
    px_steps_bind(plan, b->source, b->target, b->writable ? RW : RO, &st)->flags |= PX_STEP_IDMAP;
    plan->binds = true;
    plan->writable_binds = plan->writable_binds || b->writable;
    return 0;
}

static int compare_depth(const void *a, const void *b)
{
    return strcmp((*(struct px_bind *const *)a)->target, (*(struct px_bind *const *)b)->target);
}

/* The work directory first, then the binds with parents before children. */
static int add_user_binds(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    struct px_bind work = {.source = policy->work_dir, .target = policy->work_target, .writable = true};
    const struct px_bind *sorted[PX_LIST_MAX];

    if (policy->work_dir && add_user_bind(plan, policy, &work, 0, e) < 0)
        return -1;
    for (size_t i = 0; i < policy->binds.count; i++)
        sorted[i] = &policy->binds.items[i];
    qsort(sorted, policy->binds.count, sizeof sorted[0], compare_depth);
    for (size_t i = 0; i < policy->binds.count; i++)
        if (add_user_bind(plan, policy, sorted[i], (size_t)(sorted[i] - policy->binds.items), e) < 0)
            return -1;
    return 0;
}

/* Every mount point that lies in the skeleton; those inside a tmpfs come after its mount. */
static int add_targets(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    for (size_t i = 0; i < policy->tmpfs.count; i++)
        if (!tmpfs_around(policy, policy->tmpfs.items[i].target))
            add_target(plan, policy->tmpfs.items[i].target, false);
    if (policy->work_dir && !tmpfs_around(policy, policy->work_target))
        add_target(plan, policy->work_target, false);
    for (size_t i = 0; i < policy->binds.count; i++) {
        const struct px_bind *b = &policy->binds.items[i];
        struct stat st;
        if (bind_source(b, &st, e) < 0)
            return -1;
        if (ours(policy, i, b->target) && !tmpfs_around(policy, b->target))
            add_target(plan, b->target, !S_ISDIR(st.st_mode));
    }
    if (policy->disk_bytes && policy->disk_bytes != PX_UNLIMITED)
        px_steps_dir(plan, scratch, 0700, 0);
    return 0;
}

int px_root_plan(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    const char *dir = policy->rootfs ? policy->rootfs : px_equal(policy->base, "host") ? NULL : policy->base;

    if (add_root(plan, policy, e) < 0)
        return -1;
    px_steps_dirs(plan, px_root_home, true, 0);
    px_steps_dir(plan, "/proc", 0555, 0);
    px_steps_dir(plan, "/sys", 0555, 0);
    px_steps_dir(plan, "/root", 0, 0);
    add_dev_skeleton(plan);
    if (add_targets(plan, policy, e) < 0)
        return -1;
    if (!dir && !px_steps_has(plan, PX_OP_MKDIR, "/var/tmp")) {
        px_steps_dirs(plan, "/var", true, 0);
        px_steps_link(plan, "../tmp", "/var/tmp");
        px_steps_dirs(plan, "/run", true, 0);
    }
    if (dir && add_overlay(plan, dir, e) < 0)
        return -1;
    add_dev_mounts(plan);
    add_proc(plan);
    add_writable(plan, policy);
    if (add_user_binds(plan, policy, e) < 0)
        return -1;
    px_steps_add(plan, PX_OP_SEAL)->attr = RO;
    px_steps_add(plan, PX_OP_PIVOT);
    return 0;
}
