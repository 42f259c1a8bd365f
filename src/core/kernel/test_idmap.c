/* kernel/test_idmap.c - which ids stand behind a box's, who holds them, and that the kernel agrees. */
#include "kernel/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

enum { RANGE = 65536, FIRST = 0x70000000, RANGES = 4096, UID = 1000, GID = 1001 };

static struct px_idmap choose(bool want_caller)
{
    struct px_idmap map = {.lock_fd = -EBADF};
    int r = px_idmap_choose(UID, GID, want_caller, &map);

    if (r < 0)
        SKIP("no ids can be had here (error %d)", -r);
    return map;
}

static void need_ranges(void)
{
    if (geteuid() != 0)
        SKIP("only root's boxes have ranges");
    struct px_idmap map = choose(false);
    bool locked = map.lock_fd >= 0;
    px_idmap_done(&map);
    if (!locked)
        SKIP("this is a container with too few ids for a block of ranges");
}

static uint32_t index_of(const struct px_idmap *map)
{
    return (map->uid_base - FIRST) / RANGE;
}

/* Whether somebody else holds the lock of a range. */
static bool is_taken(uint32_t index)
{
    px_auto_fd int fd = open("/run/px/ids", O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};

    ASSERT(fd >= 0);
    ASSERT_EQ(fcntl(fd, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

TEST(root_gets_a_range_of_its_own)
{
    need_ranges();
    struct px_idmap a = choose(false), b = choose(true);

    ASSERT_EQ(a.kind, PX_IDMAP_RANGE);
    ASSERT_EQ(a.count, RANGE);
    ASSERT_STR(px_idmap_name(&a), "ids=range");
    ASSERT(a.uid_base >= FIRST && a.uid_base <= 0x7fffffffu - RANGE + 1);
    ASSERT_EQ((a.uid_base - FIRST) % RANGE, 0);
    ASSERT_EQ(a.uid_base, a.gid_base);
    ASSERT(a.uid_base != b.uid_base);
    ASSERT_EQ(px_idmap_host_uid(&a), a.uid_base + UID);
    ASSERT_EQ(px_idmap_host_gid(&a), a.gid_base + GID);
    ASSERT(is_taken(index_of(&a)) && is_taken(index_of(&b)));
    ASSERT_EQ(fcntl(a.lock_fd, F_GETFD), FD_CLOEXEC);
    px_idmap_done(&a);
    ASSERT(!is_taken(index_of(&a)));
    ASSERT(is_taken(index_of(&b)));
    px_idmap_done(&b);
    ASSERT(!is_taken(index_of(&b)));
    px_idmap_done(&b);
}

/* Threads of one process must not share either: the lock belongs to the open file, not to the process. */
static void *choose_some(void *arg)
{
    struct px_idmap *maps = arg;

    for (int i = 0; i < 16; i++)
        if (px_idmap_choose(UID, GID, false, &maps[i]) < 0)
            maps[i] = (struct px_idmap){.lock_fd = -EBADF};
    return NULL;
}

TEST(threads_get_different_ranges)
{
    static struct px_idmap maps[4 * 16];
    static unsigned char seen[RANGES];
    pthread_t threads[4];

    need_ranges();
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, choose_some, &maps[16 * i]), 0);
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 4 * 16; i++) {
        ASSERT(maps[i].lock_fd >= 0);
        if (seen[index_of(&maps[i])]++)
            FAIL("range %u was given twice", index_of(&maps[i]));
        px_idmap_done(&maps[i]);
    }
}

TEST(a_dead_process_holds_no_range)
{
    need_ranges();
    int ends[2], status;
    uint32_t index = RANGES;

    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        struct px_idmap map = choose(false);
        uint32_t mine = is_taken(index_of(&map)) ? index_of(&map) : RANGES;
        _exit(write(ends[1], &mine, sizeof mine) == sizeof mine ? 0 : 1); /* without px_idmap_done */
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(read(ends[0], &index, sizeof index), sizeof index);
    (void)close(ends[0]);
    (void)close(ends[1]);
    ASSERT(index < RANGES);
    ASSERT(!is_taken(index));
}

