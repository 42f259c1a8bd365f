/* box/test_command.c - commands in a box that stays: what they get, how they end, and requests that nobody should send. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/text.h"
#include "base/time.h"
#include "box/handover.h"
#include "box/supervise.h"
#include "harness/test.h"
#include "kernel/landlock.h"

enum { PATIENCE_SEC = 60, ANSWER_MSEC = 20000 };

/* ---- homes and commands ---- */

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct px_policy *new_policy(const char *const *fields)
{
    struct px_policy *p = calloc(1, sizeof *p);
    struct px_err e = {0};
    ASSERT(p != NULL);
    ASSERT_PX(px_policy_init(p, "default", &e), e);
    for (; fields && fields[0]; fields += 2)
        ASSERT_PX(px_policy_put(p, fields[0], fields[1], &e), e);
    return p;
}

static void free_policy(struct px_policy *p)
{
    px_policy_done(p);
    free(p);
}

static struct px_box *stay(const char *const *fields)
{
    const struct px_host host = {
        .uid = geteuid(), .gid = getegid(), .landlock_abi = px_landlock_abi(), .user_namespaces = true};
    static const struct px_io nothing;
    struct px_policy *p = new_policy(fields);
    struct px_plan *plan = NULL;
    struct px_box *home = NULL;
    struct px_err e = {0};
    ASSERT_PX(px_plan_stay(p, &host, true, &plan, &e), e);
    int r = px_supervise_start(plan, p, &nothing, &home, &e);
    free_policy(p);
    if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS || e.code == PX_E_CGROUP))
        SKIP("no such box can be made here: %s", e.what);
    ASSERT_PX(r, e);
    return home;
}

static int try_exec(struct px_box *home, const char *const *argv, const char *const *fields, const struct px_io *io,
                    struct px_box **ret, struct px_err *e)
{
    static const struct px_io nothing;
    struct px_policy *p = new_policy(fields);
    int r = px_supervise_exec(home, p, argv, io ? io : &nothing, ret, e);
    free_policy(p);
    return r;
}

static struct px_box *exec_argv(struct px_box *home, const char *const *argv, const char *const *fields)
{
    struct px_box *box = NULL;
    struct px_err e = {0};
    ASSERT_PX(try_exec(home, argv, fields, NULL, &box, &e), e);
    return box;
}

static struct px_box *exec_text(struct px_box *home, const char *text, const char *const *fields)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    return exec_argv(home, argv, fields);
}

static struct px_box *finish(struct px_box *box)
{
    struct px_err e = {0};
    int r;
    while ((r = px_supervise_step(box, -1, &e)) > 0)
        ;
    ASSERT_PX(r, e);
    return box;
}

/* Its output must be `want`, its status 0. */
static void expect(struct px_box *home, const char *text, const char *want)
{
    struct px_box *box = finish(exec_text(home, text, NULL));
    ASSERT_STR(box->result.out.data, want);
    ASSERT_EQ(box->result.exit_code, 0);
    px_supervise_free(box);
}

