/* px sandbox verify: the checks of px/verify.h against a policy, as a table, as JSON, as JUnit XML. */
#include "cli/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <px/verify.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

struct asked {
    const struct args *args;
    const struct cli *cli;
    struct sandbox_checks request;
    bool colour;
    int signals;
};

/* ---- the command line ---- */

static int check_words(const struct options *o, struct px_err *e)
{
    if (o->argc > 0 || o->shell_text)
        return make_error(e, PX_E_USAGE, "Write options only: px sandbox verify --preset untrusted.",
                          "px sandbox verify runs commands of its own");
    if (o->tty || o->interactive || o->plan || o->report || o->timings)
        return make_error(e, PX_E_USAGE, "Leave -t, -i, --plan, --report and --timings out; --json and --junit FILE give reports.",
                          "px sandbox verify chooses the streams of its boxes itself");
    return 0;
}

/* ---- what is shown ---- */

static const char *word_for(enum px_check_result result)
{
    static const char *const words[] = {"ok", "FAIL", "skip", "differs"};
    return words[result];
}

static const char *colour_for(enum px_check_result result)
{
    static const char *const colours[] = {"\033[32m", "\033[31m", "\033[33m", "\033[33m"};
    return colours[result];
}

static void on_check(void *user, const struct px_check *c)
{
    const struct asked *asked = user;
    const char *text = c->reason ? c->reason : c->proof ? c->proof : "";
    if (asked->cli->json || (asked->cli->verbose < 0 && c->result != PX_CHECK_FAILED))
        return;
    print_own(asked->colour ? colour_for(c->result) : ""); /* own: a colour */
    print("%-8s", word_for(c->result));
    print_own(asked->colour ? "\033[0m" : "");
    print("%-26s %s%s\n", c->name, *text ? "- " : "", text);
    if (asked->cli->verbose > 0)
        print("        held by %s, %.3f s%s%s\n", c->held_by, (double)c->nsec / 1e9, c->reason && c->proof ? "; " : "",
              c->reason && c->proof ? c->proof : "");
    (void)fflush(stdout);
}

/* What holds elsewhere and not here, because nobody promised it here. */
static void print_differences(const struct px_verify_report *report)
{
    size_t n = 0;
    for (size_t i = 0; i < report->count; i++)
        n += report->checks[i].result == PX_CHECK_DIFFERS;
    if (n > 0)
        print("\n%zu differ: tier %s, runtime %s and this policy do not promise them\n", n, report->tier, report->runtime);
    for (size_t i = 0; n > 0 && i < report->count; i++)
        if (report->checks[i].result == PX_CHECK_DIFFERS)
            print("  %-26s - %.160s\n", report->checks[i].name, report->checks[i].reason ? report->checks[i].reason : "");
    if (n > 0)
        print("\n");
}

/* The words of the table are letters, digits and a few signs: none needs a quote. */
static void print_row(const struct px_check *row, bool json, bool first)
{
    if (json)
        print("%s{\"name\":\"%s\",\"category\":\"%s\",\"held_by\":\"%s\"}", first ? "" : ",", row->name, row->category,
              row->held_by);
    else
        print("%s\t%s\t%s\n", row->name, row->category, row->held_by);
}

static int print_list(const struct asked *asked)
{
    struct px_check row;
    bool json = asked->cli->json, first = true;
    print_own(json ? "{\"schema\":1,\"checks\":[" : "");
    for (size_t i = 0; px_verify_row(i, &row) == 0; i++)
        if (px_verify_chosen(asked->request.only, row.name)) {
            print_row(&row, json, first);
            first = false;
        }
    print_own(json ? "]}\n" : "");
    return flush();
}

static int write_junit(const char *path, const char *text)
{
    struct report report = {.dir = -1};
    int r = open_report(path, &report) < 0 ? -1 : write_report(&report, text);
    if (report.dir >= 0)
        (void)close(report.dir);
    return r;
}

