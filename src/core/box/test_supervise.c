/* box/test_supervise.c - real boxes from their start to their end: how they end, who ends them, and what is left. */
#include "box/supervise.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "harness/test.h"
#include "kernel/landlock.h"

/* ---- boxes ---- */

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Fields are "name", "value" pairs up to a NULL. */
static int try_start_gated(struct px_gate *gate, const char *const *argv, const char *const *fields,
                           const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    const struct px_host host = {
        .uid = geteuid(), .gid = getegid(), .landlock_abi = px_landlock_abi(), .user_namespaces = true};
    static const struct px_io nothing;
    struct px_policy p;
    struct px_plan *plan = NULL;

    if (px_policy_init(&p, "default", e) < 0)
        return -1;
    int r = 0;
    for (; r >= 0 && fields && fields[0]; fields += 2) {
        r = px_policy_put(&p, fields[0], fields[1], e);
        p.pids_counted = p.pids_counted || px_equal(fields[0], "pids");
    }
    if (r >= 0)
        r = px_plan_new(&p, argv, &host, false, &plan, e);
    if (r >= 0) {
        plan->gate = gate;
        r = px_supervise_start(plan, &p, io ? io : &nothing, ret_box, e);
    }
    px_policy_done(&p);
    return r;
}

static int try_start(const char *const *argv, const char *const *fields, const struct px_io *io,
                     struct px_box **ret_box, struct px_err *e)
{
    return try_start_gated(NULL, argv, fields, io, ret_box, e);
}

static struct px_box *start_with(const char *text, const char *const *fields, const struct px_io *io)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    struct px_box *box = NULL;
    struct px_err e = {0};
    int r = try_start(argv, fields, io, &box, &e);

    if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS || e.code == PX_E_CGROUP))
        SKIP("no such box can be made here: %s", e.what);
    ASSERT_PX(r, e);
    return box;
}

static struct px_box *start(const char *text, const char *const *fields)
{
    return start_with(text, fields, NULL);
}

static void finish(struct px_box *box)
{
    struct px_err e = {0};
    int r;

    while ((r = px_supervise_step(box, -1, &e)) > 0)
        ;
    ASSERT_PX(r, e);
}

static struct px_box *run(const char *text, const char *const *fields)
{
    struct px_box *box = start(text, fields);

    finish(box);
    return box;
}

/* Runs until the box has said `text` on its standard output. */
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
            FAIL("the box ended with '%s' and never said '%s'", box->result.out.data, text);
    }
}

/* ---- processes of the host ---- */

/* How many processes have this word in their command line; a few words of a box are enough to know its processes by. */
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

/* A number for `sleep` that no other process of this machine sleeps for. */
static const char *unique(void)
{
    static char text[32];

    (void)snprintf(text, sizeof text, "%d.%09llu", 5000 + getpid() % 1000,
                   (unsigned long long)(px_now_nsec() % 1000000000));
    return text;
}

/* ---- how a command ends ---- */

static void check_end(const char *text, enum px_status status, int exit_code, int signal)
{
    struct px_box *box = run(text, NULL);
    const struct px_result *r = &box->result;

    if (r->status != status || r->exit_code != exit_code || r->signal != signal)
        FAIL("'%s' is %s, exit %d, signal %d", text, px_status_name(r->status), r->exit_code, r->signal);
    ASSERT_STR(r->tier, "full");
    ASSERT(r->wall_nsec > 0 && r->memory_peak_bytes > 0);
    px_supervise_free(box);
}

TEST(exit_codes)
{
    check_end("exit 0", PX_STATUS_OK, 0, 0);
    check_end("exit 3", PX_STATUS_NONZERO, 3, 0);
    check_end("exit 255", PX_STATUS_NONZERO, 255, 0);
    check_end("exit 124", PX_STATUS_NONZERO, 124, 0);
}

TEST(signals)
{
    check_end("kill -SEGV $$", PX_STATUS_SIGNALLED, 128 + SIGSEGV, SIGSEGV);
    check_end("kill -KILL $$", PX_STATUS_SIGNALLED, 128 + SIGKILL, SIGKILL);
    check_end("kill -TERM $$", PX_STATUS_SIGNALLED, 128 + SIGTERM, SIGTERM);
    check_end("kill -INT $$", PX_STATUS_SIGNALLED, 128 + SIGINT, SIGINT);
    check_end("kill -64 $$", PX_STATUS_SIGNALLED, 128 + 64, 64);
}

/* pid 1 is out of reach for the payload: other id, hidden, deaf. */
TEST(the_payload_cannot_end_pid_1)
{
    struct px_box *box = run("for s in TERM KILL STOP USR1; do kill -$s 1 2>/dev/null && echo hit; done; "
                             "ls /proc/1/exe 2>/dev/null && echo seen; exit 9",
                             NULL);

    ASSERT_STR(box->result.out.data, "");
    ASSERT_EQ(box->result.exit_code, 9);
    px_supervise_free(box);
}

