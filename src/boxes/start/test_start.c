/* start/test_start.c - px/px.h as a program sees it: what it gets, and what must stay as it was. */
#include <px/px.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "harness/test.h"
#include "kernel/landlock.h"

extern char **environ;

/* ---- boxes ---- */

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct px_policy *new_policy(const char *const *fields)
{
    struct px_policy *policy = NULL;
    struct px_err e = {0};

    ASSERT_PX(px_policy_new("default", &policy, &e), e);
    for (; fields && fields[0]; fields += 2)
        ASSERT_PX(px_policy_set(policy, fields[0], fields[1], &e), e);
    return policy;
}

/* Runs `sh -c text`; skips where this machine has no boxes. */
static struct px_box *start(const char *text, const char *const *fields, const struct px_io *io)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    struct px_policy *policy = new_policy(fields);
    struct px_box *box = NULL;
    struct px_err e = {0};
    int r = px_box_start(policy, argv, io, &box, &e);

    px_policy_free(policy); /* a box does not need its policy any more */
    if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS || e.code == PX_E_CGROUP))
        SKIP("no such box can be made here: %s", e.what);
    ASSERT_PX(r, e);
    return box;
}

static struct px_box *run(const char *text, const char *const *fields)
{
    struct px_box *box = start(text, fields, NULL);
    struct px_err e = {0};

    ASSERT_PX(px_box_wait(box, &e), e);
    return box;
}

static int processes_with(const char *word)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int n = 0;

    ASSERT(dir != NULL);
    while ((entry = readdir(dir))) {
        char path[64], text[4096];
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
        px_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
        n += size > 0 && memmem(text, (size_t)size, word, strlen(word)) != NULL;
    }
    (void)closedir(dir);
    return n;
}

static const char *unique(void)
{
    static char text[32];

    (void)snprintf(text, sizeof text, "%d.%09llu", 7000 + getpid() % 1000,
                   (unsigned long long)(px_now_nsec() % 1000000000));
    return text;
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    ASSERT(dir != NULL);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

/* ---- the example of the header ---- */

TEST(one_command)
{
    struct px_box *box = run("echo hello; echo oops >&2; exit 4", FIELDS("timeout", "10s"));
    const struct px_result *r = px_box_result(box);

    ASSERT_STR(px_status_name(r->status), "nonzero");
    ASSERT_EQ(r->exit_code, 4);
    ASSERT_STR(r->out.data, "hello\n");
    ASSERT_STR(r->err.data, "oops\n");
    ASSERT_EQ(strlen(r->id), 16);
    ASSERT_STR(r->tier, "full");
    ASSERT(r->mechanisms_count > 3);
    px_box_free(box);
}

TEST(two_boxes_have_two_names)
{
    struct px_box *a = run("true", NULL), *b = run("true", NULL);

    ASSERT(strcmp(px_box_result(a)->id, px_box_result(b)->id) != 0);
    px_box_free(a);
    px_box_free(b);
}

TEST(timeout_and_kill)
{
    struct px_box *box = run("echo before; sleep 1000", FIELDS("timeout", "200ms"));

    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_TIMEOUT);
    ASSERT_STR(px_box_result(box)->out.data, "before\n");
    px_box_free(box);
    box = start("sleep 1000", NULL, NULL);
    ASSERT_EQ(px_box_kill(box, NULL), 0);
    ASSERT_EQ(px_box_wait(box, NULL), 0);
    ASSERT_EQ(px_box_wait(box, NULL), 0); /* once more is no mistake */
    ASSERT_EQ(px_box_step(box, NULL), 0);
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_SIGNALLED);
    ASSERT_EQ(px_box_kill(box, NULL), 0);
    px_box_free(box);
}

TEST(a_kill_between_two_steps)
{
    struct px_box *box = start("echo up; sleep 1000", NULL, NULL);
    int r;

    while ((r = px_box_step(box, NULL)) > 0) {
        struct pollfd p = {.fd = px_box_fd(box), .events = POLLIN};
        (void)poll(&p, 1, 1000);
        ASSERT_EQ(px_box_kill(box, NULL), 0);
    }
    ASSERT_EQ(r, 0);
    ASSERT_EQ(px_box_result(box)->exit_code, 137);
    px_box_free(box);
}

