/* kernel/test_privs.c - giving up ids and privileges, in children with a user namespace of their own. */
#include "kernel/privs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "kernel/idmap.h"

enum { PAYLOAD_UID = 1000, PAYLOAD_GID = 1001, LOCKED_BITS = 0x2f };

/* Runs fn in a child that is privileged over a user namespace of its own, with the map that a box would have. */
static void in_userns(void (*fn)(const struct px_idmap *map))
{
    struct px_idmap map;
    int ready[2], go[2], status;
    char byte = 0;

    if (px_idmap_choose(PAYLOAD_UID, PAYLOAD_GID, false, &map) < 0)
        SKIP("no ids can be had here");
    ASSERT_OK(px_pipe(ready));
    ASSERT_OK(px_pipe(go));
    pid_t pid = fork();
    if (pid == 0) {
        byte = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(3);
        if (map.kind != PX_IDMAP_SINGLE &&
            (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
            _exit(4);
        fn(&map);
        _exit(0);
    }
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    bool made = byte == 'y';
    int mapped = made ? px_idmap_apply(&map, pid) : 0;
    int *const ends[] = {&ready[0], &ready[1], &go[0]};
    for (size_t i = 0; i < PX_COUNT_OF(ends); i++)
        (void)px_fd_close(*ends[i]);
    if (made && mapped >= 0)
        ASSERT_EQ(write(go[1], "g", 1), 1);
    (void)px_fd_close(go[1]);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    px_idmap_done(&map);
    if (!made)
        SKIP("no user namespace can be made here");
    ASSERT_OK(mapped);
    ASSERT_EQ(status, 0);
}

/* The value of a line of /proc/self/status: "CapEff:\t0000". */
static void status_line(const char *key, char *out, size_t size)
{
    char text[8192];
    size_t n = strlen(key);

    ASSERT_OK(px_read_file(AT_FDCWD, "/proc/self/status", text, sizeof text));
    for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            line += n + 1 + strspn(line + n + 1, " \t");
            (void)snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
            return;
        }
    FAIL("/proc/self/status has no line %s", key);
}

static void check_line(const char *key, const char *wanted)
{
    char value[256];

    status_line(key, value, sizeof value);
    if (strcmp(value, wanted) != 0)
        FAIL("%s is '%s', not '%s'", key, value, wanted);
}

static void check_no_privilege(void)
{
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};

    for (size_t i = 0; i < PX_COUNT_OF(sets); i++)
        check_line(sets[i], "0000000000000000");
    check_line("NoNewPrivs", "1");
}

static void drop(const struct px_idmap *map)
{
    ASSERT_EQ(px_privs_bound(), 0);
    ASSERT_EQ(px_privs_drop(PAYLOAD_UID, PAYLOAD_GID, map->kind != PX_IDMAP_SINGLE, 1), 0);
}

static void check_drop(const struct px_idmap *map)
{
    gid_t groups[4];

    drop(map);
    check_no_privilege();
    check_line("Uid", "1000\t1000\t1000\t1000");
    check_line("Gid", "1001\t1001\t1001\t1001");
    if (map->kind != PX_IDMAP_SINGLE)
        ASSERT_EQ(getgroups(4, groups), 0);
    ASSERT_EQ(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), LOCKED_BITS);
}

TEST(everything_is_gone)
{
    in_userns(check_drop);
}

static void check_no_way_back(const struct px_idmap *map)
{
    drop(map);
    if (map->kind != PX_IDMAP_SINGLE) {
        ASSERT_EQ(setresuid(0, 0, 0), -1);
        ASSERT_EQ(errno, EPERM);
        ASSERT_EQ(setresgid(0, 0, 0), -1);
        ASSERT_EQ(errno, EPERM);
    }
    ASSERT_EQ(setgroups(0, NULL), -1);
    ASSERT_EQ(errno, EPERM);
    ASSERT_EQ(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), -1);
    ASSERT_EQ(errno, EPERM);
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), -1);
    ASSERT_EQ(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), -1);
    ASSERT_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 0, 0, 0), -1);
    ASSERT_EQ(unshare(CLONE_NEWNS), -1);
    ASSERT_EQ(errno, EPERM);
    ASSERT_EQ(sethostname("x", 1), -1);
    ASSERT_EQ(errno, EPERM);
}

TEST(there_is_no_way_back)
{
    in_userns(check_no_way_back);
}

