/* probe/test_probe.c - probes of a mechanism that works, that is refused, and that reports success without effect. */
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "harness/test.h"
#include "probe/probe_internal.h"

static const struct px_probe *find(const char *group, const char *name)
{
    const struct px_probe *p;
    for (size_t i = 0; (p = px_probe_at(i)); i++)
        if (strcmp(p->group, group) == 0 && strcmp(p->name, name) == 0)
            return p;
    FAIL("there is no probe %s %s", group, name);
}

/* The row of one probe, after the two that the others depend on. */
static struct px_probe_row run_one(const struct px_probe *probe, struct px_probe_host *host)
{
    struct px_probe_row row;
    px_probe_host_init(host);
    px_probe_run(find("namespaces", "user"), host, &row);
    px_probe_run(find("namespaces", "id map"), host, &row);
    px_probe_run(probe, host, &row);
    px_probe_host_done(host);
    return row;
}

static void in_child(void (*fn)(const void *), const void *arg)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        fn(arg);
        _exit(0);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

/* Makes one system call return `result` (0 or an errno) without running, in this process and its children. */
static void fake_call(int nr, int result)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)result),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = PX_COUNT_OF(code), .filter = code};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
}

/* ---- rows ---- */

static void check_row(const struct px_probe *p, const struct px_probe_row *row)
{
    if (row->state == PX_PROBE_ENFORCED) {
        ASSERT(row->permitted[0] || row->forbidden[0]);
        ASSERT_STR(row->why, "");
        ASSERT_EQ(row->raise, PX_RAISE_NONE);
    } else if (row->why[0] == '\0') {
        FAIL("%s %s is not enforced and says no reason", p->group, p->name);
    }
    for (const char *t = row->why; *t; t++)
        ASSERT((unsigned char)*t >= 0x20);
}

TEST_DEADLINE(every_row_has_a_proof_or_a_reason, 120)
{
    struct px_probe_host host;
    const struct px_probe *p;
    px_probe_host_init(&host);
    for (size_t i = 0; (p = px_probe_at(i)); i++) {
        struct px_probe_row row;
        px_probe_run(p, &host, &row);
        check_row(p, &row);
    }
    px_probe_host_done(&host);
}

TEST(names_are_unique)
{
    const struct px_probe *a, *b;
    for (size_t i = 0; (a = px_probe_at(i)); i++)
        for (size_t k = i + 1; (b = px_probe_at(k)); k++)
            ASSERT(strcmp(a->group, b->group) != 0 || strcmp(a->name, b->name) != 0);
}

/* Every enforced mechanism of the full tier was tested on both sides; only values that are read have one side. */
TEST_DEADLINE(mechanisms_of_the_full_tier_are_two_sided, 120)
{
    struct px_probe_host host;
    const struct px_probe *p;
    px_probe_host_init(&host);
    for (size_t i = 0; (p = px_probe_at(i)); i++) {
        struct px_probe_row row;
        if (p->need != PX_NEED_FULL || strcmp(p->name, "version") == 0)
            continue;
        px_probe_run(p, &host, &row);
        if (row.state == PX_PROBE_ENFORCED && (!row.forbidden[0] || !row.permitted[0]))
            FAIL("%s %s has one side only", p->group, p->name);
    }
    px_probe_host_done(&host);
}

/* ---- words ---- */

static struct px_probe_ctx *new_ctx(struct px_probe_host *host)
{
    struct px_probe_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct px_probe_ctx *c = calloc(1, sizeof *c);
    ASSERT(shared != MAP_FAILED && c);
    px_probe_host_init(host);
    *c = (struct px_probe_ctx){.host = host, .shared = shared, .row = &shared->row, .socket = -1, .status = -1};
    return c;
}

static void free_ctx(struct px_probe_ctx *c)
{
    px_probe_host_done(c->host);
    (void)munmap(c->shared, sizeof *c->shared);
    free(c);
}

TEST(words_of_an_act)
{
    struct px_probe_host host;
    struct px_probe_ctx *c = new_ctx(&host);
    ASSERT(px_probe_works(c, 5, "reading"));
    ASSERT_STR(c->row->permitted, "reading worked");
    ASSERT(!px_probe_works(c, -EACCES, "reading"));
    ASSERT_STR(c->row->why, "reading failed with EACCES");
    ASSERT(px_probe_refused(c, -EROFS, EROFS, 0, "writing"));
    ASSERT_STR(c->row->forbidden, "writing failed with EROFS");
    ASSERT(px_probe_refused(c, -EPERM, EROFS, EPERM, "writing"));
    ASSERT(!px_probe_refused(c, 0, EROFS, 0, "writing"));
    ASSERT_STR(c->row->why, "writing worked, and must not");
    /* Another failure than the expected one proves nothing. */
    ASSERT(!px_probe_refused(c, -ENOSYS, EROFS, 0, "writing"));
    ASSERT_STR(c->row->why, "writing failed with ENOSYS, where EROFS was expected");
    px_probe_unknown(c, -ENOMEM, "no memory");
    ASSERT_STR(c->row->why, "unknown: no memory (ENOMEM)");
    free_ctx(c);
}

