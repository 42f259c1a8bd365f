/* probe/namespaces.c - namespaces and id maps: a child can change what is inside, and not what is outside. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "kernel/mount.h"
#include "kernel/pidfd.h"
#include "probe/probe_internal.h"

/* ---- user ---- */

/* Sets the host's name only to its current value, in case the forbidden call works. */
static long set_same_name(void)
{
    struct utsname host;
    long r = px_sys(SYS_uname, &host);
    return r < 0 ? r : px_sys(SYS_sethostname, host.nodename, strlen(host.nodename));
}

static void inside_user(struct px_probe_ctx *c)
{
    c->row->raise = px_probe_userns_raise(c->host, -EPERM);
    if (!px_probe_refused(c, set_same_name(), EPERM, 0, "setting the host's name from a new user namespace") ||
        !px_probe_works(c, px_sys(SYS_unshare, PX_CLONE_NEWUTS), "making a namespace of names in it"))
        return;
    c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_user(struct px_probe_ctx *c)
{
    const struct px_probe_job job = {.namespaces = PX_CLONE_NEWUSER, .inside = inside_user};
    (void)px_probe_child(c, &job);
    c->host->userns = c->row->state == PX_PROBE_ENFORCED;
    if (!c->host->userns && c->host->filtered)
        px_probe_inside(c->host, "this process already runs under a seccomp filter that refuses user namespaces: "
                                 "run px outside of it");
}

/* ---- ids ---- */

enum { NOTE_OUTER_UID, NOTE_IS_ROOT };

static void inside_ids(struct px_probe_ctx *c)
{
    const struct px_idmap *map = &c->host->map;
    bool single = map->kind == PX_IDMAP_SINGLE;
    uint32_t beyond = single ? 0 : map->count + 1000;
    px_probe_meet(c);           /* the parent has looked at this process */
    long r = px_sys(SYS_setresuid, beyond, beyond, beyond);
    char act[64];
    (void)px_fmt(act, sizeof act, "becoming uid %u, which is not mapped,", beyond);
    if (!px_probe_refused(c, r, EINVAL, 0, act))
        return;
    r = px_sys(SYS_setresuid, map->uid, map->uid, map->uid);
    (void)px_fmt(act, sizeof act, "being uid %u inside", map->uid);
    if (!px_probe_works(c, r < 0 ? r : px_sys(SYS_getuid) == map->uid ? 0 : -EINVAL, act))
        return;
    int64_t outer = c->shared->note[NOTE_OUTER_UID];
    if (outer > 0)
        px_probe_say(c->row->permitted, "being uid %u inside worked; its ids begin at %lld outside", map->uid,
                     (long long)outer);
    if (c->shared->note[NOTE_IS_ROOT]) {
        px_probe_say(c->row->why, "an id inside is the host's 0");
        return;
    }
    c->row->state = PX_PROBE_ENFORCED;
}

/* "Uid:\t1879048192\t..." of the child, as this side sees it. */
static void outside_ids(struct px_probe_ctx *c, pid_t pid)
{
    char path[64], text[8192];
    long long uid;
    c->shared->note[NOTE_OUTER_UID] = -1;
    if (px_fmt(path, sizeof path, "/proc/%d/status", (int)pid) < 0 || px_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return;
    const char *line = strstr(text, "\nUid:");
    if (line && sscanf(line, "\nUid: %lld", &uid) == 1) {
        c->shared->note[NOTE_OUTER_UID] = uid;
        c->shared->note[NOTE_IS_ROOT] = uid == 0 && px_idmap_caller_is_root();
    }
}

void px_probe_id_map(struct px_probe_ctx *c)
{
    const struct px_probe_job job = {.namespaces = PX_CLONE_NEWUSER, .inside = inside_ids, .outside = outside_ids};
    struct px_idmap single = c->host->map, map;
    int r = px_idmap_choose(single.uid, single.gid, false, &map);
    c->row->raise = c->host->root ? PX_RAISE_RANGE : PX_RAISE_SUBIDS;
    if (r < 0) {
        px_probe_say(c->row->why, "no ids can be had for a box (%s)", px_probe_errno(r).text);
        if (r == -ENOENT)
            c->row->raise = PX_RAISE_NO_PROC;
        return;
    }
    if (map.kind != PX_IDMAP_SINGLE && !c->host->root && c->host->no_new_privs)
        c->row->raise = PX_RAISE_NO_NEW_PRIVS;
    c->host->map = map;
    px_probe_say(c->row->found, "%s", strchr(px_idmap_name(&map), '=') + 1);
    (void)px_probe_child(c, &job);
    if (c->row->state != PX_PROBE_ENFORCED) {   /* later probes use a single id */
        px_idmap_done(&map);
        c->host->map = single;
    }
}

void px_probe_own_ids(struct px_probe_ctx *c)
{
    const struct px_idmap *map = &c->host->map;
    if (!c->host->userns) {
        px_probe_say(c->row->why, "without a user namespace a box has the caller's own id");
        return;
    }
    px_probe_say(c->row->found, "%u %s", map->count, map->count == 1 ? "id" : "ids");
    if (map->kind != PX_IDMAP_SINGLE) {
        px_probe_say(c->row->permitted, "uid %u inside is uid %u outside, which is nobody's", map->uid, px_idmap_host_uid(map));
        px_probe_say(c->row->forbidden, "the caller's own id %u is not among the ids of a box", map->caller_uid);
        c->row->state = PX_PROBE_ENFORCED;
        return;
    }
    c->row->state = PX_PROBE_DEGRADED;
    c->row->raise = c->host->root ? PX_RAISE_RANGE : PX_RAISE_SUBIDS;
    px_probe_say(c->row->why, "a box has one id, which is the caller's own (%u)", map->caller_uid);
}

/* ---- mount ---- */

enum { NOTE_BEFORE, NOTE_AFTER };

static int64_t device_of(const char *path)
{
    struct stat st = {0};
    return px_sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) < 0 ? -1 : (int64_t)st.st_dev;
}

/* Any existing directory works: only the child sees the mount. */
static const char *some_directory(void)
{
    static const char *const candidates[] = {"/tmp", "/dev", "/usr"};
    struct stat st = {0};
    for (size_t i = 0; i < PX_COUNT_OF(candidates); i++)
        if (px_sys(SYS_newfstatat, AT_FDCWD, candidates[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
            return candidates[i];
    return "/";
}

static void inside_mount(struct px_probe_ctx *c)
{
    const char *place = some_directory();
    int64_t *note = c->shared->note;
    note[NOTE_BEFORE] = device_of(place);
    int r = px_mount_private();
    if (r >= 0)
        r = px_mount_at("tmpfs", place, PX_MOUNT_NOSUID | PX_MOUNT_NODEV, "size=64k");
    note[NOTE_AFTER] = device_of(place);
    if (px_probe_works(c, r, "mounting a tmpfs in its own namespace"))
        px_probe_meet(c);
}

static void outside_mount(struct px_probe_ctx *c, pid_t pid)
{
    (void)pid;
    const char *place = some_directory();
    const int64_t *note = c->shared->note;
    int64_t seen = device_of(place);
    if (note[NOTE_AFTER] == note[NOTE_BEFORE]) {
        px_probe_say(c->row->why, "unknown: the mount inside on %s was not seen inside", place);
    } else if (seen == note[NOTE_BEFORE]) {
        px_probe_say(c->row->forbidden, "the mount inside on %s was not seen outside", place);
        c->row->state = PX_PROBE_ENFORCED;
    } else {
        px_probe_say(c->row->why, "a mount made inside on %s was seen outside", place);
    }
}

void px_probe_mount(struct px_probe_ctx *c)
{
    const struct px_probe_job job = {
        .namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWNS, .inside = inside_mount, .outside = outside_mount};
    (void)px_probe_child(c, &job);
}

/* ---- pid ---- */

enum { NOTE_OUTER_PID };

static void inside_pid(struct px_probe_ctx *c)
{
    px_auto_fd int pidfd = -EBADF;
    int status = 0;
    if (px_sys(SYS_getpid) != 1 || px_sys(SYS_getppid) != 0) {
        px_probe_say(c->row->why, "the first process of a new namespace is not process 1");
        return;
    }
    long pid = px_fork(&pidfd);
    if (pid == 0) {
        px_probe_linger();
        px_fork_exit(0);
    }
    if (pid < 0) {
        px_probe_no_process(c, pid);
        return;
    }
    if (!px_probe_works(c, px_sys(SYS_kill, pid, SIGKILL), "being process 1 and ending a child of its own"))
        return;
    (void)px_fork_reap(pidfd, &status);
    long outer = (long)c->shared->note[NOTE_OUTER_PID];
    if (outer == 1) {           /* px is process 1 of its own namespace: the pid proves nothing */
        px_probe_say(c->row->forbidden, "the process outside has no number inside: getppid says 0");
        c->row->state = PX_PROBE_ENFORCED;
        return;
    }
    char act[64];
    (void)px_fmt(act, sizeof act, "a signal to process %ld of the host", outer);
    if (px_probe_refused(c, px_sys(SYS_kill, outer, 0), ESRCH, 0, act))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_pid(struct px_probe_ctx *c)
{
    c->shared->note[NOTE_OUTER_PID] = getpid();
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWPID, .inside = inside_pid});
}

/* ---- ipc ---- */

enum { NOTE_SEGMENT };

static void inside_ipc(struct px_probe_ctx *c)
{
    long own = px_sys(SYS_shmget, IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    long at = own < 0 ? own : px_sys(SYS_shmat, own, 0, 0);
    if (own >= 0)
        (void)px_sys(SYS_shmctl, own, IPC_RMID, 0);
    if (!px_probe_works(c, at, "using a shared segment of its own"))
        return;
    /* The first segment of each namespace may have the same id. Ours is removed when it is detached. */
    (void)px_sys(SYS_shmdt, at);
    long outer = px_sys(SYS_shmat, c->shared->note[NOTE_SEGMENT], 0, SHM_RDONLY);
    if (px_probe_refused(c, outer, EINVAL, EIDRM, "using a segment of the host"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_ipc(struct px_probe_ctx *c)
{
    const struct px_probe_job job = {.namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWIPC, .inside = inside_ipc};
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
    void *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
    int r = at == (void *)-1 ? -errno : 0;
    if (id >= 0)
        (void)shmctl(id, IPC_RMID, NULL);       /* it exists while attached, so no longer than this process */
    if (r < 0) {
        px_probe_unknown(c, r, "no shared segment can be made on the host to try it with");
        return;
    }
    c->shared->note[NOTE_SEGMENT] = id;
    (void)px_probe_child(c, &job);
    (void)shmdt(at);
}

/* ---- uts ---- */

enum { NOTE_NAMES };

static int64_t names_namespace(void)
{
    struct stat st = {0};
    return px_sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/uts", &st, 0) < 0 ? -1 : (int64_t)st.st_ino;
}

/* The filter of most containers refuses to set a name; the namespace still exists, and a box can run without its
 * name. */
static void inside_uts(struct px_probe_ctx *c)
{
    long r = px_sys(SYS_sethostname, "px-probe", 8);
    bool filtered = r == -EPERM || r == -ENOSYS;
    c->shared->note[NOTE_NAMES] = filtered ? names_namespace() : 0;
    if (c->shared->note[NOTE_NAMES] > 0 || px_probe_works(c, r, "setting its own name"))
        px_probe_meet(c);
}

static void outside_names(struct px_probe_ctx *c)
{
    if (c->shared->note[NOTE_NAMES] == names_namespace()) {
        px_probe_say(c->row->why, "the names inside are those outside");
        return;
    }
    px_probe_say(c->row->permitted, "a namespace of its own, but sethostname is refused: a box keeps the host's name");
    c->row->state = PX_PROBE_ENFORCED;
}

static void outside_uts(struct px_probe_ctx *c, pid_t pid)
{
    (void)pid;
    struct utsname host;
    if (c->shared->note[NOTE_NAMES]) {
        outside_names(c);
        return;
    }
    if (uname(&host) < 0 || px_equal(host.nodename, "px-probe")) {
        px_probe_say(c->row->why, "the name set inside was seen outside");
        return;
    }
    px_probe_say(c->row->forbidden, "the name set inside was not seen outside");
    c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_uts(struct px_probe_ctx *c)
{
    const struct px_probe_job job = {
        .namespaces = PX_CLONE_NEWUSER | PX_CLONE_NEWUTS, .inside = inside_uts, .outside = outside_uts};
    (void)px_probe_child(c, &job);
}

/* ---- cgroup ---- */

/* True if every line of /proc/self/cgroup ends in ":/". */
static bool only_roots(const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        if (n < 2 || memcmp(line + n - 2, ":/", 2) != 0)
            return false;
        line += n + (line[n] == '\n');
    }
    return *text != '\0';
}

static void inside_cgroup(struct px_probe_ctx *c)
{
    char before[4096], after[4096];
    ssize_t n = px_read_file(AT_FDCWD, "/proc/self/cgroup", before, sizeof before);
    long r = px_sys(SYS_unshare, PX_CLONE_NEWCGROUP);
    if (!px_probe_works(c, r, "making a cgroup namespace"))
        return;
    if (n >= 0)
        n = px_read_file(AT_FDCWD, "/proc/self/cgroup", after, sizeof after);
    if (n < 0) {
        px_probe_unknown(c, n, "/proc/self/cgroup cannot be read");
        return;
    }
    if (!only_roots(after)) {
        px_probe_say(c->row->why, "the place of the caller's groups is seen in a new cgroup namespace");
        return;
    }
    px_probe_say(c->row->forbidden, only_roots(before) ? "nothing above its own group is seen; the caller is in the top group"
                                                       : "the place of the caller's group was not seen inside");
    c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_cgroup_namespace(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = PX_CLONE_NEWUSER, .inside = inside_cgroup});
}

/* ---- no user namespaces below ---- */

/* 0 if a process in one more user namespace could be made. */
static long nest(void)
{
    int pidfd = -EBADF, status;
    long pid = px_sys(SYS_clone, PX_CLONE_NEWUSER | PX_CLONE_PIDFD, 0, &pidfd, 0, 0);
    if (pid == 0)
        px_fork_exit(0);
    if (pid < 0)
        return pid;
    (void)px_fork_reap(pidfd, &status);
    (void)px_fd_close(pidfd);
    return 0;
}

static void inside_nesting(struct px_probe_ctx *c)
{
    long first = nest();
    if (first == -EAGAIN) {
        px_probe_no_process(c, first);
        return;
    }
    if (!px_probe_works(c, first, "making a user namespace inside, before it is forbidden,"))
        return;
    int r = px_write_file(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0");
    if (r < 0) {
        px_probe_say(c->row->why, "/proc/sys/user/max_user_namespaces cannot be written inside (%s)",
                     px_probe_errno(r).text);
        c->row->raise = PX_RAISE_PROC;
    } else if (px_probe_refused(c, nest(), ENOSPC, 0, "making one after max_user_namespaces was set to 0 inside")) {
        c->row->state = PX_PROBE_ENFORCED;
    }
}

void px_probe_no_nesting(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = PX_CLONE_NEWUSER, .inside = inside_nesting});
}
