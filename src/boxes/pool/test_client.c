#include <px/engine.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/test.h"

/* px lies one directory above the tests of a build. */
static const char *program(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    ASSERT(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    strcpy(strrchr(path, '/'), "/px");
    return path;
}

static struct px_policy *policy_of(const char *field, const char *value)
{
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "net", "none", &e) < 0 ||
        (field && px_policy_set(policy, field, value, &e) < 0))
        FAIL("%s", e.what);
    return policy;
}

static void open_pool(struct px_policy *policy, unsigned ready, struct px_engine **engine, struct px_pool **pool)
{
    struct px_err e = {0};
    if (px_engine_new(program(), engine, &e) < 0 || px_pool_new(*engine, policy, ready, pool, &e) < 0)
        FAIL("%s: %s", e.what, e.why);
}

static void close_pool(struct px_policy *policy, struct px_engine *engine, struct px_pool *pool)
{
    px_pool_free(pool);
    px_engine_free(engine);
    px_policy_free(policy);
}

static struct px_box *run(struct px_pool *pool, const char *text)
{
    const char *argv[] = {"/bin/sh", "-c", text, NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    if (px_pool_box(pool, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
        FAIL("%s: %s", e.what, e.why);
    return box;
}

TEST(each_command_has_a_box_of_its_own)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, 2, &engine, &pool);
    for (int i = 0; i < 5; i++) {
        struct px_box *box = run(pool, "ls /tmp; echo left >/tmp/left; echo $$; exit 4");
        ASSERT_STR(px_box_result(box)->out.data, "2\n");
        ASSERT_EQ(px_box_result(box)->exit_code, 4);
        ASSERT_STR(px_box_result(box)->tier, "full");
        px_box_free(box);
    }
    close_pool(policy, engine, pool);
}

TEST(what_was_said_of_the_policy_holds)
{
    char here[4096];
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    int dir = px_test_dir();

    ASSERT(getcwd(here, sizeof here) != NULL);
    ASSERT_EQ(fchmod(dir, 0755), 0);
    ASSERT_EQ(fchdir(dir), 0);
    close(dir);
    setenv("PX_TEST_WORD", "passed on", 1);
    struct px_policy *policy = policy_of("bind", "./file:/it:ro");
    int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(write(fd, "bound\n", 6), 6);
    close(fd);
    ASSERT_EQ(px_policy_set(policy, "env", "PX_TEST_WORD", NULL), 0);
    ASSERT_EQ(px_policy_set(policy, "env", "NOT_THERE_AT_ALL", NULL), 0);
    ASSERT_EQ(px_policy_set(policy, "timeout", "20s", NULL), 0);
    ASSERT_EQ(chdir(here), 0);  /* relative to where it was said */
    open_pool(policy, 1, &engine, &pool);
    struct px_box *box = run(pool, "cat /it; echo $PX_TEST_WORD; hostname");
    ASSERT_STR(px_box_result(box)->out.data, "bound\npassed on\nsandbox\n");
    px_box_free(box);
    close_pool(policy, engine, pool);
}

/* All of it, for there is nobody else in the box. */
TEST(a_command_is_told_what_it_was_refused)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, 1, &engine, &pool);
    struct px_box *box = run(pool, "unshare -U true; setsid -f sh -c 'sh -c \"unshare -U true; echo >/tmp/done\" &';"
                                   "until [ -e /tmp/done ]; do sleep 0.02; done; exit 3");
    ASSERT_EQ(px_box_result(box)->exit_code, 3);
    ASSERT_EQ(px_box_result(box)->denials_count, 1u);
    ASSERT_STR(px_box_result(box)->denials[0].target, "unshare");
    ASSERT_EQ(px_box_result(box)->denials[0].count, 2u);
    px_box_free(box);
    box = run(pool, "true");
    ASSERT_EQ(px_box_result(box)->denials_count, 0u);
    px_box_free(box);
    close_pool(policy, engine, pool);
}

TEST(a_box_of_a_pool_can_stay)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *home = NULL, *box = NULL;
    struct px_err e = {0};
    const char *write_it[] = {"/bin/sh", "-c", "echo kept >/tmp/f", NULL}, *read_it[] = {"cat", "/tmp/f", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_EQ(px_pool_stay(pool, &home, &e), 0);
    ASSERT_EQ(px_box_exec(home, policy, write_it, NULL, &box, &e), 0);
    ASSERT_EQ(px_box_wait(box, &e), 0);
    px_box_free(box);
    ASSERT_EQ(px_box_exec(home, policy, read_it, NULL, &box, &e), 0);
    ASSERT_EQ(px_box_wait(box, &e), 0);
    ASSERT_STR(px_box_result(box)->out.data, "kept\n");
    px_box_free(box);
    px_box_free(home);
    close_pool(policy, engine, pool);
}

