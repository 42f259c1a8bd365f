/* keeper/test_keeper.c - boxes with a name: their places, their messages, their logs, and a keeper with its users. */
#include "named/named_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "harness/test.h"
#include "keeper/keeper_internal.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { PATIENCE_SEC = 60 };

/* ---- places ---- */

static char *home_path(void)
{
    static char path[4096];
    int dir = px_test_dir();
    ASSERT(dir >= 0);
    close(dir);
    (void)snprintf(path, sizeof path, "%s/home", px_test_dir_path());
    return path;
}

static bool exists(const char *home, const char *below)
{
    char path[4200];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/%s", home, below);
    return lstat(path, &st) == 0;
}

TEST(a_name_is_held_and_given_back)
{
    const char *home = home_path();
    struct px_named_place place = PX_KEEP_NOWHERE, second = PX_KEEP_NOWHERE;
    struct px_err e = {0};
    ASSERT_PX(px_named_claim(home, "one", &place, &e), e);
    ASSERT_EQ(px_named_held(place.boxes, "one"), 1);
    ASSERT_EQ(px_named_held(place.boxes, "two"), -ENOENT);
    ASSERT_EQ(px_named_claim(home, "one", &second, &e), -1);
    ASSERT_EQ(e.code, PX_E_NAME);
    ASSERT(strstr(e.fix, "px box stop one") != NULL);
    px_named_sweep(place.boxes);         /* it is alive */
    ASSERT(exists(home, "run/boxes/one/lock"));
    px_named_let_go(&place);
    ASSERT(!exists(home, "run/boxes/one"));
    ASSERT_PX(px_named_claim(home, "one", &second, &e), e);
    px_named_let_go(&second);
}

TEST(names_are_made_up)
{
    const char *home = home_path();
    struct px_named_place places[5];
    struct px_err e = {0};
    for (int i = 0; i < 5; i++) {
        places[i] = (struct px_named_place)PX_KEEP_NOWHERE;
        ASSERT_PX(px_named_claim(home, NULL, &places[i], &e), e);
        ASSERT(px_policy_name_ok(places[i].name));
        ASSERT(i == 0 || strcmp(places[i].name, places[i - 1].name) != 0);
    }
    for (int i = 0; i < 5; i++)
        px_named_let_go(&places[i]);
}

