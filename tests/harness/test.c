/* tests/harness/test.c - runs each test in a process of its own and cleans up behind it.
 *
 * (1) The runner is a subreaper: whatever a test leaves behind becomes the runner's child, is seen, killed and reaped.
 * (2) A test's verdict lies in shared memory, so that a process the test forked can fail it too.
 * (3) Output goes to a memory file: nobody has to read while the test runs, and nothing is lost when it is killed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DIRS_MAX = 8,
    FDS_MAX = 4096,
    OUTPUT_SHOWN_MAX = 65536,
    GRACE_MSEC = 2000,          /* how long a process that was already killed may take to vanish */
    REMOVE_DEPTH_MAX = 64,
};

enum verdict { RUNNING, PASSED, FAILED, SKIPPED };

/* Shared between the runner and everything a test starts. */
struct shared {
    volatile enum verdict verdict;
    char message[1024];
    int dirs_count;
    char dirs[DIRS_MAX][256];
};

static struct shared *shared;           /* a test program is no library: its one piece of state may be global */

extern const struct px_test *const __start_px_tests[] __attribute__((weak));
extern const struct px_test *const __stop_px_tests[] __attribute__((weak));

/* ---- allocations that fail (see px_test_fail_alloc) ---- */

#ifdef PX_TEST_WRAP
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

static unsigned alloc_countdown;
static bool alloc_failed;

static bool fail_this_alloc(void)
{
    if (alloc_countdown == 0 || --alloc_countdown > 0)
        return false;
    alloc_failed = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fail_this_alloc() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fail_this_alloc() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fail_this_alloc() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fail_this_alloc() ? NULL : __real_strdup(text);
}

void px_test_fail_alloc(unsigned n)
{
    alloc_failed = false;
    alloc_countdown = n;
}

bool px_test_alloc_failed(void)
{
    return alloc_failed;
}
#else
void px_test_fail_alloc(unsigned n)
{
    (void)n;
    SKIP("this program was built without PX_TEST_WRAP");
}

bool px_test_alloc_failed(void)
{
    return false;
}
#endif

/* ---- verdicts, in the test's process ---- */

/* Only the first verdict counts. */
static void decide(enum verdict verdict, const char *where, const char *fmt, va_list args)
{
    if (shared->verdict != RUNNING)
        return;
    int n = snprintf(shared->message, sizeof shared->message, "%s", where);
    if (n >= 0 && (size_t)n < sizeof shared->message)
        (void)vsnprintf(shared->message + n, sizeof shared->message - (size_t)n, fmt, args);
    for (char *c = shared->message; *c; c++)
        if (*c == '\n')
            *c = ' ';           /* one line for each test */
    shared->verdict = verdict;
}

_Noreturn static void leave(void)
{
    (void)fflush(NULL);
    _exit(shared->verdict == FAILED ? 1 : 0);
}

_Noreturn void px_test_fail(const char *file, int line, const char *fmt, ...)
{
    char where[256];
    const char *base = strrchr(file, '/');
    va_list args;

    (void)snprintf(where, sizeof where, "%s:%d: ", base ? base + 1 : file, line);
    va_start(args, fmt);
    decide(FAILED, where, fmt, args);
    va_end(args);
    leave();
}

_Noreturn void px_test_skip(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    decide(SKIPPED, "", fmt, args);
    va_end(args);
    leave();
}

/* A 65-bit number as text: uint64_t and int64_t both fit. */
static const char *int_text(px_test_int value, char out[32])
{
    if (value < 0)
        (void)snprintf(out, 32, "%lld", (long long)value);
    else
        (void)snprintf(out, 32, "%llu", (unsigned long long)value);
    return out;
}

void px_test_equal(const char *file, int line, const char *a_text, const char *b_text, px_test_int a, px_test_int b)
{
    char a_value[32], b_value[32];

    if (a != b)
        px_test_fail(file, line, "%s is %s, not %s (%s)", a_text, int_text(a, a_value), int_text(b, b_value), b_text);
}

void px_test_equal_text(const char *file, int line, const char *a_text, const char *a, const char *b)
{
    if (a == b || (a && b && strcmp(a, b) == 0))
        return;
    px_test_fail(file, line, "%s is %s%s%s, not %s%s%s", a_text, a ? "\"" : "", a ? a : "NULL", a ? "\"" : "",
                 b ? "\"" : "", b ? b : "NULL", b ? "\"" : "");
}

void px_test_ok(const char *file, int line, const char *text, long result)
{
    if (result < 0)
        px_test_fail(file, line, "%s is %ld (%s)", text, result, strerror((int)-result));
}

