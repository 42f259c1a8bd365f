/* kernel/test_cgroup.c - groups made, limited, read, emptied and removed, in whatever hierarchy this machine lets us write. */
#include "kernel/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"

static const struct px_cgroup_limits some = {.memory_bytes = 64 << 20, .pids = 16, .cpu_milli = 500};

static struct px_cgroup make(const struct px_cgroup_limits *limits, const char *id)
{
    struct px_cgroup cg = PX_CGROUP_NONE;
    const char *which = NULL;
    int r = px_cgroup_create(limits, id, &cg, &which);

    if (r < 0)
        SKIP("no group can be made here: %s, error %d", which, -r);
    return cg;
}

static int fd_for(const struct px_cgroup *cg, enum px_controller c)
{
    return cg->on_v2[c] ? cg->v2.fd : cg->v1[c].fd;
}

static uint64_t number_in(int fd, const char *file)
{
    char text[64];
    uint64_t value = 0;

    ASSERT_OK(px_read_file(fd, file, text, sizeof text));
    text[strcspn(text, " \n")] = '\0';
    ASSERT_OK(px_parse_u64(text, UINT64_MAX, &value));
    return value;
}

TEST(limits_are_written)
{
    struct px_cgroup cg = make(&some, "test-limits");
    int memory = fd_for(&cg, PX_CG_MEMORY), pids = fd_for(&cg, PX_CG_PIDS), cpu = fd_for(&cg, PX_CG_CPU);

    ASSERT(memory >= 0 && pids >= 0 && cpu >= 0);
    ASSERT_EQ(number_in(memory, cg.on_v2[PX_CG_MEMORY] ? "memory.max" : "memory.limit_in_bytes"), 64 << 20);
    ASSERT_EQ(number_in(pids, "pids.max"), 16);
    ASSERT_EQ(number_in(cpu, cg.on_v2[PX_CG_CPU] ? "cpu.max" : "cpu.cfs_quota_us"), 50000);
    ASSERT_EQ(fcntl(memory, F_GETFD), FD_CLOEXEC);
    ASSERT_STR(cg.name, "px-test-limits");
    ASSERT_EQ(px_cgroup_done(&cg), 0);
    ASSERT(fd_for(&cg, PX_CG_MEMORY) < 0);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
}

TEST(only_what_is_asked_for)
{
    const struct px_cgroup_limits memory = {.memory_bytes = 32 << 20};
    struct px_cgroup cg = make(&memory, "test-only");

    ASSERT(fd_for(&cg, PX_CG_MEMORY) >= 0);
    ASSERT(cg.v1[PX_CG_PIDS].fd < 0 && cg.v1[PX_CG_CPU].fd < 0);
    ASSERT(!cg.on_v2[PX_CG_PIDS] && !cg.on_v2[PX_CG_CPU]);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
}

/* A child in the group that waits for a byte; the caller closes *ret_go. */
static pid_t child_in(const struct px_cgroup *cg, void (*fn)(void), int *ret_go)
{
    int ends[2];

    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        (void)close(ends[1]);
        (void)!read(ends[0], &byte, 1);
        if (fn)
            fn();
        _exit(0);
    }
    (void)close(ends[0]);
    *ret_go = ends[1];
    ASSERT_OK(px_cgroup_join(cg, pid));
    if (cg->v2.fd >= 0 &&
        (cg->on_v2[0] || cg->on_v2[1] || cg->on_v2[2])) { /* v2 members are born inside; here we move */
        char text[32];
        (void)snprintf(text, sizeof text, "%d", (int)pid);
        ASSERT_OK(px_write_file(cg->v2.fd, "cgroup.procs", text));
    }
    return pid;
}

static void fork_many(void)
{
    int made = 0;

    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)pause();
            _exit(0);
        }
        made += pid > 0;
    }
    (void)signal(SIGTERM, SIG_IGN);
    (void)kill(0, SIGTERM);
    _exit(made < 16 ? 0 : 1);
}

