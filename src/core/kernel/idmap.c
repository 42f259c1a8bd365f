#include "kernel/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/clone.h"
#include "kernel/pidfd.h"

enum {
    RANGE = 65536,
    BLOCK_FIRST = 0x70000000,   /* systemd's list of id ranges leaves 0x70000000..0x7fffffff unassigned */
    BLOCK_RANGES = 4096,
    TEXT_MAX = 64 * 1024,       /* of /etc/passwd, /etc/subuid */
};

/* ---- text files of the host: name:number:number lines ---- */

/* The next line of *text without its newline, cut in place; NULL at the end. */
static char *next_line(char **text)
{
    char *line = *text;
    if (*line == '\0')
        return NULL;
    char *end = strchr(line, '\n');
    *text = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

/* Cuts the line at ':' into at least `count` fields; fewer is an error. */
static int cut_fields(char *line, char *fields[], int count)
{
    for (int i = 0; i < count; i++) {
        fields[i] = line;
        line = strchr(line, ':');
        if (!line)
            return i + 1 == count ? 0 : -EINVAL;
        *line++ = '\0';
    }
    return 0;
}

static int user_name(uint32_t uid, char *out, size_t size)
{
    px_auto_free char *text = malloc(TEXT_MAX);
    if (!text)
        return -ENOMEM;
    ssize_t n = px_read_file(AT_FDCWD, "/etc/passwd", text, TEXT_MAX);
    if (n < 0)
        return (int)n;
    char *rest = text, *line, *field[3];
    while ((line = next_line(&rest))) {
        uint64_t id;
        if (cut_fields(line, field, 3) == 0 && px_parse_u64(field[2], UINT32_MAX, &id) == 0 && id == uid)
            return px_fmt(out, size, "%s", field[0]);
    }
    return -ENOENT;
}

/* The first range of at least `need` ids that the file gives to the user, by name or by number. */
static int find_subordinate(const char *file, const char *name, uint32_t uid, uint32_t need, uint32_t *ret_first)
{
    px_auto_free char *text = malloc(TEXT_MAX);
    if (!text)
        return -ENOMEM;
    ssize_t n = px_read_file(AT_FDCWD, file, text, TEXT_MAX);
    if (n < 0)
        return (int)n;
    char *rest = text, *line, *field[3];
    while ((line = next_line(&rest))) {
        uint64_t id, first, count;
        if (cut_fields(line, field, 3) < 0)
            continue;
        bool mine = px_equal(field[0], name) || (px_parse_u64(field[0], UINT32_MAX, &id) == 0 && id == uid);
        if (mine && px_parse_u64(field[1], UINT32_MAX, &first) == 0 && px_parse_u64(field[2], UINT32_MAX, &count) == 0 &&
            first > 0 && count >= need) {
            *ret_first = (uint32_t)first;
            return 0;
        }
    }
    return -ENOENT;
}

/* ---- root: a range of the block ---- */

/* Byte N of the file is locked while range N is in use. A lock of an open file description is the box's own, also
 * among threads, and is released when its last holder ends. So a range is never leaked, and its age does not matter. */
static int open_ranges(void)
{
    (void)px_sys(SYS_mkdirat, AT_FDCWD, "/run/px", 0700);
    px_auto_fd int dir = (int)px_sys(SYS_openat, AT_FDCWD, "/run/px", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return dir;
    struct stat st;
    if (fstat(dir, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
        return -EPERM;
    return px_open_beneath(dir, "ids", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

static int lock_range(int fd, uint32_t index, short how)
{
    struct flock lock = {.l_type = how, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};
    return (int)px_sys(SYS_fcntl, fd, F_OFD_SETLK, &lock);
}

/* Takes a free range with an exclusive lock, then turns it into a shared lock, so that a box can join. */
static int take_range(uint32_t *ret_index)
{
    px_auto_fd int fd = open_ranges();
    if (fd < 0)
        return fd;
    /* A random start: a process with a thousand boxes would otherwise try a thousand used ranges first. */
    uint32_t start = 0;
    if (px_sys(SYS_getrandom, &start, sizeof start, 0) != sizeof start)
        start = (uint32_t)px_sys(SYS_gettid);
    start %= BLOCK_RANGES;
    for (uint32_t i = 0; i < BLOCK_RANGES; i++) {
        uint32_t index = (start + i) % BLOCK_RANGES;
        int r = lock_range(fd, index, F_WRLCK);
        if (r == 0) {
            *ret_index = index;
            r = lock_range(fd, index, F_RDLCK);
            return r < 0 ? r : px_fd_take(&fd);
        }
        if (r != -EAGAIN && r != -EACCES)
            return r;
    }
    return -EUSERS;
}

/* In a user namespace (a container) only some ids exist. The range must lie within them and leave out id 0. */
struct available {
    uint64_t first, count;      /* the largest run of ids */
    bool whole;                 /* the block is in it: not a container, or one with all ids */
    bool zero_is_somebody;      /* our 0 is another id outside, so it is not the host's root */
};

int px_idmap_line(char **text, uint64_t ret_extent[3])
{
    char *line = next_line(text);
    for (int k = 0; line && k < 3; k++) {
        line += strspn(line, " ");
        char *end = line + strcspn(line, " ");
        char saved = *end;
        *end = '\0';
        if (px_parse_u64(line, UINT32_MAX, &ret_extent[k]) < 0)
            return -EINVAL;
        *end = saved;
        line = end;
    }
    return line != NULL;
}

static int ids_available(const char *file, struct available *ret)
{
    char text[4096];
    ssize_t n = px_read_file(AT_FDCWD, file, text, sizeof text);
    if (n < 0)
        return (int)n;
    struct available a = {0};
    char *rest = text;
    uint64_t number[3];
    int more;
    while ((more = px_idmap_line(&rest, number)) > 0) {
        if (number[2] > a.count) {
            a.first = number[0];
            a.count = number[2];
        }
        a.zero_is_somebody = a.zero_is_somebody || (number[0] == 0 && number[1] != 0);
    }
    if (more < 0)
        return more;
    a.whole = a.first == 0 && a.count >= (uint64_t)BLOCK_FIRST + (uint64_t)BLOCK_RANGES * RANGE;
    *ret = a;
    return 0;
}

static int choose_for_root(struct px_idmap *map)
{
    struct available a;
    int r = ids_available("/proc/self/uid_map", &a);
    if (r < 0)
        return r;
    map->kind = PX_IDMAP_RANGE;
    map->count = RANGE;
    if (!a.whole) {             /* the upper half of the container's ids; two boxes may share it */
        uint32_t need = map->uid > map->gid ? map->uid : map->gid;
        if (a.count >= 2 * (uint64_t)need + 2) {
            map->count = (uint32_t)(a.count / 2 < RANGE ? a.count / 2 : RANGE);
            map->uid_base = map->gid_base = (uint32_t)(a.first + a.count - map->count);
            return 0;
        }
        map->kind = PX_IDMAP_SINGLE;
        map->count = 1;
        return a.zero_is_somebody ? 0 : -ENOSPC;
    }
    uint32_t index = 0;
    int fd = take_range(&index);
    if (fd < 0)
        return fd;
    map->lock_fd = fd;
    map->uid_base = map->gid_base = (uint32_t)BLOCK_FIRST + index * (uint32_t)RANGE;
    return 0;
}

bool px_idmap_caller_is_root(void)
{
    struct available a;
    return geteuid() == 0 && (ids_available("/proc/self/uid_map", &a) < 0 || !a.zero_is_somebody);
}

/* ---- an ordinary user ---- */

/* newuidmap and newgidmap need their set-user-id bit, which no_new_privs disables. */
static bool is_runnable(const char *path)
{
    return px_sys(SYS_faccessat, AT_FDCWD, path, X_OK) == 0 && px_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
}

static void choose_for_user(bool want_caller, struct px_idmap *map)
{
    char name[256] = "";
    uint32_t need = map->uid + 1 > map->gid + 1 ? map->uid + 1 : map->gid + 1;

    map->kind = PX_IDMAP_SINGLE;
    map->count = 1;
    (void)user_name(map->caller_uid, name, sizeof name);
    if (need > RANGE || !is_runnable("/usr/bin/newuidmap") || !is_runnable("/usr/bin/newgidmap") ||
        find_subordinate("/etc/subuid", name, map->caller_uid, RANGE, &map->uid_base) < 0 ||
        find_subordinate("/etc/subgid", name, map->caller_uid, RANGE, &map->gid_base) < 0)
        return;
    map->kind = want_caller ? PX_IDMAP_SUBIDS_CALLER : PX_IDMAP_SUBIDS;
    map->count = RANGE;
}

int px_idmap_choose(uint32_t uid, uint32_t gid, bool want_caller, struct px_idmap *ret_map)
{
    struct px_idmap map = {
        .uid = uid, .gid = gid, .caller_uid = geteuid(), .caller_gid = getegid(), .lock_fd = -EBADF,
    };
    int r = 0;
    if (map.caller_uid == 0)
        r = choose_for_root(&map);
    else
        choose_for_user(want_caller, &map);
    if (r < 0)
        return r;
    *ret_map = map;
    return 0;
}

/* ---- the ids of another box ---- */

/* The extent of a process's map that has this id: its first ids inside and outside, and the count. -ENOENT: none. */
static int find_extent(pid_t pid, const char *kind, uint32_t id, uint64_t ret_extent[3])
{
    char path[64], text[4096];
    if (px_fmt(path, sizeof path, "/proc/%d/%s_map", (int)pid, kind) < 0)
        return -ENAMETOOLONG;
    ssize_t n = px_read_file(AT_FDCWD, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    char *rest = text;
    int more;
    while ((more = px_idmap_line(&rest, ret_extent)) > 0)
        if (id >= ret_extent[0] && id - ret_extent[0] < ret_extent[2])
            return 0;
    return more < 0 ? more : -ENOENT;
}

int px_idmap_of_box(const struct px_idmap *map, uint32_t uid)
{
    uint32_t index = (uid - (uint32_t)BLOCK_FIRST) / RANGE;
    if (uid < (uint32_t)BLOCK_FIRST || index >= BLOCK_RANGES)
        return uid >= map->uid_base && uid - map->uid_base < map->count;        /* a container's, which has no lock */
    px_auto_fd int fd = open_ranges();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};
    int r = fd < 0 ? fd : (int)px_sys(SYS_fcntl, fd, F_OFD_GETLK, &lock);
    return r < 0 ? r : lock.l_type == F_UNLCK ? 1 : -EBUSY;
}

/* While its owner lives, no other box can take the range. From now on this box holds it too. */
static int share_range(struct px_idmap *map)
{
    uint32_t index = (map->uid_base - (uint32_t)BLOCK_FIRST) / RANGE;
    if (map->uid_base < (uint32_t)BLOCK_FIRST || index >= BLOCK_RANGES)
        return 0;               /* a container's, which has no lock */
    px_auto_fd int fd = open_ranges();
    int r = fd < 0 ? fd : lock_range(fd, index, F_RDLCK);
    map->lock_fd = r < 0 ? -EBADF : px_fd_take(&fd);
    return r;
}

int px_idmap_join(pid_t pid, uint32_t uid, uint32_t gid, bool want_caller, struct px_idmap *ret_map)
{
    struct px_idmap map = {
        .uid = uid, .gid = gid, .caller_uid = geteuid(), .caller_gid = getegid(), .lock_fd = -EBADF,
    };
    uint64_t uids[3], gids[3];
    int r = find_extent(pid, "uid", uid, uids);
    if (r < 0 || (r = find_extent(pid, "gid", gid, gids)) < 0)
        return r;
    map.uid_base = (uint32_t)(uids[1] - uids[0]);
    map.gid_base = (uint32_t)(gids[1] - gids[0]);
    map.count = (uint32_t)uids[2];
    bool caller = map.uid_base + uid == map.caller_uid && map.gid_base + gid == map.caller_gid;
    uint64_t other[3];
    if (find_extent(pid, "uid", uid ? 0 : 1, other) < 0)
        map.kind = PX_IDMAP_SINGLE;
    else
        map.kind = map.caller_uid == 0 ? PX_IDMAP_RANGE : caller ? PX_IDMAP_SUBIDS_CALLER : PX_IDMAP_SUBIDS;
    if (want_caller && map.kind == PX_IDMAP_SUBIDS)
        return -EACCES;
    if (map.kind == PX_IDMAP_RANGE && (r = share_range(&map)) < 0)
        return r;
    *ret_map = map;
    return 0;
}

void px_idmap_done(struct px_idmap *map)
{
    map->lock_fd = px_fd_close(map->lock_fd);
}

const char *px_idmap_name(const struct px_idmap *map)
{
    static const char *const names[] = {"ids=range", "ids=subordinate", "ids=subordinate+caller", "ids=single"};
    return names[map->kind];
}

uint32_t px_idmap_host_uid(const struct px_idmap *map)
{
    return map->kind >= PX_IDMAP_SUBIDS_CALLER ? map->caller_uid : map->uid_base + map->uid;
}

uint32_t px_idmap_host_gid(const struct px_idmap *map)
{
    return map->kind >= PX_IDMAP_SUBIDS_CALLER ? map->caller_gid : map->gid_base + map->gid;
}

/* ---- applying a map ---- */

struct extent {
    uint32_t inside, outside, count;
};

/* The extents of one of the two maps; at most three. */
static int make_extents(const struct px_idmap *map, uint32_t id, uint32_t caller, uint32_t base, struct extent out[3])
{
    switch (map->kind) {
    case PX_IDMAP_RANGE:
    case PX_IDMAP_SUBIDS:
        out[0] = (struct extent){0, base, map->count};
        return 1;
    case PX_IDMAP_SUBIDS_CALLER:
        if (id == 0) {          /* the kernel refuses an empty extent */
            out[0] = (struct extent){0, caller, 1};
            out[1] = (struct extent){1, base, map->count - 1};
            return 2;
        }
        out[0] = (struct extent){0, base, id};
        out[1] = (struct extent){id, caller, 1};
        out[2] = (struct extent){id + 1, base + id, map->count - id - 1};
        return 3;
    case PX_IDMAP_SINGLE:
        break;
    }
    out[0] = (struct extent){id, caller, 1};
    return 1;
}

static int write_map(const char *file, const struct extent *list, int count)
{
    char text[256];
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        int n = px_fmt(text + at, sizeof text - at, "%u %u %u\n", list[i].inside, list[i].outside, list[i].count);
        if (n < 0)
            return n;
        at += strlen(text + at);
    }
    return px_write_file(AT_FDCWD, file, text);
}

/* newuidmap PID inside outside count ...: the only program that px runs outside of a box, by its absolute path. */
static int run_mapper(const char *program, pid_t pid, const struct extent *list, int count)
{
    char text[1 + 3 * 3][16];
    char *argv[3 + 3 * 3];
    char *const no_environment[] = {NULL};
    int n = 0;

    argv[n++] = (char *)program;
    (void)px_fmt(text[0], sizeof text[0], "%d", (int)pid);
    argv[n++] = text[0];
    for (int i = 0; i < count; i++) {
        const uint32_t number[3] = {list[i].inside, list[i].outside, list[i].count};
        for (int k = 0; k < 3; k++) {
            (void)px_fmt(text[1 + 3 * i + k], sizeof text[0], "%u", number[k]);
            argv[n++] = text[1 + 3 * i + k];
        }
    }
    argv[n] = NULL;

    pid_t child;
    int r = posix_spawn(&child, program, NULL, NULL, argv, no_environment);
    if (r != 0)
        return -r;
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            /* another part of the program reaped it: the next step shows whether it worked */
            return errno == ECHILD ? 0 : -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

int px_idmap_apply(const struct px_idmap *map, pid_t pid)
{
    char uid_file[64], gid_file[64], groups_file[64];
    struct extent uids[3], gids[3];
    int nuids = make_extents(map, map->uid, map->caller_uid, map->uid_base, uids);
    int ngids = make_extents(map, map->gid, map->caller_gid, map->gid_base, gids);

    if (px_fmt(uid_file, sizeof uid_file, "/proc/%d/uid_map", (int)pid) < 0 ||
        px_fmt(gid_file, sizeof gid_file, "/proc/%d/gid_map", (int)pid) < 0 ||
        px_fmt(groups_file, sizeof groups_file, "/proc/%d/setgroups", (int)pid) < 0)
        return -ENAMETOOLONG;
    if (map->kind == PX_IDMAP_SUBIDS || map->kind == PX_IDMAP_SUBIDS_CALLER) {
        int r = run_mapper("/usr/bin/newuidmap", pid, uids, nuids);
        return r < 0 ? r : run_mapper("/usr/bin/newgidmap", pid, gids, ngids);
    }
    int r = write_map(uid_file, uids, nuids);
    if (r >= 0 && map->kind == PX_IDMAP_SINGLE)
        r = px_write_file(AT_FDCWD, groups_file, "deny");   /* the kernel requires it for a map without privileges */
    return r < 0 ? r : write_map(gid_file, gids, ngids);
}

/* ---- a user namespace for an id-mapped mount ---- */

/* Keeps a namespace alive until it is killed, or its parent has ended. */
__attribute__((no_sanitize("address"))) static void hold_namespace(void *parent_pidfd)
{
    const struct timespec long_enough = {.tv_sec = 60};
    struct pollfd parent = {.fd = *(int *)parent_pidfd, .events = POLLIN};
    (void)px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (px_sys(SYS_poll, &parent, 1, 0) == 0)   /* it may have ended before PR_SET_PDEATHSIG took effect */
        (void)px_sys(SYS_nanosleep, &long_enough, 0);
    for (;;)
        (void)px_sys(SYS_exit_group, 0);
}

/* One of the two maps of such a namespace. */
struct file_map {
    struct extent list[5];
    int count;
};

static int map_and_open(pid_t pid, const struct file_map *uids, const struct file_map *gids)
{
    char file[64];
    if (px_fmt(file, sizeof file, "/proc/%d/uid_map", (int)pid) < 0)
        return -ENAMETOOLONG;
    int r = write_map(file, uids->list, uids->count);
    if (r < 0 || (r = px_fmt(file, sizeof file, "/proc/%d/gid_map", (int)pid)) < 0 ||
        (r = write_map(file, gids->list, gids->count)) < 0 ||
        (r = px_fmt(file, sizeof file, "/proc/%d/ns/user", (int)pid)) < 0)
        return r;
    return (int)px_sys(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
}

static int userns_with(const struct file_map *uids, const struct file_map *gids)
{
    char stack[4096] __attribute__((aligned(16)));
    px_auto_fd int pidfd = -EBADF;
    px_auto_fd int parent = px_pidfd_open(getpid());
    if (parent < 0)
        return parent;
    struct px_clone_args args = {
        .flags = PX_CLONE_NEWUSER | PX_CLONE_VM | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&pidfd,
    };
    long pid = px_clone_run(&args, stack, sizeof stack, hold_namespace, &parent);
    if (pid < 0)
        return (int)pid;
    int fd = map_and_open((pid_t)pid, uids, gids);
    int status;
    (void)px_pidfd_signal(pidfd, SIGKILL);
    (void)px_pidfd_wait(pidfd, false, &status, NULL);
    return fd;
}

int px_idmap_userns(uint32_t file_uid, uint32_t file_gid, uint32_t host_uid, uint32_t host_gid)
{
    const struct file_map uids = {.list = {{file_uid, host_uid, 1}}, .count = 1};
    const struct file_map gids = {.list = {{file_gid, host_gid, 1}}, .count = 1};
    return userns_with(&uids, &gids);
}

static void add_extent(struct file_map *m, uint32_t file, uint32_t host, uint32_t count)
{
    if (count > 0)
        m->list[m->count++] = (struct extent){file, host, count};
}

/* `owner` is shown as `host`, and the box's other ids own files under their own numbers. Without them a chown to one
 * of them fails with EOVERFLOW, which cp -a reports, and not with EPERM. */
static struct file_map shown_as(uint32_t owner, uint32_t host, uint32_t base, uint32_t count)
{
    struct file_map m = {0};
    add_extent(&m, owner, host, 1);
    if (owner >= base && owner - base < count)
        return m;
    add_extent(&m, base, base, host - base);
    add_extent(&m, host + 1, host + 1, base + count - host - 1);
    return m;
}

int px_idmap_userns_owner(const struct px_idmap *map, uint32_t file_uid, uint32_t file_gid)
{
    const struct file_map uids = shown_as(file_uid, px_idmap_host_uid(map), map->uid_base, map->count);
    const struct file_map gids = shown_as(file_gid, px_idmap_host_gid(map), map->gid_base, map->count);
    return userns_with(&uids, &gids);
}

/* Swaps `owner` and `id`; all other ids keep their numbers. */
static struct file_map swap_ids(uint32_t owner, uint32_t id, uint32_t base, uint32_t count)
{
    struct file_map m = {0};
    uint32_t low = owner < id ? owner : id, high = owner < id ? id : owner;
    add_extent(&m, owner, base + id, 1);
    if (owner >= count) {       /* the box has no such number, so the two cannot be swapped */
        add_extent(&m, 0, base, id);
        add_extent(&m, id + 1, base + id + 1, count - id - 1);
        return m;
    }
    add_extent(&m, 0, base, low);
    if (low != high) {
        add_extent(&m, id, base + owner, 1);
        add_extent(&m, low + 1, base + low + 1, high - low - 1);
    }
    add_extent(&m, high + 1, base + high + 1, count - high - 1);
    return m;
}

int px_idmap_userns_root(const struct px_idmap *map, uint32_t file_uid, uint32_t file_gid)
{
    const struct file_map uids = swap_ids(file_uid, map->uid, map->uid_base, map->count);
    const struct file_map gids = swap_ids(file_gid, map->gid, map->gid_base, map->count);
    return userns_with(&uids, &gids);
}