/* An inner root is nobody after exec either: the bounding set is empty and NOROOT is locked. */
static void check_inner_root(const struct px_idmap *map)
{
    if (map->kind == PX_IDMAP_SINGLE)
        SKIP("there is only one id in the namespace");
    ASSERT_EQ(px_privs_bound(), 0);
    ASSERT_EQ(px_privs_drop(0, 0, 1, 1), 0);
    check_no_privilege();
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/bin/grep", "grep", "-q", "^CapEff:.0000000000000000$", "/proc/self/status",
                    (char *)NULL);
        _exit(126);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(WEXITSTATUS(status), 0);
}

TEST(inner_root_stays_without_privilege_after_exec)
{
    in_userns(check_inner_root);
}

static void check_bound_keeps_what_is_in_use(const struct px_idmap *map)
{
    char before[64], after[64];

    (void)map;
    status_line("CapEff", before, sizeof before);
    ASSERT(strcmp(before, "0000000000000000") != 0);
    ASSERT_EQ(px_privs_bound(), 0);
    status_line("CapEff", after, sizeof after);
    ASSERT_STR(after, before);
    check_line("CapBnd", "0000000000000000");
    check_line("NoNewPrivs", "1");
}

TEST(bound_keeps_what_is_in_use)
{
    in_userns(check_bound_keeps_what_is_in_use);
}

/* Reading back is what makes it trustworthy: a set that is not empty is an error, not a detail. */
static void check_unbounded(const struct px_idmap *map)
{
    ASSERT_EQ(px_privs_drop(PAYLOAD_UID, PAYLOAD_GID, map->kind != PX_IDMAP_SINGLE, 1), -EPERM);
}

TEST(drop_without_bound_is_noticed)
{
    in_userns(check_unbounded);
}

static void check_unmapped(const struct px_idmap *map)
{
    ASSERT_EQ(px_privs_bound(), 0);
    ASSERT_EQ(px_privs_drop(70000, PAYLOAD_GID, map->kind != PX_IDMAP_SINGLE, 1), -EINVAL);
    ASSERT_EQ(px_privs_drop(PAYLOAD_UID, 70000, map->kind != PX_IDMAP_SINGLE, 1), -EINVAL);
}

TEST(ids_that_are_not_in_the_map)
{
    in_userns(check_unmapped);
}

static void become_ordinary(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(1200, 1200, 1200) < 0 || setresuid(1200, 1200, 1200) < 0))
        _exit(2);
}

/* The tier without namespaces: an ordinary caller has nothing to bound, and must come out as bare. */
TEST(an_ordinary_caller_without_a_namespace)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        become_ordinary();
        ASSERT_EQ(px_privs_drop(geteuid(), getegid(), 0, 0), -EPERM); /* no_new_privs is not set */
        ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        ASSERT_EQ(px_privs_drop(geteuid(), getegid(), 0, 0), 0);
        check_line("CapEff", "0000000000000000");
        check_line("CapPrm", "0000000000000000");
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

TEST(an_ordinary_caller_cannot)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        become_ordinary();
        int bound = px_privs_bound(), dropped = px_privs_drop(geteuid() + 1, getegid(), 0, 1);
        _exit(bound == -EPERM && dropped == -EPERM ? 0 : 1);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

/* CHOWN and FOWNER, of all that there are. */
static void check_kept(const struct px_idmap *map)
{
    (void)map;
    ASSERT_EQ(px_privs_keep(1u << 0 | 1u << 3), 0);
    check_line("CapEff", "0000000000000009");
    check_line("CapPrm", "0000000000000009");
    check_line("CapInh", "0000000000000000");
    check_line("CapBnd", "0000000000000000");
    check_line("CapAmb", "0000000000000000");
    ASSERT_EQ(px_privs_keep(UINT64_MAX), 0);    /* and none comes back */
    check_line("CapEff", "0000000000000009");
    ASSERT_EQ(px_privs_keep(0), 0);
    check_line("CapPrm", "0000000000000000");
}

TEST(some_privileges_are_kept)
{
    in_userns(check_kept);
}

TEST(who_has_none_keeps_none)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        become_ordinary();
        ASSERT_EQ(px_privs_keep(UINT64_MAX), 0);
        check_line("CapEff", "0000000000000000");
        check_line("CapPrm", "0000000000000000");
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}