TEST(errors_come_through)
{
    struct px_policy *policy = policy_of(NULL, NULL), *bad = policy_of("bind", "/nonexistent/place:/it");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL, *other = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *missing[] = {"no-such-program", NULL}, *fine[] = {"true", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT(px_pool_box(pool, missing, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, 31);
    ASSERT_EQ(px_pool_new(engine, bad, 1, &other, &e), 0);
    ASSERT(px_pool_box(other, fine, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, 33);
    ASSERT(strstr(e.what, "/nonexistent/place") != NULL);
    px_pool_free(other);
    ASSERT(px_pool_new(engine, policy, 0, &other, &e) < 0);
    ASSERT(px_pool_new(engine, policy, 1000, &other, &e) < 0);
    box = run(pool, "echo still");
    ASSERT_STR(px_box_result(box)->out.data, "still\n");
    px_box_free(box);
    struct px_engine *none = NULL;
    ASSERT(px_engine_new("/nonexistent/px", &none, &e) < 0);
    close_pool(policy, engine, pool);
    px_policy_free(bad);
}

static void *use_pool(void *arg)
{
    for (int i = 0; i < 10; i++) {
        const char *argv[] = {"/bin/sh", "-c", "echo $$ $((6 * 7))", NULL};
        struct px_box *box = NULL;
        struct px_err e = {0};
        bool ok = px_pool_box(arg, argv, NULL, &box, &e) == 0 && px_box_wait(box, &e) == 0 &&
                  strcmp(px_box_result(box)->out.data, "2 42\n") == 0;
        px_box_free(box);
        if (!ok)
            return (void *)"failed";
    }
    return NULL;
}

TEST(threads_share_a_pool)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    pthread_t threads[4];

    open_pool(policy, 3, &engine, &pool);
    for (int i = 0; i < 4; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, use_pool, pool), 0);
    for (int i = 0; i < 4; i++) {
        void *answer = NULL;
        ASSERT_EQ(pthread_join(threads[i], &answer), 0);
        ASSERT(answer == NULL);
    }
    close_pool(policy, engine, pool);
}

/* The pid of the one child of this process: the engine. */
static int only_child(void)
{
    char text[256];
    FILE *f = fopen("/proc/thread-self/children", "r");
    int pid = f && fgets(text, sizeof text, f) ? atoi(text) : 0;
    if (f)
        fclose(f);
    return pid;
}

TEST(an_engine_that_dies_takes_its_boxes_along_and_says_so)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"sleep", "1000", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_EQ(px_pool_box(pool, argv, NULL, &box, &e), 0);
    int pid = only_child();
    ASSERT(pid > 1);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_EQ(px_box_wait(box, &e), 0);
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_INTERNAL);
    px_box_free(box);
    while (px_pool_box(pool, argv, NULL, &box, &e) == 0) {      /* while the last of its threads is on its way out */
        ASSERT_EQ(px_box_wait(box, &e), 0);
        ASSERT_EQ(px_box_result(box)->status, PX_STATUS_INTERNAL);
        px_box_free(box);
    }
    ASSERT_EQ(e.code, 40);
    ASSERT(px_pool_box(pool, argv, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, 40);
    close_pool(policy, engine, pool);
}

/* The engine holds the groups; whose command met the limit is still told. */
TEST(the_memory_limit_is_told_of)
{
    struct px_policy *policy = policy_of("memory", "32m");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"/bin/sh", "-c", "head -c 100m /dev/zero | tail -n 1", NULL}, *fine[] = {"true", NULL};

    open_pool(policy, 1, &engine, &pool);
    if (px_pool_box(pool, fine, NULL, &box, &e) < 0)
        SKIP("no such box can be made here: %s", e.what);
    px_box_free(box);
    for (int i = 0; i < 2; i++) {
        ASSERT_PX(px_pool_box(pool, argv, NULL, &box, &e), e);
        ASSERT_PX(px_box_wait(box, &e), e);
        ASSERT_STR(px_status_name(px_box_result(box)->status), "memory");
        ASSERT(px_box_result(box)->oom_killed);
        ASSERT(strstr(px_box_result(box)->memory_source, "cgroup") != NULL);
        px_box_free(box);
    }
    close_pool(policy, engine, pool);
}