/* Repeats a question to the box until its answer is `want`. */
static void until(struct px_box *home, const char *text, const char *want)
{
    uint64_t end = px_now_nsec() + PATIENCE_SEC * 1000000000ull;
    for (;;) {
        struct px_box *box = finish(exec_text(home, text, NULL));
        bool right = strcmp(box->result.out.data, want) == 0;
        px_supervise_free(box);
        if (right)
            return;
        if (px_now_nsec() > end)
            FAIL("`%s` never says '%s'", text, want);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static void wait_for_text(struct px_box *box, const char *text)
{
    struct px_err e = {0};
    for (;;) {
        px_auto_buf struct px_buf out = PX_BUF(1 << 20);
        ASSERT_OK(px_headtail_join(&box->flow[1].kept, &out));
        if (strstr(px_buf_text(&out), text))
            return;
        int r = px_supervise_step(box, -1, &e);
        ASSERT_PX(r, e);
        if (r == 0)
            FAIL("it ended with '%s' and never said '%s'", box->result.out.data, text);
    }
}

/* ---- what a command gets ---- */

TEST(commands_share_a_box)
{
    struct px_box *home = stay(NULL);
    expect(home, "echo one >/tmp/a; pwd; id -u", "/home/sandbox\n1000\n");
    expect(home, "cat /tmp/a; echo $X$HOME", "one\n/home/sandbox\n");
    struct px_box *box = finish(exec_text(home, "echo $X; pwd; exit 7", FIELDS("env", "X=y", "workdir", "/tmp")));
    ASSERT_STR(box->result.out.data, "y\n/tmp\n");
    ASSERT_EQ(box->result.exit_code, 7);
    ASSERT_EQ(box->result.status, PX_STATUS_NONZERO);
    ASSERT_STR(box->result.tier, "full");
    ASSERT(box->result.mechanisms_count > 0);
    px_supervise_free(box);
    px_supervise_free(home);
}

TEST(no_command_has_anything_of_pid_1)
{
    struct px_box *home = stay(NULL);
    expect(home, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | cut -f2 | sort | uniq -c | tr -s ' '",
           " 5 0000000000000000\n 1 1\n 1 2\n");
    expect(home, "ls /proc/self/fd | tr '\\n' ' '; cat /proc/1/cmdline 2>/dev/null; ls /proc/1 2>/dev/null; echo",
           "0 1 2 3 \n");
    expect(home, "for s in 1 9 15 17 19; do kill -$s 1 2>/dev/null && echo $s; done; echo end", "end\n");
    px_supervise_free(home);
}

TEST(errors_of_a_command)
{
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};
    ASSERT_EQ(try_exec(home, FIELDS("nosuchprogram"), NULL, NULL, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_NOT_FOUND);
    ASSERT_EQ(try_exec(home, FIELDS("/etc/passwd"), NULL, NULL, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_EXEC);
    ASSERT_EQ(try_exec(home, FIELDS("true"), FIELDS("workdir", "/nosuch"), NULL, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_WORKDIR);
    ASSERT_EQ(try_exec(home, FIELDS(""), NULL, NULL, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

TEST(a_terminal)
{
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};
    const struct px_io io = {.rows = 33, .cols = 99};
    ASSERT_PX(try_exec(home, FIELDS("sh", "-c", "tty; stty size"), FIELDS("tty", "true"), &io, &box, &e), e);
    finish(box);
    ASSERT_STR(box->result.out.data, "/dev/pts/0\r\n33 99\r\n");
    px_supervise_free(box);
    expect(home, "echo after", "after\n");
    px_supervise_free(home);
}

/* ---- large ones ---- */

TEST(texts_that_need_a_file)
{
    enum { EACH = 100 << 10, COUNT = 10 };              /* 1 MiB, each below the kernel's bound for one */
    struct px_box *home = stay(NULL);
    char *large = malloc(EACH + 1);
    const char *argv[COUNT + 5] = {"sh", "-c", "echo $# ${#1} ${#10}", "sh"};
    ASSERT(large != NULL);
    memset(large, 'x', EACH);
    large[EACH] = '\0';
    for (int i = 0; i < COUNT; i++)
        argv[4 + i] = large;
    struct px_box *box = finish(exec_argv(home, argv, NULL));
    ASSERT_STR(box->result.out.data, "10 102400 102400\n");
    px_supervise_free(box);
    free(large);
    px_supervise_free(home);
}

/* Just below and above what fits into the message itself. */
TEST(texts_around_the_size_of_a_message)
{
    struct px_box *home = stay(NULL);
    for (int size = PX_INIT_TEXT_MAX - 1200; size <= PX_INIT_TEXT_MAX + 400; size += 40) {
        char *text = malloc((size_t)size + 1), want[32];
        ASSERT(text != NULL);
        memset(text, 'y', (size_t)size);
        text[size] = '\0';
        struct px_box *box = finish(exec_argv(home, FIELDS("sh", "-c", "echo ${#1}", "sh", text), NULL));
        (void)snprintf(want, sizeof want, "%d\n", size);
        ASSERT_STR(box->result.out.data, want);
        px_supervise_free(box);
        free(text);
    }
    px_supervise_free(home);
}

TEST(many_words)
{
    enum { COUNT = 20000 };
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};
    const char **argv = calloc(PX_INIT_WORDS_MAX + 8, sizeof *argv);
    ASSERT(argv != NULL);
    memcpy(argv, FIELDS("sh", "-c", "echo $#", "sh"), 4 * sizeof *argv);
    for (int i = 4; i < COUNT + 4; i++)
        argv[i] = "w";
    box = finish(exec_argv(home, argv, NULL));
    ASSERT_STR(box->result.out.data, "20000\n");
    px_supervise_free(box);
    for (int i = 4; i < PX_INIT_WORDS_MAX; i++)
        argv[i] = "w";
    box = NULL;
    ASSERT_EQ(try_exec(home, argv, NULL, NULL, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    free(argv);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

TEST(arguments_beyond_the_kernels_bound)
{
    enum { SIZE = 3 << 20 };
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};
    char *large = malloc(SIZE + 1);
    ASSERT(large != NULL);
    memset(large, 'x', SIZE);
    large[SIZE] = '\0';
    ASSERT_EQ(try_exec(home, FIELDS("echo", large), NULL, NULL, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_EXEC);
    ASSERT_EQ(e.sys, E2BIG);
    free(large);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

/* ---- many ---- */

static void raise_files(rlim_t want)
{
    struct rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < want)
        SKIP("this process may have %llu descriptors only", (unsigned long long)limit.rlim_max);
    limit.rlim_cur = want;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_DEADLINE(as_many_commands_as_there_are_rows, 120)
{
    static struct px_box *boxes[PX_INIT_COMMANDS_MAX];
    raise_files(16 * PX_INIT_COMMANDS_MAX);
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++)
        boxes[i] = exec_argv(home, FIELDS("sleep", "1000"), NULL);
    ASSERT_EQ(try_exec(home, FIELDS("true"), NULL, NULL, &box, &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    ASSERT(strstr(e.what, "512 commands") && strstr(e.why, "at the same time") && strstr(e.fix, "another box"));
    px_supervise_free(boxes[0]);                        /* kills it */
    boxes[0] = NULL;
    uint64_t end = px_now_nsec() + PATIENCE_SEC * 1000000000ull;
    while (try_exec(home, FIELDS("true"), NULL, NULL, &box, &e) < 0)
        ASSERT(e.code == PX_E_LIMIT && px_now_nsec() < end);
    px_supervise_free(finish(box));
    for (int i = 1; i < PX_INIT_COMMANDS_MAX; i++)
        px_supervise_free(boxes[i]);
    until(home, "ps -e | grep -c sleep", "0\n");
    px_supervise_free(home);
}

TEST_DEADLINE(one_after_the_other, 60)
{
    struct px_box *home = stay(NULL);
    for (int i = 0; i < 300; i++) {
        struct px_box *box = finish(exec_argv(home, FIELDS("true"), NULL));
        ASSERT_EQ(box->result.exit_code, 0);
        px_supervise_free(box);
    }
    px_supervise_free(home);
}

/* ---- ends ---- */

TEST(a_timeout_is_of_one_command)
{
    struct px_box *home = stay(NULL);
    struct px_box *other = exec_text(home, "echo up; sleep 1000", NULL);
    wait_for_text(other, "up");
    struct px_box *box = finish(exec_text(home, "sleep 1001 & sleep 1001", FIELDS("timeout", "300ms")));
    ASSERT_EQ(box->result.status, PX_STATUS_TIMEOUT);
    ASSERT_EQ(box->result.exit_code, 124);
    px_supervise_free(box);
    until(home, "ps -eo args | grep -c '^sleep 1001'", "0\n");
    expect(home, "ps -eo args | grep -c '^sleep 1000'", "1\n");
    ASSERT_OK(px_supervise_signal(other, SIGUSR1));
    finish(other);
    ASSERT_EQ(other->result.signal, SIGUSR1);
    px_supervise_free(other);
    px_supervise_free(home);
}

TEST(its_end_is_its_own)
{
    struct px_box *home = stay(NULL);
    struct px_box *box = finish(exec_text(home, "yes & sleep 1000 & echo mine; exit 3", FIELDS("output-limit", "1m")));
    ASSERT_EQ(box->result.exit_code, 3);
    ASSERT(strstr(box->result.out.data, "mine\n") != NULL);
    px_supervise_free(box);
    until(home, "ps -e | grep -c sleep", "1\n");       /* what it left behind goes on; who writes to nobody does not */
    until(home, "ps -e | grep -c yes", "0\n");
    px_supervise_free(home);
}

/* Whoever asks for a command and dies takes it along: nobody is left to hold its clock. */
TEST(a_command_ends_with_who_asked)
{
    struct px_box *home = stay(NULL);
    int ready[2];
    ASSERT_OK(px_pipe(ready));
    pid_t pid = fork();
    if (pid == 0) {
        struct px_box *box = exec_text(home, "echo $$ >/tmp/pid; sleep 1000 & sleep 1000", NULL);
        (void)!write(ready[1], box ? "r" : "", 1);
        for (;;)
            (void)pause();
    }
    char byte;
    close(ready[1]);
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    until(home, "[ -s /tmp/pid ] && kill -0 $(cat /tmp/pid) && echo there", "there\n");
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    until(home, "kill -0 $(cat /tmp/pid) 2>/dev/null || echo gone", "gone\n");
    until(home, "ps -e | grep -c sleep", "0\n");
    close(ready[0]);
    px_supervise_free(home);
}

/* Children of nobody in sessions of their own, deaf to signals, never waiting for their children; one that is stopped; one whose parent
 * would like not to be its reaper. %s is their mark. */
static const char escapes[] =
    "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM HUP INT CHLD; (setsid sh -c \"sleep %s; :\" &) ; sleep %s; :' &);"
    "setsid sh -c 'kill -STOP $$; sleep %s' & "
    "exec perl -e 'syscall(157, 36, 0); $| = 1; if (!fork) { if (!fork) { syscall(112); exec \"sleep\", \"%s\" } exit }"
    " print \"up\"; sleep %s'";

static struct px_box *start_escapes(struct px_box *home, const char *mark)
{
    char text[1024];
    (void)snprintf(text, sizeof text, escapes, mark, mark, mark, mark, mark);
    struct px_box *box = exec_text(home, text, NULL);
    wait_for_text(box, "up");
    (void)snprintf(text, sizeof text, "ps -eo args | grep -c '^sleep %s'", mark);
    until(home, text, "3\n");
    return box;
}

/* How many processes have it in their arguments, which these here spell differently. */
static void expect_marked(struct px_box *home, const char *mark, const char *want)
{
    char text[128];
    (void)snprintf(text, sizeof text, "ps -eo args | grep -c '[%c]%s' || :", mark[0], mark + 1);
    expect(home, text, want);
}

/* When the caller is told of the end, all is dead, not only soon. What others left behind lives on. */
TEST(a_kill_ends_all_that_the_command_started)
{
    struct px_box *home = stay(NULL);
    px_supervise_free(finish(exec_text(home, "setsid sleep 4001 & (setsid sleep 4001 &); sleep 4001 & exit 0", NULL)));
    struct px_box *other = exec_text(home, "setsid sleep 4002 & (sleep 4002 &); echo up; sleep 4002", NULL);
    wait_for_text(other, "up");
    struct px_box *box = start_escapes(home, "4003");
    px_supervise_kill(box, PX_END_KILLED);
    finish(box);
    ASSERT_EQ(box->result.signal, SIGKILL);
    px_supervise_free(box);
    expect_marked(home, "4003", "0\n");
    until(home, "ps -eo args | grep -c '^sleep 4001'", "3\n");
    until(home, "ps -eo args | grep -c '^sleep 4002'", "3\n");
    px_supervise_kill(other, PX_END_KILLED);
    px_supervise_free(finish(other));
    expect_marked(home, "4002", "0\n");
    expect_marked(home, "4001", "3\n");
    px_supervise_free(home);
}

/* A bomb whose every process has left its session and its parent. It stops at the limit of processes, and so does the killing. */
TEST(a_kill_ends_a_bomb)
{
    struct px_box *home = stay(NULL);
    static const char bomb[] = "$SIG{CHLD} = 'IGNORE'; $| = 1; print 'up';"
                               "for (;;) { my $p = fork; if (defined $p && !$p) { syscall(112); fork && exit } }";
    const char *const argv[] = {"perl", "-e", bomb, NULL};
    for (int i = 0; i < 3; i++) {
        struct px_box *box = exec_argv(home, argv, FIELDS("pids", "100"));
        wait_for_text(box, "up");
        (void)nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        px_supervise_kill(box, PX_END_KILLED);
        ASSERT_EQ(finish(box)->result.signal, SIGKILL);
        px_supervise_free(box);
        expect(home, "ps -e | grep -c perl || :", "0\n");
    }
    px_supervise_free(home);
}

/* A command that is killed and one that ends by itself, at the same time: what the latter leaves in its session stays. */
TEST(the_end_of_one_is_not_that_of_another)
{
    struct px_box *home = stay(NULL);
    char want[16];
    for (int i = 1; i <= 20; i++) {
        struct px_box *killed = exec_text(home, "(setsid sleep 4005 &); echo up; sleep 4005", NULL);
        struct px_box *ends = exec_text(home, "sleep 4006 & echo up", NULL);
        wait_for_text(killed, "up");
        px_supervise_kill(killed, PX_END_KILLED);
        px_supervise_free(finish(killed));
        px_supervise_free(finish(ends));
        expect_marked(home, "4005", "0\n");
        (void)snprintf(want, sizeof want, "%d\n", i);
        expect_marked(home, "4006", want);
    }
    px_supervise_free(home);
}

TEST(a_home_that_dies)
{
    struct px_box *home = stay(NULL), *box = exec_text(home, "echo up; sleep 1000", NULL), *late = NULL;
    struct px_err e = {0};
    wait_for_text(box, "up");
    ASSERT_EQ(kill(home->pid, SIGKILL), 0);
    finish(box);
    ASSERT_EQ(box->result.exit_code, 137);
    ASSERT_STR(box->result.reason, "its box ended before it");
    ASSERT_EQ(try_exec(home, FIELDS("true"), NULL, NULL, &late, &e), -1);
    ASSERT_EQ(e.code, PX_E_GONE);
    px_supervise_free(box);
    px_supervise_free(home);
}

/* ---- requests that nobody should send ---- */

struct forged {
    struct px_init_request head;
    char text[256];
};

static int send_raw(int control, const void *data, size_t size, const int *fds, size_t count)
{
    return px_pass_send(control, data, size, fds, count, 0);
}

/* Sends it with a reply socket and `more` descriptors; what comes back: 0 or -errno of an answer, 1 for a hang-up. */
static int ask_raw(struct px_box *home, const struct px_init_request *head, const char *text, size_t length, const int *more,
                   size_t count)
{
    struct forged f = {.head = *head};
    int ends[2], fds[16];
    ASSERT(length <= sizeof f.text);
    memcpy(f.text, text, length);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    fds[0] = ends[1];
    for (size_t i = 0; i < count; i++)
        fds[1 + i] = more[i];
    ASSERT_OK(send_raw(home->control, &f, sizeof f.head + length, fds, 1 + count));
    close(ends[1]);
    struct px_init_started started = {0};
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    ASSERT_EQ(poll(&ready, 1, ANSWER_MSEC), 1);
    ssize_t n = recv(ends[0], &started, sizeof started, MSG_DONTWAIT);
    close(ends[0]);
    return n == sizeof started ? started.err : 1;
}

/* "/\0/bin/true\0true\0": directory, one place, one word */
static const char plain[] = "/\0/bin/true\0true";

static struct px_init_request plain_head(const struct px_box *home)
{
    return (struct px_init_request){
        .flags = home->keep_ids ? PX_INIT_KEEP_IDS : 0, .uid = 1000, .gid = 1000, .places = 1, .argc = 1,
        .length = sizeof plain};
}

TEST(a_plain_request_is_understood)
{
    struct px_box *home = stay(NULL);
    const struct px_init_request head = plain_head(home);
    ASSERT_EQ(ask_raw(home, &head, plain, sizeof plain, NULL, 0), 0);
    px_supervise_free(home);
}

TEST(counts_and_lengths_that_do_not_fit)
{
    struct px_box *home = stay(NULL);
    static const uint32_t numbers[] = {0, 2, 3, 100, 8192, 72 << 10, 1u << 31, UINT32_MAX - 1, UINT32_MAX};
    for (size_t i = 0; i < PX_COUNT_OF(numbers); i++) {
        struct px_init_request head = plain_head(home);
        head.places = numbers[i];
        ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
        head = plain_head(home);
        head.argc = numbers[i];
        ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
        head = plain_head(home);
        head.envc = numbers[i] ? numbers[i] : 1;
        ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
        head = plain_head(home);
        head.length = numbers[i];
        ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
    }
    struct px_init_request head = plain_head(home);
    head.places = UINT32_MAX;           /* sums that would wrap around */
    head.argc = UINT32_MAX;
    head.envc = 4;
    ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

TEST(texts_without_their_ends)
{
    struct px_box *home = stay(NULL);
    struct px_init_request head = plain_head(home);
    char text[sizeof plain];
    memset(text, 'x', sizeof text);
    ASSERT(ask_raw(home, &head, text, sizeof text, NULL, 0) < 0);
    memcpy(text, plain, sizeof text);
    text[sizeof text - 1] = 'x';
    ASSERT(ask_raw(home, &head, text, sizeof text, NULL, 0) < 0);
    head.length = 0;
    ASSERT(ask_raw(home, &head, "", 0, NULL, 0) < 0);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

TEST(messages_of_every_size)
{
    struct px_box *home = stay(NULL);
    char *bytes = calloc(1, 2 * PX_INIT_TEXT_MAX);
    ASSERT(bytes != NULL);
    for (int fill = 0; fill < 2; fill++) {
        memset(bytes, fill ? 0xff : 0, 2 * PX_INIT_TEXT_MAX);
        for (size_t size = 1; size < 700; size += 7)
            ASSERT_OK(send_raw(home->control, bytes, size, NULL, 0));
        ASSERT_OK(send_raw(home->control, bytes, 2 * PX_INIT_TEXT_MAX, NULL, 0));
    }
    free(bytes);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

TEST(missing_and_superfluous_descriptors)
{
    struct px_box *home = stay(NULL);
    struct px_init_request head = plain_head(home);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), many[12];
    for (size_t i = 0; i < PX_COUNT_OF(many); i++)
        many[i] = null;
    head.flags |= PX_INIT_IN | PX_INIT_OUT | PX_INIT_ERR;
    for (size_t count = 0; count < 3; count++)
        ASSERT_EQ(ask_raw(home, &head, plain, sizeof plain, many, count), -EMFILE);
    ASSERT_EQ(ask_raw(home, &head, plain, sizeof plain, many, 3), 0);
    ASSERT_EQ(ask_raw(home, &head, plain, sizeof plain, many, 12), 0);  /* what is too much is dropped */
    struct forged f = {.head = plain_head(home)};
    memcpy(f.text, plain, sizeof plain);
    ASSERT_OK(send_raw(home->control, &f, sizeof f.head + sizeof plain, NULL, 0));      /* nobody to answer to */
    close(null);
    expect(home, "echo still; ls /proc/self/fd | tr '\\n' ' '", "still\n0 1 2 3 ");
    px_supervise_free(home);
}

static int text_file(const char *text, size_t length)
{
    int fd = memfd_create("request", MFD_CLOEXEC);
    ASSERT(fd >= 0);
    ASSERT_EQ(write(fd, text, length), (ssize_t)length);
    return fd;
}

TEST(files_of_texts_that_are_not_what_they_say)
{
    struct px_box *home = stay(NULL);
    struct px_init_request head = plain_head(home);
    int file = text_file(plain, sizeof plain), ends[2], directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(px_pipe(ends));
    head.flags |= PX_INIT_FILE;
    ASSERT_EQ(ask_raw(home, &head, "", 0, &file, 1), 0);
    static const uint32_t lengths[] = {0, 5, sizeof plain + 1, 4096, 8192, 1u << 30, UINT32_MAX};
    for (size_t i = 0; i < PX_COUNT_OF(lengths); i++) {         /* a read past its end would be the end of pid 1 */
        head.length = lengths[i];
        ASSERT(ask_raw(home, &head, "", 0, &file, 1) < 0);
    }
    head.length = sizeof plain;
    ASSERT(ask_raw(home, &head, "", 0, &ends[0], 1) < 0);
    ASSERT(ask_raw(home, &head, "", 0, &directory, 1) < 0);
    ASSERT_EQ(ask_raw(home, &head, "", 0, NULL, 0), -EMFILE);
    close(file);
    close(ends[0]);
    close(ends[1]);
    close(directory);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

TEST(limits_beyond_count)
{
    struct px_box *home = stay(NULL);
    struct px_init_request head = plain_head(home);
    head.rlimits = UINT32_MAX;
    for (int i = 0; i < PX_INIT_RLIMITS_MAX; i++)
        head.rlimit[i] = (struct px_init_rlimit){.resource = (uint32_t)i, .soft = UINT64_MAX, .hard = UINT64_MAX};
    int r = ask_raw(home, &head, plain, sizeof plain, NULL, 0);         /* only ever lowered: nothing to refuse */
    ASSERT(r <= 0);
    head.rlimits = 1;
    head.rlimit[0].resource = 9999;
    ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
    expect(home, "echo still", "still\n");
    px_supervise_free(home);
}

TEST(ids_that_are_not_there)
{
    struct px_box *home = stay(NULL);
    struct px_init_request head = plain_head(home);
    if (home->keep_ids)
        SKIP("there is one id only, and no request changes it");
    head.uid = 0xfffffff0;
    ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
    expect(home, "id -u", "1000\n");
    px_supervise_free(home);
}

TEST(signals_to_nobody)
{
    struct px_box *home = stay(NULL), *box = exec_text(home, "sleep 1000 & echo $!; sleep 1000", NULL);
    struct px_err e = {0};
    wait_for_text(box, "\n");
    static const int pids[] = {0, 1, -1, -2, 3, 99999, 1 << 30};
    for (size_t i = 0; i < PX_COUNT_OF(pids); i++)
        if (pids[i] != box->inside_pid) {       /* also not to a process that is no command */
            struct px_init_request head = {.flags = PX_INIT_SIGNAL, .pid = pids[i], .signal = SIGKILL};
            ASSERT_OK(send_raw(home->control, &head, sizeof head, NULL, 0));
        }
    static const int signals[] = {0, -1, 65, 1000};
    for (size_t i = 0; i < PX_COUNT_OF(signals); i++) {
        struct px_init_request head = {.flags = PX_INIT_SIGNAL, .pid = box->inside_pid, .signal = signals[i]};
        ASSERT_OK(send_raw(home->control, &head, sizeof head, NULL, 0));
    }
    until(home, "ps -e | grep -c sleep", "2\n");        /* the second may still be on its way to its program */
    ASSERT_EQ(px_supervise_step(box, 0, &e), 1);
    px_supervise_free(box);
    px_supervise_free(home);
}

/* Its socket full of requests: the sender waits, and all are answered. */
TEST_DEADLINE(a_flood_of_requests, 60)
{
    enum { COUNT = 400 };
    struct px_box *home = stay(NULL);
    struct px_init_request head = plain_head(home);
    head.argc = 0;                      /* refused, cheaply */
    for (int i = 0; i < COUNT; i++)
        ASSERT(ask_raw(home, &head, plain, sizeof plain, NULL, 0) < 0);
    ASSERT_EQ(kill(home->pid, SIGSTOP), 0);
    struct forged f = {.head = head};
    size_t sent = 0;
    while (send(home->control, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        sent++;
    ASSERT(sent > 0);
    pid_t pid = fork();
    if (pid == 0) {                     /* lets it go on once we wait */
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        (void)kill(home->pid, SIGCONT);
        _exit(0);
    }
    expect(home, "echo through", "through\n");
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    px_supervise_free(home);
}

/* ---- what was refused ---- */

static uint64_t refused(const struct px_result *r, const char *call)
{
    for (size_t i = 0; i < r->denials_count; i++)
        if (r->denials[i].target && strcmp(r->denials[i].target, call) == 0)
            return r->denials[i].count;
    return 0;
}

TEST(each_command_is_told_what_it_was_refused)
{
    struct px_box *home = stay(NULL);
    struct px_box *two = finish(exec_text(home, "unshare -U true; unshare -U true; exit 5", NULL));
    struct px_box *none = finish(exec_text(home, "true", NULL));
    ASSERT_EQ(two->result.exit_code, 5);
    ASSERT(strstr(two->result.err.data, "not permitted"));
    ASSERT_EQ(refused(&two->result, "unshare"), 2u);
    ASSERT_STR(two->result.denials[0].rule, "seccomp");
    ASSERT_EQ(none->result.denials_count, 0u);
    px_supervise_free(two);
    px_supervise_free(none);
    ASSERT_EQ(home->result.missing_count, home->keep_ids ? 1u : 0u);
    px_supervise_free(home);
}

/* It outlives its command and has left its session: nobody's, and answered all the same. */
TEST(what_no_command_was_refused_is_the_homes)
{
    struct px_box *home = stay(NULL);
    struct px_err e = {0};
    struct px_box *box = finish(exec_text(home, "setsid -f sh -c 'until [ -e /tmp/go ]; do sleep 0.02; done; unshare -U true"
                                                " 2>/tmp/said; echo >/tmp/done'", NULL));
    ASSERT_EQ(box->result.denials_count, 0u);
    px_supervise_free(box);
    expect(home, ": >/tmp/go; until [ -e /tmp/done ]; do sleep 0.02; done; grep -c 'not permitted' /tmp/said", "1\n");
    struct px_result now = {0};
    px_report_denials(home, &now);
    ASSERT_EQ(refused(&now, "unshare"), 1u);
    px_supervise_kill(home, PX_END_KILLED);
    while (px_supervise_step(home, -1, &e) > 0)
        ;
    ASSERT_EQ(refused(&home->result, "unshare"), 1u);
    px_supervise_free(home);
}

/* One command does nothing but ask for what is refused; pid 1 takes its turns, and nobody's count goes to another. */
TEST_DEADLINE(a_flood_of_refused_calls_beside_others, 120)
{
    struct px_box *home = stay(NULL);
    struct px_box *flood = exec_text(home, "echo up; while :; do unshare -U true; done 2>/dev/null", NULL);
    wait_for_text(flood, "up");
    for (int i = 0; i < 20; i++) {
        struct px_box *box = finish(exec_text(home, "unshare -U true 2>/dev/null; echo alive", NULL));
        ASSERT_STR(box->result.out.data, "alive\n");
        ASSERT_EQ(refused(&box->result, "unshare"), 1u);
        px_supervise_free(box);
    }
    px_supervise_kill(flood, PX_END_KILLED);
    finish(flood);
    ASSERT(refused(&flood->result, "unshare") > 0);
    px_supervise_free(flood);
    px_supervise_free(home);
}

/* ---- handing it over ---- */

static void socket_pair(int ends[2])
{
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

TEST(a_home_in_other_hands)
{
    struct px_box *home = stay(NULL), *guest = NULL;
    struct px_err e = {0};
    int ends[2];
    socket_pair(ends);
    ASSERT_OK(px_handover_send(ends[0], home));
    ASSERT_PX(px_handover_receive(ends[1], ANSWER_MSEC, &guest, &e), e);
    expect(guest, "echo from here >/tmp/x; echo $0", "sh\n");
    struct px_box *box = finish(exec_text(guest, "exit 4", NULL));
    ASSERT_EQ(box->result.exit_code, 4);
    ASSERT_EQ(box->result.mechanisms_count, home->result.mechanisms_count);
    px_supervise_free(box);
    px_supervise_free(guest);           /* ends here, not there */
    expect(home, "cat /tmp/x", "from here\n");
    close(ends[0]);
    close(ends[1]);
    px_supervise_free(home);
}

TEST(no_home_and_forged_homes)
{
    struct px_box *guest = NULL;
    struct px_err e = {0}, why = {0};
    int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC), three[] = {null, null, null};
    char bytes[9000];
    socket_pair(ends);
    ASSERT_EQ(px_handover_receive(ends[1], 50, &guest, &e), -1);    /* nothing comes */
    ASSERT_EQ(e.code, PX_E_GONE);
    px_fail(&why, PX_E_CGROUP, 0, "because");
    ASSERT_OK(px_handover_refuse(ends[0], &why));
    ASSERT_EQ(px_handover_receive(ends[1], ANSWER_MSEC, &guest, &e), -1);
    ASSERT_EQ(e.code, PX_E_CGROUP);
    for (int fill = 0; fill < 2; fill++)
        for (size_t size = 1; size < sizeof bytes; size = size * 3 + 1)
            for (size_t count = 0; count <= 3; count++) {       /* the harness counts descriptors that were lost */
                memset(bytes, fill ? 0xff : 0, sizeof bytes);
                ASSERT_OK(send_raw(ends[0], bytes, size, three, count));
                ASSERT_EQ(px_handover_receive(ends[1], ANSWER_MSEC, &guest, &e), -1);
            }
    close(ends[0]);
    ASSERT_EQ(px_handover_receive(ends[1], ANSWER_MSEC, &guest, &e), -1);   /* a hang-up */
    ASSERT_EQ(e.code, PX_E_GONE);
    close(ends[1]);
    close(null);
}

/* ---- a pid 1 that cannot answer ---- */

/* A minute would be the bound of the wait: these end by what happened to pid 1, within the time that a test has. */
TEST(a_stopped_box_says_so_and_goes_on_when_it_is_woken)
{
    const char *const argv[] = {"true", NULL};
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};

    ASSERT_EQ(kill(home->pid, SIGSTOP), 0);
    ASSERT(try_exec(home, argv, NULL, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, PX_E_CLONE);
    ASSERT_STR(e.why, "Its pid 1 is stopped.");
    ASSERT(try_exec(home, argv, FIELDS("tty", NULL), NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, PX_E_CLONE);
    ASSERT_EQ(kill(home->pid, SIGCONT), 0);
    expect(home, "echo there", "there\n");
    px_supervise_free(home);
}

TEST(a_command_waits_no_longer_than_its_timeout_for_an_answer)
{
    const char *const argv[] = {"true", NULL};
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};
    int ends[2];

    /* Somebody else's socket in its place: pid 1 lives and runs, but the request never comes to it. */
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    int control = home->control;
    home->control = ends[0];
    ASSERT(try_exec(home, argv, FIELDS("timeout", "200ms"), NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, PX_E_CLONE);
    ASSERT_EQ(e.sys, ETIMEDOUT);
    home->control = control;
    (void)close(ends[0]);
    (void)close(ends[1]);
    expect(home, "echo there", "there\n");
    px_supervise_free(home);
}

/* A program on which we have a lease: who opens it waits until we give it up, 45 seconds at most. */
static int leased_program(int at)
{
    static const char text[] = "#!/bin/sh\necho ran\n";
    sigset_t io;
    ASSERT(sigemptyset(&io) == 0 && sigaddset(&io, SIGIO) == 0 && sigprocmask(SIG_BLOCK, &io, NULL) == 0);
    ASSERT_EQ(fchmod(at, 0755), 0);
    px_auto_fd int made = openat(at, "tool", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ASSERT_EQ(write(made, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    made = px_fd_close(made);
    int fd = openat(at, "tool", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
    return fd;
}

static void wait_until_opened(void)
{
    sigset_t io;
    ASSERT(sigemptyset(&io) == 0 && sigaddset(&io, SIGIO) == 0);
    ASSERT_EQ(sigtimedwait(&io, NULL, &(struct timespec){.tv_sec = PATIENCE_SEC}), SIGIO);
}

/* The execve of a command sleeps in the kernel. Others are killed and end meanwhile; who asked for it gives up, and it
 * is gone. */
TEST_DEADLINE(a_program_that_the_kernel_does_not_execute, 90)
{
    static const char text[] = "/\0/w/tool\0tool";
    char bind[PATH_MAX];
    px_auto_fd int at = px_test_dir();
    ASSERT_OK(px_fmt(bind, sizeof bind, "%s:/w", px_test_dir_path()));
    struct px_box *home = stay(FIELDS("bind", bind));
    struct px_box *killed = exec_text(home, "echo up; sleep 1000", NULL);
    struct px_box *left = exec_text(home, "echo up; sleep 1000", NULL);
    wait_for_text(killed, "up");
    wait_for_text(left, "up");
    int lease = leased_program(at), ends[2];
    struct forged f = {.head = plain_head(home)};
    memcpy(f.text, text, sizeof text);
    f.head.length = sizeof text;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_OK(send_raw(home->control, &f, sizeof f.head + sizeof text, &ends[1], 1));
    close(ends[1]);
    wait_until_opened();
    int behind[2];              /* one more request, in front of the kill */
    struct forged more = {.head = plain_head(home)};
    memcpy(more.text, plain, sizeof plain);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, behind), 0);
    ASSERT_OK(send_raw(home->control, &more, sizeof more.head + sizeof plain, &behind[1], 1));
    close(behind[1]);

    ASSERT_OK(px_supervise_signal(killed, SIGKILL));
    finish(killed);
    ASSERT_EQ(killed->result.signal, SIGKILL);
    px_supervise_free(killed);
    px_supervise_free(left);
    close(ends[0]);
    until(home, "ps -e | grep -c sleep", "0\n");
    close(behind[0]);
    close(lease);
    expect(home, "/w/tool", "ran\n");
    px_supervise_free(home);
}

TEST(a_box_that_was_killed_says_so)
{
    const char *const argv[] = {"true", NULL};
    struct px_box *home = stay(NULL), *box = NULL;
    struct px_err e = {0};

    ASSERT_EQ(kill(home->pid, SIGSTOP), 0);
    ASSERT_EQ(kill(home->pid, SIGKILL), 0);
    ASSERT(try_exec(home, argv, NULL, NULL, &box, &e) < 0);
    ASSERT_EQ(e.code, PX_E_GONE);
    px_supervise_free(home);
}
