#include "box/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "kernel/idmap.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/seccomp.h"

enum {
    RO = PX_MOUNT_RDONLY | PX_MOUNT_NOSUID | PX_MOUNT_NODEV,
    RW = PX_MOUNT_NOSUID | PX_MOUNT_NODEV,
    PROC_ATTR = PX_MOUNT_NOSUID | PX_MOUNT_NODEV | PX_MOUNT_NOEXEC,
    ROOT_BYTES = 4 << 20,       /* of the skeleton: directories and a few small files */
    ROOT_INODES = 4096,
    PTYS = 64,
};

static const char home_path[] = "/home/sandbox";
static const char search_path[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

static bool limited(uint64_t value)
{
    return value != 0 && value != PX_UNLIMITED;
}

/* ---- words of the steps ---- */

static const struct {
    const char *word;
    int stage, code;
} ops[PX_OP_COUNT] = {
#define PX_OP(name, word, stage, code) [PX_OP_##name] = {word, stage, PX_E_##code},
#include "box/ops.def"
#undef PX_OP
};

const char *px_op_word(enum px_op op)
{
    return ops[op].word;
}

int px_op_code(enum px_op op)
{
    return ops[op].code;
}

int px_op_stage(enum px_op op)
{
    return ops[op].stage;
}

const char *px_plan_text(const struct px_plan *plan, uint32_t offset)
{
    return plan->text.data + offset;
}

void px_plan_note(char list[40][64], uint32_t *count, const char *fmt, ...)
{
    va_list args;
    if (*count >= 40)
        return;
    va_start(args, fmt);
    (void)vsnprintf(list[(*count)++], 64, fmt, args);
    va_end(args);
}

#define HAS(plan, ...) px_plan_note((plan)->mechanisms, &(plan)->mechanisms_count, __VA_ARGS__)
#define LACKS(plan, ...) px_plan_note((plan)->missing, &(plan)->missing_count, __VA_ARGS__)

/* ---- adding steps ---- */

static uint32_t add_bytes(struct px_plan *plan, const char *data, size_t len)
{
    size_t at = plan->text.len;
    px_buf_add(&plan->text, data, len);
    px_buf_putc(&plan->text, '\0');
    return plan->text.err < 0 ? 0 : (uint32_t)at;
}

static uint32_t add_text(struct px_plan *plan, const char *text)
{
    return text && *text ? add_bytes(plan, text, strlen(text)) : 0;
}

/* The arena's sticky error also stands for "too many steps", so that builders need not check each one. */
static struct px_step *add_step(struct px_plan *plan, enum px_op op)
{
    if (plan->count >= PX_STEPS_MAX) {
        plan->text.err = plan->text.err < 0 ? plan->text.err : -E2BIG;
        plan->count = PX_STEPS_MAX - 1;
    }
    struct px_step *s = &plan->steps[plan->count++];
    *s = (struct px_step){.op = (uint16_t)op, .fd = -1};
    return s;
}

static struct px_step *add_path(struct px_plan *plan, enum px_op op, const char *dst)
{
    uint32_t at = add_text(plan, dst);
    struct px_step *s = add_step(plan, op);
    s->dst = at;
    return s;
}

static void add_dir(struct px_plan *plan, const char *path, unsigned mode, unsigned flags)
{
    struct px_step *s = add_path(plan, PX_OP_MKDIR, path);
    s->attr = mode;
    s->flags = (uint16_t)flags;
}

static void add_link(struct px_plan *plan, const char *to, const char *path)
{
    uint32_t src = add_text(plan, to);
    add_path(plan, PX_OP_SYMLINK, path)->src = src;
}

static void add_file(struct px_plan *plan, const char *path, const char *content)
{
    uint32_t src = add_text(plan, content);
    struct px_step *s = add_path(plan, PX_OP_FILE, path);
    s->src = src;
    s->num = strlen(content);
    s->attr = 0644;
}

static bool has_step(const struct px_plan *plan, enum px_op op, const char *dst)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == op && px_equal(px_plan_text(plan, plan->steps[i].dst), dst))
            return true;
    return false;
}

/* Directories from the root down to the parent of path (or to path itself), each once. */
static void add_dirs(struct px_plan *plan, const char *path, bool itself, unsigned flags)
{
    char part[PATH_MAX];
    for (size_t n = 1; path[n - 1]; n++) {
        if (path[n] != '/' && path[n] != '\0')
            continue;
        if (path[n] == '\0' && !itself)
            break;
        memcpy(part, path, n);
        part[n] = '\0';
        if (!has_step(plan, PX_OP_MKDIR, part) && !has_step(plan, PX_OP_SYMLINK, part))
            add_dir(plan, part, 0755, flags);
        if (path[n] == '\0')
            break;
    }
}

