/* A command on the caller's streams, from its start to its answer: what px exec, px shell and px box exec share. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

/* ---- the caller's terminal ---- */

struct terminal {
    bool raw;
    struct termios before;
};

static void terminal_raw(struct terminal *t)
{
    struct termios raw;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &t->before) < 0)
        return;
    raw = t->before;
    cfmakeraw(&raw);
    t->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void terminal_restore(struct terminal *t)
{
    if (t->raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
    t->raw = false;
}

static void terminal_size(unsigned short *rows, unsigned short *cols)
{
    struct winsize size;
    for (int fd = 0; fd < 3; fd++)
        if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
            *rows = size.ws_row;
            *cols = size.ws_col;
            return;
        }
}

/* ---- signals ---- */

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

static void passed_set(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        sigaddset(ret_set, passed_on[i]);
}

int open_passed_signals(void)
{
    sigset_t set;
    passed_set(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

struct running {
    struct px_box *box;
    int signals;
    bool tty;
    int interrupts;
};

static void on_signal(struct running *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGWINCH) {
            unsigned short rows = 0, cols = 0;
            terminal_size(&rows, &cols);
            if (run->tty && rows)
                (void)px_box_resize(run->box, rows, cols, NULL);
            continue;
        }
        /* Who presses Ctrl-C three times means it. */
        if (number == SIGINT && ++run->interrupts >= 3)
            number = SIGKILL;
        (void)px_box_signal(run->box, number, NULL);
    }
}

