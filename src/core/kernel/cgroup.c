#include "kernel/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

enum { SWEEP_GROUPS = 128, SWEEP_ENTRIES = 1000, PIDS_MAX = 4 << 20, CPU_MILLI_MAX = 1000 * 1000 * 1000,
       HEADROOM = 64 << 20, ROOM = 16 << 20 };

static const char *const controller_names[PX_CG_COUNT] = {"memory", "pids", "cpu"};

/* ---- the caller's own cgroups ---- */

struct place {
    char mount[256];            /* where the hierarchy is mounted; "": nowhere */
    char own[1024];             /* the caller's own directory below it, "" or "/a/b" */
};

struct layout {
    struct place v2;
    struct place v1[PX_CG_COUNT];
};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || strchr(", ", p[-1])) && (p[n] == '\0' || strchr(", \n", p[n])))
            return true;
    return false;
}

static void copy_text(char *out, size_t size, const char *text)
{
    if (px_fmt(out, size, "%s", text) < 0)
        out[0] = '\0';
}

/* One line of mountinfo: "ID PARENT DEV ROOT MOUNT OPTIONS ... - TYPE SOURCE SUPER". Only mounts of a whole
 * hierarchy are used. */
static void take_mount(char *line, struct layout *l)
{
    char root[256], mount[256], type[16], super[256];
    char *tail = strstr(line, " - ");
    if (!tail || sscanf(line, "%*s %*s %*s %255s %255s", root, mount) != 2 ||
        sscanf(tail + 3, "%15s %*s %255s", type, super) != 2 || !px_equal(root, "/"))
        return;
    if (px_equal(type, "cgroup2") && l->v2.mount[0] == '\0')
        copy_text(l->v2.mount, sizeof l->v2.mount, mount);
    if (px_equal(type, "cgroup"))
        for (int i = 0; i < PX_CG_COUNT; i++)
            if (has_word(super, controller_names[i]) && l->v1[i].mount[0] == '\0')
                copy_text(l->v1[i].mount, sizeof l->v1[i].mount, mount);
}

/* One line of /proc/self/cgroup: "N:controllers:/path". */
static void take_membership(char *line, struct layout *l)
{
    char *list = strchr(line, ':');
    char *path = list ? strchr(list + 1, ':') : NULL;
    if (!path)
        return;
    *path++ = '\0';
    list++;
    if (px_equal(path, "/") || strstr(path, "/.."))
        path = "";
    if (*list == '\0')
        copy_text(l->v2.own, sizeof l->v2.own, path);
    for (int i = 0; i < PX_CG_COUNT; i++)
        if (has_word(list, controller_names[i]))
            copy_text(l->v1[i].own, sizeof l->v1[i].own, path);
}

static int each_line(const char *file, size_t max, void (*take)(char *, struct layout *), struct layout *l)
{
    px_auto_free char *text = malloc(max);
    if (!text)
        return -ENOMEM;
    ssize_t n = px_read_file(AT_FDCWD, file, text, max);
    if (n < 0)
        return (int)n;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        take(line, l);
        line = end ? end + 1 : line + strlen(line);
    }
    return 0;
}

static int find_layout(struct layout *l)
{
    int r = each_line("/proc/self/mountinfo", (size_t)256 * 1024, take_mount, l);
    return r < 0 ? r : each_line("/proc/self/cgroup", (size_t)16 * 1024, take_membership, l);
}

/* ---- directories ---- */