/* /run as this process sees it becomes an empty tmpfs. */
static void private_run(void)
{
    need_ranges();
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/run", "tmpfs", 0, "mode=0755") < 0)
        SKIP("no mount namespace can be made here");
}

TEST(every_range_taken)
{
    struct px_idmap map = {.lock_fd = 77};

    private_run();
    ASSERT_EQ(mkdir("/run/px", 0700), 0);
    px_auto_fd int fd = open("/run/px/ids", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &all), 0);
    ASSERT_EQ(px_idmap_choose(UID, GID, false, &map), -EUSERS);
    ASSERT_EQ(map.lock_fd, 77); /* written only on success */
    struct flock one = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 4095, .l_len = 1};
    ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &one), 0);
    ASSERT_OK(px_idmap_choose(UID, GID, false, &map));
    ASSERT_EQ(index_of(&map), 4095);
    px_idmap_done(&map);
}

TEST(a_lock_directory_that_others_control_is_refused)
{
    struct px_idmap map;

    private_run();
    ASSERT_EQ(symlink("/tmp", "/run/px"), 0);
    ASSERT(px_idmap_choose(UID, GID, false, &map) < 0);
    ASSERT_EQ(unlink("/run/px"), 0);
    ASSERT_EQ(mkdir("/run/px", 0700), 0);
    ASSERT_EQ(chmod("/run/px", 0777), 0);
    ASSERT_EQ(px_idmap_choose(UID, GID, false, &map), -EPERM);
    ASSERT_EQ(chmod("/run/px", 0755), 0);
    ASSERT_EQ(chown("/run/px", 1200, 1200), 0);
    ASSERT_EQ(px_idmap_choose(UID, GID, false, &map), -EPERM);
    ASSERT_EQ(chown("/run/px", 0, 0), 0);
    ASSERT_EQ(symlink("/run/elsewhere", "/run/px/ids"), 0);
    ASSERT_EQ(px_idmap_choose(UID, GID, false, &map), -ELOOP);
    ASSERT_EQ(access("/run/elsewhere", F_OK), -1);
    ASSERT_EQ(unlink("/run/px/ids"), 0);
    ASSERT_OK(px_idmap_choose(UID, GID, false, &map));
    px_idmap_done(&map);
}

TEST(an_ordinary_caller)
{
    if (geteuid() == 0)
        SKIP("this is root");
    struct px_idmap map = choose(true);

    ASSERT(map.kind != PX_IDMAP_RANGE);
    ASSERT_EQ(map.lock_fd, -EBADF);
    ASSERT_EQ(px_idmap_host_uid(&map), geteuid()); /* with binds the payload is the caller */
    ASSERT_EQ(px_idmap_host_gid(&map), getegid());
    map = choose(false);
    if (map.kind == PX_IDMAP_SINGLE) {
        ASSERT_STR(px_idmap_name(&map), "ids=single");
        ASSERT_EQ(px_idmap_host_uid(&map), geteuid());
    } else {
        ASSERT_EQ(map.kind, PX_IDMAP_SUBIDS);
        ASSERT(px_idmap_host_uid(&map) != geteuid());
        ASSERT_EQ(map.count, RANGE);
    }
}

/* ---- what the kernel made of it ---- */

static pid_t child_in_userns(int *ret_go)
{
    int ready[2], go[2];
    char byte = 0;

    ASSERT_OK(px_pipe(ready));
    ASSERT_OK(px_pipe(go));
    pid_t pid = fork();
    if (pid == 0) {
        byte = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
        (void)close(go[1]);
        (void)!write(ready[1], &byte, 1);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)close(go[0]);
    *ret_go = go[1];
    if (byte != 'y')
        SKIP("no user namespace can be made here");
    return pid;
}

static void read_proc(pid_t pid, const char *name, char *out, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    ASSERT_OK(px_read_file(AT_FDCWD, path, out, size));
}