TEST(the_number_of_the_command)
{
    struct px_err e = {0};
    int ends[2];

    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    struct px_box *box = start("read -r word", NULL, &(struct px_io){.use_in = true, .in = ends[0]});
    (void)close(ends[0]);
    px_auto_fd int input = ends[1];     /* open as long as it is to wait */
    int pid = px_box_pid(box);
    ASSERT(pid > 1);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_PX(px_box_wait(box, &e), e);
    ASSERT_EQ(px_box_result(box)->signal, SIGKILL);
    ASSERT_EQ(px_box_pid(box), 0);
    px_box_free(box);
}

TEST(freeing_a_running_box_leaves_nobody)
{
    const char *tag = unique();
    char text[200];

    (void)snprintf(text, sizeof text, "trap '' TERM; (setsid sleep %s &) ; sleep %s & sleep %s", tag, tag,
                   tag);
    struct px_box *box = start(text, NULL, NULL);
    while (processes_with(tag) < 3)
        (void)px_box_step(box, NULL);
    px_box_free(box);
    ASSERT_EQ(processes_with(tag), 0);
    px_box_free(NULL);
}

TEST(a_loop_of_the_host)
{
    enum { BOXES = 3 };
    struct px_box *box[BOXES];
    struct pollfd p[BOXES];
    int alive = BOXES;

    for (int i = 0; i < BOXES; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "for i in 1 2 3; do echo %d; sleep 0.05; done; exit %d", i, i);
        box[i] = start(text, NULL, NULL);
        p[i] = (struct pollfd){.fd = px_box_fd(box[i]), .events = POLLIN};
    }
    while (alive > 0) {
        int n = poll(p, BOXES, 10000);
        if (n == 0)
            FAIL("nothing happens for 10 s");
        for (int i = 0; i < BOXES; i++)
            if (p[i].revents && px_box_step(box[i], NULL) == 0) {
                p[i].fd = -1;
                alive--;
            }
    }
    for (int i = 0; i < BOXES; i++) {
        char wanted[32];
        (void)snprintf(wanted, sizeof wanted, "%d\n%d\n%d\n", i, i, i);
        ASSERT_STR(px_box_result(box[i])->out.data, wanted);
        ASSERT_EQ(px_box_result(box[i])->exit_code, i);
        px_box_free(box[i]);
    }
}

TEST(terminals)
{
    struct px_err e = {0};
    struct px_box *box = start("sleep 0.1", NULL, NULL);

    ASSERT_EQ(px_box_resize(box, 10, 10, &e), -1);
    ASSERT_EQ(e.code, PX_E_TERMINAL);
    ASSERT_EQ(px_box_resize(box, 10, 10, NULL), -1);
    ASSERT_EQ(px_box_wait(box, NULL), 0);
    px_box_free(box);
    box = start("stty size", FIELDS("tty", "true"), &(struct px_io){.rows = 12, .cols = 34});
    ASSERT_EQ(px_box_wait(box, NULL), 0);
    ASSERT_STR(px_box_result(box)->out.data, "12 34\r\n");
    px_box_free(box);
}

TEST(signals_to_a_box)
{
    struct px_box *box = start("sleep 1000", NULL, NULL);
    struct px_err e = {0};

    ASSERT_EQ(px_box_signal(box, 1000, &e), -1);
    ASSERT(e.code != 0);
    ASSERT_EQ(px_box_signal(box, SIGKILL, &e), 0);
    ASSERT_EQ(px_box_wait(box, NULL), 0);
    ASSERT_EQ(px_box_result(box)->signal, SIGKILL);
    ASSERT_EQ(px_box_signal(box, SIGTERM, &e), -1);
    ASSERT_EQ(px_box_signal(box, SIGTERM, NULL), -1);
    px_box_free(box);
}

TEST(result_as_json)
{
    struct px_box *box = run("printf 'caf\\303\\251 \\377\\200'", NULL);
    px_auto_free char *plain = NULL, *exact = NULL;

    ASSERT_EQ(px_box_json(box, false, &plain, NULL), 0);
    ASSERT_EQ(px_box_json(box, true, &exact, NULL), 0);
    ASSERT(strstr(plain, "\"stdout\":\"caf\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd\"") != NULL);
    ASSERT(strstr(plain, "base64") == NULL);
    ASSERT(strstr(exact, "\"stdout_base64\":\"Y2Fmw6kg/4A=\"") != NULL);
    px_box_free(box);
}