/* The child looks from another directory than the caller, so a relative path gets the caller's in front. */
static uint32_t add_host_path(struct px_plan *plan, const char *path)
{
    char where[PATH_MAX];
    uint32_t at = (uint32_t)plan->text.len;
    if (path[0] == '/')
        return add_text(plan, path);
    if (!getcwd(where, sizeof where)) {
        plan->text.err = plan->text.err < 0 ? plan->text.err : -ENOENT;
        return 0;
    }
    px_buf_puts(&plan->text, where);
    px_buf_putc(&plan->text, '/');
    px_buf_add(&plan->text, path, strlen(path) + 1);
    return at;
}

/* A bind of something of the host, pinned to the object that is there now. */
static int add_bind(struct px_plan *plan, const char *source, const char *target, unsigned attr, struct stat *ret_st)
{
    if (stat(source, ret_st) < 0)
        return -errno;
    uint32_t src = add_host_path(plan, source);
    struct px_step *s = add_path(plan, PX_OP_BIND, target);
    s->src = src;
    s->attr = attr;
    s->num = ret_st->st_dev;
    s->num2 = ret_st->st_ino;
    if (!S_ISDIR(ret_st->st_mode))
        s->flags |= PX_STEP_FILE;
    return 0;
}

/* ---- the root ---- */

/* Files of the host's /etc that programs of /usr cannot do without. */
static const char *const etc_binds[] = {"/etc/alternatives", "/etc/ld.so.cache"};