static int open_dir(const char *mount, const char *below)
{
    char path[1400];
    if (px_fmt(path, sizeof path, "%s%s", mount, below) < 0)
        return -ENAMETOOLONG;
    return (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens and locks the directory of that name, or returns an error. The lock is on the opened directory. It is valid
 * for the name only if that directory still has the name, as another one may have been made under it meanwhile. */
static int hold_dir(int parent_fd, const char *name)
{
    struct stat held, named;
    px_auto_fd int fd = px_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -EBUSY;
    if (fstat(fd, &held) < 0 || fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || held.st_ino != named.st_ino)
        return -ENOENT;
    return px_fd_take(&fd);
}

static void sweep_one(int parent_fd, const char *name)
{
    px_auto_fd int box = hold_dir(parent_fd, name);
    if (box >= 0)
        (void)px_sys(SYS_unlinkat, parent_fd, name, AT_REMOVEDIR);
}

/* Sweeps up to `most` cgroups of px from the present position of the directory; returns how many there were. */
static int sweep_some(DIR *dir, int parent_fd, int most)
{
    struct dirent *entry;
    int seen = 0;
    for (int read = 0; seen < most && read < SWEEP_ENTRIES && (entry = readdir(dir)); read++) {
        if (!px_starts_with(entry->d_name, "px-"))
            continue;
        seen++;
        sweep_one(parent_fd, entry->d_name);
    }
    return seen;
}

/* Removes cgroups that a killed px left: their lock is free. No time is compared. With few cgroups, each box checks
 * all. With many, each box checks some from a random position: the kernel orders the entries by a hash of their
 * names, and continues from any position. So a thousand boxes do not check each other a million times, and leftovers
 * are gone after a few starts. */
static void sweep_left(int parent_fd)
{
    uint32_t start = 0;
    int fd = (int)px_sys(SYS_openat, parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        (void)px_fd_close(fd);
        return;
    }
    if (px_sys(SYS_getrandom, &start, sizeof start, 0) == sizeof start)
        seekdir(dir, (long)(start >> 1));
    int seen = sweep_some(dir, parent_fd, SWEEP_GROUPS);
    if (seen < SWEEP_GROUPS) {          /* the end was reached: continue at the beginning */
        rewinddir(dir);
        (void)sweep_some(dir, parent_fd, SWEEP_GROUPS - seen);
    }
    (void)closedir(dir);
}

/* mkdir, then the lock that marks it as used. A sweeper may come between the two: then the name is gone, and we try
 * again. */
static int make_dir(int parent_fd, const char *name, struct px_cgroup_dir *ret_dir)
{
    for (int attempt = 0; attempt < 500; attempt++) {
        const struct timespec moment = {.tv_nsec = 200000};
        if (attempt > 0)
            (void)nanosleep(&moment, NULL);     /* a sweeper holds the lock no longer than that */
        long r = px_sys(SYS_mkdirat, parent_fd, name, 0755);
        if (r < 0 && r != -EEXIST)
            return (int)r;
        px_auto_fd int fd = hold_dir(parent_fd, name);
        if (fd < 0)
            continue;
        int parent = (int)px_sys(SYS_fcntl, parent_fd, F_DUPFD_CLOEXEC, 3);
        if (parent < 0)
            return parent;
        *ret_dir = (struct px_cgroup_dir){.parent_fd = parent, .fd = px_fd_take(&fd)};
        return 0;
    }
    return -EBUSY;
}

static int write_number(int fd, const char *file, uint64_t value)
{
    char text[32];
    return px_fmt(text, sizeof text, "%llu", (unsigned long long)value) < 0 ? -EINVAL : px_write_file(fd, file, text);
}

/* The kernel refuses numbers above its maximum; that maximum is no less of a limit. */
static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* ---- v2 ---- */

/* Above memory.high a process sleeps at each allocation; above memory.max the kernel kills the cgroup. */
static int limit_memory_v2(int fd, const struct px_cgroup_limits *l)
{
    int r = px_write_file(fd, "memory.swap.max", "0");
    if (r < 0 && r != -ENOENT)          /* absent without swap accounting: then there is no swap to use */
        return r;
    if (l->shared)
        return write_number(fd, "memory.high", l->memory_bytes);
    r = l->one_by_one ? 0 : px_write_file(fd, "memory.oom.group", "1");
    return r < 0 ? r : write_number(fd, "memory.max", l->memory_bytes);
}

static int limit_v2(int fd, enum px_controller c, const struct px_cgroup_limits *l)
{
    char text[64];
    switch (c) {
    case PX_CG_MEMORY:
        return limit_memory_v2(fd, l);
    case PX_CG_PIDS:
        return write_number(fd, "pids.max", at_most(l->pids, PIDS_MAX));
    case PX_CG_CPU:
        if (px_fmt(text, sizeof text, "%llu 100000", (unsigned long long)at_most(l->cpu_milli, CPU_MILLI_MAX) * 100) < 0)
            return -EINVAL;
        return px_write_file(fd, "cpu.max", text);
    case PX_CG_COUNT:
        break;
    }
    return -EINVAL;
}

static bool is_wanted(const struct px_cgroup_limits *l, int c)
{
    return c == PX_CG_MEMORY ? l->memory_bytes : c == PX_CG_PIDS ? l->pids : l->cpu_milli;
}

/* Whether children of this directory have the controllers; enables those that are missing, where that is allowed. */
static bool children_have(int dir, const bool need[PX_CG_COUNT])
{
    char have[512], add[64];
    for (int i = 0; i < PX_CG_COUNT; i++) {
        if (!need[i])
            continue;
        if (px_read_file(dir, "cgroup.subtree_control", have, sizeof have) >= 0 && has_word(have, controller_names[i]))
            continue;
        if (px_fmt(add, sizeof add, "+%s", controller_names[i]) < 0 ||
            px_write_file(dir, "cgroup.subtree_control", add) < 0)
            return false;
    }
    return true;
}

/* Writable, and either the root of the hierarchy or without processes of its own: below a cgroup with processes the
 * kernel makes only threaded cgroups, in which no box can run. */
static bool may_have_groups(int dir)
{
    char byte[2];
    if (px_sys(SYS_faccessat, dir, "cgroup.procs", W_OK) < 0)
        return false;
    bool top = px_sys(SYS_faccessat, dir, "cgroup.type", F_OK) < 0;
    ssize_t n = px_read_file(dir, "cgroup.procs", byte, sizeof byte);   /* -EFBIG: not empty */
    return top || n == 0;
}

/* Goes up from the caller's own cgroup to the nearest directory where a cgroup with the controllers can be made, so
 * that as many of the caller's own limits as possible hold the box too. (The caller's own cgroup has processes, and
 * the kernel allows no controllers below such a cgroup. So it is usually the parent, on a systemd host as well.) */
static int create_v2(const struct place *place, const bool need[PX_CG_COUNT], struct px_cgroup *cg)
{
    char below[sizeof place->own];
    int worst = -ENOENT;

    memcpy(below, place->own, sizeof below);
    for (int depth = 0; depth < 64; depth++) {
        px_auto_fd int dir = open_dir(place->mount, below);
        if (dir >= 0 && may_have_groups(dir) && children_have(dir, need)) {
            sweep_left(dir);
            int r = make_dir(dir, cg->name, &cg->v2);
            if (r >= 0)
                return 0;
            worst = r;
        } else {
            worst = -EACCES;
        }
        char *slash = strrchr(below, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return worst;
}

/* ---- v1 ---- */

/* With oom_control a page fault over the limit waits, but an allocation inside a system call fails, and programs
 * would see errors that they never see otherwise. So the limit has some margin until it is armed. */
static int limit_memory_v1(int fd, const struct px_cgroup_limits *l)
{
    uint64_t bytes = l->shared && l->memory_bytes < UINT64_MAX - HEADROOM ? l->memory_bytes + HEADROOM : l->memory_bytes;
    int r = l->shared ? px_write_file(fd, "memory.oom_control", "1") : 0;
    if (r < 0 || (r = write_number(fd, "memory.limit_in_bytes", bytes)) < 0)
        return r;
    r = write_number(fd, "memory.memsw.limit_in_bytes", bytes);
    return r == -ENOENT ? 0 : r;
}

static int limit_v1(int fd, enum px_controller c, const struct px_cgroup_limits *l)
{
    int r;
    switch (c) {
    case PX_CG_MEMORY:
        return limit_memory_v1(fd, l);
    case PX_CG_PIDS:
        return write_number(fd, "pids.max", at_most(l->pids, PIDS_MAX));
    case PX_CG_CPU:
        if ((r = px_write_file(fd, "cpu.cfs_period_us", "100000")) < 0)
            return r;
        return write_number(fd, "cpu.cfs_quota_us", at_most(l->cpu_milli, CPU_MILLI_MAX) * 100);
    case PX_CG_COUNT:
        break;
    }
    return -EINVAL;
}

static int create_v1(const struct place *place, struct px_cgroup *cg, enum px_controller c,
                     const struct px_cgroup_limits *limits)
{
    if (place->mount[0] == '\0')
        return -ENOENT;
    px_auto_fd int dir = open_dir(place->mount, place->own);
    if (dir < 0)
        return dir;
    sweep_left(dir);
    int r = make_dir(dir, cg->name, &cg->v1[c]);
    return r < 0 ? r : limit_v1(cg->v1[c].fd, c, limits);
}

/* ---- all of it ---- */

static int create_all(const struct px_cgroup_limits *limits, struct px_cgroup *cg, const char **ret_which)
{
    px_auto_free struct layout *layout = calloc(1, sizeof *layout);
    bool need[PX_CG_COUNT];
    bool any = false;

    if (!layout)
        return -ENOMEM;
    int r = find_layout(layout);
    if (r < 0)
        return r;
    for (int i = 0; i < PX_CG_COUNT; i++) {
        /* A controller that v1 uses is not available in v2. */
        need[i] = is_wanted(limits, i) && layout->v1[i].mount[0] == '\0';
        any = any || need[i];
    }
    if (layout->v2.mount[0]) {
        r = create_v2(&layout->v2, need, cg);
        if (r < 0 && any) {
            for (int i = 0; i < PX_CG_COUNT; i++)
                if (need[i])
                    *ret_which = controller_names[i];
            return r;
        }
        /* Without `any` the cgroup would only serve cgroup.kill, and the pid namespace kills as well. */
    }
    for (int i = 0; i < PX_CG_COUNT; i++) {
        if (!is_wanted(limits, i))
            continue;
        *ret_which = controller_names[i];
        cg->on_v2[i] = need[i];
        if (need[i] && cg->v2.fd < 0)
            return -ENOENT;
        r = need[i] ? limit_v2(cg->v2.fd, i, limits) : create_v1(&layout->v1[i], cg, i, limits);
        if (r < 0)
            return r;
    }
    return 0;
}

int px_cgroup_create(const struct px_cgroup_limits *limits, const char *id, struct px_cgroup *ret_cg,
                     const char **ret_which)
{
    struct px_cgroup cg = PX_CGROUP_NONE;
    *ret_which = "cgroup";
    int r = px_fmt(cg.name, sizeof cg.name, "px-%s", id);
    if (r >= 0)
        r = create_all(limits, &cg, ret_which);
    if (r < 0) {
        (void)px_cgroup_done(&cg);
        return r;
    }
    if (limits->shared && limits->memory_bytes)
        cg.unarmed = *limits;
    *ret_cg = cg;
    return 0;
}

static uint64_t read_number(int fd, const char *file, uint64_t otherwise)
{
    char text[64];
    ssize_t n = fd < 0 ? -1 : px_read_file(fd, file, text, sizeof text);
    if (n <= 0)
        return otherwise;
    text[strcspn(text, "\n")] = '\0';
    uint64_t value;
    return px_parse_u64(text, UINT64_MAX, &value) < 0 ? otherwise : value;
}

static int move_v1(const struct px_cgroup *cg, int controller, pid_t pid)
{
    int fd = cg->v1[controller].fd;
    return fd < 0 ? 0 : write_number(fd, "cgroup.procs", (uint64_t)pid);
}

int px_cgroup_join(const struct px_cgroup *cg, pid_t pid)
{
    int r = 0;
    for (int i = 0; r >= 0 && i < PX_CG_COUNT; i++)
        r = move_v1(cg, i, pid);
    return r;
}

int px_cgroup_memory_door(const struct px_cgroup *cg)
{
    int fd = cg->unarmed.shared ? cg->v1[PX_CG_MEMORY].parent_fd : -EBADF;
    return fd < 0 ? -EBADF : px_open_beneath(fd, "cgroup.procs", O_WRONLY, 0);
}

static int arm_memory(const struct px_cgroup *cg)
{
    struct px_cgroup_limits limits = cg->unarmed;
    limits.shared = false;
    if (cg->on_v2[PX_CG_MEMORY]) {
        int r = limit_memory_v2(cg->v2.fd, &limits);
        return r < 0 ? r : px_write_file(cg->v2.fd, "memory.high", "max");
    }
    /* -EBUSY: v1 kills nothing when a limit is lowered */
    int limited = limit_memory_v1(cg->v1[PX_CG_MEMORY].fd, &limits);
    int r = px_write_file(cg->v1[PX_CG_MEMORY].fd, "memory.oom_control", "0");
    return limited < 0 ? limited : r;
}

int px_cgroup_arm_ahead(struct px_cgroup *cg)
{
    const uint64_t limit = cg->unarmed.memory_bytes, unknown = UINT64_MAX;
    if (!cg->unarmed.shared || cg->on_v2[PX_CG_MEMORY])
        return 0;
    uint64_t used = read_number(cg->v1[PX_CG_MEMORY].fd, "memory.usage_in_bytes", unknown);
    if (used == unknown)
        return -EIO;
    if (limit < ROOM || used > limit - ROOM)
        return 0;
    cg->armed_ahead = true;
    return arm_memory(cg);
}

int px_cgroup_arm(struct px_cgroup *cg, pid_t pid)
{
    if (!cg->unarmed.shared)
        return 0;
    int limited = cg->armed_ahead ? 0 : arm_memory(cg);
    cg->unarmed = (struct px_cgroup_limits){0};
    int r = pid > 0 ? move_v1(cg, PX_CG_MEMORY, pid) : 0;
    return limited < 0 ? limited : r;
}

int px_cgroup_enter(const struct px_cgroup *cg, pid_t pid)
{
    int r = px_cgroup_join(cg, pid);
    return r < 0 || cg->v2.fd < 0 ? r : write_number(cg->v2.fd, "cgroup.procs", (uint64_t)pid);
}

int px_cgroup_birth_fd(const struct px_cgroup *cg)
{
    return cg->v2.fd;
}

/* ---- counters ---- */

/* "key value" lines. */
static uint64_t read_key(int fd, const char *file, const char *key)
{
    char text[1024];
    if (fd < 0 || px_read_file(fd, file, text, sizeof text) < 0)
        return 0;
    size_t n = strlen(key);
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n");
        bool last = *end == '\0';
        *end = '\0';
        uint64_t value;
        if (strncmp(line, key, n) == 0 && line[n] == ' ' && px_parse_u64(line + n + 1, UINT64_MAX, &value) == 0)
            return value;
        line = last ? end : end + 1;
    }
    return 0;
}

void px_cgroup_read(const struct px_cgroup *cg, struct px_cgroup_usage *u)
{
    *u = (struct px_cgroup_usage){0};
    if (cg->on_v2[PX_CG_MEMORY]) {
        u->memory_peak = read_number(cg->v2.fd, "memory.peak", 0);
        u->memory_source = u->memory_peak ? "cgroup2.peak" : NULL;
        u->oom_kills = read_key(cg->v2.fd, "memory.events", "oom_kill");
        u->oom_counter = "memory.events oom_kill";
    } else if (cg->v1[PX_CG_MEMORY].fd >= 0) {
        u->memory_peak = read_number(cg->v1[PX_CG_MEMORY].fd, "memory.max_usage_in_bytes", 0);
        u->memory_source = u->memory_peak ? "cgroup1.max_usage" : NULL;
        u->oom_kills = read_key(cg->v1[PX_CG_MEMORY].fd, "memory.oom_control", "oom_kill");
        u->oom_counter = "memory.oom_control oom_kill";
    }
    int pids = cg->on_v2[PX_CG_PIDS] ? cg->v2.fd : cg->v1[PX_CG_PIDS].fd;
    if (pids >= 0) {
        u->pids_peak = read_number(pids, "pids.peak", 0);
        u->pids_refused = read_key(pids, "pids.events", "max");
        u->pids_counter = "pids.events max";
    }
    if (cg->on_v2[PX_CG_CPU])
        u->cpu_usec = read_key(cg->v2.fd, "cpu.stat", "usage_usec");
}

/* ---- the end ---- */

int px_cgroup_kill(const struct px_cgroup *cg)
{
    return cg->v2.fd < 0 ? -ENOSYS : px_write_file(cg->v2.fd, "cgroup.kill", "1");
}

static int remove_dir(struct px_cgroup_dir *dir, const char *name)
{
    int r = 0;
    if (dir->fd >= 0 && dir->parent_fd >= 0) {
        /* The last process leaves the cgroup shortly after it was reaped. A stuck one is waited for at most 2 s. */
        for (int i = 0; i < 400; i++) {
            r = (int)px_sys(SYS_unlinkat, dir->parent_fd, name, AT_REMOVEDIR);
            if (r != -EBUSY)
                break;
            struct timespec pause = {.tv_nsec = i < 20 ? 100000 : 5000000};
            (void)nanosleep(&pause, NULL);
        }
    }
    dir->fd = px_fd_close(dir->fd);
    dir->parent_fd = px_fd_close(dir->parent_fd);
    return r;
}

int px_cgroup_done(struct px_cgroup *cg)
{
    int r = remove_dir(&cg->v2, cg->name);
    for (int i = 0; i < PX_CG_COUNT; i++) {
        int one = remove_dir(&cg->v1[i], cg->name);
        r = one < 0 ? one : r;
    }
    return r;
}