static void check_no_start(const char *const *argv, const char *const *fields, int code, int sys)
{
    struct px_box *box = NULL;
    struct px_err e = {0};
    int r = try_start(argv, fields, NULL, &box, &e);

    if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS))
        SKIP("no box can be made here: %s", e.what);
    if (r >= 0)
        px_supervise_free(box);
    ASSERT_EQ(r, -1);
    if (e.code != code || (sys >= 0 && e.sys != sys))
        FAIL("'%s': PX%03d (errno %d) %s", argv[0], e.code, e.sys, e.what);
    ASSERT(e.what[0] && e.why[0] && e.fix[0]);
}

TEST(what_cannot_be_started_is_told_before_anything_runs)
{
    check_no_start(FIELDS("no-such-program"), NULL, PX_E_NOT_FOUND, 0);
    check_no_start(FIELDS("/no/such/program"), NULL, PX_E_NOT_FOUND, 0);
    check_no_start(FIELDS("/etc/passwd/x"), NULL, PX_E_NOT_FOUND, 0);
    check_no_start(FIELDS("/etc/passwd"), NULL, PX_E_EXEC, EACCES);
    check_no_start(FIELDS("/usr"), NULL, PX_E_EXEC, EACCES);
    check_no_start(FIELDS("true"), FIELDS("workdir", "/no/such/place"), PX_E_WORKDIR, ENOENT);
    check_no_start(FIELDS("true"), FIELDS("workdir", "/etc/passwd"), PX_E_WORKDIR, ENOTDIR);
    check_no_start(FIELDS("true"), FIELDS("env", "PATH="), PX_E_NOT_FOUND, 0);
}

/* A program whose interpreter is missing is there and cannot run: another answer than "not found". */
TEST(a_missing_interpreter)
{
    char bind[300], path[] = "/w/script";
    px_auto_fd int dir = px_test_dir();
    ASSERT_EQ(fchmod(dir, 0755), 0);
    px_auto_fd int file = openat(dir, "script", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ASSERT_EQ(fchmod(file, 0755), 0);
    ASSERT_OK(px_write_full(file, "#!/no/such/interpreter\n", 23));
    file = px_fd_close(file);
    (void)snprintf(bind, sizeof bind, "%s:/w", px_test_dir_path());
    check_no_start(FIELDS(path), FIELDS("bind", bind), PX_E_EXEC, ENOENT);
}

/* ---- time ---- */

TEST(a_timeout_keeps_what_was_said)
{
    const char *tag = unique();
    char text[200];

    (void)snprintf(text, sizeof text, "echo before; echo error >&2; sleep %s; echo after", tag);
    struct px_box *box = run(text, FIELDS("timeout", "300ms"));
    ASSERT_EQ(box->result.status, PX_STATUS_TIMEOUT);
    ASSERT_EQ(box->result.exit_code, 124);
    ASSERT(box->result.timed_out);
    ASSERT_STR(box->result.out.data, "before\n");
    ASSERT_STR(box->result.err.data, "error\n");
    ASSERT_STR(box->result.limits_hit[0].limit, "timeout");
    ASSERT(box->result.wall_nsec >= 300000000);
    ASSERT_EQ(processes_with(tag), 0);
    px_supervise_free(box);
}

/* Deaf, stopped, in a session of its own, forked twice: all of it ends. */
TEST(a_timeout_ends_everything)
{
    const char *tag = unique();
    char text[500];

    (void)snprintf(
        text, sizeof text,
        "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep %s; sleep %s' &) ; (sleep %s & kill -STOP $!) ; "
        "setsid setsid sleep %s & echo up; while :; do sleep %s; done",
        tag, tag, tag, tag, tag);
    struct px_box *box = run(text, FIELDS("timeout", "500ms"));
    ASSERT_EQ(box->result.status, PX_STATUS_TIMEOUT);
    ASSERT_STR(box->result.out.data, "up\n");
    ASSERT_EQ(processes_with(tag), 0);
    px_supervise_free(box);
}

TEST(a_stopped_command_times_out)
{
    struct px_box *box = run("kill -STOP $$; echo never", FIELDS("timeout", "300ms"));

    ASSERT_EQ(box->result.status, PX_STATUS_TIMEOUT);
    ASSERT_STR(box->result.out.data, "");
    px_supervise_free(box);
}

/* ---- ended by the caller ---- */

TEST(kill)
{
    const char *tag = unique();
    char text[200];

    (void)snprintf(text, sizeof text, "(setsid sleep %s &); echo up; sleep %s", tag, tag);
    struct px_box *box = start(text, NULL);
    wait_for_text(box, "up");
    ASSERT(processes_with(tag) > 0);
    px_supervise_kill(box, PX_END_KILLED);
    px_supervise_kill(box, PX_END_TIMEOUT); /* the first one counts */
    finish(box);
    ASSERT_EQ(box->result.status, PX_STATUS_SIGNALLED);
    ASSERT_EQ(box->result.exit_code, 137);
    ASSERT(!box->result.timed_out);
    ASSERT_STR(box->result.out.data, "up\n");
    ASSERT_EQ(processes_with(tag), 0);
    px_supervise_kill(box, PX_END_KILLED);
    ASSERT_EQ(px_supervise_signal(box, SIGTERM), -ESRCH);
    px_supervise_free(box);
}

TEST(freeing_a_running_box_ends_it)
{
    const char *tag = unique();
    char text[200];

    (void)snprintf(text, sizeof text, "trap '' TERM; (setsid sleep %s &); echo up; sleep %s", tag, tag);
    struct px_box *box = start(text, NULL);
    wait_for_text(box, "up");
    ASSERT(processes_with(tag) > 0);
    px_supervise_free(box);
    ASSERT_EQ(processes_with(tag), 0);
    px_supervise_free(NULL);
}

TEST(freeing_a_box_that_was_never_watched)
{
    const char *tag = unique();
    char text[200];

    for (int i = 0; i < 20; i++) { /* at whatever moment of its start */
        (void)snprintf(text, sizeof text, "sleep %s", tag);
        px_supervise_free(start(text, NULL));
        ASSERT_EQ(processes_with(tag), 0);
    }
}

struct watched {
    struct px_gate gate;
    const char *tag;
    bool answer;
    int asked, seen;
};

static bool watch_command(struct px_gate *gate)
{
    struct watched *w = (struct watched *)gate;

    w->asked++;
    for (int i = 0; i < 40; i++) {
        w->seen += processes_with(w->tag);
        (void)usleep(5000);
    }
    return w->answer;
}

TEST(a_command_does_not_run_before_its_gate_is_open)
{
    const char *const *const fields[] = {NULL, FIELDS("memory", "64m"), FIELDS("memory", "8m")};
    const char *tag = unique();

    for (size_t i = 0; i < 2 * PX_COUNT_OF(fields); i++) {
        const char *const argv[] = {"sleep", tag, NULL};
        struct watched w = {.gate = {watch_command}, .tag = tag, .answer = i & 1};
        struct px_box *box = NULL;
        struct px_err e = {0};
        int r = try_start_gated(&w.gate, argv, fields[i / 2], NULL, &box, &e);
        if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS || e.code == PX_E_CGROUP))
            SKIP("no such box can be made here: %s", e.what);
        ASSERT_EQ(w.asked, 1);
        ASSERT_EQ(w.seen, 0);
        ASSERT_EQ(r, w.answer ? 0 : -1);
        ASSERT(w.answer || strstr(e.what, "wait-parent"));
        ASSERT_EQ(processes_with(tag), w.answer ? 1 : 0);
        px_supervise_free(box);
    }
}