int px_test_dir(void)
{
    const char *tmp = getenv("TMPDIR");

    if (shared->dirs_count == DIRS_MAX)
        FAIL("more than %d temporary directories", DIRS_MAX);
    char *path = shared->dirs[shared->dirs_count];
    int n = snprintf(path, sizeof shared->dirs[0], "%s/px-test-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof shared->dirs[0] || !mkdtemp(path))
        FAIL("cannot make a temporary directory: %s", strerror(errno));
    shared->dirs_count++;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        FAIL("cannot open %s: %s", path, strerror(errno));
    return fd;
}

const char *px_test_dir_path(void)
{
    return shared->dirs_count > 0 ? shared->dirs[shared->dirs_count - 1] : "";
}

/* ---- leaks, in the test's process ---- */

struct fd_set_of {
    unsigned char open[FDS_MAX];
};

static void list_fds(struct fd_set_of *set)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    memset(set, 0, sizeof *set);
    if (!dir)
        FAIL("cannot look into /proc/self/fd: %s", strerror(errno));
    while ((entry = readdir(dir))) {
        long fd = strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] != '.' && fd != dirfd(dir) && fd < FDS_MAX)
            set->open[fd] = 1;
    }
    (void)closedir(dir);
}

static void check_fds(const struct fd_set_of *before, const struct px_test *test)
{
    struct fd_set_of now;

    list_fds(&now);
    for (int fd = 0; fd < FDS_MAX; fd++) {
        char name[64], target[256] = "";

        if (now.open[fd] == before->open[fd])
            continue;
        (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        if (now.open[fd])
            px_test_fail(test->file, test->line, "leaked descriptor %d (%s)", fd, target);
        px_test_fail(test->file, test->line, "closed descriptor %d, which was not its own", fd);
    }
}

static void check_children(const struct px_test *test)
{
    siginfo_t info = {0};

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return;                 /* ECHILD: there is none */
    if (info.si_pid > 0)
        px_test_fail(test->file, test->line, "left child process %d unreaped", (int)info.si_pid);
    px_test_fail(test->file, test->line, "left a child process running");
}

/* Part of LeakSanitizer's interface; there only in a build with -fsanitize=address. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void check_memory(const struct px_test *test)
{
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check() != 0)
        px_test_fail(test->file, test->line, "leaked memory");
}

_Noreturn static void run_in_child(const struct px_test *test, int output)
{
    static struct fd_set_of before;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        FAIL("cannot redirect the standard streams: %s", strerror(errno));
    (void)close(null);
    (void)close(output);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    list_fds(&before);
    test->run();
    check_children(test);
    check_fds(&before, test);
    check_memory(test);
    if (shared->verdict == RUNNING)
        shared->verdict = PASSED;
    leave();
}

/* ---- the runner ---- */

static void runner_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void runner_fail(const char *fmt, ...)
{
    va_list args;

    if (shared->verdict == PASSED)
        shared->verdict = RUNNING;      /* a test that passed and left something behind has failed after all */
    va_start(args, fmt);
    decide(FAILED, "", fmt, args);
    va_end(args);
}

static int64_t now_msec(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for the test's process; false after the deadline. */
static bool wait_until(pid_t pid, int deadline_sec)
{
    int64_t end = now_msec() + (int64_t)deadline_sec * 1000;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    bool ended = false;

    while (fd >= 0 && !ended && now_msec() < end)
        ended = poll(&poll_fd, 1, (int)(end - now_msec())) == 1;
    if (fd >= 0)
        (void)close(fd);
    return ended;
}

/* The parent of a process and its name, from /proc/PID/stat: "12 (a name) S 3 ...". */
static pid_t parent_of(const char *pid, char name[64])
{
    char path[64], text[512];
    int parent = 0;

    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n < 0 ? 0 : n] = 0;
    char *end = strrchr(text, ')'), *start = strchr(text, '(');
    if (!start || !end || sscanf(end, ") %*c %d", &parent) != 1)
        return 0;
    (void)snprintf(name, 64, "%.*s", (int)(end - start - 1), start + 1);
    return parent;
}

/* Kills every child of the runner; writes the name and number of one of them. */
static void kill_children(char found[96])
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    char name[64];

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && parent_of(entry->d_name, name) == getpid()) {
            (void)snprintf(found, 96, "%.20s (%s)", entry->d_name, name);
            (void)kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
        }
    if (dir)
        (void)closedir(dir);
}

/* Reaps what is dead; true if no child is left at all. */
static bool reap(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    return pid < 0 && errno == ECHILD;
}

static bool reap_within(int msec)
{
    int64_t end = now_msec() + msec;

    while (!reap()) {
        if (now_msec() >= end)
            return false;
        (void)poll(NULL, 0, 5);
    }
    return true;
}

/* A test's process is gone. What it left gets a moment, because it may have been killed just now; then it is a leak. */
static void sweep_processes(void)
{
    char found[96] = "?";

    if (reap_within(GRACE_MSEC))
        return;
    for (int round = 0; round < 20; round++) {          /* the children of those we kill come to us in the next round */
        kill_children(found);
        if (reap_within(GRACE_MSEC / 10))
            break;
    }
    runner_fail("left process %s running", found);
}

struct open_how_v0 {
    uint64_t flags, mode, resolve;
};

/* Never follows a link and never crosses a mount: a test may have bound the whole host into its directory. */
static int open_dir(int parent, const char *name)
{
    struct open_how_v0 how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
        .resolve = 0x01 | 0x04,         /* RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS */
    };

    return (int)syscall(437, parent, name, &how, sizeof how);
}