static void add_etc(struct px_plan *plan, const struct px_policy *policy)
{
    char text[512];
    uint32_t uid = policy->user.uid, gid = policy->user.gid;

    add_dirs(plan, "/etc", true, 0);
    (void)px_fmt(text, sizeof text,
                 "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:%u:%u:sandbox:%s:/bin/bash\n"
                 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", uid, gid, home_path);
    add_file(plan, "/etc/passwd", text);
    (void)px_fmt(text, sizeof text, "root:x:0:\ntty:x:5:\nsandbox:x:%u:\nnogroup:x:65534:\n", gid);
    add_file(plan, "/etc/group", text);
    (void)px_fmt(text, sizeof text, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 %s\n", policy->hostname);
    add_file(plan, "/etc/hosts", text);
    (void)px_fmt(text, sizeof text, "%s\n", policy->hostname);
    add_file(plan, "/etc/hostname", text);
    add_file(plan, "/etc/resolv.conf", "");
    add_file(plan, "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
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
            add_link(plan, to, names[i]);
        } else if (stat(names[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            add_dir(plan, names[i], 0755, 0);
            (void)add_bind(plan, names[i], names[i], RO, &st);
        }
    }
}

static int add_host_base(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    struct stat st;
    char zone[PATH_MAX];

    add_dirs(plan, "/usr", true, 0);
    if (add_bind(plan, "/usr", "/usr", RO, &st) < 0)
        return px_fail(e, PX_E_MOUNT, errno, "the host has no /usr");
    add_merged(plan);
    add_etc(plan, policy);
    for (size_t i = 0; i < PX_COUNT_OF(etc_binds); i++) {
        if (stat(etc_binds[i], &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode))
            add_dir(plan, etc_binds[i], 0755, 0);
        else
            add_file(plan, etc_binds[i], "");
        (void)add_bind(plan, etc_binds[i], etc_binds[i], RO, &st);
    }
    add_link(plan, "../usr/lib/os-release", "/etc/os-release");
    ssize_t n = readlink("/etc/localtime", zone, sizeof zone - 1);
    if (n > 0) {
        zone[n] = '\0';
        if (px_starts_with(zone, "/usr/"))
            add_link(plan, zone, "/etc/localtime");
    }
    return 0;
}

static int add_root(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    const char *dir = policy->rootfs ? policy->rootfs : px_equal(policy->base, "host") ? NULL : policy->base;
    struct px_step *root = add_step(plan, PX_OP_ROOT);
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
    uint32_t src = add_host_path(plan, dir);
    struct px_step *s = add_step(plan, PX_OP_OVERLAY);
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
    add_path(plan, PX_OP_PROC, "/proc")->attr = PROC_ATTR;
    for (size_t i = 0; i < PX_COUNT_OF(proc_readonly); i++)
        add_path(plan, PX_OP_READONLY, proc_readonly[i])->attr = PROC_ATTR | PX_MOUNT_RDONLY;
    for (size_t i = 0; i < PX_COUNT_OF(proc_masks); i++) {
        char path[64];
        struct stat st;
        if (px_fmt(path, sizeof path, "/proc/%s", proc_masks[i]) < 0 || stat(path, &st) < 0 || !(st.st_mode & 07))
            continue;
        struct px_step *s = add_path(plan, PX_OP_MASK, path);
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

static void add_dev_skeleton(struct px_plan *plan)
{
    static const char *const links[][2] = {
        {"pts/ptmx", "/dev/ptmx"},         {"/proc/self/fd", "/dev/fd"},       {"/proc/self/fd/0", "/dev/stdin"},
        {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
    };
    add_dir(plan, "/dev", 0755, 0);
    for (size_t i = 0; i < PX_COUNT_OF(devices); i++)
        add_file(plan, devices[i].path, "");
    add_dir(plan, "/dev/pts", 0755, 0);
    for (size_t i = 0; i < PX_COUNT_OF(links); i++)
        add_link(plan, links[i][0], links[i][1]);
}

static void add_dev_mounts(struct px_plan *plan)
{
    for (size_t i = 0; i < PX_COUNT_OF(devices); i++) {
        uint32_t at = add_text(plan, devices[i].path);
        struct px_step *s = add_step(plan, PX_OP_BIND);
        s->src = s->dst = at;
        s->flags = PX_STEP_DEVICE | PX_STEP_FILE;
        s->attr = PX_MOUNT_NOSUID | PX_MOUNT_NOEXEC;
        s->num = makedev(devices[i].major, devices[i].minor);
    }
    struct px_step *pts = add_path(plan, PX_OP_DEVPTS, "/dev/pts");
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
    add_dir(plan, part, 0755, PX_STEP_OWNED);
    uint32_t src = add_text(plan, part);
    struct px_step *s = add_path(plan, PX_OP_BIND, t->target);
    s->src = src;
    s->flags = PX_STEP_INSIDE;
    s->attr = tmpfs_attr(t);
}

static void add_writable(struct px_plan *plan, const struct px_policy *policy)
{
    bool shared = policy->disk_bytes && policy->disk_bytes != PX_UNLIMITED;
    if (shared) {
        struct px_step *s = add_path(plan, PX_OP_TMPFS, scratch);
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
        struct px_step *s = add_path(plan, PX_OP_TMPFS, t->target);
        s->num = t->bytes;
        s->num2 = inodes_for(t->bytes);
        s->attr = tmpfs_attr(t);
        s->flags = px_equal(t->target, home_path) ? PX_STEP_OWNED : 0;
    }
    if (shared)
        add_path(plan, PX_OP_DETACH, scratch);
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
    add_dirs(plan, target, !file, 0);
    if (file && !has_step(plan, PX_OP_FILE, target))
        add_file(plan, target, "");
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
        add_dirs(plan, b->target, S_ISDIR(st.st_mode), PX_STEP_OWNED);
        if (!S_ISDIR(st.st_mode))
            add_file(plan, b->target, "");
    }
    if (add_bind(plan, b->source, b->target, b->writable ? RW : RO, &st) < 0)
        return px_fail(e, PX_E_BIND, errno, "cannot bind '%s'", b->source);
    plan->steps[plan->count - 1].flags |= PX_STEP_IDMAP;
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
        add_dir(plan, scratch, 0700, 0);
    return 0;
}

static int add_filesystem(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    const char *dir = policy->rootfs ? policy->rootfs : px_equal(policy->base, "host") ? NULL : policy->base;

    if (add_root(plan, policy, e) < 0)
        return -1;
    add_dirs(plan, home_path, true, 0);
    add_dir(plan, "/proc", 0555, 0);
    add_dir(plan, "/sys", 0555, 0);
    add_dir(plan, "/root", 0, 0);
    add_dev_skeleton(plan);
    if (add_targets(plan, policy, e) < 0)
        return -1;
    if (!dir && !has_step(plan, PX_OP_MKDIR, "/var/tmp")) {
        add_dirs(plan, "/var", true, 0);
        add_link(plan, "../tmp", "/var/tmp");
        add_dirs(plan, "/run", true, 0);
    }
    if (dir && add_overlay(plan, dir, e) < 0)
        return -1;
    add_dev_mounts(plan);
    add_proc(plan);
    add_writable(plan, policy);
    if (add_user_binds(plan, policy, e) < 0)
        return -1;
    add_step(plan, PX_OP_SEAL)->attr = RO;
    add_step(plan, PX_OP_PIVOT);
    return 0;
}

/* ---- limits ---- */

static void add_rlimit(struct px_plan *plan, int resource, uint64_t soft, uint64_t hard)
{
    struct px_step *s = add_step(plan, PX_OP_RLIMIT);
    s->attr = (uint32_t)resource;
    s->num = soft;
    s->num2 = hard;
}

static void add_limits(struct px_plan *plan, const struct px_policy *policy)
{
    add_rlimit(plan, RLIMIT_CORE, 0, 0);
    add_rlimit(plan, RLIMIT_MEMLOCK, 8 << 20, 8 << 20);
    add_rlimit(plan, RLIMIT_MSGQUEUE, 819200, 819200);
    add_rlimit(plan, RLIMIT_SIGPENDING, 4096, 4096);
    add_rlimit(plan, RLIMIT_NICE, 0, 0);
    add_rlimit(plan, RLIMIT_RTPRIO, 0, 0);
    if (limited(policy->nofile))
        add_rlimit(plan, RLIMIT_NOFILE, policy->nofile, policy->nofile);
    if (limited(policy->file_bytes))
        add_rlimit(plan, RLIMIT_FSIZE, policy->file_bytes, policy->file_bytes);
    if (limited(policy->cpu_time_msec)) {
        uint64_t seconds = (policy->cpu_time_msec + 999) / 1000;
        add_rlimit(plan, RLIMIT_CPU, seconds, seconds + 1);
    }
    if (policy->limits == PX_LIMITS_TRY && limited(policy->memory_bytes))
        add_rlimit(plan, RLIMIT_AS, policy->memory_bytes, policy->memory_bytes);
    if (limited(policy->pids)) {
        add_rlimit(plan, RLIMIT_NPROC, policy->pids, policy->pids);
        HAS(plan, "pids=rlimit");
    }
}

/* ---- what the payload is ---- */

static char **vector_of(struct px_plan *plan, const uint32_t *offsets, size_t count)
{
    char **v = calloc(count + 1, sizeof *v);
    for (size_t i = 0; v && i < count; i++)
        v[i] = plan->text.data + offsets[i];
    return v;
}

static int check_argv(const char *const argv[], size_t *ret_count, struct px_err *e)
{
    size_t n = 0;
    while (argv && argv[n] && n < PX_ARGS_MAX)
        n++;
    if (n == 0 || argv[0][0] == '\0') {
        px_fail(e, PX_E_USAGE, 0, n == 0 ? "there is no command to run" : "the command's name is empty");
        return px_fix(e, "Write the command after the options: px exec -- echo hello.");
    }
    if (n >= PX_ARGS_MAX)
        return px_fail(e, PX_E_LIMIT, 0, "the command has more than %d words", PX_ARGS_MAX);
    *ret_count = n;
    return 0;
}

static const char *inside_home(const struct px_plan *plan)
{
    return plan->tier == PX_TIER_FULL ? home_path : px_plan_text(plan, plan->scratch);
}

/* Names and values that every box has; the policy's own come after and win. */
static size_t base_environment(const struct px_plan *plan, const struct px_policy *policy, char out[8][512])
{
    const char *term = policy->tty ? getenv("TERM") : NULL;
    size_t n = 0;
    (void)px_fmt(out[n++], 512, "PATH=%s", search_path);
    (void)px_fmt(out[n++], 512, "HOME=%s", inside_home(plan));
    (void)px_fmt(out[n++], 512, "LANG=C.UTF-8");
    if (px_fmt(out[n], 512, "TERM=%s", term && *term ? term : policy->tty ? "xterm-256color" : "dumb") >= 0)
        n++;
    (void)px_fmt(out[n++], 512, "PX_SANDBOX=1");
    (void)px_fmt(out[n++], 512, "container=px");
    return n;
}

static bool overridden(const struct px_policy *policy, const char *variable)
{
    char name[32];
    size_t n = strcspn(variable, "=");
    if (n >= sizeof name)
        return false;
    memcpy(name, variable, n);
    name[n] = '\0';
    return px_policy_env(policy, name) != NULL;
}

static int add_environment(struct px_plan *plan, const struct px_policy *policy, uint32_t **ret_offsets, size_t *ret_count)
{
    char base[8][512];
    size_t n = base_environment(plan, policy, base), count = 0;
    uint32_t *offsets = calloc(n + policy->env.count + 1, sizeof *offsets);
    if (!offsets)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!overridden(policy, base[i]))
            offsets[count++] = add_text(plan, base[i]);
    for (size_t i = 0; i < policy->env.count; i++)
        offsets[count++] = add_text(plan, policy->env.items[i]);
    *ret_offsets = offsets;
    *ret_count = count;
    return 0;
}

/* Every place where the command may be, in the box's PATH, one text after the other. */
static void add_candidates(struct px_plan *plan, const struct px_policy *policy, const char *command)
{
    const char *path = px_policy_env(policy, "PATH");
    uint32_t first = (uint32_t)plan->text.len;
    uint64_t count = 0;

    if (strchr(command, '/')) {
        add_text(plan, command);
        count = 1;
    } else {
        for (const char *p = path ? path : search_path; p && *p;) {
            size_t n = strcspn(p, ":");
            if (n > 0) {
                px_buf_add(&plan->text, p, n);
                px_buf_putc(&plan->text, '/');
                px_buf_add(&plan->text, command, strlen(command) + 1);
                count++;
            }
            p += n + (p[n] == ':');
        }
    }
    struct px_step *s = add_step(plan, PX_OP_EXEC);
    s->src = first;
    s->num = count;
}

static const char *working_directory(const struct px_plan *plan, const struct px_policy *policy)
{
    if (policy->workdir)
        return policy->workdir;
    if (policy->work_dir)
        return policy->work_target;
    return inside_home(plan);
}

static void allow(struct px_plan *plan, const char *path, uint64_t rights, unsigned flags)
{
    struct px_step *s = add_path(plan, PX_OP_ALLOW, path);
    s->num = rights;
    s->flags = (uint16_t)flags;
}

/* The second layer says what the mounts say, once more. */
static void add_landlock(struct px_plan *plan, const struct px_policy *policy)
{
    if (plan->landlock_abi < 1) {
        LACKS(plan, "landlock");
        return;
    }
    add_step(plan, PX_OP_LANDLOCK)->num = (uint64_t)plan->landlock_abi;
    allow(plan, "/", px_landlock_read(), 0);
    allow(plan, "/dev", px_landlock_device(), 0);
    allow(plan, "/proc", px_landlock_read() | PX_LL_WRITE_FILE | PX_LL_TRUNCATE, 0);
    for (size_t i = 0; i < policy->tmpfs.count; i++)
        allow(plan, policy->tmpfs.items[i].target, px_landlock_write(), PX_STEP_MAYBE);
    if (policy->work_dir)
        allow(plan, policy->work_target, px_landlock_write(), 0);
    for (size_t i = 0; i < policy->binds.count; i++)
        if (policy->binds.items[i].writable)
            allow(plan, policy->binds.items[i].target, px_landlock_write(), 0);
    add_step(plan, PX_OP_ENFORCE);
    HAS(plan, "landlock=%d", plan->landlock_abi);
}

static void add_ids(struct px_plan *plan, enum px_op op, uint32_t uid, uint32_t gid, unsigned flags)
{
    struct px_step *s = add_step(plan, op);
    s->num = uid;
    s->num2 = gid;
    s->flags = (uint16_t)flags;
}

static void add_payload(struct px_plan *plan, const struct px_policy *policy)
{
    plan->payload_from = plan->count;
    if (plan->own_net)
        add_step(plan, PX_OP_NETNS);
    if (policy->net == PX_NET_LOOPBACK && plan->own_net)
        add_step(plan, PX_OP_LOOPBACK);
    add_step(plan, PX_OP_SESSION);
    add_step(plan, PX_OP_JOIN);
    if (plan->tier == PX_TIER_FULL)
        add_ids(plan, PX_OP_IDS, policy->user.uid, policy->user.gid, PX_STEP_SETGROUPS);
    else
        add_ids(plan, PX_OP_IDS, plan->caller.uid, plan->caller.gid, PX_STEP_REAPER);
    if (policy->tty) {
        uint32_t src = add_text(plan, plan->tier == PX_TIER_FULL ? "/dev/pts/ptmx" : "/dev/ptmx");
        add_step(plan, PX_OP_TERMINAL)->src = src;
    } else {
        add_step(plan, PX_OP_STDIO);
    }
    add_path(plan, PX_OP_CHDIR, working_directory(plan, policy));
}

static void add_launch(struct px_plan *plan, const char *command, const struct px_policy *policy, bool bind_to_thread)
{
    add_limits(plan, policy);   /* late: a small number of open files must not stop our own opens */
    add_step(plan, PX_OP_SIGNALS);
    add_step(plan, PX_OP_CLOSE);
    add_step(plan, PX_OP_SECCOMP)->num = plan->writable_binds ? PX_FILTER_WORKSPACE : PX_FILTER_DEFAULT;
    HAS(plan, "seccomp=%s", plan->writable_binds ? "workspace" : "default");
    add_candidates(plan, policy, command);
    plan->init_at = plan->count;
    unsigned thread = bind_to_thread ? PX_STEP_THREAD : 0;
    if (plan->tier == PX_TIER_FULL)
        add_ids(plan, PX_OP_INIT, 0, 0, PX_STEP_SETGROUPS | thread);
    else
        add_ids(plan, PX_OP_INIT, plan->caller.uid, plan->caller.gid, PX_STEP_REAPER | thread);
}

/* ---- tiers ---- */

static int plan_full(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    plan->namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWNS | PX_CLONE_NEWPID | PX_CLONE_NEWIPC | PX_CLONE_NEWUTS;
    plan->own_net = policy->net != PX_NET_HOST;
    uint32_t name = add_text(plan, policy->hostname);
    add_step(plan, PX_OP_HOSTNAME)->src = name;
    add_step(plan, PX_OP_PRIVATE);
    add_step(plan, PX_OP_WAIT)->flags = PX_STEP_SETGROUPS;
    add_step(plan, PX_OP_CGROUPNS);
    add_step(plan, PX_OP_NO_USERNS);
    add_step(plan, PX_OP_KEYRING);
    add_step(plan, PX_OP_BOUND);
    add_step(plan, PX_OP_PAYLOAD);
    if (add_filesystem(plan, policy, e) < 0)
        return -1;
    add_step(plan, PX_OP_READY);
    HAS(plan, "namespaces=user,mount,pid,ipc,uts,cgroup%s", policy->net == PX_NET_HOST ? "" : ",net");
    HAS(plan, "root=pivot");
    HAS(plan, "privileges=none");
    HAS(plan, "no_new_privs");
    if (policy->net == PX_NET_HOST)
        LACKS(plan, "net: the host's network is shared, as asked for");
    return 0;
}

static int landlock_bind(const struct px_bind *b, struct px_err *e)
{
    char source[PATH_MAX];
    if (realpath(b->source, source) && px_equal(source, b->target))
        return 0;
    px_fail(e, PX_E_TIER, 0, "the landlock tier cannot show '%s' at '%s'", b->source, b->target);
    return px_fix(e, "In this tier a bind keeps its place: -v %s.", b->source);
}

/* Without namespaces: the host's root, readable where the base is and writable where granted. */
static int plan_landlock(struct px_plan *plan, const struct px_policy *policy, struct px_err *e)
{
    if (policy->rootfs || !px_equal(policy->base, "host") || policy->work_dir)
        return px_fail(e, PX_E_TIER, 0, "the landlock tier has no root of its own, so no other base and no work directory");
    if (limited(policy->disk_bytes))
        return px_fail(e, PX_E_TIER, 0, "the landlock tier has no tmpfs of its own, so --disk cannot hold");
    for (size_t i = 0; i < policy->binds.count; i++)
        if (landlock_bind(&policy->binds.items[i], e) < 0)
            return -1;
    add_step(plan, PX_OP_WAIT);
    add_step(plan, PX_OP_SUBREAPER);
    add_step(plan, PX_OP_KEYRING);
    add_step(plan, PX_OP_BOUND)->num = 1;
    add_step(plan, PX_OP_PAYLOAD);
    add_step(plan, PX_OP_READY);
    HAS(plan, "no_new_privs");
    LACKS(plan, "namespaces");
    LACKS(plan, "root: the host's, readable where granted");
    LACKS(plan, "net: the host's network is shared");
    LACKS(plan, "tmpfs: home is a directory of the host without a bound");
    LACKS(plan, "ids: the payload has the caller's own id");
    LACKS(plan, "hostname: the host's");
    return 0;
}

static void allow_host_paths(struct px_plan *plan, const struct px_policy *policy)
{
    static const char *const readable[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives",
                                           "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime"};
    add_step(plan, PX_OP_LANDLOCK)->num = (uint64_t)plan->landlock_abi;
    allow(plan, px_plan_text(plan, plan->scratch), px_landlock_write(), 0);
    for (size_t i = 0; i < PX_COUNT_OF(readable); i++)
        allow(plan, readable[i], px_landlock_read(), PX_STEP_MAYBE);
    for (size_t i = 0; i < PX_COUNT_OF(devices); i++)
        allow(plan, devices[i].path, px_landlock_device(), 0);
    allow(plan, "/dev/pts", px_landlock_device(), PX_STEP_MAYBE);
    for (size_t i = 0; i < policy->binds.count; i++) {
        const struct px_bind *b = &policy->binds.items[i];
        allow(plan, b->target, b->writable ? px_landlock_write() : px_landlock_read(), 0);
        plan->binds = true;
        plan->writable_binds = plan->writable_binds || b->writable;
    }
    add_step(plan, PX_OP_ENFORCE);
    HAS(plan, "landlock=%d", plan->landlock_abi);
}

static int choose_tier(struct px_plan *plan, const struct px_policy *policy, const struct px_host *host, struct px_err *e)
{
    plan->tier = host->user_namespaces ? PX_TIER_FULL : PX_TIER_LANDLOCK;
    plan->landlock_abi = host->landlock_abi;
    plan->scratch = add_text(plan, host->scratch);
    plan->caller = (struct px_user){host->uid, host->gid};
    if (plan->tier == PX_TIER_FULL)
        return 0;
    if (host->is_root) {
        px_fail(e, PX_E_TIER, 0, "the landlock tier is not for root");
        px_why(e, "Without a user namespace the command would have the host's uid 0, which Landlock does not hold.");
        return px_fix(e, "Run px as an ordinary user, or make user namespaces possible.");
    }
    if (policy->require == PX_TIER_FULL)
        return px_fail(e, PX_E_USERNS, 0, "this host does not let px make a user namespace, so there is no full isolation");
    if (host->landlock_abi < 3) {
        px_fail(e, PX_E_TIER, 0, "neither user namespaces nor a Landlock that can hold truncation are there");
        return px_why(e, "Landlock ABI 3 is needed, this kernel has %d.", host->landlock_abi);
    }
    return 0;
}

static int refuse_absent(const struct px_policy *policy, struct px_err *e)
{
    if (policy->net != PX_NET_OUTBOUND)
        return 0;
    px_fail(e, PX_E_NOT_BUILT, 0, "--net outbound is not part of this build");
    return px_fix(e, "Use --net none or --net loopback; --net host shares the host's network and says so in the result.");
}

/* ---- the whole ---- */

static int build(struct px_plan *plan, const struct px_policy *policy, const char *command, bool bind_to_thread,
                 struct px_err *e)
{
    bool full = plan->tier == PX_TIER_FULL;
    if ((full ? plan_full : plan_landlock)(plan, policy, e) < 0)
        return -1;
    add_payload(plan, policy);
    if (full)
        add_landlock(plan, policy);
    else
        allow_host_paths(plan, policy);
    add_launch(plan, command, policy, bind_to_thread);
    return 0;
}

/* px-init PID MODE DIRECTORY...: the directories whose fill level it reports. */
static int add_init_argv(struct px_plan *plan, const struct px_policy *policy, uint32_t *offsets)
{
    size_t n = 0;
    offsets[n++] = add_text(plan, "px-init");
    offsets[n++] = add_text(plan, "0");
    offsets[n++] = add_text(plan, plan->tier == PX_TIER_FULL ? "p" : "r");
    for (size_t i = 0; plan->tier == PX_TIER_FULL && i < policy->tmpfs.count && i < 32; i++)
        offsets[n++] = add_text(plan, policy->tmpfs.items[i].target);
    return (int)n;
}

static int finish_plan(struct px_plan *plan, const struct px_policy *policy, const char *const argv[], size_t argc,
                       struct px_err *e)
{
    px_auto_free uint32_t *args = calloc(argc + 1, sizeof *args), *env = NULL;
    uint32_t init[40];
    size_t env_count = 0;

    if (!args || add_environment(plan, policy, &env, &env_count) < 0)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "plan");
    for (size_t i = 0; i < argc; i++)
        args[i] = add_text(plan, argv[i]);
    int init_count = add_init_argv(plan, policy, init);
    if (plan->text.err < 0) {
        px_fail(e, plan->text.err == -ENOMEM ? PX_E_MEMORY : PX_E_LIMIT, 0, "the request is too large for one box");
        return px_why(e, "Arguments, variables and paths together may have %d bytes, a plan %d steps.", PX_PLAN_TEXT_MAX,
                      PX_STEPS_MAX);
    }
    /* The arena moves while it grows, so pointers into it are made last. */
    plan->argv = vector_of(plan, args, argc);
    plan->envp = vector_of(plan, env, env_count);
    plan->init_argv = vector_of(plan, init, (size_t)init_count);
    if (!plan->argv || !plan->envp || !plan->init_argv)
        return px_fail(e, PX_E_MEMORY, ENOMEM, "plan");
    return 0;
}

int px_plan_new(const struct px_policy *policy, const char *const argv[], const struct px_host *host, bool bind_to_thread,
                struct px_plan **ret_plan, struct px_err *e)
{
    size_t argc = 0;
    if (check_argv(argv, &argc, e) < 0 || refuse_absent(policy, e) < 0)
        return -1;
    struct px_plan *plan = calloc(1, sizeof *plan);
    if (plan)
        plan->steps = calloc(PX_STEPS_MAX, sizeof *plan->steps);
    if (!plan || !plan->steps) {
        px_plan_free(plan);
        return px_fail(e, PX_E_MEMORY, ENOMEM, "plan");
    }
    plan->text = PX_BUF(PX_PLAN_TEXT_MAX);
    px_buf_putc(&plan->text, '\0');     /* offset 0 is the empty text */
    if (choose_tier(plan, policy, host, e) < 0 || build(plan, policy, argv[0], bind_to_thread, e) < 0 ||
        finish_plan(plan, policy, argv, argc, e) < 0) {
        px_plan_free(plan);
        return -1;
    }
    *ret_plan = plan;
    return 0;
}

void px_plan_free(struct px_plan *plan)
{
    if (!plan)
        return;
    for (uint32_t i = 0; i < plan->count; i++)
        (void)px_fd_close(plan->steps[i].fd);
    free(plan->steps);
    free(plan->argv);
    free(plan->envp);
    free(plan->init_argv);
    px_buf_done(&plan->text);
    free(plan);
}

/* ---- arming: a root caller's trees, with the owner shown as the payload ---- */

static int idmapped_tree(const char *source, const struct px_step *s, const struct px_idmap *map)
{
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, source, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_dev != s->num || st.st_ino != s->num2)
        return -ESTALE;
    px_auto_fd int userns = px_idmap_userns(st.st_uid, st.st_gid, px_idmap_host_uid(map), px_idmap_host_gid(map));
    if (userns < 0)
        return userns;
    px_auto_fd int tree = px_mount_clone(fd, "", s->attr);
    if (tree < 0)
        return tree;
    int r = px_mount_idmap(tree, userns);
    return r < 0 ? r : px_fd_take(&tree);
}

int px_plan_arm(struct px_plan *plan, const struct px_idmap *map, struct px_err *e)
{
    if (map->kind != PX_IDMAP_RANGE)
        return 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        struct px_step *s = &plan->steps[i];
        if (s->op != PX_OP_BIND || !(s->flags & PX_STEP_IDMAP))
            continue;
        int tree = idmapped_tree(px_plan_text(plan, s->src), s, map);
        if (tree < 0) {
            px_fail(e, PX_E_BIND, tree, "cannot bind '%s'", px_plan_text(plan, s->src));
            if (tree == -EINVAL)
                px_why(e, "Its file system does not support id-mapped mounts, which a root caller's files need.");
            return -1;
        }
        s->fd = tree;
    }
    return 0;
}

/* ---- printing ---- */

static void print_step(const struct px_plan *plan, const struct px_step *s, struct px_json *j)
{
    px_json_object(j, NULL);
    px_json_text(j, "op", px_op_word(s->op));
    px_json_int(j, "stage", px_op_stage(s->op));
    if (s->src && s->op != PX_OP_EXEC && s->op != PX_OP_FILE)
        px_json_text(j, "source", px_plan_text(plan, s->src));
    if (s->dst)
        px_json_text(j, "target", px_plan_text(plan, s->dst));
    if (s->op == PX_OP_FILE)
        px_json_uint(j, "bytes", s->num);
    if (s->op == PX_OP_TMPFS)
        px_json_uint(j, "size", s->num);
    if (s->op == PX_OP_RLIMIT) {
        px_json_uint(j, "resource", s->attr);
        px_json_uint(j, "value", s->num);
    }
    if (s->op == PX_OP_BIND || s->op == PX_OP_TMPFS) {
        px_json_array(j, "attributes");
        static const struct {
            unsigned bit;
            const char *word;
        } words[] = {{PX_MOUNT_RDONLY, "ro"}, {PX_MOUNT_NOSUID, "nosuid"}, {PX_MOUNT_NODEV, "nodev"}, {PX_MOUNT_NOEXEC, "noexec"}};
        for (size_t i = 0; i < PX_COUNT_OF(words); i++)
            if (s->attr & words[i].bit)
                px_json_text(j, NULL, words[i].word);
        px_json_end(j);
    }
    if (s->op == PX_OP_IDS || s->op == PX_OP_INIT) {
        px_json_uint(j, "uid", s->num);
        px_json_uint(j, "gid", s->num2);
    }
    px_json_end(j);
}

static void print_list(struct px_json *j, const char *name, const char (*list)[64], uint32_t count)
{
    px_json_array(j, name);
    for (uint32_t i = 0; i < count; i++)
        px_json_text(j, NULL, list[i]);
    px_json_end(j);
}

int px_plan_print(const struct px_plan *plan, char **ret_json, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(64 << 20);
    struct px_json j = {.out = &out, .pretty = true};

    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_text(&j, "tier", plan->tier == PX_TIER_FULL ? "full" : "landlock");
    px_json_array(&j, "argv");
    for (char **a = plan->argv; *a; a++)
        px_json_text(&j, NULL, *a);
    px_json_end(&j);
    px_json_array(&j, "environment");
    for (char **v = plan->envp; *v; v++)
        px_json_text(&j, NULL, *v);
    px_json_end(&j);
    print_list(&j, "mechanisms", plan->mechanisms, plan->mechanisms_count);
    print_list(&j, "missing", plan->missing, plan->missing_count);
    px_json_array(&j, "steps");
    for (uint32_t i = 0; i < plan->count; i++)
        print_step(plan, &plan->steps[i], &j);
    px_json_end(&j);
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    if (out.err < 0)
        return px_fail(e, PX_E_LIMIT, out.err, "the plan is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}