/* As a shell says it of a program that a signal ended. */
static int stop_status(int signals)
{
    struct signalfd_siginfo info;
    return read(signals, &info, sizeof info) == sizeof info ? 128 + (int)info.ssi_signo : 1;
}

static int answer(const struct asked *asked, const struct px_verify_report *report, struct px_err *e)
{
    char *text = NULL;
    int status = report->stopped ? stop_status(asked->signals) : report->failed ? 1 : 0;
    if (asked->request.junit) {
        if (px_verify_junit(report, &text, e) < 0)
            return say_error(asked->cli, e, 1);
        if (write_junit(asked->request.junit, text) < 0) {
            say("px: cannot write '%s'", asked->request.junit);
            status = 1;
        }
        free(text);
    }
    if (asked->cli->json) {
        if (px_verify_json(report, &text, e) < 0)
            return say_error(asked->cli, e, 1);
        if (print_text(text) < 0)
            status = 1;
        free(text);
        return status;
    }
    print_differences(report);
    print("%zu passed, %zu failed, %zu skipped\n", report->passed, report->failed, report->skipped);
    return flush() ? 1 : status;
}

/* ---- the run ---- */

static int fresh_policy(void *user, struct px_policy **ret_policy, struct px_err *e)
{
    const struct asked *asked = user;
    return args_policy(asked->args, NULL, ret_policy, e);
}

/* px-attack lies beside px-main. */
static int find_attack(char *out, size_t size, struct px_err *e)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 16);
    if (n > 0) {
        out[n] = '\0';
        char *name = strrchr(out, '/') + 1;
        (void)snprintf(name, size - (size_t)(name - out), "px-attack");
        if (access(out, R_OK) == 0)
            return 0;
    }
    return make_error(e, PX_E_NOT_BUILT, "Install px as a whole (make install), or run it from its build directory.",
                      "this needs the program px-attack, and it is not beside px-main");
}

static void random_word(char *out, size_t size)
{
    unsigned char bytes[16];
    size_t at = 0;
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        memset(bytes, 42, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes && at + 3 < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%02x", bytes[i]);
}

/* What a caller may have about him when he starts a box: a secret in a variable, an ignored signal, a session keyring. */
static const char *prepare(char *secret, size_t size)
{
    (void)snprintf(secret, size, "hush-");
    random_word(secret + 5, size - 5);
    (void)setenv("PX_VERIFY_SECRET", secret, 1);        /* banned: a program may; no box must see it */
    (void)signal(SIGPIPE, SIG_IGN);                     /* banned: a program may; boxes must start with all of them normal */
    (void)syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL, 0, 0, 0);
    return secret;
}

static int open_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int verify(struct asked *asked)
{
    struct px_err e = {0};
    char attack[4096], secret[64];
    struct px_verify_report *report = NULL;
    struct px_verify ask = {.make_policy = fresh_policy, .on_check = on_check, .user = asked, .attack = attack,
                            .only = asked->request.only, .self_test = asked->request.self_test,
                            .jobs = (unsigned)asked->request.jobs, .guard_msec = asked->request.guard * 1000};
    if (check_words(&asked->args->o, &e) < 0)
        return say_error(asked->cli, &e, USAGE_STATUS);
    if (find_attack(attack, sizeof attack, &e) < 0)
        return say_error(asked->cli, &e, 1);
    ask.secret = prepare(secret, sizeof secret);
    ask.stop = asked->signals = open_signals();
    ask.use_stop = ask.stop >= 0;
    if (px_verify_run(&ask, &report, &e) < 0)
        return say_error(asked->cli, &e, status_of_words(&e));
    int status = answer(asked, report, &e);
    px_verify_free(report);
    return status;
}

int sandbox_verify(struct args *a)
{
    const struct sandbox_checks *request = a->request;
    struct asked asked = {.args = a, .cli = a->cli, .request = *request, .colour = in_colour(STDOUT_FILENO)};
    return request->list ? print_list(&asked) : verify(&asked);
}