TEST(a_box_dies_with_its_supervisor)
{
    const char *tag = unique();
    char text[200], byte = 0;
    int ends[2], status;

    (void)snprintf(text, sizeof text, "(setsid sleep %s &); echo up; sleep %s", tag, tag);
    ASSERT_OK(px_pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        struct px_box *box = start(text, NULL);
        wait_for_text(box, "up");
        (void)!write(ends[1], "u", 1);
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    ssize_t n = read(ends[0], &byte, 1);
    (void)close(ends[0]);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    if (n == 0)
        SKIP("no box can be made here");
    for (int i = 0; i < 100 && processes_with(tag) > 0; i++) /* it takes the hang-up's way to px-init */
        (void)poll(NULL, 0, 50);
    ASSERT_EQ(processes_with(tag), 0);
}

TEST(a_polite_signal)
{
    struct px_box *box = start("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done", NULL);

    wait_for_text(box, "up");
    ASSERT_EQ(px_supervise_signal(box, SIGTERM), 0);
    finish(box);
    ASSERT_EQ(box->result.status, PX_STATUS_NONZERO);
    ASSERT_EQ(box->result.exit_code, 5);
    ASSERT_STR(box->result.out.data, "up\nbye\n");
    px_supervise_free(box);
}

TEST(a_polite_signal_to_the_deaf)
{
    struct px_box *box = start("trap '' TERM; echo up; while :; do sleep 0.05; done", NULL);

    wait_for_text(box, "up");
    ASSERT_EQ(px_supervise_signal(box, SIGTERM), 0);
    finish(box);
    ASSERT_EQ(box->result.status, PX_STATUS_SIGNALLED);
    ASSERT_EQ(box->result.signal, SIGKILL);
    ASSERT(!box->result.timed_out);
    px_supervise_free(box);
}

TEST(a_signal_that_changes_nothing)
{
    struct px_box *box = start("trap 'got=1' USR1; echo up; while [ -z \"$got\" ]; do sleep 0.02; done; echo end", NULL);

    wait_for_text(box, "up");
    ASSERT_EQ(px_supervise_signal(box, SIGUSR1), 0);
    finish(box);
    ASSERT(strstr(box->result.out.data, "end") != NULL);
    ASSERT_EQ(box->result.exit_code, 0);
    px_supervise_free(box);
}

TEST(signals_that_are_none)
{
    struct px_box *box = start("echo up; sleep 1000", NULL);

    ASSERT(px_supervise_signal(box, -1) < 0);
    ASSERT(px_supervise_signal(box, 65) < 0);
    ASSERT(px_supervise_signal(box, 1000) < 0);
    px_supervise_kill(box, PX_END_KILLED);
    finish(box);
    px_supervise_free(box);
}

/* ---- terminals ---- */

TEST(without_a_terminal_there_is_nothing_to_resize)
{
    struct px_box *box = start("tty; sleep 0.1", NULL);

    ASSERT_EQ(px_supervise_resize(box, 10, 10), -ENOTTY);
    finish(box);
    ASSERT_STR(box->result.out.data, "not a tty\n");
    px_supervise_free(box);
}

TEST(a_terminal_echoes)
{
    int ends[2];

    ASSERT_OK(px_pipe(ends));
    ASSERT_EQ(write(ends[1], "hello\n", 6), 6);
    (void)close(ends[1]);
    struct px_box *box = start_with("cat; echo end", FIELDS("tty", "true", "timeout", "10s"),
                                    &(struct px_io){.use_in = true, .in = ends[0]});
    finish(box);
    (void)close(ends[0]);
    ASSERT_EQ(box->result.status, PX_STATUS_OK);
    ASSERT(strstr(box->result.out.data, "hello\r\nhello\r\n") != NULL);
    ASSERT(strstr(box->result.out.data, "end\r\n") != NULL);
    ASSERT_EQ(box->result.err.len, 0);
    px_supervise_free(box);
}

/* Input that ends within a line still ends. */
TEST(a_terminal_whose_input_ends_within_a_line)
{
    int ends[2];

    ASSERT_OK(px_pipe(ends));
    ASSERT_EQ(write(ends[1], "hello", 5), 5);
    (void)close(ends[1]);
    struct px_box *box = start_with("cat; echo end", FIELDS("tty", "true", "timeout", "10s"),
                                    &(struct px_io){.use_in = true, .in = ends[0]});
    finish(box);
    (void)close(ends[0]);
    ASSERT_EQ(box->result.status, PX_STATUS_OK);
    px_supervise_free(box);
}

/* No input is the end of input, on a terminal too. */
TEST(a_terminal_without_input)
{
    struct px_box *box = start_with("cat; echo end", FIELDS("tty", "true", "timeout", "10s"), NULL);

    finish(box);
    ASSERT_EQ(box->result.status, PX_STATUS_OK);
    ASSERT(strstr(box->result.out.data, "end\r\n") != NULL);
    px_supervise_free(box);
}

TEST(the_size_of_a_terminal)
{
    struct px_box *box = start_with(
        "stty size; echo up; until [ \"$(stty size)\" = '11 22' ]; do sleep 0.05; done; echo resized; tty",
        FIELDS("tty", "true", "timeout", "10s"), &(struct px_io){.rows = 33, .cols = 44});

    wait_for_text(box, "up");
    ASSERT_EQ(px_supervise_resize(box, 11, 22), 0);
    finish(box);
    ASSERT(strncmp(box->result.out.data, "33 44\r\n", 7) == 0);
    ASSERT(strstr(box->result.out.data, "resized") && strstr(box->result.out.data, "/dev/pts/0"));
    px_supervise_free(box);
}

/* ---- limits ---- */

static bool was_hit(const struct px_box *box, const char *limit)
{
    for (size_t i = 0; i < box->result.limits_hit_count; i++)
        if (strcmp(box->result.limits_hit[i].limit, limit) == 0)
            return true;
    return false;
}

TEST(memory)
{
    struct px_box *box = run("head -c 400m /dev/zero | tail",
                             FIELDS("memory", "48m", "tmpfs", "/tmp:size=512m", "timeout", "15s"));

    ASSERT_EQ(box->result.status, PX_STATUS_MEMORY);
    ASSERT(box->result.oom_killed);
    ASSERT(was_hit(box, "memory"));
    ASSERT(strncmp(box->result.memory_source, "cgroup", 6) == 0);
    ASSERT(box->result.memory_peak_bytes <= 48 << 20);
    px_supervise_free(box);
}

TEST(memory_that_is_enough)
{
    struct px_box *box = run("echo fine", FIELDS("memory", "64m", "cpus", "0.5"));

    ASSERT_EQ(box->result.status, PX_STATUS_OK);
    ASSERT(!box->result.oom_killed);
    ASSERT_EQ(box->result.limits_hit_count, 0);
    px_supervise_free(box);
}

/* The pace itself is unit pace; here every look is ahead of its share. */
static int pauses_of(const char *text, int *ret_fds, struct px_box **ret_box)
{
    struct px_io io = {.use_out = ret_fds != NULL, .out = ret_fds ? ret_fds[1] : -1};
    struct px_box *box = *ret_box = start_with(text, NULL, &io);
    struct px_err e = {0};
    int r, pauses = 0;

    for (;;) {
        box->pace = (struct px_pace){.cpus_milli = 1000, .at_nsec = UINT64_MAX};        /* it will never have earned anything */
        r = px_supervise_step(box, -1, &e);
        if (r <= 0)
            break;
        pauses += box->pace_nsec != 0;
        if (ret_fds) {
            static char chunk[1 << 16];
            struct pollfd ready = {.fd = ret_fds[0], .events = POLLIN};
            while (poll(&ready, 1, 0) == 1 && read(ret_fds[0], chunk, sizeof chunk) > 0)
                ;
        }
    }
    ASSERT_PX(r, e);
    ASSERT_EQ(box->result.exit_code, 0);
    return pauses;
}

TEST(a_supervisor_that_is_ahead_waits_and_loses_nothing)
{
    int ends[2];
    struct px_box *box = NULL;
    ASSERT(pauses_of("head -c 400000 /dev/zero", NULL, &box) > 0);
    ASSERT_EQ(box->result.out_total, 400000);
    px_supervise_free(box);
    ASSERT_OK(px_pipe(ends));
    ASSERT(pauses_of("head -c 400000 /dev/zero", ends, &box) > 0);
    ASSERT_EQ(box->result.out_total, 400000);
    px_supervise_free(box);
    (void)signal(SIGPIPE, SIG_IGN);     /* then pipes are spliced */
    ASSERT(pauses_of("head -c 400000 /dev/zero", ends, &box) > 0);
    ASSERT_EQ(box->result.out_total, 400000);
    px_supervise_free(box);
    (void)close(ends[0]);
    (void)close(ends[1]);
    ASSERT(pauses_of("for i in 1 2 3 4 5; do unshare -U true 2>/dev/null; done; true", NULL, &box) > 0);
    ASSERT_EQ(box->result.denials_count, 1);
    ASSERT_EQ(box->result.denials[0].count, 5);
    px_supervise_free(box);
}

static const char bomb[] =
    "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done 2>/dev/null; echo made $(jobs -p | wc -l)";

TEST(processes)
{
    struct px_box *box = run(bomb, FIELDS("pids", "20", "timeout", "15s"));

    ASSERT(box->result.status != PX_STATUS_TIMEOUT);
    int made = 0;
    if (sscanf(box->result.out.data, "made %d", &made) == 1)
        ASSERT(made < 20);
    bool counted = false;
    for (size_t i = 0; i < box->result.mechanisms_count; i++)
        counted = counted || strncmp(box->result.mechanisms[i], "pids=cgroup", 11) == 0;
    if (counted)
        ASSERT(was_hit(box, "pids"));
    px_supervise_free(box);
}

TEST(processor_time)
{
    struct px_box *box = run("while :; do :; done", FIELDS("cpu-time", "1s", "timeout", "15s"));

    ASSERT_EQ(box->result.status, PX_STATUS_SIGNALLED);
    ASSERT(box->result.signal == SIGXCPU || box->result.signal == SIGKILL);
    ASSERT(was_hit(box, "cpu-time"));
    ASSERT(box->result.cpu_user_usec + box->result.cpu_sys_usec >= 500000); /* the kernel samples */
    px_supervise_free(box);
}

TEST(size_of_a_file)
{
    struct px_box *box = run("exec head -c 100000 /dev/zero >f", FIELDS("file-size", "5000"));

    ASSERT_EQ(box->result.signal, SIGXFSZ);
    ASSERT(was_hit(box, "file-size"));
    px_supervise_free(box);
}

TEST(a_full_directory)
{
    struct px_box *box = run("head -c 3m /dev/zero >/x/f || exit 1", FIELDS("tmpfs", "/x:size=1m"));

    ASSERT_EQ(box->result.status, PX_STATUS_DISK);
    ASSERT(was_hit(box, "tmpfs"));
    px_supervise_free(box);
}

/* One bound for all directories together: neither alone is over it. */
TEST(a_full_disk)
{
    struct px_box *box =
        run("head -c 700k /dev/zero >/tmp/f && head -c 700k /dev/zero >~/f && echo both; exit 1",
            FIELDS("disk", "1m"));

    ASSERT_STR(box->result.out.data, "");
    ASSERT_EQ(box->result.status, PX_STATUS_DISK);
    ASSERT(was_hit(box, "disk"));
    px_supervise_free(box);
}

/* The limit is the box's; how many files this program has open is its own affair. */
TEST(a_small_number_of_files_in_a_program_with_many)
{
    enum { MANY = 300 };
    int fds[MANY];

    for (int i = 0; i < MANY; i++)
        ASSERT((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    struct px_box *box = run("ulimit -n; ls /proc/self/fd | wc -l", FIELDS("nofile", "16"));
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    ASSERT_STR(box->result.out.data, "16\n4\n"); /* three, and the one that ls reads with */
    px_supervise_free(box);
}

TEST(a_program_with_more_files_than_a_box_may_have)
{
    enum { MANY = 4300 };
    struct rlimit limit;
    static int fds[MANY];

    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < MANY + 100)
        SKIP("this process may not have %d files", MANY);
    limit.rlim_cur = MANY + 100;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < MANY; i++)
        ASSERT((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    struct px_box *box = run("echo fine", NULL);
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    ASSERT_STR(box->result.out.data, "fine\n");
    px_supervise_free(box);
}

/* Without descriptors a box does not start, or it starts with everything that it was asked to hold: also its timeout. */
TEST_DEADLINE(out_of_descriptors_it_starts_whole_or_not_at_all, 60)
{
    px_supervise_free(run("true", NULL)); /* skips where there are no boxes */
    int base = open("/dev/null", O_RDONLY | O_CLOEXEC), whole = 0;
    (void)close(base);
    struct rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int more = 0; more < 40 && whole < 3; more++) {
        const char *const argv[] = {"sleep", "4", NULL};
        struct rlimit limit = {(rlim_t)(base + more), before.rlim_max};
        struct px_box *box = NULL;
        struct px_err e = {0};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        int r = try_start(argv, FIELDS("timeout", "100ms"), NULL, &box, &e);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (r < 0) {
            ASSERT(e.code != 0);
            continue;
        }
        finish(box);
        if (box->result.status != PX_STATUS_TIMEOUT)
            FAIL("with %d descriptors it starts, and its timeout of 0.1 s is not there: %s", more,
                 px_status_name(box->result.status));
        px_supervise_free(box);
        whole++;
    }
    ASSERT_EQ(whole, 3);
}

/* ---- files of the caller ---- */

static const char *bind_text(const char *name, const char *rest)
{
    static char text[8][400];
    static int next;
    char *out = text[next++ % 8];

    (void)snprintf(out, 400, "%s/%s:%s", px_test_dir_path(), name, rest);
    return out;
}

/* A directory below the temporary one that the box's user may enter and write, whoever runs the test. */
static int make_dir(int dir, const char *name)
{
    ASSERT_EQ(fchmod(dir, 0755), 0);
    ASSERT_EQ(mkdirat(dir, name, 0755), 0);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(fd >= 0);
    return fd;
}

static void make_file(int dir, const char *name, mode_t mode)
{
    px_auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ASSERT(fd >= 0);
    ASSERT_EQ(fchmod(fd, mode), 0);
}

static mode_t mode_of(int dir, const char *name)
{
    struct stat st;

    ASSERT_EQ(fstatat(dir, name, &st, 0), 0);
    return st.st_mode & 07777;
}

TEST(files_written_in_a_bind_are_the_callers)
{
    px_auto_fd int top = px_test_dir();
    px_auto_fd int dir = make_dir(top, "w");
    struct stat st;
    struct px_box *box =
        run("cd /w && echo hello >new && mkdir sub && chmod 4755 new; ls -n new | cut -d' ' -f1,3",
            FIELDS("bind", bind_text("w", "/w")));

    ASSERT_STR(box->result.out.data,
               "-rw-r--r-- 1000\n"); /* the set-id bit is refused, the owner is the payload */
    ASSERT_EQ(fstatat(dir, "new", &st, 0), 0);
    ASSERT_EQ(st.st_uid, geteuid());
    ASSERT_EQ(st.st_gid, getegid());
    px_supervise_free(box);
}

TEST(a_read_only_bind)
{
    px_auto_fd int top = px_test_dir();
    px_auto_fd int dir = make_dir(top, "w");
    make_file(dir, "file", 0644);
    struct px_box *box = run("cd /w; echo x >file; echo x >new; rm file; mkdir d; chmod 777 .; ls",
                             FIELDS("bind", bind_text("w", "/w:ro")));

    ASSERT_STR(box->result.out.data, "file\n");
    ASSERT_EQ(faccessat(dir, "new", F_OK, 0), -1);
    px_supervise_free(box);
}

TEST(a_tmpfs_inside_a_bind)
{
    px_auto_fd int top = px_test_dir();
    px_auto_fd int dir = make_dir(top, "w");
    (void)px_fd_close(make_dir(dir, "cache"));
    struct px_box *box = run("echo x >/w/cache/file && cat /w/cache/file",
                             FIELDS("bind", bind_text("w", "/w:ro"), "tmpfs", "/w/cache:size=1m"));

    ASSERT_STR(box->result.out.data, "x\n");
    ASSERT_EQ(faccessat(dir, "cache/file", F_OK, 0), -1);
    px_supervise_free(box);
}

/* A set-id file in what the box could write loses its bits; nobody but the kernel's own stamp says when it was changed. */
TEST(set_id_bits_are_stripped_and_told)
{
    px_auto_fd int top = px_test_dir();
    px_auto_fd int dir = make_dir(top, "w");
    struct px_box *box = start("sleep 0.2", FIELDS("bind", bind_text("w", "/w")));

    make_file(dir, "setuid", 04755); /* as if the filter had let it happen */
    finish(box);
    ASSERT_EQ(mode_of(dir, "setuid"), 0755);
    ASSERT_EQ(box->result.hints_count, 1);
    px_supervise_free(box);
}

TEST(set_id_bits_of_many_binds)
{
    px_auto_fd int top = px_test_dir();
    char name[8], places[6][16];
    int dirs[6];

    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "w%d", i);
        (void)snprintf(places[i], sizeof places[i], "/w%d", i);
        dirs[i] = make_dir(top, name);
    }
    struct px_box *box =
        start("sleep 0.2", FIELDS("bind", bind_text("w0", places[0]), "bind", bind_text("w1", places[1]),
                                  "bind", bind_text("w2", places[2]), "bind", bind_text("w3", places[3]),
                                  "bind", bind_text("w4", places[4]), "bind", bind_text("w5", places[5])));
    for (int i = 0; i < 6; i++)
        make_file(dirs[i], "setuid", 04755);
    finish(box);
    for (int i = 0; i < 6; i++) {
        ASSERT_EQ(mode_of(dirs[i], "setuid"), 0755);
        (void)close(dirs[i]);
    }
    ASSERT(box->result.hints_count >= 1 && box->result.hints_count <= PX_COUNT_OF(box->result.hints));
    for (size_t i = 0; i < box->result.hints_count; i++)
        ASSERT(box->result.hints[i] != NULL);
    px_supervise_free(box);
}