/* ---- words without a box ---- */

TEST(presets_and_fields_can_be_listed)
{
    struct px_field_info info;
    size_t presets = 0, fields = 0;

    for (const char *name; (name = px_preset_name(presets)); presets++) {
        struct px_policy *policy = NULL;
        px_auto_free char *json = NULL;
        ASSERT_EQ(px_policy_new(name, &policy, NULL), 0);
        ASSERT_EQ(px_policy_json(policy, &json, NULL), 0);
        ASSERT(strstr(json, name) != NULL);
        px_policy_free(policy);
    }
    ASSERT_EQ(presets, 6);
    for (; px_policy_field(fields, &info) == 0; fields++)
        ASSERT(info.name && info.type && info.help);
    ASSERT(fields > 30);
    ASSERT_EQ(px_policy_field(10000, &info), -1);
    px_policy_free(NULL);
    ASSERT(px_version()[0] != '\0');
}

TEST(every_error_is_explained)
{
    struct px_explain text;
    int count = 0;

    for (int code = 0; (code = px_explain_next(code)) != 0; count++) {
        ASSERT_EQ(px_explain(code, &text), 0);
        ASSERT_EQ(text.code, code);
        ASSERT(text.name[0] && text.what[0] && text.why && text.fix[0]);
    }
    ASSERT(count > 20);
    ASSERT_EQ(px_explain(0, &text), -1);
    ASSERT_EQ(px_explain(-1, &text), -1);
    ASSERT_EQ(px_explain(99999, &text), -1);
}

/* "*e may be NULL": wherever something can fail. */
TEST(errors_need_no_reader)
{
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    const char *nothing[] = {NULL}, *missing[] = {"no-such-program", NULL};
    char *json = NULL;

    ASSERT_EQ(px_policy_new("nonsense", &policy, NULL), -1);
    ASSERT(policy == NULL);
    ASSERT_EQ(px_policy_new(NULL, &policy, NULL), 0);
    ASSERT_EQ(px_policy_set(policy, "nonsense", "1", NULL), -1);
    ASSERT_EQ(px_policy_set(policy, "memory", "much", NULL), -1);
    ASSERT_EQ(px_policy_set(policy, "memory", NULL, NULL), -1);
    ASSERT_EQ(px_policy_set(policy, "device", NULL, NULL), -1);
    ASSERT_EQ(px_plan_json(policy, nothing, &json, NULL), -1);
    ASSERT_EQ(px_box_start(policy, nothing, NULL, &box, NULL), -1);
    ASSERT_EQ(px_box_start(policy, missing, NULL, &box, NULL), -1);
    ASSERT_EQ(px_policy_set(policy, "bind", "/no/such/source:/x", NULL), 0);
    ASSERT_EQ(px_box_start(policy, missing, NULL, &box, NULL), -1);
    ASSERT(box == NULL && json == NULL);
    px_policy_free(policy);
    box = run("true", NULL);
    ASSERT_EQ(px_box_timings(box, &json, NULL), -1);
    px_box_free(box);
}

TEST(a_policy_serves_many_boxes)
{
    const char *const argv[] = {"echo", "hello", NULL};
    struct px_policy *policy = new_policy(FIELDS("env", "A=1"));
    struct px_err e = {0};
    px_auto_free char *before = NULL, *after = NULL;

    ASSERT_EQ(px_policy_json(policy, &before, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct px_box *box = NULL;
        int r = px_box_start(policy, argv, NULL, &box, &e);
        if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS))
            SKIP("no box can be made here: %s", e.what);
        ASSERT_PX(r, e);
        ASSERT_PX(px_box_wait(box, &e), e);
        px_box_free(box);
    }
    ASSERT_EQ(px_policy_json(policy, &after, NULL), 0);
    ASSERT_STR(before, after);
    px_policy_free(policy);
}

TEST(a_plan_is_made_without_doing_anything)
{
    const char *const argv[] = {"echo", "hello", NULL};
    struct px_policy *policy = new_policy(NULL);
    px_auto_free char *json = NULL;
    int before = open_descriptors();

    ASSERT_EQ(px_plan_json(policy, argv, &json, NULL), 0);
    ASSERT(strstr(json, "\"op\": \"exec\"") && strstr(json, "\"op\": \"seccomp\""));
    ASSERT_EQ(open_descriptors(), before);
    px_policy_free(policy);
}