TEST(words_are_cut_and_clean)
{
    char out[PX_PROBE_TEXT], longest[4 * PX_PROBE_TEXT];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    px_probe_say(out, "%s", longest);
    ASSERT_EQ(strlen(out), PX_PROBE_TEXT - 1);
    px_probe_say(out, "a\033[31mb\nc\x7f");
    ASSERT_STR(out, "a?[31mb?c?");
    ASSERT_STR(px_probe_errno(-EPERM).text, "EPERM");
    ASSERT_STR(px_probe_errno(-4000).text, "errno 4000");
}

TEST(numbers_of_files)
{
    int dir = px_test_dir();
    char path[512];
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {{"0\n", 0}, {"42\n", 42}, {"15000", 15000}, {"", -1}, {"\n", -1}, {"-1\n", -1}, {"1 2\n", -1}, {"x\n", -1},
                {"99999999999999999999\n", -1}};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        ASSERT(px_probe_write(dir, "n", rows[i].text) >= 0);
        (void)snprintf(path, sizeof path, "%s/n", px_test_dir_path());
        ASSERT_EQ(px_probe_number(path), rows[i].value);
    }
    ASSERT_EQ(px_probe_number("/nonexistent"), -1);
    (void)close(dir);
}

/* ---- children ---- */

static void hang(struct px_probe_ctx *c)
{
    (void)c;
    for (;;)
        (void)pause();
}

TEST(a_child_that_hangs_is_killed)
{
    struct px_probe_host host;
    struct px_probe_ctx *c = new_ctx(&host);
    ASSERT_EQ(px_probe_child(c, &(struct px_probe_job){.msec = 100, .inside = hang}), -ETIMEDOUT);
    ASSERT(px_starts_with(c->row->why, "unknown: it did not end within 100 ms"));
    ASSERT(WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL);
    free_ctx(c);
}

static void die(struct px_probe_ctx *c)
{
    (void)c;
    (void)raise(SIGTERM);
}

TEST(a_child_that_dies_is_no_proof)
{
    struct px_probe_host host;
    struct px_probe_ctx *c = new_ctx(&host);
    ASSERT_EQ(px_probe_child(c, &(struct px_probe_job){.inside = die}), 0);
    ASSERT_EQ(c->row->state, PX_PROBE_ABSENT);
    ASSERT_STR(c->row->why, "unknown: the probe was ended by signal 15");
    free_ctx(c);
}

static void meet_twice(struct px_probe_ctx *c)
{
    for (int i = 0; i < 2; i++) {
        c->shared->note[0]++;
        px_probe_meet(c);
    }
    c->row->state = c->shared->note[1] == 2 ? PX_PROBE_ENFORCED : PX_PROBE_ABSENT;
}

static void met(struct px_probe_ctx *c, pid_t pid)
{
    ASSERT(pid > 0 && kill(pid, 0) == 0);
    if (c->shared->note[0] == c->shared->note[1] + 1)
        c->shared->note[1]++;
}

TEST(both_sides_meet)
{
    struct px_probe_host host;
    struct px_probe_ctx *c = new_ctx(&host);
    ASSERT_EQ(px_probe_child(c, &(struct px_probe_job){.inside = meet_twice, .outside = met}), 0);
    ASSERT_EQ(c->row->state, PX_PROBE_ENFORCED);
    free_ctx(c);
}

/* ---- the other outcome ---- */

struct pretence {
    const char *group, *name;
    int nr;
    int result;                 /* 0: the call reports success and has no effect */
    const char *why;            /* how the reason begins */
};

/* Only if the probe passes without interference; otherwise the test proves nothing. */
static void check_pretence(const void *arg)
{
    const struct pretence *p = arg;
    const struct px_probe *probe = find(p->group, p->name);
    struct px_probe_host host;
    struct px_probe_row row = run_one(probe, &host);
    if (row.state == PX_PROBE_ABSENT)
        return;
    fake_call(p->nr, p->result);
    row = run_one(probe, &host);
    if (px_starts_with(row.why, "unknown: it did not end"))
        return;                 /* the machine is too busy */
    if (row.state != PX_PROBE_ABSENT)
        FAIL("%s %s does not notice that call %d was not made", p->group, p->name, p->nr);
    if (!px_starts_with(row.why, p->why))
        FAIL("%s %s says: %s", p->group, p->name, row.why);
}

