/* px worker: boundaries from a file, and the shell tool within them. */
#include "args.h"

#include <px/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

struct words {
    const char *base, *file, *child;
    struct option_list attach;
    uint64_t timeout;
    bool approve_all, strict;
    const char **command;
    size_t command_count;
};

/* ---- approval ---- */

/* Words become one text that is judged; a word with blanks or quotes in it is quoted. */
static char *join(const struct words *w)
{
    size_t size = 1;
    for (size_t i = 0; i < w->command_count; i++)
        size += 4 * strlen(w->command[i]) + 3;
    char *text = calloc(1, size), *at = text;
    if (!text || w->command_count == 1)
        return text ? memcpy(text, w->command[0], strlen(w->command[0])) : NULL;
    for (size_t i = 0; i < w->command_count; i++) {
        *at++ = '\'';
        for (const char *c = w->command[i]; *c; c++) {
            if (*c == '\'') {
                memcpy(at, "'\\''", 4);
                at += 4;
            } else {
                *at++ = *c;
            }
        }
        *at++ = '\'';
        *at++ = i + 1 < w->command_count ? ' ' : '\0';
    }
    return text;
}

/* All of it, in characters that no terminal obeys and that look like no others: who agrees must know to what. */
static void show_command(const char *command)
{
    say_part("The worker wants to run: ");
    for (const unsigned char *c = (const unsigned char *)command; *c; c++)
        if (*c >= ' ' && *c < 0x7f)
            (void)fputc(*c, stderr);
        else
            say_part("\\x%02x", *c);
    say_part("\nRun it? [y/N] ");
    (void)fflush(stderr);
}

static bool person_agrees(void)
{
    char line[64] = "";
    if (!fgets(line, sizeof line, stdin))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

static int ask_person(const char *command, struct px_err *e)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return make_error(e, PX_E_APPROVAL, NULL, "the command needs approval: %.200s", command);
    (void)tcflush(STDIN_FILENO, TCIFLUSH);      /* what was typed before the question is no answer to it */
    show_command(command);
    return person_agrees() ? 0 : make_error(e, PX_E_APPROVAL, NULL, "the command was not approved: %.200s", command);
}

static int approve(const struct words *w, const struct px_worker *worker, char ***ret_argv, struct px_err *e)
{
    char *text = w->command_count ? join(w) : calloc(1, 1);
    if (!text)
        return make_error(e, PX_E_MEMORY, NULL, "px ran out of memory");
    enum px_approval verdict = px_worker_judge(worker, text, ret_argv, e);
    int r = verdict == PX_BLOCKED ? -1 : 0;
    if (verdict == PX_NEEDS_APPROVAL && w->strict)
        r = make_error(e, PX_E_APPROVAL, "Leave --strict out to be asked.", "the command needs approval: %.200s", text);
    else if (verdict == PX_NEEDS_APPROVAL && !w->approve_all)
        r = ask_person(text, e);
    if (r < 0 && verdict != PX_BLOCKED)
        px_words_free(*ret_argv);
    free(text);
    return r;
}

/* ---- running ---- */

static int copy_output(const struct px_box *box, int stream, FILE *to, struct px_err *e)
{
    char *text = NULL;
    size_t len;
    if (px_box_output(box, stream, &text, &len, e) < 0)
        return -1;
    (void)fwrite(text, 1, len, to);
    (void)fflush(to);
    free(text);
    return 0;
}

static int tell(const struct cli *cli, const struct px_worker *worker, const struct px_box *box,
                unsigned timeout_s, struct px_err *e)
{
    const struct px_result *r = px_box_result(box);
    char *json = NULL, *note = NULL;
    if (px_worker_result(worker, box, timeout_s, &json, e) < 0 ||
        px_shell_note(px_worker_files(worker), px_worker_network(worker), r, &note, e) < 0) {
        free(json);
        return say_error(cli, e, 1);
    }
    if (strcmp(r->tier, "full") != 0 && cli->verbose >= 0)
        say("px: warning: OS sandbox unavailable on this host; the command ran with the tier %s and %s", r->tier,
            px_worker_network(worker) ? "the host's network" : "no network");
    if (cli->json) {
        (void)print_text(json);
    } else {
        if (copy_output(box, 1, stdout, e) < 0 || copy_output(box, 2, stderr, e) < 0)
            (void)say_error(cli, e, 1);
        if (r->timed_out)
            say("Command timed out after %u seconds", timeout_s ? timeout_s : 30);
        if (note) {
            say("%s", "");
            say_lines(note);
        }
    }
    free(note);
    free(json);
    return r->exit_code;
}

static int run(const struct cli *cli, const struct words *w, const struct px_worker *worker,
               const struct px_worker *from)
{
    struct px_worker_run how = {.timeout_s = (unsigned)w->timeout, .attachments = w->attach.items, .from = from};
    struct px_err e = {0};
    struct px_box *box = NULL;
    char **argv = NULL;
    if (approve(w, worker, &argv, &e) < 0)
        return say_error(cli, &e, START_STATUS);
    int status;
    wipe_environment();
    if (px_worker_start(worker, (const char *const *)argv, &how, &box, &e) < 0)
        status = say_error(cli, &e, status_for(&e));
    else if (px_box_wait(box, &e) < 0)
        status = say_error(cli, &e, START_STATUS);
    else
        status = tell(cli, worker, box, how.timeout_s, &e);
    px_box_free(box);
    px_words_free(argv);
    return status;
}

