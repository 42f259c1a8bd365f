/* box/test_flow.c - bytes into and out of real boxes: whole, bounded, and without harm to the program that uses us. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/supervise.h"
#include "harness/test.h"
#include "kernel/landlock.h"

/* ---- boxes ---- */

/* Runs `sh -c text`; fields are "name", "value" pairs up to a NULL. Skips where this machine has no boxes. */
static struct px_box *start(const char *text, const char *const *fields, const struct px_io *io)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    const struct px_host host = {
        .uid = geteuid(), .gid = getegid(), .landlock_abi = px_landlock_abi(), .user_namespaces = true};
    static const struct px_io nothing;
    struct px_policy p;
    struct px_plan *plan = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};

    ASSERT_PX(px_policy_init(&p, "default", &e), e);
    for (; fields && fields[0]; fields += 2)
        ASSERT_PX(px_policy_put(&p, fields[0], fields[1], &e), e);
    ASSERT_PX(px_plan_new(&p, argv, &host, false, &plan, &e), e);
    int r = px_supervise_start(plan, &p, io ? io : &nothing, &box, &e);
    px_policy_done(&p);
    if (r < 0 && (e.code == PX_E_USERNS || e.code == PX_E_IDS))
        SKIP("no box can be made here: %s", e.what);
    ASSERT_PX(r, e);
    return box;
}

static int wait_for(struct px_box *box, struct px_err *e)
{
    int r;

    while ((r = px_supervise_step(box, -1, e)) > 0)
        ;
    return r;
}

static struct px_box *run(const char *text, const char *const *fields, const struct px_io *io)
{
    struct px_box *box = start(text, fields, io);
    struct px_err e = {0};