/* ---- what must stay as it was ---- */

struct state {
    sigset_t mask;
    struct sigaction actions[65];
    char cwd[512];
    mode_t mask_of_files;
    int dumpable, no_new_privs, keep_caps, subreaper, death_signal;
    size_t environment_sum;
    uid_t ids[6];
};

static size_t sum_of_environment(void)
{
    size_t sum = 0;

    for (char **v = environ; *v; v++)
        for (const char *p = *v; *p; p++)
            sum = sum * 31 + (unsigned char)*p;
    return sum;
}

static struct state look(void)
{
    struct state s;

    memset(&s, 0, sizeof s);
    ASSERT_EQ(pthread_sigmask(SIG_SETMASK, NULL, &s.mask), 0);
    for (int i = 1; i < 65; i++)
        (void)sigaction(i, NULL, &s.actions[i]);
    ASSERT(getcwd(s.cwd, sizeof s.cwd) != NULL);
    s.mask_of_files = umask(0);
    (void)umask(s.mask_of_files);
    s.dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    s.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    s.keep_caps = prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0);
    ASSERT_EQ(prctl(PR_GET_CHILD_SUBREAPER, &s.subreaper), 0);
    ASSERT_EQ(prctl(PR_GET_PDEATHSIG, &s.death_signal), 0);
    s.environment_sum = sum_of_environment();
    ASSERT_EQ(getresuid(&s.ids[0], &s.ids[1], &s.ids[2]), 0);
    ASSERT_EQ(getresgid(&s.ids[3], &s.ids[4], &s.ids[5]), 0);
    return s;
}

static void check_same(const struct state *a, const struct state *b)
{
    for (int i = 1; i < 65; i++) {
        ASSERT_EQ(sigismember(&a->mask, i), sigismember(&b->mask, i));
        if (a->actions[i].sa_handler != b->actions[i].sa_handler ||
            a->actions[i].sa_flags != b->actions[i].sa_flags)
            FAIL("the disposition of signal %d has changed", i);
    }
    ASSERT_STR(b->cwd, a->cwd);
    ASSERT_EQ(b->mask_of_files, a->mask_of_files);
    ASSERT_EQ(b->dumpable, a->dumpable);
    ASSERT_EQ(b->no_new_privs, a->no_new_privs);
    ASSERT_EQ(b->keep_caps, a->keep_caps);
    ASSERT_EQ(b->subreaper, a->subreaper);
    ASSERT_EQ(b->death_signal, a->death_signal);
    ASSERT_EQ(b->environment_sum, a->environment_sum);
    ASSERT(memcmp(a->ids, b->ids, sizeof a->ids) == 0);
}

static void on_signal(int number)
{
    (void)number;
}

TEST(nothing_of_the_host_changes)
{
    sigset_t some;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    ASSERT_EQ(chdir("/usr"), 0);
    (void)umask(002);
    ASSERT_EQ(sigemptyset(&some), 0);
    ASSERT_EQ(sigaddset(&some, SIGUSR1), 0);
    ASSERT_EQ(sigaddset(&some, SIGRTMIN + 3), 0);
    ASSERT_EQ(sigprocmask(SIG_SETMASK, &some, NULL), 0);
    ASSERT_EQ(sigaction(SIGUSR2, &action, NULL), 0);
    action.sa_handler = SIG_IGN;
    ASSERT_EQ(sigaction(SIGHUP, &action, NULL), 0);
    ASSERT_EQ(setenv("PX_TEST_VARIABLE", "stays", 1), 0);
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    struct state before = look(), after;

    struct px_box *box = start("kill -SEGV $$", NULL, NULL);
    after = look(); /* while it runs */
    check_same(&before, &after);
    ASSERT_EQ(px_box_wait(box, NULL), 0);
    px_box_free(box);
    px_box_free(start("sleep 1000", FIELDS("tty", "true"), NULL));
    box = run("sleep 1000", FIELDS("timeout", "50ms"));
    px_box_free(box);
    const char *missing[] = {"no-such-program", NULL};
    struct px_policy *policy = new_policy(NULL);
    ASSERT_EQ(px_box_start(policy, missing, NULL, &box, NULL), -1);
    px_policy_free(policy);
    after = look();
    check_same(&before, &after);
    ASSERT_EQ(chdir("/"), 0);
}