/* Where the bits could not be taken away, saying nothing would be the worst. */
TEST(set_id_bits_that_lie_too_deep_are_told)
{
    px_auto_fd int top = px_test_dir();
    int at = make_dir(top, "w");
    px_auto_fd int first = fcntl(at, F_DUPFD_CLOEXEC, 3);

    for (int i = 0; i < 80; i++) {
        int next = make_dir(at, "d");
        (void)close(at);
        at = next;
    }
    struct px_box *box = start("sleep 0.2", FIELDS("bind", bind_text("w", "/w")));
    make_file(at, "setuid", 04755);
    finish(box);
    mode_t mode = mode_of(at, "setuid");
    size_t hints = box->result.hints_count;
    (void)unlinkat(at, "setuid", 0);
    (void)close(at);
    px_supervise_free(box);
    for (int depth = 80; depth > 0; depth--) { /* deeper than the harness cleans */
        char path[256] = "";
        for (int i = 0; i < depth; i++)
            (void)memcpy(path + 2 * i, "d/", 3);
        (void)unlinkat(first, path, AT_REMOVEDIR);
    }
    if (mode & 06000 && hints == 0)
        FAIL("a set-id file stays, and nothing says so");
}

/* The name of a bind may lead elsewhere when the box is done, for the box could write around it. */
TEST(stripping_does_not_follow_the_name)
{
    px_auto_fd int top = px_test_dir();
    px_auto_fd int outer = make_dir(top, "outer"), victim = make_dir(top, "victim");
    (void)px_fd_close(make_dir(outer, "inner"));
    char text[600];
    (void)snprintf(text, sizeof text,
                   "mv /o/inner /o/moved && ln -s %s/victim /o/inner && echo swapped; sleep 0.2",
                   px_test_dir_path());
    struct px_box *box =
        start(text, FIELDS("bind", bind_text("outer", "/o"), "bind", bind_text("outer/inner", "/i")));

    make_file(victim, "setuid", 04755);
    finish(box);
    mode_t mode = mode_of(victim, "setuid");
    ASSERT_STR(box->result.out.data, "swapped\n");
    px_supervise_free(box);
    ASSERT_EQ(mode, 04755); /* not in any bind: not ours to change */
}