TEST(processes_are_counted_and_bounded)
{
    struct px_cgroup cg = make(&some, "test-pids");
    struct px_cgroup_usage usage;
    int go, status;

    (void)signal(SIGTERM, SIG_IGN);
    pid_t pid = child_in(&cg, fork_many, &go);
    (void)setpgid(pid, pid);
    (void)close(go);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    px_cgroup_read(&cg, &usage);
    (void)kill(-pid, SIGKILL);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
    ASSERT_EQ(status, 0);
    ASSERT(usage.pids_refused > 0);
    ASSERT_STR(usage.pids_counter, "pids.events max");
    if (usage.pids_peak)
        ASSERT_EQ(usage.pids_peak, 16);
}

static void use_memory(void)
{
    size_t size = 512 << 20;
    volatile char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; memory != MAP_FAILED && i < size; i += 4096)
        memory[i] = 1;
    _exit(9);
}

/* How often a process of the group was held up by the limit. */
static uint64_t held_up(const struct px_cgroup *cg)
{
    char text[512];
    bool v2 = cg->on_v2[PX_CG_MEMORY];
    ASSERT_OK(px_read_file(fd_for(cg, PX_CG_MEMORY), v2 ? "memory.events" : "memory.oom_control", text, sizeof text));
    const char *at = strstr(text, v2 ? "high " : "under_oom ");
    ASSERT(at != NULL);
    return strtoull(strchr(at, ' ') + 1, NULL, 10);
}

TEST(nothing_is_ended_before_the_limit_is_armed)
{
    const struct px_cgroup_limits limits = {.memory_bytes = 32 << 20, .shared = true};
    struct px_cgroup cg = make(&limits, "test-arm");
    struct px_cgroup_usage usage;
    int go, status;

    px_auto_fd int door = px_cgroup_memory_door(&cg);
    ASSERT(cg.on_v2[PX_CG_MEMORY] ? door == -EBADF : door >= 0);
    pid_t pid = child_in(&cg, use_memory, &go);
    ASSERT_OK(px_cgroup_enter(&cg, pid));
    (void)close(go);
    for (int i = 0; i < 6000 && held_up(&cg) == 0; i++)
        (void)usleep(5000);
    px_cgroup_read(&cg, &usage);
    ASSERT(held_up(&cg) > 0);
    ASSERT_EQ(usage.oom_kills, 0);
    ASSERT_EQ(waitpid(pid, &status, WNOHANG), 0);
    int r = px_cgroup_arm(&cg, pid);
    ASSERT(r == 0 || r == -EBUSY);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    px_cgroup_read(&cg, &usage);
    ASSERT(usage.oom_kills >= 1);
    ASSERT_EQ(px_cgroup_arm(&cg, pid), 0);      /* once is enough */
    ASSERT_EQ(px_cgroup_memory_door(&cg), -EBADF);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
}

/* With room for an exec the limit of v1 is in force before; without, and on v2, it waits. */
TEST(a_limit_with_room_is_armed_ahead)
{
    static const uint64_t sizes[] = {64 << 20, 8 << 20};

    for (size_t i = 0; i < PX_COUNT_OF(sizes); i++) {
        const struct px_cgroup_limits limits = {.memory_bytes = sizes[i], .shared = true};
        struct px_cgroup cg = make(&limits, "test-ahead");
        if (cg.on_v2[PX_CG_MEMORY]) {
            ASSERT_EQ(px_cgroup_arm_ahead(&cg), 0);
            ASSERT_EQ(px_cgroup_done(&cg), 0);
            SKIP("the memory is on cgroup v2");
        }
        const uint64_t before = sizes[i] + (64 << 20);
        ASSERT_EQ(number_in(fd_for(&cg, PX_CG_MEMORY), "memory.limit_in_bytes"), before);
        ASSERT_EQ(px_cgroup_arm_ahead(&cg), 0);
        ASSERT_EQ(number_in(fd_for(&cg, PX_CG_MEMORY), "memory.limit_in_bytes"), i == 0 ? sizes[i] : before);
        ASSERT_EQ(px_cgroup_arm(&cg, 0), 0);
        ASSERT_EQ(number_in(fd_for(&cg, PX_CG_MEMORY), "memory.limit_in_bytes"), sizes[i]);
        ASSERT_EQ(px_cgroup_arm_ahead(&cg), 0);
        ASSERT_EQ(px_cgroup_done(&cg), 0);
    }
}