/* A program that must not be looked at stays so. */
TEST(a_program_that_is_not_dumpable_stays_so)
{
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
    struct px_policy *policy = new_policy(NULL);
    const char *const argv[] = {"true", NULL};
    struct px_box *box = NULL;
    struct px_err e = {0};

    if (px_box_start(policy, argv, NULL, &box, &e) >= 0)
        ASSERT_EQ(px_box_wait(box, NULL), 0);
    int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    px_box_free(box);
    px_policy_free(policy);
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    ASSERT_EQ(dumpable, 0);
}

TEST(signals_of_the_host_do_not_reach_the_box)
{
    sigset_t all;

    ASSERT_EQ(sigfillset(&all), 0);
    ASSERT_EQ(sigprocmask(SIG_SETMASK, &all, NULL), 0);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (int i = 1; i < 65; i++)
        if (i != SIGCHLD) /* has a test of its own */
            (void)sigaction(i, &ignore, NULL);
    struct px_box *box = run("grep -E '^Sig(Blk|Ign)' /proc/self/status; umask", NULL);
    ASSERT_STR(px_box_result(box)->out.data, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0022\n");
    px_box_free(box);
    ASSERT_EQ(sigemptyset(&all), 0);
    ASSERT_EQ(sigprocmask(SIG_SETMASK, &all, NULL), 0);
}

/* The modes inside a box are the plan's, whatever the host's mask is. */
TEST(a_careful_mask_of_the_host)
{
    static const mode_t masks[] = {0, 022, 077, 0777};

    for (size_t i = 0; i < PX_COUNT_OF(masks); i++) {
        mode_t before = umask(masks[i]);
        struct px_box *box = run("stat -c %a /etc /etc/passwd /dev /home; umask", NULL);
        (void)umask(before);
        ASSERT_STR(px_box_result(box)->out.data, "755\n644\n755\n755\n0022\n");
        px_box_free(box);
    }
}

TEST(a_box_knows_nothing_of_the_host)
{
    px_auto_fd int secret =
        open("/etc/passwd", O_RDONLY); /* without close-on-exec, as a careless program has it */
    ASSERT(secret >= 0);

    ASSERT_EQ(setenv("PX_TEST_SECRET", "leak", 1), 0);
    struct px_box *box = run("env; ls -l /proc/self/fd; tr '\\0' '\\n' </proc/self/environ", NULL);
    ASSERT(strstr(px_box_result(box)->out.data, "PX_TEST_SECRET") == NULL);
    ASSERT(strstr(px_box_result(box)->out.data, "/etc/passwd") == NULL);
    ASSERT(strstr(px_box_result(box)->out.data, "PX_SANDBOX=1") != NULL);
    px_box_free(box);
}

/* ---- children of the host ---- */

/* A box of which the host knows nothing yet: its waitpid must not see or reap what px has not handed over. */
TEST(a_failed_start_leaves_no_child)
{
    const char *missing[] = {"no-such-program", NULL};
    struct px_policy *policy = new_policy(NULL);
    struct px_box *box = NULL;

    for (int i = 0; i < 10; i++) {
        ASSERT_EQ(px_box_start(policy, missing, NULL, &box, NULL), -1);
        ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1);
        ASSERT_EQ(errno, ECHILD);
    }
    px_policy_free(policy);
}

static void reap_everything(int number)
{
    int saved = errno;

    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = saved;
}

static void check_reaping_host(void)
{
    for (int i = 0; i < 10; i++) {
        struct px_box *box = run("echo hello; sleep 0.01; exit 6", NULL);
        ASSERT_EQ(px_box_result(box)->status, PX_STATUS_NONZERO);
        ASSERT_EQ(px_box_result(box)->exit_code, 6);
        ASSERT_STR(px_box_result(box)->out.data, "hello\n");
        px_box_free(box);
    }
    struct px_box *box = run("sleep 1000", FIELDS("timeout", "100ms"));
    ASSERT_EQ(px_box_result(box)->status, PX_STATUS_TIMEOUT);
    px_box_free(box);
    box = run("kill -SEGV $$", NULL);
    ASSERT_EQ(px_box_result(box)->signal, SIGSEGV);
    px_box_free(box);
    px_box_free(start("sleep 1000", NULL, NULL));
}