/* ---- what is ready ---- */

/* Whether it is pid 1 of a box already, and not one that a maker is still at work on. */
static bool is_init(int pid)
{
    char path[64], name[32] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *f = fopen(path, "re");
    bool init = f && fgets(name, sizeof name, f) && strstr(name, "px-init");
    if (f)
        fclose(f);
    return init;
}

static int children_of(int pid, const char *task, int *ret_pids, int max)
{
    char path[320];
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%s/children", pid, task);
    FILE *f = fopen(path, "re");
    while (f && n < max && fscanf(f, "%d", &ret_pids[n]) == 1)
        n += is_init(ret_pids[n]);
    if (f)
        fclose(f);
    return n;
}

/* Of any of its threads. */
static int children(int pid, int *ret_pids, int max)
{
    char path[64];
    struct dirent *task;
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    while (tasks && (task = readdir(tasks)))
        if (task->d_name[0] != '.')
            n += children_of(pid, task->d_name, ret_pids + n, max - n);
    if (tasks)
        closedir(tasks);
    return n;
}

/* Until the deadline of the test. */
static void wait_for_children(int pid, int count)
{
    int pids[300];
    while (children(pid, pids, 300) != count)
        usleep(5000);
}

TEST_DEADLINE(as_many_are_ready_as_were_asked_for, 120)
{
    enum { READY = 200 };       /* more than fit into a queue at once, at the sizes that most systems allow */
    struct px_policy *policy = policy_of("net", "host");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, READY, &engine, &pool);
    int pid = only_child();
    wait_for_children(pid, READY);
    for (int i = 0; i < READY + 20; i++) {
        struct px_box *box = run(pool, "echo one of many");
        ASSERT_STR(px_box_result(box)->out.data, "one of many\n");
        px_box_free(box);
    }
    wait_for_children(pid, READY);
    px_pool_free(pool);
    wait_for_children(pid, 0);
    px_engine_free(engine);
    px_policy_free(policy);
}

TEST(a_ready_box_outlasts_the_timeout_of_its_command)
{
    struct px_policy *policy = policy_of("timeout", "500ms");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"sleep", "1000", NULL};

    open_pool(policy, 1, &engine, &pool);
    wait_for_children(only_child(), 1);
    usleep(700000);
    ASSERT_PX(px_pool_box(pool, argv, NULL, &box, &e), e);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_TIMEOUT);
    px_box_free(box);
    close_pool(policy, engine, pool);
}

TEST(one_thread_may_use_more_at_once_than_are_ready)
{
    enum { COUNT = 6 };
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *boxes[COUNT] = {0};
    struct px_err e = {0};
    const char *argv[] = {"/bin/sh", "-c", "read line; echo $line", NULL};
    int ends[2];

    open_pool(policy, 1, &engine, &pool);
    ASSERT_EQ(pipe(ends), 0);
    const struct px_io io = {.use_in = true, .in = ends[0]};
    for (int i = 0; i < COUNT; i++)
        ASSERT_PX(px_pool_box(pool, argv, &io, &boxes[i], &e), e);
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < COUNT; i++) {
        ASSERT_PX(px_box_wait(boxes[i], &e), e);
        px_box_free(boxes[i]);
    }
    wait_for_children(only_child(), 1);         /* and no more than that are kept afterwards */
    close_pool(policy, engine, pool);
}

TEST(boxes_may_outlive_their_pool_and_its_engine)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL, *home = NULL;
    struct px_err e = {0};
    const char *argv[] = {"/bin/sh", "-c", "read line; echo $line", NULL};
    int ends[2];

    open_pool(policy, 3, &engine, &pool);
    ASSERT_EQ(pipe(ends), 0);
    const struct px_io io = {.use_in = true, .in = ends[0]};
    ASSERT_PX(px_pool_box(pool, argv, &io, &box, &e), e);
    ASSERT_PX(px_pool_stay(pool, &home, &e), e);
    px_pool_free(pool);
    wait_for_children(only_child(), 2);         /* those that were ready are gone */
    ASSERT_EQ(write(ends[1], "said\n", 5), 5);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_STR(px_box_result(box)->out.data, "said\n");
    px_box_free(box);
    px_engine_free(engine);
    ASSERT_PX(px_box_wait(home, &e), e);        /* its box went with the engine */
    px_box_free(home);
    close(ends[0]);
    close(ends[1]);
    px_policy_free(policy);
}