TEST(numbers_that_no_machine_reaches_are_taken)
{
    const struct px_cgroup_limits limits = {.memory_bytes = UINT64_MAX - 1, .pids = UINT64_MAX, .cpu_milli = UINT64_MAX - 1};
    struct px_cgroup cg = make(&limits, "test-huge");
    char text[64];
    ASSERT(number_in(fd_for(&cg, PX_CG_PIDS), "pids.max") >= 4 << 20);
    ASSERT(number_in(fd_for(&cg, PX_CG_CPU), cg.on_v2[PX_CG_CPU] ? "cpu.max" : "cpu.cfs_quota_us") >= 100000ull * 1000000);
    ASSERT_OK(px_read_file(fd_for(&cg, PX_CG_MEMORY), cg.on_v2[PX_CG_MEMORY] ? "memory.max" : "memory.limit_in_bytes", text, sizeof text));
    ASSERT(text[0] == 'm' || strlen(text) > 18);        /* "max", or the largest that it counts */
    ASSERT_EQ(px_cgroup_done(&cg), 0);
}

TEST(memory_is_bounded_and_the_kill_counted)
{
    const struct px_cgroup_limits limits = {.memory_bytes = 32 << 20};
    struct px_cgroup cg = make(&limits, "test-memory");
    struct px_cgroup_usage usage;
    int go, status;

    pid_t pid = child_in(&cg, use_memory, &go);
    (void)close(go);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    px_cgroup_read(&cg, &usage);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ASSERT(usage.oom_kills >= 1);
    ASSERT(usage.memory_peak > 16 << 20 && usage.memory_peak <= 32 << 20);
    ASSERT(strncmp(usage.memory_source, "cgroup", 6) == 0);
    ASSERT(strstr(usage.oom_counter, "oom_kill") != NULL);
}

TEST(an_unused_group_has_used_nothing)
{
    const struct px_cgroup_limits pids = {.pids = 5};
    struct px_cgroup cg = make(&pids, "test-unused");
    struct px_cgroup_usage usage;

    px_cgroup_read(&cg, &usage);
    ASSERT_EQ(usage.oom_kills + usage.pids_refused + usage.memory_peak, 0);
    ASSERT(usage.memory_source == NULL);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
    px_cgroup_read(&cg, &usage); /* closed: zeroes, no crash */
    ASSERT_EQ(usage.pids_refused, 0);
}