    ASSERT_PX(wait_for(box, &e), e);
    return box;
}

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A file with `size` bytes that never repeat soon; its descriptor at the beginning. */
static int make_file(size_t size)
{
    px_auto_fd int dir = px_test_dir();
    int fd = openat(dir, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    px_auto_free char *data = malloc(size + 1);
    uint32_t x = 12345;

    ASSERT(fd >= 0 && data);
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (char)('a' + (x >> 24) % 26);
        if (i % 80 == 79)
            data[i] = '\n';
    }
    ASSERT_OK(px_write_full(fd, data, size));
    ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void check_same(int file, const char *data, size_t len)
{
    struct stat st;

    ASSERT_EQ(fstat(file, &st), 0);
    ASSERT_EQ(len, st.st_size);
    px_auto_free char *wanted = malloc(len + 1);
    ASSERT(wanted != NULL);
    ASSERT_EQ(lseek(file, 0, SEEK_SET), 0);
    ASSERT_EQ(px_read_full(file, wanted, len), (ssize_t)len);
    if (memcmp(wanted, data, len) != 0)
        FAIL("%zu bytes came through changed", len);
}

/* ---- input ---- */

TEST(no_input_is_the_end_of_it)
{
    struct px_box *box = run("cat; echo end", NULL, NULL);

    ASSERT_STR(box->result.out.data, "end\n");
    px_supervise_free(box);
}

TEST(input_from_a_pipe)
{
    int ends[2];

    ASSERT_OK(px_pipe(ends));
    ASSERT_EQ(write(ends[1], "one\ntwo", 7), 7);
    (void)close(ends[1]);
    struct px_box *box = run("cat; echo .", NULL, &(struct px_io){.use_in = true, .in = ends[0]});
    ASSERT_STR(box->result.out.data, "one\ntwo.\n");
    px_supervise_free(box);
    (void)close(ends[0]);
}

TEST(input_from_a_file)
{
    px_auto_fd int file = make_file(1 << 20);
    struct px_box *box =
        run("cat", FIELDS("output-limit", "unlimited"), &(struct px_io){.use_in = true, .in = file});

    check_same(file, box->result.out.data, box->result.out.len);
    ASSERT(!box->result.out_truncated);
    px_supervise_free(box);
}

TEST(input_from_the_null_device)
{
    px_auto_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct px_box *box = run("cat; echo end", NULL, &(struct px_io){.use_in = true, .in = null});

    ASSERT_STR(box->result.out.data, "end\n");
    px_supervise_free(box);
}

/* Nobody has to read what he is given. */
TEST(input_that_is_not_read)
{
    px_auto_fd int file = make_file(1 << 20);
    struct px_box *box = run("exec <&-; echo end", NULL, &(struct px_io){.use_in = true, .in = file});

    ASSERT_STR(box->result.out.data, "end\n");
    ASSERT_EQ(box->result.exit_code, 0);
    px_supervise_free(box);
    box = run("head -c 3", NULL, &(struct px_io){.use_in = true, .in = file});
    ASSERT_EQ(box->result.out.len, 3);
    px_supervise_free(box);
}

/* An input that never ends does not keep a box that has. */
TEST(input_that_stays_open)
{
    int ends[2];

    ASSERT_OK(px_pipe(ends));
    struct px_box *box = run("echo end", NULL, &(struct px_io){.use_in = true, .in = ends[0]});
    ASSERT_STR(box->result.out.data, "end\n");
    px_supervise_free(box);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* ---- output ---- */

TEST(both_streams_are_kept_apart)
{
    struct px_box *box = run("echo out; echo err >&2; printf '\\000\\377'", NULL, NULL);

    ASSERT_EQ(box->result.out.len, 6);
    ASSERT(memcmp(box->result.out.data, "out\n\0\xff", 6) == 0);
    ASSERT_STR(box->result.err.data, "err\n");
    ASSERT_EQ(box->result.out_total, 6);
    ASSERT_EQ(box->result.err_total, 4);
    px_supervise_free(box);
}

/* Through both of the caller's pipes, with a reader that is slower than the box. */
TEST(nothing_is_lost_to_a_slow_reader)
{
    int ends[2], back[2], status;
    px_auto_fd int file = make_file(2 << 20);

    ASSERT_OK(px_pipe(ends));
    ASSERT_OK(px_pipe(back));
    pid_t pid = fork();
    if (pid == 0) {
        char block[1000];
        unsigned sum = 0, total = 0;
        ssize_t n;
        (void)close(ends[1]);
        while ((n = read(ends[0], block, sizeof block)) > 0) {
            for (ssize_t i = 0; i < n; i++)
                sum = sum * 31 + (unsigned char)block[i];
            total += (unsigned)n;
            if (total % 64000 < 1000)
                (void)poll(NULL, 0, 1);
        }
        unsigned answer[2] = {sum, total};
        _exit(write(back[1], answer, sizeof answer) == sizeof answer ? 0 : 1);
    }
    (void)close(ends[0]);
    struct px_box *box =
        run("cat", NULL, &(struct px_io){.use_in = true, .in = file, .use_out = true, .out = ends[1]});
    ASSERT_EQ(box->result.out.len, 0); /* handed on, not kept */
    ASSERT_EQ(box->result.out_total, 2 << 20);
    px_supervise_free(box);
    (void)close(ends[1]);
    unsigned answer[2] = {0}, sum = 0;
    ASSERT_EQ(read(back[0], answer, sizeof answer), (ssize_t)sizeof answer);
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(answer[1], 2 << 20);
    char block[4096];
    ssize_t n;
    ASSERT_EQ(lseek(file, 0, SEEK_SET), 0);
    while ((n = read(file, block, sizeof block)) > 0)
        for (ssize_t i = 0; i < n; i++)
            sum = sum * 31 + (unsigned char)block[i];
    ASSERT_EQ(answer[0], sum);
    (void)close(back[0]);
    (void)close(back[1]);
}

TEST(output_to_a_file)
{
    px_auto_fd int in = make_file(1 << 20);
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int out = openat(dir, "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct px_box *box =
        run("cat", FIELDS("output-limit", "unlimited"),
            &(struct px_io){.use_in = true, .in = in, .use_out = true, .out = out, .keep = true});

    check_same(in, box->result.out.data, box->result.out.len);
    check_same(out, box->result.out.data, box->result.out.len);
    px_supervise_free(box);
}

TEST(one_descriptor_for_both_streams)
{
    int ends[2];
    char text[64] = "";

    ASSERT_OK(px_pipe(ends));
    struct px_box *box =
        run("echo out; echo err >&2", NULL,
            &(struct px_io){.use_out = true, .out = ends[1], .use_err = true, .err = ends[1]});
    px_supervise_free(box);
    (void)close(ends[1]);
    ASSERT_EQ(px_read_full(ends[0], text, sizeof text - 1), 8);
    ASSERT(strstr(text, "out\n") && strstr(text, "err\n"));
    (void)close(ends[0]);
}

/* What the caller gave stays as it was: open, blocking, and never in the box's hands. */
TEST(the_callers_descriptors_stay_as_they_were)
{
    int in[2], out[2];

    ASSERT_OK(px_pipe(in));
    ASSERT_OK(px_pipe(out));
    (void)close(in[1]);
    int before[2] = {fcntl(in[0], F_GETFL), fcntl(out[1], F_GETFL)};
    struct px_box *box =
        run("readlink /proc/self/fd/1; readlink /proc/self/fd/0", NULL,
            &(struct px_io){.use_in = true, .in = in[0], .use_out = true, .out = out[1], .keep = true});
    ASSERT_EQ(fcntl(in[0], F_GETFL), before[0]);
    ASSERT_EQ(fcntl(out[1], F_GETFL), before[1]);
    char name[64], target[64] = "";
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", out[1]);
    ASSERT(readlink(name, target, sizeof target - 1) > 0);
    ASSERT(strstr(box->result.out.data, "pipe:[") != NULL);
    ASSERT(strstr(box->result.out.data, target) == NULL);
    px_supervise_free(box);
    ASSERT(fcntl(in[0], F_GETFD) >= 0 && fcntl(out[1], F_GETFD) >= 0);
    (void)close(in[0]);
    (void)close(out[0]);
    (void)close(out[1]);
}

/* Once the box is gone nobody but the caller holds the caller's pipe, so that its reader sees the end. */
TEST(a_box_that_is_gone_holds_no_copy)
{
    int in[2], out[2];

    ASSERT_OK(px_pipe(in));
    ASSERT_OK(px_pipe(out));
    struct px_box *box =
        run("echo hello", NULL, &(struct px_io){.use_in = true, .in = in[0], .use_out = true, .out = out[1]});
    (void)close(in[0]);
    (void)close(out[1]);
    char text[64];
    ASSERT_EQ(read(out[0], text, sizeof text), 6);
    struct pollfd reader = {.fd = out[0], .events = POLLIN}, writer = {.fd = in[1], .events = POLLOUT};
    int ended = poll(&reader, 1, 0), broken = poll(&writer, 1, 0) == 1 && writer.revents & POLLERR;
    px_supervise_free(box);
    (void)close(in[1]);
    (void)close(out[0]);
    ASSERT_EQ(ended, 1);
    ASSERT(broken);
}

/* ---- bounds ---- */

TEST(head_and_tail)
{
    struct px_box *box = run("seq 1 100000", FIELDS("output-limit", "1000"), NULL);
    const struct px_bytes *out = &box->result.out;

    ASSERT_EQ(box->result.status, PX_STATUS_OK);
    ASSERT_EQ(box->result.out_total, 588895);
    ASSERT(box->result.out_truncated);
    ASSERT(out->len >= 1000 && out->len <= 2000);
    ASSERT(strncmp(out->data, "1\n2\n3\n", 6) == 0);
    ASSERT(strcmp(out->data + out->len - 14, "\n99999\n100000\n") == 0);
    px_supervise_free(box);
}

TEST(output_that_just_fits)
{
    struct px_box *box =
        run("head -c 1000 /dev/zero; head -c 1001 /dev/zero >&2", FIELDS("output-limit", "1000"), NULL);

    ASSERT_EQ(box->result.out.len, 1000);
    ASSERT(!box->result.out_truncated);
    ASSERT_EQ(box->result.err_total, 1001);
    ASSERT_EQ(box->result.err_truncated,
              box->result.err.len < 1001); /* marked exactly if something is missing */
    px_supervise_free(box);
}

TEST(a_flood_is_counted_in_flat_memory)
{
    struct px_box *box = run("head -c 50000000 /dev/zero", NULL, NULL);

    ASSERT_EQ(box->result.out_total, 50000000);
    ASSERT(box->result.out_truncated);
    ASSERT(box->result.out.len <= 2 * PX_OUTPUT_DEFAULT);
    px_supervise_free(box);
}

TEST(a_flood_ends_the_run_where_asked)
{
    struct px_box *box = run("yes", FIELDS("output-limit", "10000", "output-end", "true"), NULL);

    ASSERT_EQ(box->result.status, PX_STATUS_OUTPUT);
    ASSERT_EQ(box->result.out.len, 10000);
    ASSERT(box->result.out_total > 10000);
    ASSERT(box->result.out_truncated);
    ASSERT_EQ(box->result.limits_hit_count, 1);
    ASSERT_STR(box->result.limits_hit[0].limit, "output-limit");
    px_supervise_free(box);
}

TEST(a_flood_on_the_other_stream)
{
    struct px_box *box =
        run("echo out; yes >&2", FIELDS("output-limit", "10000", "output-end", "true"), NULL);

    ASSERT_EQ(box->result.status, PX_STATUS_OUTPUT);
    ASSERT_STR(box->result.out.data, "out\n");
    ASSERT_EQ(box->result.err.len, 10000);
    px_supervise_free(box);
}

TEST(a_limit_holds_for_what_is_handed_on)
{
    int ends[2];
    px_auto_free char *text = calloc(1, 100000);

    ASSERT_OK(px_pipe(ends));
    struct px_box *box =
        run("seq 1 10000", FIELDS("output-limit", "1000"), &(struct px_io){.use_out = true, .out = ends[1]});
    ASSERT_EQ(box->result.out_total, 48894);
    ASSERT(box->result.out_truncated);
    px_supervise_free(box);
    (void)close(ends[1]);
    ASSERT_EQ(px_read_full(ends[0], text, 99999), 1000);
    (void)close(ends[0]);
}

/* ---- readers that go away ---- */

static volatile sig_atomic_t pipes_broken;

static void on_pipe(int number)
{
    (void)number;
    pipes_broken++;
}

static void run_without_reader(void)
{
    int ends[2];

    ASSERT_OK(px_pipe(ends));
    (void)close(ends[0]);
    struct px_box *box =
        run("exec yes", FIELDS("timeout", "15s"), &(struct px_io){.use_out = true, .out = ends[1]});
    ASSERT_EQ(box->result.status, PX_STATUS_SIGNALLED); /* the command learns it as in any pipeline */
    ASSERT_EQ(box->result.signal, SIGPIPE);
    px_supervise_free(box);
    (void)close(ends[1]);
}

TEST(a_reader_that_is_gone_kills_the_command_only)
{
    struct sigaction now;

    run_without_reader(); /* the signal would end this process: its disposition is the default */
    ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
    ASSERT(now.sa_handler == SIG_DFL);
}

TEST(a_reader_that_is_gone_is_not_the_callers_signal)
{
    struct sigaction action = {.sa_handler = on_pipe};
    sigset_t pending;

    ASSERT_EQ(sigaction(SIGPIPE, &action, NULL), 0);
    run_without_reader();
    ASSERT_EQ(pipes_broken, 0);
    ASSERT_EQ(sigpending(&pending), 0);
    ASSERT(!sigismember(&pending, SIGPIPE));
}

/* A SIGPIPE that was already waiting for the caller is his, and stays. */
TEST(a_pending_signal_of_the_caller_stays)
{
    sigset_t set, pending;

    ASSERT_EQ(sigemptyset(&set), 0);
    ASSERT_EQ(sigaddset(&set, SIGPIPE), 0);
    ASSERT_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    ASSERT_EQ(raise(SIGPIPE), 0);
    run_without_reader();
    ASSERT_EQ(sigpending(&pending), 0);
    ASSERT(sigismember(&pending, SIGPIPE));
    struct timespec now = {0};
    ASSERT_EQ(sigtimedwait(&set, NULL, &now), SIGPIPE);
    ASSERT_EQ(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
}

TEST(a_full_disk_of_the_caller_is_an_error)
{
    px_auto_fd int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct px_err e = {0};
    struct px_box *box =
        start("echo hello; sleep 0.1; echo again", NULL, &(struct px_io){.use_out = true, .out = full});

    ASSERT_EQ(wait_for(box, &e), -1);
    ASSERT_EQ(e.code, PX_E_IO);
    ASSERT_EQ(e.sys, ENOSPC);
    ASSERT(box->result.reason != NULL); /* and the result is there all the same */
    px_supervise_free(box);
}

/* ---- who holds a pipe does not hold us ---- */

TEST(a_grandchild_with_the_pipe_does_not_keep_the_box)
{
    struct px_box *box =
        run("sleep 1000 & (sleep 1000 &) ; setsid sleep 1000 & echo done", FIELDS("timeout", "15s"), NULL);

    ASSERT_EQ(box->result.status, PX_STATUS_OK);
    ASSERT_STR(box->result.out.data, "done\n");
    px_supervise_free(box);
}

TEST(a_command_that_closes_its_streams_goes_on)
{
    struct px_box *box = run("exec >&- 2>&-; sleep 0.2; exit 7", NULL, NULL);

    ASSERT_EQ(box->result.exit_code, 7);
    px_supervise_free(box);
}

/* ---- loops that are not ours ---- */

/* A host's loop: sleeps in poll on the box's descriptor alone, then calls step. Fails if it would sleep for ever. */
static void drive(struct px_box *box)
{
    struct px_err e = {0};
    int r;

    do {
        struct pollfd p = {.fd = box->epoll, .events = POLLIN};
        int n = poll(&p, 1, 8000);
        if (n == 0) {
            px_supervise_free(box);
            FAIL("the descriptor says nothing for 8 s, and the box is not done");
        }
        r = px_supervise_step(box, 0, &e);
    } while (r > 0);
    ASSERT_PX(r, e);
}

TEST(a_loop_on_the_descriptor)
{
    struct px_box *box = start("echo one; sleep 0.2; echo two", NULL, NULL);

    drive(box);
    ASSERT_STR(box->result.out.data, "one\ntwo\n");
    px_supervise_free(box);
}

TEST(a_loop_on_the_descriptor_with_input_from_a_file)
{
    px_auto_fd int file = make_file(300000);
    struct px_box *box =
        start("cat", FIELDS("output-limit", "unlimited"), &(struct px_io){.use_in = true, .in = file});

    drive(box);
    check_same(file, box->result.out.data, box->result.out.len);
    px_supervise_free(box);
}

TEST(a_loop_on_the_descriptor_with_output_to_a_file)
{
    px_auto_fd int dir = px_test_dir();
    px_auto_fd int out = openat(dir, "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct px_box *box = start("head -c 3000000 /dev/zero", FIELDS("output-limit", "2m"),
                               &(struct px_io){.use_out = true, .out = out});
    struct stat st;

    drive(box);
    ASSERT_EQ(fstat(out, &st), 0);
    ASSERT_EQ(st.st_size, 2 << 20);
    ASSERT_EQ(box->result.out_total, 3000000);
    px_supervise_free(box);
}

/* Without the standard descriptors in this process, those of the box's pipes are small numbers. */
TEST(a_program_without_standard_descriptors)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)close(0);
        (void)close(1);
        (void)close(2);
        struct px_box *box = run("echo out; echo err >&2; cat", NULL, NULL);
        bool good = strcmp(box->result.out.data, "out\n") == 0 && strcmp(box->result.err.data, "err\n") == 0;
        px_supervise_free(box);
        _exit(good && fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0 ? 0 : 1);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}