/* ---- without namespaces ---- */

/* Makes this process one that can have no user namespace, as on a host that forbids them. */
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

/* A box of the landlock tier whose home is the test's directory. */
static struct px_box *start_landlock(const char *text, const char *const *fields, struct px_err *e)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    const struct px_host host = {
        .uid = geteuid(), .gid = getegid(), .landlock_abi = px_landlock_abi(), .scratch = px_test_dir_path()};
    struct px_policy p;
    struct px_plan *plan = NULL;
    struct px_box *box = NULL;
    static const struct px_io nothing;

    ASSERT_PX(px_policy_init(&p, "default", e), *e);
    ASSERT_PX(px_policy_put(&p, "require", "landlock", e), *e);
    for (; fields && fields[0]; fields += 2)
        ASSERT_PX(px_policy_put(&p, fields[0], fields[1], e), *e);
    ASSERT_PX(px_plan_new(&p, argv, &host, false, &plan, e), *e);
    ASSERT_PX(px_supervise_start(plan, &p, &nothing, &box, e), *e);
    px_policy_done(&p);
    return box;
}

TEST(the_landlock_tier_runs_and_holds)
{
    struct px_err e = {0};

    forbid_namespaces();
    (void)px_fd_close(px_test_dir());
    struct px_box *box = start_landlock(
        "echo hello >file; cat file; cat /etc/shadow /etc/hostname /proc/1/cmdline; ls /root /tmp; echo x >/tmp/px-escape; "
        "exit 3",
        NULL, &e);
    finish(box);
    ASSERT_STR(box->result.out.data, "hello\n");
    ASSERT_EQ(box->result.exit_code, 3);
    ASSERT_STR(box->result.tier, "landlock");
    ASSERT_EQ(access("/tmp/px-escape", F_OK), -1);
    px_supervise_free(box);
}