static void remove_contents(int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        int below = depth > 0 ? open_dir(fd, entry->d_name) : -1;
        if (below >= 0)
            remove_contents(below, depth - 1);
        (void)unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    if (dir)
        (void)closedir(dir);
    else
        (void)close(fd);
}

static void remove_dirs(void)
{
    for (int i = 0; i < shared->dirs_count; i++) {
        int fd = open(shared->dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0)
            remove_contents(fd, REMOVE_DEPTH_MAX);
        if (rmdir(shared->dirs[i]) < 0 && errno != ENOENT)
            runner_fail("its temporary directory %s cannot be removed: %s", shared->dirs[i], strerror(errno));
    }
}

static void show_output(int output)
{
    static char text[OUTPUT_SHOWN_MAX + 1];
    off_t size = lseek(output, 0, SEEK_END);
    off_t from = size > OUTPUT_SHOWN_MAX ? size - OUTPUT_SHOWN_MAX : 0;
    ssize_t n = pread(output, text, OUTPUT_SHOWN_MAX, from);

    if (n <= 0)
        return;
    text[n] = 0;
    for (char *line = text, *end; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        (void)printf("    | %.*s\n", (int)(end ? end - line : (long)strlen(line)), line);
    }
}

static void judge_status(int status)
{
    if (WIFSIGNALED(status))
        runner_fail("killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (shared->verdict == RUNNING)
        runner_fail("ended its process with status %d", WEXITSTATUS(status));
    else if (shared->verdict == PASSED && WEXITSTATUS(status) != 0)
        runner_fail("ended with status %d after its last line", WEXITSTATUS(status));
}

static void run_test(const struct px_test *test, int output)
{
    *shared = (struct shared){.verdict = RUNNING};
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        runner_fail("cannot fork: %s", strerror(errno));
        return;
    }
    if (pid == 0)
        run_in_child(test, output);
    (void)setpgid(pid, pid);    /* both sides do it, so that it is done whoever runs first */

    int status = 0;
    if (!wait_until(pid, test->deadline_sec)) {
        if (shared->verdict == PASSED)
            shared->verdict = RUNNING;
        runner_fail("still running after %d s", test->deadline_sec);
        (void)kill(-pid, SIGKILL);
        (void)kill(pid, SIGKILL);
    }
    (void)waitpid(pid, &status, 0);
    judge_status(status);
    sweep_processes();
    remove_dirs();
}

struct totals {
    int passed, failed, skipped;
};

static void run_and_tell(const struct px_test *test, bool verbose, struct totals *totals)
{
    int output = memfd_create("output", MFD_CLOEXEC);

    if (output < 0) {
        (void)printf("FAIL %s: memfd_create: %s\n", test->name, strerror(errno));
        totals->failed++;
        return;
    }
    run_test(test, output);
    switch (shared->verdict) {
    case PASSED:
        totals->passed++;
        if (verbose)
            (void)printf("ok %s\n", test->name);
        break;
    case SKIPPED:
        totals->skipped++;
        (void)printf("skip %s: %s\n", test->name, shared->message);
        break;
    default:
        totals->failed++;
        (void)printf("FAIL %s: %s\n", test->name, shared->message);
        show_output(output);
    }
    (void)fflush(stdout);
    (void)close(output);
}

static int compare_tests(const void *a, const void *b)
{
    const struct px_test *x = *(const struct px_test *const *)a, *y = *(const struct px_test *const *)b;
    int by_file = strcmp(x->file, y->file);

    return by_file ? by_file : (x->line > y->line) - (x->line < y->line);
}

/* Compilers put the section in an order of their own; a person expects that of the file. */
static const struct px_test **sorted_tests(size_t count)
{
    const struct px_test **tests = calloc(count + 1, sizeof *tests);

    if (tests && count > 0) {
        memcpy(tests, __start_px_tests, count * sizeof *tests);
        qsort(tests, count, sizeof *tests, compare_tests);
    }
    return tests;
}

static int usage(const char *program)
{
    (void)fprintf(stderr, "usage: %s [-l] [-v] [name-substring]\n", program);
    return 2;
}

int main(int argc, char **argv)
{
    bool list = false, verbose = false;
    struct totals totals = {0};
    int option;

    while ((option = getopt(argc, argv, "lv")) != -1) {
        if (option == '?')
            return usage(argv[0]);
        list |= option == 'l';
        verbose |= option == 'v';
    }
    if (optind + 1 < argc)
        return usage(argv[0]);
    const char *wanted = optind < argc ? argv[optind] : "";

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        (void)fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
        return 1;
    }
    size_t count = (size_t)(__stop_px_tests - __start_px_tests);
    const struct px_test **tests = sorted_tests(count);
    for (size_t i = 0; tests && i < count; i++) {
        if (!strstr(tests[i]->name, wanted))
            continue;
        if (list)
            (void)printf("%s\n", tests[i]->name);
        else
            run_and_tell(tests[i], verbose, &totals);
    }
    free(tests);
    if (list)
        return 0;
    (void)printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed > 0 || totals.passed + totals.skipped == 0 ? 1 : 0;
}