TEST(a_home_of_a_pool_can_be_killed_and_waited_for)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL, *home = NULL;
    struct px_err e = {0};
    const char *argv[] = {"sleep", "1000", NULL};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_PX(px_pool_stay(pool, &home, &e), e);
    ASSERT_EQ(px_box_step(home, &e), 1);
    ASSERT_PX(px_box_exec(home, policy, argv, NULL, &box, &e), e);
    ASSERT_EQ(px_box_kill(home, &e), 0);
    ASSERT_PX(px_box_wait(home, &e), e);
    ASSERT_STR(px_box_result(home)->reason, "killed by the caller");
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_INTERNAL);
    px_box_free(box);
    ASSERT(px_box_exec(home, policy, argv, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, 40);
    px_box_free(home);
    close_pool(policy, engine, pool);
}

TEST(what_died_while_it_was_ready_is_not_handed_out)
{
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    const char *argv[] = {"echo", "fresh", NULL};
    int pids[300];

    open_pool(policy, 3, &engine, &pool);
    int pid = only_child();
    wait_for_children(pid, 3);
    for (int n = children(pid, pids, 300); n > 0; n--)
        ASSERT_EQ(kill(pids[n - 1], SIGKILL), 0);
    wait_for_children(pid, 0);
    int r = px_pool_box(pool, argv, NULL, &box, &e);
    if (r < 0 && e.code == 19)          /* the last of them was not ready yet: that it failed is told once */
        r = px_pool_box(pool, argv, NULL, &box, &e);
    ASSERT_PX(r, e);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_STR(px_box_result(box)->out.data, "fresh\n");
    px_box_free(box);
    wait_for_children(pid, 3);
    close_pool(policy, engine, pool);
}

TEST(each_pool_has_its_turn)
{
    struct px_policy *policy = policy_of(NULL, NULL), *bad = policy_of("bind", "/nonexistent/place:/it");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL, *other = NULL;
    struct px_err e = {0};

    open_pool(policy, 1, &engine, &pool);
    ASSERT_PX(px_pool_new(engine, bad, 256, &other, &e), e);     /* always has work, and none of it succeeds */
    for (int i = 0; i < 5; i++)
        px_box_free(run(pool, "true"));
    px_pool_free(other);
    close_pool(policy, engine, pool);
    px_policy_free(bad);
}

/* ---- a box from a template is the box that it stands for ---- */

/* Everything that holds a command, without what is another number in each box: the ids of mounts and of unnamed devices, the range of
 * host ids. The skeleton of a template is a file system that is closed for writing; that of a box of its own is only mounted so. */
static const char holds[] =
    "sed -e 's/^[0-9]* [0-9]* 0:[0-9]* /anonymous /' -e 's/^[0-9]* [0-9]* //' -e 's/,[ug]id=[0-9]*//g'"
    " -e 's/ - tmpfs none r[ow]/ - tmpfs none/' /proc/self/mountinfo | sort;"
    "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Umask|Sig)' /proc/self/status; cat /proc/self/limits; id;"
    "sed 's/ [0-9]* *65536$//' /proc/self/uid_map; cat /proc/self/cgroup | sed 's/px-[0-9a-f]*/px/'; env | sort; umask; pwd; hostname;"
    "find / -xdev -printf '%m %y %p %l\\n' | sort; cat /etc/* 2>/dev/null; ls /proc/self/fd; ls -l /proc/sys/user | wc -l;"
    "cat /proc/sys/user/max_user_namespaces; find / -xdev ! -type l -writable 2>/dev/null";