TEST(the_landlock_tier_ends_everything)
{
    struct px_err e = {0};
    const char *tag = unique();
    char text[400];

    forbid_namespaces();
    (void)px_fd_close(px_test_dir());
    (void)snprintf(text, sizeof text,
                   "(setsid sh -c 'sleep %s & sleep %s' &); setsid sleep %s & sleep 0.4; echo up; exit 0",
                   tag, tag, tag);
    struct px_box *box = start_landlock(text, FIELDS("timeout", "10s"), &e);
    finish(box);
    int left = processes_with(tag);
    enum px_status status = box->result.status;
    px_supervise_free(box);
    ASSERT_EQ(status, PX_STATUS_OK); /* an orphan of an orphan must not keep px-init waiting */
    ASSERT_EQ(left, 0);
}

TEST(the_landlock_tier_ends_everything_at_a_timeout)
{
    struct px_err e = {0};
    const char *tag = unique();
    char text[400];

    forbid_namespaces();
    (void)px_fd_close(px_test_dir());
    (void)snprintf(text, sizeof text,
                   "trap '' TERM; (setsid sh -c 'sleep %s & sleep %s' &); echo up; sleep %s", tag, tag, tag);
    struct px_box *box = start_landlock(text, FIELDS("timeout", "500ms"), &e);
    finish(box);
    int left = processes_with(tag);
    enum px_status status = box->result.status;
    px_supervise_free(box);
    ASSERT_EQ(status, PX_STATUS_TIMEOUT);
    ASSERT_EQ(left, 0);
}