/* The line of a map that holds an inner id: where it begins outside; -1 if there is none. */
static long long outside_of(const char *map, uint32_t inside)
{
    unsigned in, out, count;

    for (const char *line = map; sscanf(line, "%u %u %u", &in, &out, &count) == 3;) {
        if (inside >= in && inside - in < count)
            return (long long)out + (inside - in);
        line = strchr(line, '\n');
        if (!line++ || *line == '\0')
            break;
    }
    return -1;
}

static void check_apply(bool want_caller)
{
    char uids[512], gids[512], groups[32];
    int go, status;
    struct px_idmap map = choose(want_caller);
    pid_t pid = child_in_userns(&go);
    int r = px_idmap_apply(&map, pid);

    read_proc(pid, "uid_map", uids, sizeof uids);
    read_proc(pid, "gid_map", gids, sizeof gids);
    read_proc(pid, "setgroups", groups, sizeof groups);
    int again = px_idmap_apply(&map, pid);
    (void)close(go);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    px_idmap_done(&map);
    ASSERT_OK(r);
    ASSERT(again < 0); /* a map is written once and for all */
    ASSERT_EQ(outside_of(uids, UID), px_idmap_host_uid(&map));
    ASSERT_EQ(outside_of(gids, GID), px_idmap_host_gid(&map));
    ASSERT(outside_of(uids, 0) != 0 && outside_of(gids, 0) != 0);
    for (uint32_t id = 0; id < 70000; id++) /* no id inside is host 0, and nothing beyond the range exists */
        if (outside_of(uids, id) == 0 || outside_of(gids, id) == 0 ||
            (id >= RANGE && outside_of(uids, id) >= 0))
            FAIL("inner id %u is %lld outside", id, outside_of(uids, id));
    if (map.kind == PX_IDMAP_SINGLE)
        ASSERT_STR(groups, "deny\n");
}

TEST(maps_as_the_kernel_sees_them)
{
    check_apply(false);
}

TEST(maps_of_a_box_with_binds)
{
    check_apply(true);
}

TEST(lines_of_a_map)
{
    char text[] = "         0     100000      65536\n1000 1000 1", broken[] = "0 0\n", large[] = "0 0 4294967296\n", *rest = text;
    uint64_t extent[3];

    ASSERT_EQ(px_idmap_line(&rest, extent), 1);
    ASSERT(extent[0] == 0 && extent[1] == 100000 && extent[2] == 65536);
    ASSERT_EQ(px_idmap_line(&rest, extent), 1);
    ASSERT(extent[0] == 1000 && extent[1] == 1000 && extent[2] == 1);
    ASSERT_EQ(px_idmap_line(&rest, extent), 0);
    rest = broken;
    ASSERT_EQ(px_idmap_line(&rest, extent), -EINVAL);
    rest = large;
    ASSERT_EQ(px_idmap_line(&rest, extent), -EINVAL);
}

TEST(apply_to_nobody)
{
    struct px_idmap map = choose(false);

    ASSERT(px_idmap_apply(&map, 0x3fffffff) < 0);
    ASSERT(px_idmap_apply(&map, getpid()) < 0); /* our own namespace has its map already */
    px_idmap_done(&map);
}

/* ---- the ids of another box ---- */

TEST(who_joins_has_the_same_ids_and_holds_them)
{
    int go;
    struct px_idmap first = choose(true), joined = {.lock_fd = -EBADF};
    pid_t pid = child_in_userns(&go);
    ASSERT_OK(px_idmap_apply(&first, pid));
    ASSERT_OK(px_idmap_join(pid, UID, GID, true, &joined));
    ASSERT_EQ(joined.kind, first.kind);
    ASSERT_EQ(px_idmap_host_uid(&joined), px_idmap_host_uid(&first));
    ASSERT_EQ(px_idmap_host_gid(&joined), px_idmap_host_gid(&first));
    struct px_idmap none = {.lock_fd = 77};
    ASSERT_EQ(px_idmap_join(pid, RANGE, GID, false, &none), -ENOENT);
    ASSERT_EQ(none.lock_fd, 77);
    (void)close(go);
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    bool locked = first.lock_fd >= 0;
    ASSERT_EQ(locked, joined.lock_fd >= 0);
    px_idmap_done(&first);
    ASSERT(!locked || is_taken(index_of(&joined)));     /* the first is gone, but not who has joined it */
    uint32_t index = index_of(&joined);
    px_idmap_done(&joined);
    ASSERT(!locked || !is_taken(index));
    ASSERT(px_idmap_join(pid, UID, GID, false, &none) < 0);
}