static struct px_box *run_plainly(const struct px_policy *policy, const char *text)
{
    const char *argv[] = {"/bin/sh", "-c", text, NULL};
    struct px_err e = {0};
    struct px_box *box = NULL;
    if (px_box_start(policy, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
        FAIL("%s: %s", e.what, e.why);
    return box;
}

static void expect_equal(const char *field, const char *value)
{
    struct px_policy *policy = policy_of(field, value);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, 1, &engine, &pool);
    struct px_box *plain = run_plainly(policy, holds), *first = run(pool, holds), *second = run(pool, holds);
    ASSERT(px_box_result(plain)->out.len > 4000);
    ASSERT_STR(px_box_result(first)->out.data, px_box_result(plain)->out.data);
    ASSERT_STR(px_box_result(second)->out.data, px_box_result(plain)->out.data);
    px_box_free(plain);
    px_box_free(first);
    px_box_free(second);
    close_pool(policy, engine, pool);
}

TEST(a_box_of_a_pool_is_held_by_what_holds_any_box)
{
    expect_equal("net", "none");
    expect_equal("net", "loopback");
    expect_equal("net", "outbound");
    expect_equal("tmpfs", "/srv/scratch:size=1m");
    expect_equal("seccomp", "strict");
}

/* Each has a px-net of its own: what one is refused is in its result and in no other's. */
TEST(a_box_of_a_pool_has_a_relay_of_its_own)
{
    static const char text[] = "exec 3<>/dev/tcp/10.9.9.9/81; read -r line <&3", quiet[] = "echo done";
    struct px_policy *policy = policy_of("net", "outbound");
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;

    open_pool(policy, 2, &engine, &pool);
    for (int i = 0; i < 3; i++) {
        const char *argv[] = {"/bin/bash", "-c", i == 1 ? quiet : text, NULL};
        struct px_err e = {0};
        struct px_box *box = NULL;
        if (px_pool_box(pool, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0)
            FAIL("%s: %s", e.what, e.why);
        const struct px_result *r = px_box_result(box);
        ASSERT_EQ(r->denials_count, i == 1 ? 0 : 1);
        if (r->denials_count > 0)
            ASSERT_STR(r->denials[0].target, "10.9.9.9:81");
        px_box_free(box);
    }
    close_pool(policy, engine, pool);
}

/* The lines of one, which name a namespace ("mnt:[...]") or the file system of the base, must not be in the other. */
static void expect_apart(const char *one, const char *other)
{
    char lines[4096], *rest = lines;
    int seen = 0;
    ASSERT(snprintf(lines, sizeof lines, "%s", one) < (int)sizeof lines);
    for (char *line; (line = strsep(&rest, "\n")) && *line; seen++)
        if (strstr(other, line))
            FAIL("two boxes have %s", line);
    ASSERT_EQ(seen, 8);         /* and nothing else: no file that was left, none that can be written */
}

TEST(boxes_of_a_pool_share_no_namespace_no_inode_of_the_base_and_nothing_they_can_write)
{
    enum { COUNT = 6 };
    static const char text[] =
        "cd /proc/self/ns; for n in cgroup ipc mnt net pid user uts; do readlink $n; done; cd /;"
        "stat -c usr=%D. /usr/bin/env;"
        "for f in /etc/passwd /etc/new /new /usr/new /dev/new; do (echo >>$f) 2>/dev/null && echo $f; done;"
        "find /home/sandbox /tmp /dev/shm -type f; for d in /home/sandbox /tmp /dev/shm; do echo left >$d/left; done; exit 0";
    struct px_policy *policy = policy_of(NULL, NULL);
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    struct px_box *boxes[COUNT] = {0};

    open_pool(policy, 2, &engine, &pool);
    for (int i = 0; i < COUNT; i++)     /* all of them live until they are freed */
        boxes[i] = run(pool, text);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++)
            if (i != k)
                expect_apart(px_box_result(boxes[i])->out.data, px_box_result(boxes[k])->out.data);
    for (int i = 0; i < COUNT; i++)
        px_box_free(boxes[i]);
    close_pool(policy, engine, pool);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ASSERT_EQ(fchmod(fd, 0644), 0);
    close(fd);
}

/* What the host is may change while a pool lives: the template follows. */
TEST(a_pool_follows_its_host)
{
    struct px_engine *engine = NULL;
    struct px_pool *pool = NULL;
    int made = px_test_dir();
    const char *dir = px_test_dir_path();
    char bind[4200], from[4200], to[4200];

    ASSERT_EQ(fchmod(made, 0755), 0);
    close(made);
    ASSERT(snprintf(from, sizeof from, "%s/file", dir) > 0 && snprintf(to, sizeof to, "%s/next", dir) > 0);
    ASSERT(snprintf(bind, sizeof bind, "%s:/it:ro", from) > 0);
    write_text(from, "first\n");
    struct px_policy *policy = policy_of("bind", bind);
    open_pool(policy, 1, &engine, &pool);
    struct px_box *first = run(pool, "cat /it");
    ASSERT_STR(px_box_result(first)->out.data, "first\n");
    px_box_free(first);
    write_text(to, "second\n");
    wait_for_children(only_child(), 1); /* none is being made now, and caught between the two */
    ASSERT_EQ(rename(to, from), 0);
    for (;;) {                  /* until the deadline of the test: those that were ready before show the first */
        struct px_box *box = run(pool, "cat /it");
        bool second = strcmp(px_box_result(box)->out.data, "second\n") == 0;
        px_box_free(box);
        if (second)
            break;
    }
    close_pool(policy, engine, pool);
}