TEST(the_landlock_tier_ends_everything_when_freed)
{
    struct px_err e = {0};
    const char *tag = unique();
    char text[400];

    forbid_namespaces();
    (void)px_fd_close(px_test_dir());
    (void)snprintf(text, sizeof text, "(setsid sh -c 'sleep %s & sleep %s' &); echo up; sleep %s", tag, tag,
                   tag);
    struct px_box *box = start_landlock(text, NULL, &e);
    wait_for_text(box, "up");
    px_supervise_free(box);
    ASSERT_EQ(processes_with(tag), 0);
}

/* ---- the rest ---- */

TEST(what_each_step_cost)
{
    struct px_box *box = run("true", FIELDS("timings", "true"));
    struct px_err e = {0};
    px_auto_free char *text = NULL;

    ASSERT_PX(px_supervise_timings(box, &text, &e), e);
    ASSERT(strstr(text, "pivot") && strstr(text, "seccomp") && strstr(text, "clone-to-exec"));
    px_supervise_free(box);
    box = run("true", NULL);
    ASSERT_EQ(px_supervise_timings(box, &text, &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    px_supervise_free(box);
}

/* Whichever allocation fails: an error, or a result that hides nothing. */
TEST_DEADLINE(every_allocation_may_fail, 60)
{
    const char *const argv[] = {"sh", "-c", "echo hello", NULL};

    px_supervise_free(run("true", NULL)); /* skips where there are no boxes */
    for (unsigned n = 1; n < 400; n++) {
        struct px_box *box = NULL;
        struct px_err e = {0};
        px_test_fail_alloc(n);
        int r = try_start(argv, FIELDS("output-limit", "10"), NULL, &box, &e);
        while (r >= 0 && (r = px_supervise_step(box, -1, &e)) > 0)
            ;
        bool came = px_test_alloc_failed();
        px_test_fail_alloc(0);
        if (r >= 0 && strcmp(box->result.out.data, "hello\n") != 0 && !box->result.out_truncated)
            FAIL("allocation %u failed: the output is '%s' and nothing says that it is not all", n,
                 box->result.out.data);
        if (r < 0 && e.code == 0)
            FAIL("allocation %u failed without words", n);
        px_supervise_free(box);
        if (!came) {
            ASSERT_PX(r, e);
            return;
        }
    }
    FAIL("four hundred allocations and no end");
}