TEST(what_a_dead_keeper_left_is_swept)
{
    const char *home = home_path();
    struct px_named_place place = PX_KEEP_NOWHERE;
    struct px_err e = {0};
    pid_t pid = fork();
    if (pid == 0) {
        ASSERT_PX(px_named_claim(home, "dead", &place, &e), e);
        int file = openat(place.dir, "out-1-0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ASSERT(file >= 0 && mkdirat(place.dir, "sub", 0700) == 0);
        (void)kill(getpid(), SIGKILL);
    }
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
    ASSERT(exists(home, "run/boxes/dead/lock"));
    char **names = NULL;
    size_t count = 1;
    ASSERT_PX(px_living_list(home, &names, &count, &e), e);
    ASSERT_EQ(count, 0);
    free(names);
    ASSERT(!exists(home, "run/boxes/dead"));
}

TEST(directories_of_others_are_refused)
{
    char *home = home_path(), path[4200];
    struct px_named_place place = PX_KEEP_NOWHERE;
    struct px_err e = {0};
    int boxes = -EBADF;
    ASSERT_PX(px_named_boxes(home, false, &boxes, &e), e);       /* nothing there, nothing made */
    ASSERT_EQ(boxes, -EBADF);
    ASSERT(!exists(home, ""));
    ASSERT_EQ(mkdir(home, 0777), 0);
    ASSERT_EQ(chmod(home, 0777), 0);
    ASSERT_EQ(px_named_claim(home, "x", &place, &e), -1);
    ASSERT(strstr(e.fix, "chmod 700") != NULL);
    ASSERT_EQ(chmod(home, 0755), 0);    /* others may see that it is there */
    ASSERT_PX(px_named_claim(home, "x", &place, &e), e);
    px_named_let_go(&place);
    (void)snprintf(path, sizeof path, "%s/run", home);
    ASSERT_EQ(chmod(path, 0750), 0);
    ASSERT_EQ(px_named_claim(home, "x", &place, &e), -1);
    ASSERT_EQ(chmod(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/run/boxes", home);
    ASSERT_EQ(rmdir(path), 0);
    ASSERT_EQ(symlink("/tmp", path), 0);
    ASSERT_EQ(px_named_claim(home, "x", &place, &e), -1);
    ASSERT_EQ(e.code, PX_E_IO);
    ASSERT_EQ(px_named_claim("relative", "x", &place, &e), -1);
    if (geteuid() == 0) {
        ASSERT_EQ(unlink(path), 0);
        ASSERT_EQ(chown(home, 1234, 1234), 0);
        ASSERT_EQ(px_named_claim(home, "x", &place, &e), -1);
        ASSERT(strstr(e.why, "another user") != NULL);
    }
}

/* Boxes that were copied, or came with a repository: nothing of them is removed. */
TEST(boxes_that_px_did_not_make)
{
    char *home = home_path(), path[4200];
    struct px_named_place place = PX_KEEP_NOWHERE;
    struct px_err e = {0};
    static const char *const made[] = {"", "/run", "/run/boxes", "/run/boxes/thesis"};
    for (size_t i = 0; i < PX_COUNT_OF(made); i++) {
        (void)snprintf(path, sizeof path, "%s%s", home, made[i]);
        ASSERT_EQ(mkdir(path, 0700), 0);
    }
    ASSERT_EQ(px_named_claim(home, "x", &place, &e), -1);
    ASSERT_EQ(e.code, PX_E_STATE);
    ASSERT(exists(home, "run/boxes/thesis"));
}

TEST(what_is_a_name)
{
    char longest[80] = "";
    memset(longest, 'a', 63);
    ASSERT(px_policy_name_ok("a") && px_policy_name_ok("0") && px_policy_name_ok("a-b-9") && px_policy_name_ok(longest));
    longest[63] = 'a';
    ASSERT(!px_policy_name_ok(longest));
    static const char *const bad[] = {"", "-", "-a", "A", "a_b", "a.b", "..", ".", "a/b", "/", "a b", "a\n", "\xc3\xa4", "a:b"};
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        ASSERT(!px_policy_name_ok(bad[i]));
}

/* ---- messages ---- */

TEST(messages_come_whole_or_not_at_all)
{
    int ends[2], fd = -EBADF, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct px_named_message m = {.kind = PX_KEEP_INFO, .number = 7}, got;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(px_named_receive(ends[1], &got, &fd), -EAGAIN);
    ASSERT_EQ(px_named_await(ends[1], 20, &got, &fd), -ETIMEDOUT);
    ASSERT_OK(px_named_send(ends[0], &m, null));
    ASSERT_EQ(px_named_receive(ends[1], &got, &fd), 1);
    ASSERT(got.kind == PX_KEEP_INFO && got.number == 7 && fd >= 0);
    close(fd);
    char bytes[2 * sizeof m];
    memset(bytes, 0xff, sizeof bytes);
    for (size_t size = 1; size < sizeof bytes; size += 97) {
        ASSERT_EQ(send(ends[0], bytes, size, 0), (ssize_t)size);
        ASSERT_EQ(px_named_receive(ends[1], &got, &fd), 0);
    }
    m.version = PX_KEEP_VERSION + 1;    /* px_named_send says its own */
    ASSERT_EQ(send(ends[0], &m, sizeof m, 0), (ssize_t)sizeof m);
    ASSERT_EQ(px_named_receive(ends[1], &got, &fd), 0);
    close(ends[0]);
    ASSERT_EQ(px_named_receive(ends[1], &got, &fd), 0);
    close(ends[1]);
    close(null);
}

/* Texts of an error that has no end are given one. */
TEST(forged_texts_end)
{
    int ends[2], fd = -EBADF;
    struct px_named_message m, got;
    memset(&m, 'x', sizeof m);
    m.version = PX_KEEP_VERSION;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(send(ends[0], &m, sizeof m, 0), (ssize_t)sizeof m);
    ASSERT_EQ(px_named_receive(ends[1], &got, &fd), 1);
    ASSERT(strlen(got.err.what) < sizeof got.err.what);
    ASSERT(strlen(got.err.why) < sizeof got.err.why);
    ASSERT(strlen(got.err.fix) < sizeof got.err.fix);
    close(ends[0]);
    close(ends[1]);
}

TEST(long_texts)
{
    px_auto_buf struct px_buf text = PX_BUF(1 << 20), small = PX_BUF(100);
    int fd = px_named_text_file("abc\0def", 7), ends[2];
    ASSERT_OK(fd);
    ASSERT_OK(px_named_text_read(fd, &text));
    ASSERT(text.len == 7 && memcmp(text.data, "abc\0def", 7) == 0);
    ASSERT_EQ(write(fd, "x", 1), -1);   /* sealed */
    close(fd);
    fd = px_named_text_file(memset(text.data, 0, 7), 7);
    close(fd);
    char large[200] = "";
    fd = px_named_text_file(large, sizeof large);
    ASSERT(px_named_text_read(fd, &small) < 0);
    close(fd);
    ASSERT_OK(px_pipe(ends));
    ASSERT_EQ(px_named_text_read(ends[0], &text), -EPROTO);      /* would wait for ever */
    ASSERT_EQ(px_named_text_read(-EBADF, &text), -EPROTO);
    close(ends[0]);
    close(ends[1]);
}

TEST(who_is_trusted)
{
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(px_named_trusts(ends[0], false), 1);
    ASSERT_EQ(px_named_trusts(ends[0], true), 1);
    close(ends[0]);
    close(ends[1]);
}

/* It is told from somebody who has no business here. */
TEST(who_has_ended)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int listener = px_named_listen(dir);
    ASSERT_OK(listener);
    pid_t pid = fork();
    if (pid == 0)
        _exit(px_named_connect(dir) < 0);
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    px_auto_fd int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_OK(socket);
    ASSERT_EQ(px_named_trusts(socket, true), -ESRCH);
}

/* Connects from a child that did `before`, and tells what the other side thinks of it. */
static void meet(int dir, int listener, void (*before)(void), bool *ret_strict, bool *ret_lenient)
{
    int ready[2];
    ASSERT_OK(px_pipe(ready));
    pid_t pid = fork();
    if (pid == 0) {
        before();
        int fd = px_named_connect(dir);
        char byte = fd < 0 ? 'n' : 'y';
        (void)!write(ready[1], &byte, 1);
        for (;;)
            (void)pause();
    }
    char byte = '?';
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');
    int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ASSERT(socket >= 0);
    *ret_strict = px_named_trusts(socket, false) > 0;
    *ret_lenient = px_named_trusts(socket, true) > 0;
    close(socket);
    close(ready[0]);
    close(ready[1]);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

static void as_is(void)
{
}

static void give_up_privileges(void)
{
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
}

static void be_somebody_else(void)
{
    ASSERT_EQ(setresuid(1200, 1200, 1200), 0);
}

static void enter_a_namespace(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
        _exit(0);
    pid_t pid = fork();
    if (pid > 0)
        for (;;)
            (void)pause();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

TEST(who_is_not_trusted)
{
    bool strict, lenient;
    int dir = px_test_dir();
    ASSERT_EQ(fchmod(dir, 0755), 0);
    int listener = px_named_listen(dir);
    ASSERT_OK(listener);
    ASSERT_EQ(fchmodat(dir, "socket", 0666, 0), 0);
    meet(dir, listener, as_is, &strict, &lenient);
    ASSERT(strict && lenient);
    meet(dir, listener, give_up_privileges, &strict, &lenient);
    ASSERT(lenient);
    ASSERT(!strict || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);     /* no more confined than we are */
    if (geteuid() == 0) {
        meet(dir, listener, be_somebody_else, &strict, &lenient);
        ASSERT(!strict && !lenient);
    }
    close(listener);
    close(dir);
}

/* As a box's user sees its owner's files: the same id, but another place. */
TEST(nobody_in_a_box_is_trusted)
{
    bool strict, lenient;
    pid_t probe = fork();
    if (probe == 0)
        _exit(unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0);
    int status = 1;
    ASSERT_EQ(waitpid(probe, &status, 0), probe);
    if (status)
        SKIP("no namespaces can be made here");
    int dir = px_test_dir(), listener = px_named_listen(dir);
    ASSERT_OK(listener);
    meet(dir, listener, enter_a_namespace, &strict, &lenient);
    ASSERT(!strict && !lenient);
    close(listener);
    close(dir);
}

/* ---- policies ---- */

TEST(a_policy_on_its_way)
{
    struct px_policy *policy = NULL, *copy = NULL;
    px_auto_buf struct px_buf text = PX_BUF(1 << 20);
    struct px_err e = {0};
    size_t at = 0;
    ASSERT_PX(px_policy_new("task", &policy, &e), e);
    const char *const *f = WORDS("user", "7:8", "workdir", "/x", "env", "A=1 2\n3", "env", "B=", "cpu-time", "3s", "pids", "9",
                                 "file-size", "1k", "nofile", "77", "timeout", "1500ms", "output-limit", "unlimited",
                                 "output-end", "true", "interactive", "true");
    for (; *f; f += 2)
        ASSERT_PX(px_policy_set(policy, f[0], f[1], &e), e);
    px_named_pack(policy, true, &text);
    px_named_pack_words(WORDS("cmd", "", "a b"), &text);
    ASSERT_EQ(text.err, 0);
    ASSERT_PX(px_named_unpack(text.data, text.len, &copy, &at, &e), e);
    ASSERT(copy->user.uid == 7 && copy->user.gid == 8 && copy->cpu_time_msec == 3000 && copy->pids == 9);
    ASSERT(copy->file_bytes == 1024 && copy->nofile == 77 && copy->timeout_msec == 1500);
    ASSERT(copy->output_bytes == PX_UNLIMITED && copy->output_end && copy->interactive);
    ASSERT_STR(copy->workdir, "/x");
    ASSERT_STR(px_policy_env(copy, "A"), "1 2\n3");
    ASSERT_STR(px_policy_env(copy, "B"), "");
    ASSERT_STR(px_policy_env(copy, "NO_PROXY"), "*");
    ASSERT_EQ(copy->memory_bytes, 4096ull << 20);
    const char **words = px_named_words(text.data, text.len, at);
    ASSERT_STR(words[0], "cmd");
    ASSERT_STR(words[1], "");
    ASSERT_STR(words[2], "a b");
    ASSERT(words[3] == NULL);
    free(words);
    px_policy_free(copy);
    px_policy_free(policy);
}

TEST(texts_that_are_no_policy)
{
    static const struct {
        const char *text;
        size_t length;
    } bad[] = {{"", 0},
               {"x", 1},
               {"user", 5},
               {"user\0", 5},
               {"user\0" "7\0", 7},
               {"nosuch\0" "7\0\0", 10},
               {"user\0x\0\0", 8},
               {"env\0=\0\0", 7}};
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++) {
        struct px_policy *policy = NULL;
        struct px_err e = {0};
        size_t at;
        ASSERT_EQ(px_named_unpack(bad[i].text, bad[i].length, &policy, &at, &e), -1);
        ASSERT(e.code != 0);
    }
}

/* ---- logs ---- */

static size_t read_log(int dir, struct px_log_at *at, char *out, size_t size)
{
    size_t have = 0;
    long n;
    while ((n = px_named_log_read(dir, 3, PX_STDOUT, at, out + have, size - have)) > 0)
        have += (size_t)n;
    ASSERT_OK(n);
    return have;
}

TEST(a_log_that_fits)
{
    char out[100];
    struct px_named_log log;
    struct px_log_at at = {0};
    int dir = px_test_dir();
    ASSERT_EQ(read_log(dir, &at, out, sizeof out), 0);
    px_named_log_init(&log, dir, 3, PX_STDOUT, 1 << 20);
    px_named_log_write(&log, "hello", 5);
    ASSERT_EQ(read_log(dir, &at, out, sizeof out), 5);
    ASSERT_EQ(read_log(dir, &at, out, sizeof out), 0);
    px_named_log_write(&log, " world", 6);
    ASSERT_EQ(read_log(dir, &at, out, sizeof out), 6);
    ASSERT(memcmp(out, " world", 6) == 0 && !at.gap);
    px_named_log_remove(&log);
    ASSERT_EQ(read_log(dir, &at, out, sizeof out), 0);
    close(dir);
}

TEST(a_log_that_does_not)
{
    enum { LINES = 20000, LINE = 10, KEPT = 64 << 10 };
    char *out = malloc(LINES * LINE), line[16];
    struct px_named_log log;
    struct px_log_at slow = {0}, fast = {0};
    int dir = px_test_dir();
    size_t seen = 0;
    ASSERT(out != NULL);
    px_named_log_init(&log, dir, 3, PX_STDOUT, KEPT);
    for (int i = 0; i < LINES; i++) {
        (void)snprintf(line, sizeof line, "%09d\n", i);
        px_named_log_write(&log, line, LINE);
        if (i % 100 == 99)
            seen += read_log(dir, &fast, out, LINES * LINE);
    }
    px_named_log_done(&log);
    ASSERT_EQ(seen, LINES * LINE);      /* who reads along loses nothing */
    ASSERT(!fast.gap);
    size_t n = read_log(dir, &slow, out, LINES * LINE);
    ASSERT(slow.gap && n >= KEPT && n <= 2 * KEPT);
    size_t at = n % LINE, kept = n / LINE;              /* the first line may be half there */
    for (size_t i = 0; i < kept; i++) {
        (void)snprintf(line, sizeof line, "%09d\n", (int)(LINES - kept + i));
        ASSERT(memcmp(out + at + i * LINE, line, LINE) == 0);
    }
    px_named_log_remove(&log);
    close(dir);
    free(out);
}

TEST(a_log_on_a_full_disk_is_counted)
{
    struct px_named_log log;
    px_named_log_init(&log, -EBADF, 3, PX_STDERR, 0);    /* nowhere to write */
    px_named_log_write(&log, "lost", 4);
    ASSERT_EQ(log.lost, 4);
    px_named_log_remove(&log);
}

/* ---- a keeper and its users ---- */

struct kept {
    const char *home;
    pid_t pid;
    int starter;                /* our end; -1 once we have let go */
};

static struct px_policy *new_policy(const char *const *fields)
{
    struct px_policy *policy = NULL;
    struct px_err e = {0};
    ASSERT_PX(px_policy_new("default", &policy, &e), e);
    for (; fields && fields[0]; fields += 2)
        ASSERT_PX(px_policy_set(policy, fields[0], fields[1], &e), e);
    return policy;
}

/* What the child says on the pipe: that the box is there, or the code of its error. */
static struct kept keep(const char *const *fields, bool let_live)
{
    struct kept k = {.home = home_path()};
    int ends[2], ready[2];
    struct px_err e = {0};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_OK(px_pipe(ready));
    k.pid = fork();
    if (k.pid == 0) {
        struct px_policy *policy = new_policy(fields);
        struct px_keeper *keeper = NULL;
        close(ends[0]);
        (void)px_keeper_new(k.home, policy, &keeper, &e);
        (void)!write(ready[1], &e.code, sizeof e.code);
        if (keeper)
            (void)px_keeper_run(keeper, -1, ends[1], &e);
        px_keeper_free(keeper);
        px_policy_free(policy);
        _exit(0);
    }
    int code = -1;
    close(ends[1]);
    close(ready[1]);
    ASSERT_EQ(read(ready[0], &code, sizeof code), (ssize_t)sizeof code);
    close(ready[0]);
    k.starter = ends[0];
    if (code == PX_E_USERNS || code == PX_E_IDS || code == PX_E_CGROUP)
        SKIP("no box can be made here: PX%03d", code);
    ASSERT_EQ(code, 0);
    if (let_live) {
        ASSERT_EQ(send(k.starter, "k", 1, 0), 1);
        close(k.starter);
        k.starter = -1;
    }
    return k;
}

static struct px_living *open_box(const struct kept *k)
{
    struct px_living *living = NULL;
    struct px_err e = {0};
    ASSERT_PX(px_living_open(k->home, "box", &living, &e), e);
    return living;
}

static void end_kept(struct kept *k)
{
    int status = -1;
    if (k->starter >= 0)
        close(k->starter);
    ASSERT_EQ(waitpid(k->pid, &status, 0), k->pid);
    ASSERT_EQ(status, 0);
    ASSERT(!exists(k->home, "run/boxes/box"));
}

static void stop(struct kept *k)
{
    struct px_err e = {0};
    struct px_living *living = open_box(k);
    ASSERT_PX(px_living_stop(living, &e), e);
    ASSERT(!exists(k->home, "run/boxes/box"));
    px_living_close(living);
    end_kept(k);
}

static void run(struct px_living *living, const char *text, const char *want)
{
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    ASSERT_PX(px_living_policy(living, &policy, &e), e);
    ASSERT_PX(px_living_exec(living, policy, WORDS("sh", "-c", text), NULL, &box, &e), e);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_STR(px_box_result(box)->out.data, want);
    px_box_free(box);
    px_policy_free(policy);
}

#define NAMED "name", "box"

TEST(a_box_and_a_user)
{
    struct kept k = keep(WORDS(NAMED, "env", "GIVEN=here"), true);
    struct px_living *living = open_box(&k), *other = NULL;
    struct px_err e = {0};
    struct px_living_state s;
    run(living, "echo $GIVEN; echo 1 >/tmp/x", "here\n");
    run(living, "cat /tmp/x", "1\n");
    ASSERT_PX(px_living_state(living, &s, &e), e);
    ASSERT_STR(s.name, "box");
    ASSERT_EQ(s.commands_run, 2);
    ASSERT(!s.stopping && s.keeper_pid == k.pid && s.pid > 1);
    char **names = NULL;
    size_t count = 0;
    ASSERT_PX(px_living_list(k.home, &names, &count, &e), e);
    ASSERT_EQ(count, 1);
    ASSERT_STR(names[0], "box");
    free(names);
    ASSERT_EQ(px_living_open(k.home, "other", &other, &e), -1);
    ASSERT_EQ(e.code, PX_E_NAME);
    px_living_close(living);
    stop(&k);
    ASSERT_EQ(px_living_open(k.home, "box", &other, &e), -1);
    ASSERT_EQ(e.code, PX_E_NAME);
}

TEST(a_starter_that_never_says_a_word)
{
    struct kept k = keep(WORDS(NAMED), false);
    end_kept(&k);
}

TEST(a_detached_command)
{
    struct kept k = keep(WORDS(NAMED), true);
    struct px_living *living = open_box(&k), *second = open_box(&k);
    struct px_policy *policy = NULL;
    struct px_err e = {0};
    struct px_log_at at = {0};
    unsigned command = 0, count = 0;
    int status = -1;
    char *json = NULL, out[64] = "";
    ASSERT_PX(px_living_policy(living, &policy, &e), e);
    ASSERT_PX(px_policy_set(policy, "interactive", "true", &e), e);
    ASSERT_PX(px_living_detach(living, policy, WORDS("sh", "-c", "read x; echo got $x; cat; exit 5"), &command, &e), e);
    ASSERT_EQ(px_living_wait(second, command, 50, &status, &json, &e), 0);
    int input = px_living_input(living, 0, &e);
    ASSERT_PX(input, e);
    ASSERT_EQ(write(input, "one\ntwo\n", 8), 8);
    close(input);
    ASSERT_PX(px_living_end_input(living, command, &e), e);
    int r;
    while ((r = px_living_wait(second, command, 1000, &status, &json, &e)) == 0)
        ;
    ASSERT_PX(r, e);
    ASSERT_EQ(status, 5);
    ASSERT(strstr(json, "\"exit_code\":5") != NULL);
    free(json);
    ASSERT_EQ(px_living_log(living, command, PX_STDOUT, &at, out, sizeof out, &e), 12);
    ASSERT_STR(out, "got one\ntwo\n");
    ASSERT_EQ(px_living_input(living, command, &e), -1);
    ASSERT_EQ(e.code, PX_E_GONE);
    ASSERT_EQ(px_living_wait(second, 99, 1000, &status, &json, &e), -1);
    ASSERT_EQ(px_living_detach(living, policy, WORDS("nosuchprogram"), &command, &e), -1);
    ASSERT_EQ(e.code, PX_E_NOT_FOUND);
    ASSERT_PX(px_living_detach(living, policy, WORDS("sleep", "1000"), &command, &e), e);
    ASSERT_PX(px_living_signal(living, SIGKILL, command, &count, &e), e);
    ASSERT_EQ(count, 1);
    while ((r = px_living_wait(second, command, 1000, &status, &json, &e)) == 0)
        ;
    ASSERT_EQ(status, 137);
    free(json);
    px_policy_free(policy);
    px_living_close(second);
    px_living_close(living);
    stop(&k);
}

TEST(what_a_box_says_of_itself)
{
    struct kept k = keep(WORDS(NAMED, "env", "SECRET=hunter2", "idle", "1h"), true);
    struct px_living *living = open_box(&k);
    struct px_policy *policy = NULL;
    struct px_living_command *commands = NULL;
    struct px_living_process *processes = NULL;
    struct px_err e = {0};
    unsigned command = 0;
    size_t count = 0;
    char *json = NULL;
    ASSERT_PX(px_living_policy(living, &policy, &e), e);
    ASSERT_PX(px_living_detach(living, policy, WORDS("sleep", "1000", "\033[31m"), &command, &e), e);
    ASSERT_PX(px_living_commands(living, &commands, &count, &e), e);
    ASSERT_EQ(count, 1);
    ASSERT(commands[0].detached && commands[0].number == command && strstr(commands[0].text, "sleep 1000 \\x1b[31m"));
    ASSERT_PX(px_living_detach(living, policy, WORDS("sleep", "1001"), &command, &e), e);
    free(commands);
    uint64_t end = px_now_nsec() + PATIENCE_SEC * 1000000000ull;
    do {                                /* the first has refused its words and gone, the second has its own */
        free(processes);
        ASSERT_PX(px_living_processes(living, &processes, &count, &e), e);
        ASSERT(px_now_nsec() < end);
    } while (count != 1 || strcmp(processes[0].text, "sleep 1001") != 0);
    ASSERT(processes[0].pid > 1 && processes[0].parent == 1 && processes[0].host_pid > 1);
    ASSERT_EQ(px_living_signal_process(living, SIGTERM, 1, &e), -1);
    ASSERT_PX(px_living_signal_process(living, SIGTERM, processes[0].pid, &e), e);
    free(processes);
    ASSERT_PX(px_living_info(living, true, &json, &e), e);
    ASSERT(strstr(json, "\"idle_s\":3600.000") && strstr(json, "\"SECRET\"") && !strstr(json, "hunter2"));
    free(json);
    ASSERT_EQ(px_living_signal(living, 0, 0, NULL, &e), -1);
    ASSERT_EQ(px_living_signal(living, 65, 0, NULL, &e), -1);
    px_policy_free(policy);
    px_living_close(living);
    stop(&k);
}

/* Nonsense from a user: that user is dropped, the others are served. */
TEST(users_that_talk_nonsense)
{
    struct kept k = keep(WORDS(NAMED), true);
    struct px_living *living = open_box(&k);
    struct px_err e = {0};
    px_auto_fd int boxes = -EBADF;
    ASSERT_PX(px_named_boxes(k.home, false, &boxes, &e), e);
    px_auto_fd int dir = openat(boxes, "box", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int round = 0; round < 40; round++) {
        char bytes[3000];
        px_auto_fd int socket = px_named_connect(dir);
        struct px_named_message m = {.version = PX_KEEP_VERSION, .kind = (uint32_t)round, .command = UINT32_MAX, .number = -1};
        ASSERT_OK(socket);
        memset(bytes, round, sizeof bytes);
        if (round % 2 && round != PX_KEEP_STOP)
            (void)!send(socket, &m, sizeof m, MSG_NOSIGNAL);
        else
            (void)!send(socket, bytes, (size_t)round * 70 + 1, MSG_NOSIGNAL);
    }
    run(living, "echo still", "still\n");
    px_living_close(living);
    stop(&k);
}

TEST(one_that_is_idle_ends)
{
    struct kept k = keep(WORDS(NAMED, "idle", "200ms"), true);
    end_kept(&k);
    k = keep(WORDS(NAMED, "max-life", "200ms"), true);
    end_kept(&k);
}

TEST(a_stop_request_on_a_descriptor)
{
    const char *home = home_path();
    struct px_policy *policy = new_policy(WORDS(NAMED));
    struct px_keeper *keeper = NULL;
    struct px_err e = {0};
    int ends[2];
    ASSERT_OK(px_pipe(ends));
    if (px_keeper_new(home, policy, &keeper, &e) < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS))
        SKIP("no box can be made here: %s", e.what);
    ASSERT(keeper != NULL);
    ASSERT_STR(px_keeper_name(keeper), "box");
    ASSERT_EQ(strlen(px_keeper_id(keeper)), 16);
    ASSERT(exists(home, "run/boxes/box/socket"));
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    ASSERT_PX(px_keeper_run(keeper, ends[0], -1, &e), e);
    ASSERT(!exists(home, "run/boxes/box"));
    px_keeper_free(keeper);
    px_policy_free(policy);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_keeper_that_is_freed_at_once)
{
    const char *home = home_path();
    struct px_policy *policy = new_policy(WORDS(NAMED));
    struct px_keeper *keeper = NULL, *second = NULL;
    struct px_err e = {0};
    if (px_keeper_new(home, policy, &keeper, &e) < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS))
        SKIP("no box can be made here: %s", e.what);
    ASSERT_EQ(px_keeper_new(home, policy, &second, &e), -1);
    ASSERT_EQ(e.code, PX_E_NAME);
    px_keeper_free(keeper);
    ASSERT(!exists(home, "run/boxes/box"));
    ASSERT_EQ(px_policy_set(policy, "rootfs", "/nosuch", &e), 0);
    ASSERT_EQ(px_keeper_new(home, policy, &second, &e), -1);    /* half a box never stays */
    ASSERT(!exists(home, "run/boxes/box"));
    px_policy_free(policy);
    px_keeper_free(NULL);
    px_living_close(NULL);
}