static int watch(struct running *run, struct px_err *e)
{
    for (;;) {
        int r = px_box_step(run->box, e);
        if (r <= 0)
            return r;
        struct pollfd fds[2] = {{.fd = px_box_fd(run->box), .events = POLLIN}, {.fd = run->signals, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return -1;
        if (fds[1].revents)
            on_signal(run);
    }
}

/* ---- hygiene ---- */

/* Nothing that the caller left open reaches any program of ours. */
void close_inherited(void)
{
    (void)syscall(436 /* close_range */, 3, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */);
}

/* A program started with closed standard descriptors must not hand their numbers to something else. */
void open_missing_stdio(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);     /* the lowest free number is this one */
}

/* The caller's variables may hold secrets; the bytes themselves go, not only the pointers. What we need is kept. */
void wipe_environment(void)
{
    static const char *const kept[] = {"TERM", "TMPDIR", "HOME", "PX_HOME"};   /* the last two: where the store is */
    enum { KEPT = sizeof kept / sizeof kept[0] };
    char *values[KEPT];
    for (size_t i = 0; i < KEPT; i++) {
        const char *value = getenv(kept[i]);
        values[i] = value ? strdup(value) : NULL;
    }
    for (char **v = environ; v && *v; v++)
        memset(*v, 0, strlen(*v));
    (void)clearenv();           /* banned: a program may; its own environment is what goes */
    for (size_t i = 0; i < KEPT; i++) {
        if (values[i])
            (void)setenv(kept[i], values[i], 1);        /* banned: as above */
        free(values[i]);
    }
}

/* Starting a box used some stack that waiting for it does not: the pages go back, as there may be hundreds of us. */
void release_stack(void)
{
    const uintptr_t page = 4096, kept = page, most = 256 * page;
    char here;
    uintptr_t top = ((uintptr_t)&here & ~(page - 1)) - kept;
    (void)madvise((void *)(top - most), most, MADV_DONTNEED);
}

/* ---- answers ---- */

int status_for(const struct px_err *e)
{
    return e->code == PX_E_NOT_FOUND ? 127 : e->code == PX_E_EXEC ? 126 : START_STATUS;
}

/* A signal that a program gets for a mistake of its own; others were sent to it, and the sender knows. */
static void say_crash(int number)
{
    static const struct {
        int number;
        const char *name, *means;
    } rows[] = {
        {SIGSEGV, "SIGSEGV", "it used memory that is not its own"}, {SIGBUS, "SIGBUS", "it used memory that is not there"},
        {SIGILL, "SIGILL", "an instruction is not valid"},          {SIGFPE, "SIGFPE", "a calculation is not possible"},
        {SIGABRT, "SIGABRT", "it gave up by abort()"},              {SIGSYS, "SIGSYS", "a system call was refused"},
        {SIGTRAP, "SIGTRAP", "it stopped for a debugger"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == number)
            say("px: the command was ended by %s: %s", rows[i].name, rows[i].means);
}

/* Input that waits in a pipe was meant for the command. */
static void say_unread(const struct options *o)
{
    struct stat st;
    int waiting = 0;
    if (!o->interactive && !o->tty && fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode) &&
        ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0)
        say("px: hint: the command does not get standard input; give -i to pass it on");
}

static void say_end(const struct cli *cli, const struct px_result *r)
{
    if (cli->verbose < 0 || cli->json)
        return;
    if (r->status == PX_STATUS_SIGNALLED)
        say_crash(r->signal);
    if (r->status >= PX_STATUS_TIMEOUT)
        say("px: %s: %s", px_status_name(r->status), r->reason);
    for (size_t i = 0; i < r->limits_hit_count; i++)
        if (r->status != PX_STATUS_TIMEOUT)
            say("px: limit reached: %s (%s = %llu)", r->limits_hit[i].limit, r->limits_hit[i].counter,
                (unsigned long long)r->limits_hit[i].value);
    for (size_t i = 0; i < r->denials_count && (r->status != PX_STATUS_OK || cli->verbose > 0); i++)
        if (r->denials[i].target)
            say("px: refused: %s %s, %llu times (%s; %s)", r->denials[i].op, r->denials[i].target,
                (unsigned long long)r->denials[i].count, r->denials[i].rule, r->denials[i].grant ? r->denials[i].grant : "no box may");
    if (cli->verbose > 0)
        say("px: %s in %.3f s, cpu %.3f s, memory %llu KiB (%s), isolation %s", px_status_name(r->status), (double)r->wall_nsec / 1e9,
            (double)(r->cpu_user_usec + r->cpu_sys_usec) / 1e6, (unsigned long long)r->memory_peak_bytes / 1024, r->memory_source,
            r->tier);
}

static void say_changes(const struct cli *cli, const struct px_result *r)
{
    enum { NAMES = 40 };
    if (cli->verbose < 0 || cli->json || !r->has_changes)
        return;
    for (size_t i = 0; i < r->changes_count && (i < NAMES || cli->verbose > 0); i++)
        say("px: %s: %s%s", r->changes[i].kind, r->changes[i].path, r->changes[i].link ? " (symbolic link)" : "");
    if (r->changes_count > NAMES && cli->verbose <= 0)
        say("px: ... and %zu more", r->changes_count - NAMES);
    const char *name = r->changes_kept ? strrchr(r->changes_kept, '/') : NULL;
    if (name)
        say("px: changes kept as %s, in %s", name + 1, r->changes_kept);
    else
        say("px: changes %s", r->changes_count == 0 ? "none" : r->changes_applied ? "applied" : "discarded");
}

int open_report(const char *path, struct report *ret)
{
    const char *slash = strrchr(path, '/');
    char dir[4096] = ".";
    if (slash && snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path) >= (int)sizeof dir)
        return -1;
    *ret = (struct report){.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .name = slash ? slash + 1 : path};
    return ret->dir < 0 || *ret->name == '\0' ? -1 : 0;
}