TEST(kill_needs_a_v2_group)
{
    struct px_cgroup none = PX_CGROUP_NONE;
    struct px_cgroup cg = make(&some, "test-kill");
    int go, status;

    ASSERT_EQ(px_cgroup_kill(&none), -ENOSYS);
    ASSERT_EQ(px_cgroup_birth_fd(&none), -EBADF);
    if (cg.v2.fd < 0) {
        ASSERT_EQ(px_cgroup_kill(&cg), -ENOSYS);
        ASSERT_EQ(px_cgroup_done(&cg), 0);
        SKIP("there is no v2 hierarchy to kill in");
    }
    ASSERT_EQ(px_cgroup_birth_fd(&cg), cg.v2.fd);
    pid_t pid = child_in(&cg, NULL, &go);
    char text[32];
    (void)snprintf(text, sizeof text, "%d", (int)pid);
    ASSERT_OK(px_write_file(cg.v2.fd, "cgroup.procs", text));
    ASSERT_EQ(px_cgroup_kill(&cg), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT(WIFSIGNALED(status));
    (void)close(go);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
}

/* ---- what is left behind ---- */

static bool exists(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(a_stale_group_is_swept_and_a_live_one_is_not)
{
    struct px_cgroup cg = make(&some, "test-first");
    const struct px_cgroup_dir *dir = cg.on_v2[PX_CG_PIDS] ? &cg.v2 : &cg.v1[PX_CG_PIDS];
    px_auto_fd int parent = fcntl(dir->parent_fd, F_DUPFD_CLOEXEC, 3);

    ASSERT_EQ(mkdirat(parent, "px-test-stale", 0755), 0);
    ASSERT_EQ(mkdirat(parent, "px-test-held", 0755), 0);
    ASSERT_EQ(mkdirat(parent, "someone-elses", 0755), 0);
    int held = openat(parent, "px-test-held", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
    struct px_cgroup second = make(&some, "test-second");
    bool stale = exists(parent, "px-test-stale"), kept = exists(parent, "px-test-held");
    bool other = exists(parent, "someone-elses"), first = exists(parent, "px-test-first");
    (void)close(held);
    (void)unlinkat(parent, "px-test-held", AT_REMOVEDIR);
    (void)unlinkat(parent, "px-test-stale", AT_REMOVEDIR);
    (void)unlinkat(parent, "someone-elses", AT_REMOVEDIR);
    ASSERT_EQ(px_cgroup_done(&second), 0);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
    ASSERT(!stale);
    ASSERT(kept && other && first);
}

/* Among more groups than one start looks at, what was left goes after some of them. */
TEST(many_stale_groups_are_swept_by_several_starts)
{
    enum { STALE = 300, STARTS = 200 };
    struct px_cgroup cg = make(&some, "test-many");
    const struct px_cgroup_dir *dir = cg.on_v2[PX_CG_PIDS] ? &cg.v2 : &cg.v1[PX_CG_PIDS];
    px_auto_fd int parent = fcntl(dir->parent_fd, F_DUPFD_CLOEXEC, 3);
    char name[40];
    int left = STALE;

    for (int i = 0; i < STALE; i++) {
        (void)snprintf(name, sizeof name, "px-test-stale-%d", i);
        ASSERT_EQ(mkdirat(parent, name, 0755), 0);
    }
    for (int start = 0; left > 0 && start < STARTS; start++) {
        struct px_cgroup more = make(&some, "test-more");
        ASSERT_EQ(px_cgroup_done(&more), 0);
        left = 0;
        for (int i = 0; i < STALE; i++) {
            (void)snprintf(name, sizeof name, "px-test-stale-%d", i);
            left += exists(parent, name);
        }
    }
    ASSERT_EQ(left, 0);
    ASSERT_EQ(px_cgroup_done(&cg), 0);
}

/* A process that will not go costs a bounded time and an error, and its group is swept once it is gone. */
TEST(a_group_in_use_is_told_and_swept_later)
{
    const struct px_cgroup_limits pids = {.pids = 8};
    struct px_cgroup cg = make(&pids, "test-busy");
    const struct px_cgroup_dir *dir = cg.on_v2[PX_CG_PIDS] ? &cg.v2 : &cg.v1[PX_CG_PIDS];
    px_auto_fd int parent = fcntl(dir->parent_fd, F_DUPFD_CLOEXEC, 3);
    int go, status;

    pid_t pid = child_in(&cg, NULL, &go);
    ASSERT_EQ(px_cgroup_done(&cg), -EBUSY);
    ASSERT(exists(parent, "px-test-busy"));
    struct px_cgroup other = make(&pids, "test-other");
    bool still = exists(parent, "px-test-busy"); /* rmdir refuses a group with a process in it */
    ASSERT_EQ(px_cgroup_done(&other), 0);
    (void)close(go);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    other = make(&pids, "test-another");
    bool gone = !exists(parent, "px-test-busy");
    ASSERT_EQ(px_cgroup_done(&other), 0);
    ASSERT(still && gone);
}

struct racer {
    int id;
    int failed;
    const char *where;
};

static void *race(void *arg)
{
    struct racer *racer = arg;

    for (int i = 0; i < 60 && !racer->failed; i++) {
        struct px_cgroup cg = PX_CGROUP_NONE;
        const char *which = NULL;
        char id[20];
        (void)snprintf(id, sizeof id, "race-%d-%d", racer->id, i);
        int r = px_cgroup_create(&some, id, &cg, &which);
        racer->where = "making";
        if (r >= 0) {
            racer->where = "removing";
            r = px_cgroup_done(&cg);
        }
        racer->failed = r;
    }
    return NULL;
}

/* Every one that is made sweeps, and none may sweep or hinder another. */
TEST(many_at_once_do_not_hinder_each_other)
{
    struct racer racers[8] = {0};
    pthread_t threads[8];
    struct px_cgroup probe = make(&some, "test-probe");

    ASSERT_EQ(px_cgroup_done(&probe), 0);
    for (int i = 0; i < 8; i++) {
        racers[i].id = i;
        ASSERT_EQ(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 8; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 8; i++)
        if (racers[i].failed < 0)
            FAIL("%s a group failed: error %d", racers[i].where, -racers[i].failed);
}

/* ---- failures ---- */

TEST(failures_name_the_controller_and_leave_nothing)
{
    const struct px_cgroup_limits absurd = {.cpu_milli = 1};      /* the kernel wants 10 */
    struct px_cgroup cg = {.name = "untouched"};
    const char *which = NULL;
    char id[64];

    memset(id, 'a', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    ASSERT(px_cgroup_create(&some, id, &cg, &which) < 0);
    int r = px_cgroup_create(&absurd, "test-absurd", &cg, &which);
    ASSERT(r < 0);
    ASSERT(which != NULL && which[0] != '\0');
    ASSERT_STR(cg.name, "untouched");
    struct px_cgroup ok = make(&some, "test-after"); /* skips where even this cannot be had */
    ASSERT_STR(which, "cpu");
    const struct px_cgroup_dir *dir = ok.on_v2[PX_CG_CPU] ? &ok.v2 : &ok.v1[PX_CG_CPU];
    ASSERT(!exists(dir->parent_fd, "px-test-absurd"));
    ASSERT_EQ(px_cgroup_done(&ok), 0);
}

TEST(an_ordinary_caller_is_told_which_controller)
{
    struct px_cgroup cg = PX_CGROUP_NONE;
    const char *which = NULL;

    if (geteuid() == 0)
        SKIP("this is root");
    int r = px_cgroup_create(&some, "test-user", &cg, &which);
    if (r >= 0) {
        ASSERT_EQ(px_cgroup_done(&cg), 0);
        SKIP("a group was delegated to this user");
    }
    ASSERT(r == -EACCES || r == -EPERM || r == -ENOENT || r == -EROFS);
    ASSERT(which != NULL);
    ASSERT(strcmp(which, "memory") == 0 || strcmp(which, "pids") == 0 || strcmp(which, "cpu") == 0 ||
           strcmp(which, "cgroup") == 0);
}

TEST(create_without_memory)
{
    struct px_cgroup probe = make(&some, "test-probe");

    ASSERT_EQ(px_cgroup_done(&probe), 0);
    for (unsigned n = 1; n < 100; n++) {
        struct px_cgroup cg = PX_CGROUP_NONE;
        const char *which = NULL;
        px_test_fail_alloc(n);
        int r = px_cgroup_create(&some, "test-alloc", &cg, &which);
        bool failed = px_test_alloc_failed();
        px_test_fail_alloc(0);
        ASSERT_EQ(failed ? r : 0, failed ? -ENOMEM : 0);
        if (r >= 0)
            ASSERT_EQ(px_cgroup_done(&cg), 0);
        if (!failed)
            return;
    }
    FAIL("a hundred allocations and no end");
}