TEST(a_host_that_reaps_everything)
{
    struct sigaction action = {.sa_handler = reap_everything};

    ASSERT_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    check_reaping_host();
}

TEST(a_host_that_ignores_its_children)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    ASSERT_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    check_reaping_host();
}

/* px reaps its own children only. */
TEST(a_child_of_the_host_stays_the_hosts)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(42);
    struct px_box *box = run("true", NULL);
    px_box_free(box);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(WEXITSTATUS(status), 42);
}

/* ---- many ---- */

TEST_DEADLINE(two_hundred_boxes_leave_no_descriptor, 60)
{
    px_box_free(run("true", NULL));
    int before = open_descriptors();

    for (int i = 0; i < 200; i++) {
        struct px_box *box =
            start(i % 10 == 0 ? "sleep 1000" : "echo hello", i % 4 ? NULL : FIELDS("timeout", "5s"), NULL);
        if (i % 10)
            ASSERT_EQ(px_box_wait(box, NULL), 0);
        px_box_free(box);
    }
    ASSERT_EQ(open_descriptors(), before);
}

struct worker {
    int id, done;
    char wrong[300];
};

static void work(struct worker *w, int round)
{
    char text[64], wanted[64];
    (void)snprintf(text, sizeof text, "echo %d %d; exit %d", w->id, round, w->id);
    (void)snprintf(wanted, sizeof wanted, "%d %d\n", w->id, round);
    const char *const argv[] = {"sh", "-c", text, NULL};
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};

    if (px_policy_new("default", &policy, &e) < 0 || px_box_start(policy, argv, NULL, &box, &e) < 0 ||
        px_box_wait(box, &e) < 0)
        (void)snprintf(w->wrong, sizeof w->wrong, "PX%03d %.100s: %.150s", e.code, e.what, e.why);
    else if (px_box_result(box)->exit_code != w->id || strcmp(px_box_result(box)->out.data, wanted) != 0)
        (void)snprintf(w->wrong, sizeof w->wrong, "exit %d, '%.100s'", px_box_result(box)->exit_code,
                       px_box_result(box)->out.data);
    else
        w->done++;
    px_box_free(box);
    px_policy_free(policy);
}

static void *work_often(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < 25 && !w->wrong[0]; i++)
        work(w, i);
    return NULL;
}

TEST_DEADLINE(eight_threads_at_once, 60)
{
    struct worker workers[8] = {0};
    pthread_t threads[8];

    px_box_free(run("true", NULL)); /* skips where there are no boxes */
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    struct state before = look();
    for (int i = 0; i < 8; i++) {
        workers[i].id = i;
        ASSERT_EQ(pthread_create(&threads[i], NULL, work_often, &workers[i]), 0);
    }
    for (int i = 0; i < 8; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 8; i++)
        if (workers[i].done != 25)
            FAIL("thread %d: %d boxes, then %s", i, workers[i].done, workers[i].wrong);
    struct state after = look();
    check_same(&before, &after); /* and the mark of the memory, which all of them share */
}

static void *work_limited(void *arg)
{
    struct worker *w = arg;
    const char *const argv[] = {"echo", "hello", NULL};

    for (int i = 0; i < 10 && !w->wrong[0]; i++) {
        struct px_policy *policy = NULL;
        struct px_box *box = NULL;
        struct px_err e = {0};
        if (px_policy_new("untrusted", &policy, &e) < 0 || px_box_start(policy, argv, NULL, &box, &e) < 0 ||
            px_box_wait(box, &e) < 0)
            (void)snprintf(w->wrong, sizeof w->wrong, "PX%03d %.100s: %.150s", e.code, e.what, e.why);
        else
            w->done++;
        px_box_free(box);
        px_policy_free(policy);
    }
    return NULL;
}