int write_report(const struct report *report, const char *text)
{
    char temporary[512];
    if (snprintf(temporary, sizeof temporary, ".%s.px-%d", report->name, (int)getpid()) >= (int)sizeof temporary)
        return -1;
    int fd = openat(report->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    size_t len = strlen(text);
    bool ok = true;
    for (size_t at = 0; ok && at < len;) {
        ssize_t n = write(fd, text + at, len - at);
        ok = n > 0;
        at += ok ? (size_t)n : 0;
    }
    ok = fsync(fd) == 0 && ok;
    ok = close(fd) == 0 && ok;
    if (ok && renameat(report->dir, temporary, report->dir, report->name) == 0)
        return 0;
    (void)unlinkat(report->dir, temporary, 0);
    return -1;
}

static int answer(const struct cli *cli, const struct options *o, const struct run *how, const struct report *report,
                  struct px_box *box, struct px_err *e)
{
    const struct px_result *r = px_box_result(box);
    char *text = NULL;
    int status = r->exit_code;

    if (report->name) {
        if (px_box_json(box, true, &text, e) < 0)
            return say_error(cli, e, START_STATUS);
        if (write_report(report, text) < 0) {
            say("px: cannot write the report '%s'", o->report);
            status = START_STATUS;
        }
        free(text);
    }
    if (how->answer) {
        int answered = how->answer(how->user, box);
        status = status == START_STATUS ? status : answered;
    } else if (cli->json) {
        if (px_box_json(box, false, &text, e) < 0)
            return say_error(cli, e, START_STATUS);
        if (print_text(text) < 0)
            status = START_STATUS;
        free(text);
    }
    say_end(cli, r);
    if (cli->verbose >= 0 && !cli->json)
        say_unread(o);
    say_changes(cli, r);
    if (o->timings && px_box_timings(box, &text, e) == 0) {
        say_lines(text);
        free(text);
    }
    return status;
}

/* ---- the run ---- */

static void choose_io(const struct cli *cli, const struct options *o, const struct run *how, struct px_io *io)
{
    *io = (struct px_io){
        .use_in = o->interactive || o->tty, .in = STDIN_FILENO,
        .use_out = !cli->json, .out = STDOUT_FILENO,
        .use_err = !cli->json, .err = STDERR_FILENO,
        .keep = o->report != NULL || how->keep,
        .bind_to_thread = true,
    };
    terminal_size(&io->rows, &io->cols);
}

/* Those that nobody knows yet. */
static void say_ports(const struct px_box *box)
{
    const struct px_port *p;
    for (size_t i = 0; (p = px_box_port(box, i)); i++)
        if (p->chosen)
            say(strchr(p->address, ':') ? "px: [%s]:%u is port %u of the box%s" : "px: %s:%u is port %u of the box%s", p->address,
                p->host, p->box, p->udp ? " (udp)" : "");
}

int run_on_streams(struct cli *cli, const struct options *o, const struct run *how)
{
    struct px_err e = {0};
    struct px_io io;
    struct terminal terminal = {0};
    struct running run = {.tty = o->tty};
    struct report report = {.dir = -1};

    if (o->report && open_report(o->report, &report) < 0)
        return fail(cli, PX_E_IO, START_STATUS, "Name a file in a directory that exists and can be written.",
                    "cannot write the report '%s'", o->report);
    choose_io(cli, o, how, &io);
    (void)signal(SIGPIPE, SIG_IGN);     /* banned: a program may; the library's writes report EPIPE */
    run.signals = open_passed_signals();
    if (!how->again)
        wipe_environment();
    if (how->start(how->user, &io, &run.box, &e) < 0)
        return say_error(cli, &e, status_for(&e));
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    release_stack();
    say_ports(run.box);
    if (o->tty)
        terminal_raw(&terminal);
    int r = watch(&run, &e);
    terminal_restore(&terminal);
    int status = r < 0 ? say_error(cli, &e, START_STATUS) : answer(cli, o, how, &report, run.box, &e);
    if (r >= 0 && how->ended)
        how->ended(how->user, px_box_result(run.box));
    px_box_free(run.box);
    (void)close(run.signals);
    return status;
}

/* Signals end the work between two runs as they end any other, and a box can be made again. */
void run_again_ready(void)
{
    sigset_t set;
    passed_set(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}