/* What would become of a command, as a value; nothing is run. */
static int judge(const struct cli *cli, const struct words *w, const struct px_worker *worker)
{
    struct px_err e = {0};
    char **argv = NULL, *text = join(w);
    if (!text)
        return fail(cli, PX_E_MEMORY, 1, NULL, "px ran out of memory");
    enum px_approval verdict = px_worker_judge(worker, text, &argv, &e);
    if (verdict != PX_BLOCKED)
        px_words_free(argv);
    free(text);
    if (cli->json)
        return print("{\"ok\":true,\"approval\":\"%s\"}\n", px_approval_name(verdict)) < 0;
    return print("%s%s%s\n", px_approval_name(verdict), verdict == PX_BLOCKED ? ": " : "", verdict == PX_BLOCKED ? e.what : "") < 0;
}

static int check(const struct cli *cli, const struct words *w, const struct px_worker *worker)
{
    struct px_err e = {0};
    char *text = NULL, *json = NULL;
    if (w->command_count)
        return judge(cli, w, worker);
    if (px_worker_describe(worker, &text, &json, &e) < 0)
        return say_error(cli, &e, 1);
    int status = print_text(cli->json ? json : text) < 0;
    free(text);
    free(json);
    return status;
}

/* Before anything of the child is read, made or asked for. What it gets is opened once more when it starts. */
static int check_attachments(const struct words *w, const struct px_worker *caller, struct px_err *e)
{
    for (size_t i = 0; i < w->attach.count; i++) {
        uint64_t bytes;
        int fd;
        if (px_worker_attach(caller, w->attach.items[i], &fd, &bytes, e) < 0)
            return -1;
        (void)close(fd);
    }
    return 0;
}

/* The caller's tool_rules, before anything of the child is read. */
static int may_call(const struct words *w, const struct px_worker *caller, struct px_err *e)
{
    char text[512];
    enum px_approval found = px_worker_tool(caller, "worker_call", e);
    if (found == PX_BLOCKED || found == PX_PRE_APPROVED || w->approve_all)
        return found == PX_BLOCKED ? -1 : 0;
    (void)snprintf(text, sizeof text, "worker_call %.200s", w->child);
    return w->strict ? make_error(e, PX_E_APPROVAL, "Leave --strict out to be asked.", "calling another worker needs approval")
                     : ask_person(text, e);
}

/* The child has its own boundaries; what is attached is looked up in the caller's. */
static int call(const struct cli *cli, const struct words *w, const struct px_worker *caller)
{
    struct px_err e = {0};
    struct px_worker *child = NULL;
    char *path = NULL;
    int status = may_call(w, caller, &e) < 0 || px_worker_child(caller, w->child, &path, &e) < 0 || check_attachments(w, caller, &e) < 0 ||
                         px_worker_load(path, w->base, &child, &e) < 0
                     ? say_error(cli, &e, START_STATUS)
                     : run(cli, w, child, caller);
    px_worker_free(child);
    free(path);
    return status;
}

static int run_worker(struct args *a, int (*act)(const struct cli *cli, const struct words *w, const struct px_worker *worker), int failed)
{
    struct words *w = a->request;
    struct px_err e = {0};
    struct px_worker *worker = NULL;
    w->file = a->names[0];
    w->child = a->names[1];
    w->command = a->o.argv;
    w->command_count = a->o.argc;
    if (px_worker_load(w->file, w->base, &worker, &e) < 0)
        return say_error(a->cli, &e, failed);
    int status = act(a->cli, w, worker);
    px_worker_free(worker);
    return status;
}

static int run_own(const struct cli *cli, const struct words *w, const struct px_worker *worker)
{
    return run(cli, w, worker, worker);
}

static int verb_check(struct args *a)
{
    return run_worker(a, check, 1);
}

static int verb_shell(struct args *a)
{
    return run_worker(a, run_own, START_STATUS);
}

static int verb_call(struct args *a)
{
    return run_worker(a, call, START_STATUS);
}

static const struct option_row shared[] = {
    {"base", 0, OPTION_TEXT, offsetof(struct words, base), "DIR", "relative roots are below this directory (.)"},
    {0},
};
static const struct option_row rows[] = {
    {"timeout", 0, OPTION_NUMBER, offsetof(struct words, timeout), "SECONDS", "1 to 300 (30)", .most = 300},
    {"approve-all", 0, OPTION_FLAG, offsetof(struct words, approve_all), NULL, "do not ask"},
    {"strict", 0, OPTION_FLAG, offsetof(struct words, strict), NULL, "refuse what needs approval"},
    {"attach", 0, OPTION_LIST, offsetof(struct words, attach), "ROOT/FILE", "a file of FILE's sandbox, read-only at /attachments"},
    {0},
};

#define WORKER shared, sizeof(struct words), .command = COMMAND_BEHIND, .alone = true

const struct verb worker_verbs[] = {
    {"check", "FILE [-- COMMAND]", "print the boundaries; or whether its rules block a command, need approval for it or approve it",
     verb_check, NULL, WORKER, .least = 1, .most = 1, .needs = "the worker's file"},
    {"shell", "FILE [OPTIONS] -- COMMAND", "commands that its shell rules allow, in a box with its paths", verb_shell, rows, WORKER,
     .least = 1, .most = 1, .needs = "the worker's file"},
    {"call", "FILE WORKER [OPTIONS] -- COMMAND", "the same for another worker that FILE names, within that one's own boundaries",
     verb_call, rows, WORKER, .least = 2, .most = 2, .needs = "the worker's file and the name of the other worker"},
    {0},
};