/* The same with limits: groups are made and swept beside each other. */
TEST_DEADLINE(eight_threads_with_limits, 60)
{
    struct worker workers[8] = {0};
    pthread_t threads[8];

    px_box_free(run("true", FIELDS("memory", "64m"))); /* skips where there are no groups */
    for (int i = 0; i < 8; i++)
        ASSERT_EQ(pthread_create(&threads[i], NULL, work_limited, &workers[i]), 0);
    for (int i = 0; i < 8; i++)
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 8; i++)
        if (workers[i].done != 10)
            FAIL("thread %d: %d boxes, then %s", i, workers[i].done, workers[i].wrong);
}

/* ---- bound to a thread ---- */

static void *start_and_leave(void *arg)
{
    struct px_box **box = arg;

    *box = start("sleep 1000", NULL, &(struct px_io){.bind_to_thread = true});
    return NULL;
}

TEST(a_box_bound_to_its_thread)
{
    pthread_t thread;
    struct px_box *box = NULL;

    px_box_free(run("true", NULL));
    ASSERT_EQ(pthread_create(&thread, NULL, start_and_leave, &box), 0);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT(box != NULL);
    ASSERT_EQ(px_box_wait(box, NULL), 0); /* would take a thousand seconds */
    ASSERT(px_box_result(box)->status != PX_STATUS_OK);
    px_box_free(box);
}

/* ---- the weaker tier, asked for by name ---- */

static void forbid_namespaces(void)
{
    char map[64];
    uid_t uid = geteuid() ? geteuid() : 1200;
    gid_t gid = geteuid() ? getegid() : 1200;

    if (px_landlock_abi() < 3)
        SKIP("there is no Landlock of ABI 3");
    if (geteuid() == 0 && (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
        SKIP("ids cannot be changed here");
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (unshare(CLONE_NEWUSER) < 0)
        SKIP("no user namespace can be made to forbid others in");
    (void)snprintf(map, sizeof map, "%u %u 1", uid, uid);
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/self/setgroups", "deny"));
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/self/uid_map", map));
    (void)snprintf(map, sizeof map, "%u %u 1", gid, gid);
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/self/gid_map", map));
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0"));
}

TEST(a_host_without_namespaces)
{
    const char *const argv[] = {"sh", "-c", "pwd; echo x >f; mkdir -p d/e; chmod 0 d; ls", NULL};
    struct px_policy *policy = new_policy(NULL);
    struct px_box *box = NULL;
    struct px_err e = {0};

    forbid_namespaces();
    ASSERT_EQ(px_box_start(policy, argv, NULL, &box, &e), -1); /* never a surprise */
    ASSERT_EQ(e.code, PX_E_USERNS);
    ASSERT(strstr(e.fix, "--require landlock") != NULL);
    ASSERT_EQ(px_policy_set(policy, "require", "landlock", NULL), 0);
    ASSERT_PX(px_box_start(policy, argv, NULL, &box, &e), e);
    ASSERT_PX(px_box_wait(box, &e), e);
    const struct px_result *r = px_box_result(box);
    ASSERT_STR(r->tier, "landlock");
    ASSERT(r->missing_count > 0);
    char home[256] = "";
    (void)snprintf(home, sizeof home, "%.*s", (int)strcspn(r->out.data, "\n"), r->out.data);
    ASSERT(strstr(r->out.data, "\nd\nf\n") != NULL);
    px_box_free(box);
    px_policy_free(policy);
    ASSERT(home[0] == '/');
    ASSERT_EQ(access(home, F_OK), -1); /* its home went with it */
}

TEST(root_gets_no_weaker_tier)
{
    const char *const argv[] = {"id", "-u", NULL};
    struct px_policy *policy = new_policy(FIELDS("require", "landlock"));
    struct px_box *box = NULL;
    struct px_err e = {0};

    if (geteuid() != 0)
        SKIP("this is not root");
    if (unshare(CLONE_NEWUSER) < 0)
        SKIP("no user namespace can be made to forbid others in");
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/self/setgroups", "deny"));
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/self/uid_map", "0 0 1"));
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/self/gid_map", "0 0 1"));
    ASSERT_OK(px_write_file(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0"));
    int r = px_box_start(policy, argv, NULL, &box, &e);
    if (r >= 0)
        ASSERT_EQ(px_box_wait(box, NULL), 0);
    bool as_root = r >= 0 && strcmp(px_box_result(box)->out.data, "0\n") == 0;
    px_box_free(box);
    px_policy_free(policy);
    ASSERT(!as_root); /* Landlock does not hold the host's root */
}