// clang-format off
static const struct pretence pretences[] = {
    { "kernel",     "clone3 with pidfd", 435,              ENOSYS, "starting a process failed with ENOSYS" },
    { "kernel",     "close_range",       436,              0,      "using a descriptor of the range worked, and must not" },
    { "kernel",     "openat2",           437,              ENOSYS, "opening a directory below another failed with ENOSYS" },
    { "namespaces", "user",              SYS_sethostname,  0,      "setting the host's name from a new user namespace worked" },
    { "namespaces", "uts",               SYS_sethostname,  EINVAL, "setting its own name failed with EINVAL" },
    { "files",      "read-only mounts",  442,              0,      "writing to its read-only copy worked, and must not" },
    { "files",      "own root",          SYS_pivot_root,   EPERM,  "changing the root failed with EPERM" },
    { "privileges", "no privileges",     SYS_capset,       0,      "privileges cannot be given up" },
    { "privileges", "seccomp filter",    SYS_seccomp,      0,      "getpriority under a filter that names it worked" },
    { "privileges", "seccomp filter",    SYS_seccomp,      EPERM,  "loading a filter failed with EPERM" },
    { "privileges", "foreign calls",     SYS_seccomp,      0,      "getpid by the 32-bit door (int 0x80) worked" },
    { "privileges", "landlock",          446,              0,      "opening /, which was not, worked, and must not" },
    { "privileges", "landlock",          444,              ENOSYS, "the kernel has no Landlock" },
    { "life",       "death with parent", SYS_prctl,        0,      "a process outlived its parent" },
    { "limits",     "rlimits",           SYS_prlimit64,    0,      "writing one byte more worked, and must not" },
};
// clang-format on

TEST_DEADLINE(a_mechanism_that_only_pretends_is_found_out, 120)
{
    for (size_t i = 0; i < PX_COUNT_OF(pretences); i++)
        in_child(check_pretence, &pretences[i]);
}

static void check_filtered(const void *arg)
{
    struct px_probe_host host;
    struct px_probe_row row;
    (void)arg;
    fake_call(435 /* clone3 */, ENOSYS);
    fake_call(SYS_clone, EPERM);
    px_probe_host_init(&host);
    ASSERT(host.filtered && host.no_new_privs);
    px_probe_run(find("namespaces", "user"), &host, &row);
    ASSERT_EQ(row.state, PX_PROBE_ABSENT);
    ASSERT_STR(row.why, "a user namespace cannot be made (EPERM)");
    ASSERT_EQ(row.raise, PX_RAISE_OUTER_FILTER);
    bool said = false;
    for (size_t i = 0; i < host.inside_count; i++)
        said = said || strstr(host.inside[i], "seccomp filter that refuses user namespaces");
    ASSERT(said);
    px_probe_host_done(&host);
}

TEST(a_filter_around_us_is_named)
{
    in_child(check_filtered, NULL);
}

/* Most containers refuse it, and a box works without it. */
static void check_nameless(const void *arg)
{
    static const char *const rows[][2] = {{"namespaces", "user"}, {"namespaces", "uts"}, {"privileges", "no privileges"}};
    struct px_probe_host host;
    (void)arg;
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (run_one(find(rows[i][0], rows[i][1]), &host).state != PX_PROBE_ENFORCED)
            return;
    fake_call(SYS_sethostname, EPERM);
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_probe_row row = run_one(find(rows[i][0], rows[i][1]), &host);
        if (row.state != PX_PROBE_ENFORCED)
            FAIL("%s %s: %s", rows[i][0], rows[i][1], row.why);
        if (i == 1)
            ASSERT(strstr(row.permitted, "sethostname is refused"));
    }
}

TEST(a_namespace_whose_name_cannot_be_set_is_one)
{
    in_child(check_nameless, NULL);
}

static void check_closed(const void *arg)
{
    struct px_probe_host host;
    struct px_probe_row row;
    (void)arg;
    if (unshare(CLONE_NEWUSER) < 0)
        SKIP("no user namespace can be made here");
    int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        SKIP("user namespaces cannot be closed here");
    (void)close(fd);
    px_probe_host_init(&host);
    px_probe_run(find("namespaces", "user"), &host, &row);
    ASSERT_EQ(row.state, PX_PROBE_ABSENT);
    ASSERT_STR(row.why, "a user namespace cannot be made (ENOSPC)");
    ASSERT_EQ(row.raise, PX_RAISE_USERNS_MAX);
    px_probe_run(find("host", "user namespaces"), &host, &row);
    ASSERT_EQ(row.state, PX_PROBE_DEGRADED);
    ASSERT_STR(row.found, "max_user_namespaces 0");
    px_probe_host_done(&host);
}

TEST(closed_user_namespaces_are_named)
{
    in_child(check_closed, NULL);
}