TEST(files_of_the_caller_need_his_id_there)
{
    int go;
    struct px_idmap first = choose(false), joined = {.lock_fd = -EBADF};
    if (first.kind != PX_IDMAP_SUBIDS) {
        px_idmap_done(&first);
        SKIP("only a user with subordinate ids has a map without his own");
    }
    pid_t pid = child_in_userns(&go);
    ASSERT_OK(px_idmap_apply(&first, pid));
    ASSERT_EQ(px_idmap_join(pid, UID, GID, true, &joined), -EACCES);
    ASSERT_OK(px_idmap_join(pid, UID, GID, false, &joined));
    ASSERT_EQ(px_idmap_host_uid(&joined), px_idmap_host_uid(&first));
    px_idmap_done(&joined);
    px_idmap_done(&first);
    (void)close(go);
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

/* ---- namespaces for mounts ---- */

TEST(userns_for_a_mount)
{
    if (geteuid() != 0)
        SKIP("only root's boxes use id-mapped mounts");
    px_auto_fd int fd = px_idmap_userns(0, 0, FIRST + UID, FIRST + GID);
    char target[64] = "", name[64];

    ASSERT_OK(fd);
    ASSERT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ASSERT(readlink(name, target, sizeof target - 1) > 0);
    ASSERT(strncmp(target, "user:[", 6) == 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        char map[256];
        if (setns(fd, CLONE_NEWUSER) < 0)
            _exit(2);
        pid_t inner = fork(); /* only a process of the namespace shows its map as a whole */
        if (inner == 0) {
            ASSERT_OK(px_read_file(AT_FDCWD, "/proc/self/uid_map", map, sizeof map));
            _exit(outside_of(map, 0) >= 0 && outside_of(map, 1) < 0 ? 0 : 1);
        }
        ASSERT_EQ(waitpid(inner, &status, 0), inner);
        _exit(WEXITSTATUS(status));
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

/* The map of a whole root: owner and payload change places, all others are who they are; nothing is the host's root. */
static void check_root_map(uint32_t owner, uint32_t payload)
{
    const struct px_idmap map = {.kind = PX_IDMAP_RANGE, .uid = payload, .gid = payload, .uid_base = FIRST,
                                 .gid_base = FIRST, .count = 65536};
    px_auto_fd int fd = px_idmap_userns_root(&map, owner, owner);
    int status;

    ASSERT_OK(fd);
    pid_t pid = fork();
    if (pid == 0) {
        char text[512];
        if (setns(fd, CLONE_NEWUSER) < 0)
            _exit(2);
        pid_t inner = fork();
        if (inner == 0) {
            ASSERT_OK(px_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof text));
            int64_t first = outside_of(text, owner) - (int64_t)payload; /* as seen from here: an offset of its own */
            ASSERT_EQ(outside_of(text, 77) - first, 77);
            ASSERT_EQ(outside_of(text, 65535) - first, 65535);
            if (owner < 65536)
                ASSERT_EQ(outside_of(text, payload) - first, owner);
            _exit(0);
        }
        ASSERT_EQ(waitpid(inner, &status, 0), inner);
        _exit(WEXITSTATUS(status));
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

TEST(userns_of_a_whole_root)
{
    if (geteuid() != 0)
        SKIP("only root's boxes use id-mapped mounts");
    check_root_map(0, 1000);
    check_root_map(0, 0);
    check_root_map(1000, 1000);
    check_root_map(5, 1000);
    check_root_map(2000, 1);
    check_root_map(100000, 1000);
}
