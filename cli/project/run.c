/* px run and px test: a program of the project, on this machine or in its sandbox; and px explain run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/project/project.h"

enum { TRIES = 4 };             /* a run, and as many more as capabilities that it turned out to need */

struct asked {
    struct cli *cli;
    const char *command;        /* "run" or "test" */
    struct project_call *call;
    struct options o;
    struct px_project_run how;
    bool auto_add;
    const char *extra[TRIES + 1];
    size_t extra_count;
    struct px_launch *launch;
    const char *missing;        /* what may be added for one more run; NULL: nothing */
    bool started;
    int status;
};

/* ---- words ---- */

static int check_words(struct asked *a, struct px_err *e)
{
    const struct options *o = &a->o;
    const char *fix = "Run `px run --help` for what can be said.";
    if (o->said && !a->how.sandbox)
        return make_error(e, 1, "Add --sandbox: on this machine nothing bounds the program.", "--%s needs --sandbox",
                          o->said);
    if (o->report && !a->how.sandbox)
        return make_error(e, 1, "Add --sandbox, or use --json.", "--report needs --sandbox");
    if (a->auto_add && !a->how.sandbox)
        return make_error(e, 1, "Add --sandbox.", "--auto-add needs --sandbox");
    if (a->how.read_only && !a->how.sandbox)
        return make_error(e, 1, "Add --sandbox.", "--read-only needs --sandbox");
    if (o->shell_text || o->plan)
        return make_error(e, 1, o->plan ? "Run `px explain run`." : fix, "--%s is for px exec",
                          o->plan ? "plan" : "command");
    if (a->cli->json && (o->tty || o->interactive))
        return make_error(e, 1, "Leave one of them out.", "--json has no terminal and no input for the program");
    if (o->argc == 0 && strcmp(a->command, "run") == 0)
        return make_error(e, 1,
                          "Name a file of the project, python, or a script of one of its packages: px run app.py.",
                          "there is nothing to run");
    return 0;
}

static int read_words(struct asked *a, int argc, char **argv, struct px_err *e)
{
    struct px_policy *policy = NULL;
    const struct word own[] = {{"--sandbox", 0, &a->how.sandbox, NULL},
                               {"--frozen", 0, &a->how.frozen, NULL},
                               {"--auto-add", 0, &a->auto_add, NULL},
                               {"--read-only", 0, &a->how.read_only, NULL},
                               {NULL, 0, NULL, NULL}};
    const struct option_rules rules = {
        .project = true,
        .else_is = "is not for a project's sandbox",
        .own = own,
        .fix = "Its root is the project's image, its working tree is at /app.",
        .list = "Run `px run --help` for the list. A target that starts with '-' goes after `--`."};
    if (px_project_policy(&policy, e) < 0)
        return -1;
    return parse_options_onto(a->cli, argc, argv, policy, &rules, &a->o, e);
}

/* A person at all ends gets a terminal in the box as well. */
static int choose_terminal(struct asked *a, struct px_err *e)
{
    bool person = !a->cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    a->how.terminal = person;
    a->how.capture = a->cli->json;
    if (!a->how.sandbox || a->cli->json)
        return 0;
    a->o.interactive = true;
    a->o.tty = a->o.tty || (person && isatty(STDERR_FILENO));
    return px_policy_set(a->o.policy, a->o.tty ? "tty" : "interactive", "true", e);
}

/* ---- answers ---- */

static void say_hint(const struct asked *a, const struct px_err *why)
{
    if (!a->cli->json && a->cli->verbose >= 0)
        (void)say_error(a->cli, why, 0);
}

static int print_answer(struct asked *a, const struct px_launch_end *end)
{
    struct px_err e = {0};
    char *json = NULL;
    if (!a->cli->json)
        return end->code;
    if (px_launch_answer(a->launch, end, &json, &e) < 0)
        return say_error(a->cli, &e, START_STATUS);
    int status = print_text(json) < 0 ? START_STATUS : end->code;
    free(json);
    return status;
}

/* What it wrote may say that a library is missing; then once more with it, if that was asked for, else only the
 * hint. */
static int on_end(void *user, struct px_box *box)
{
    struct asked *a = user;
    struct px_launch_end end;
    struct px_err why = {0};
    const char *capability = NULL;
    px_launch_box_end(box, &end);
    bool missing = px_launch_missing(a->launch, &end, &capability, &why);
    a->missing = a->auto_add && a->extra_count < TRIES ? capability : NULL;
    if (missing && a->missing) {
        if (a->cli->verbose >= 0)
            say("px: %s: %s is added for this run, and it is started again", why.what, capability);
        return end.code;
    }
    int status = print_answer(a, &end);
    if (missing)
        say_hint(a, &why);
    return status;
}

static void say_ready(const struct asked *a)
{
    if (a->cli->verbose > 0)
        say("px: ready in %.1f ms%s", (double)px_launch_ready_nsec(a->launch) / 1e6,
            !a->how.sandbox               ? ""
            : px_launch_cached(a->launch) ? ", image cached"
                                          : ", image built");
}

static double now_msec(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- running ---- */

static int start(void *user, const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    struct asked *a = user;
    double began = now_msec();
    int r = px_launch_box(a->launch, io, ret_box, e);
    if (r == 0 && a->cli->verbose > 0)
        say("px: started in %.1f ms", now_msec() - began);
    if (r < 0)
        project_name_error(a->call, e);
    return r;
}

static int run_in_sandbox(struct asked *a)
{
    const struct run how = {.start = start, .user = a, .answer = on_end, .keep = true, .again = a->auto_add};
    return run_on_streams(a->cli, &a->o, &how);
}

static int run_on_host(struct asked *a, struct px_err *e)
{
    struct px_launch_end end;
    double began = now_msec();
    int signals = open_passed_signals();
    int r = px_launch_host(a->launch, signals, &end, e);
    (void)close(signals);
    if (r < 0) {
        project_name_error(a->call, e);
        return say_error(a->cli, e, status_for(e));
    }
    int status = print_answer(a, &end);
    if (a->cli->verbose > 0)
        say("px: %s in %.3f s", end.reason, (now_msec() - began) / 1e3);
    return status;
}

/* 0: it ran, and a->status is its; -1: the project is not ready for it. */
static int run_once(struct asked *a, struct px_err *e)
{
    a->how.argv = a->o.argv;
    a->how.policy = a->o.policy;
    a->how.extra = a->extra;
    a->missing = NULL;
    if (px_project_launch(a->call->project, &a->how, &a->launch, e) < 0)
        return -1;
    progress_end(&a->call->progress);
    say_ready(a);
    if (a->how.sandbox && a->extra_count == 0)
        say_warnings(a->cli, a->o.policy);
    a->status = a->how.sandbox ? run_in_sandbox(a) : run_on_host(a, e);
    px_launch_free(a->launch);
    a->launch = NULL;
    return 0;
}

static int run_all(struct asked *a, struct px_err *e)
{
    if (choose_terminal(a, e) < 0)
        return -1;
    while (run_once(a, e) == 0) {
        if (!a->missing)
            return 0;
        a->extra[a->extra_count++] = a->missing;
        run_again_ready();
    }
    return -1;
}

/* A target that is not there ends as a shell's would. */
static int failure_status(const struct px_err *e)
{
    int status = status_for(e);
    return status == START_STATUS ? e->code == PX_E_INTERNAL ? 2 : 1 : status;
}

static int command(struct cli *cli, const char *name, int argc, char **argv)
{
    struct project_call call;
    struct asked a = {.cli = cli, .command = name, .call = &call, .how.command = name};
    struct px_err e = {0};
    close_inherited();
    open_missing_stdio();
    if (read_words(&a, argc, argv, &e) < 0 || (!a.o.help && check_words(&a, &e) < 0)) {
        free_options(&a.o);
        return say_error(cli, &e, USAGE_STATUS);
    }
    if (a.o.help) {
        free_options(&a.o);
        return print_help(find_command(name));
    }
    int r = project_begin(cli, name, &call);
    if (r == 0)
        r = run_all(&a, &call.e);
    int failed = r < 0 ? failure_status(&call.e) : 0;
    int status = project_end(&call, r, NULL);
    free_options(&a.o);
    return r < 0 ? failed : status ? status : a.status;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
    return command(cli, "run", argc, argv);
}

int cmd_test(struct cli *cli, int argc, char **argv)
{
    return command(cli, "test", argc, argv);
}

/* ---- px explain run, px explain test ---- */

static void show_words(const json_t *list)
{
    const json_t *word;
    size_t i;
    json_array_foreach(list, i, word) {
        print("%s%s", i ? " " : "", json_string_value(word));
    }
    print("%s\n", json_array_size(list) ? "" : "-");
}

static const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "-";
}

static int show_plan(const json_t *answer, bool quiet)
{
    const json_t *details = json_object_get(answer, "details"), *sandbox = json_object_get(details, "sandbox"), *path;
    size_t i;
    if (quiet)
        return 0;
    print("engine:       %s\n", text_in(details, "engine"));
    print("first:        %s\n",
          strcmp(text_in(details, "action"), "noop") == 0 ? "nothing" : text_in(details, "action"));
    print("runtime:      %s (Python %s)\n", text_in(json_object_get(details, "runtime"), "program"),
          text_in(json_object_get(details, "runtime"), "version"));
    print("command:      ");
    show_words(json_object_get(details, "argv"));
    print("directory:    %s\n", text_in(details, "workdir"));
    json_array_foreach(json_object_get(details, "sys_path"), i, path) {
        print("%s%s\n", i ? "              " : "sys.path:     ", json_string_value(path));
    }
    if (!json_is_true(json_object_get(sandbox, "enabled")))
        return 0;
    print("base:         %s\nsbx_id:       %s\ncapabilities: ", text_in(sandbox, "base"), text_in(sandbox, "sbx_id"));
    show_words(json_object_get(sandbox, "capabilities"));
    return 0;
}

static int plan(struct asked *a, struct px_err *e, char **ret_json)
{
    a->how.argv = a->o.argv;
    a->how.policy = a->o.policy;
    a->how.plan = true;
    if (px_project_launch(a->call->project, &a->how, &a->launch, e) < 0)
        return -1;
    int r = px_launch_explain(a->launch, ret_json, e);
    px_launch_free(a->launch);
    return r;
}

int explain_run(struct cli *cli, int argc, char **argv)
{
    struct project_call call;
    struct asked a = {.cli = cli, .command = argv[0], .call = &call, .how.command = argv[0]};
    struct px_err e = {0};
    if (read_words(&a, argc - 1, argv + 1, &e) < 0 || (!a.o.help && check_words(&a, &e) < 0)) {
        free_options(&a.o);
        return say_error(cli, &e, USAGE_STATUS);
    }
    if (a.o.help) {
        free_options(&a.o);
        return print_help(find_command("explain"));
    }
    int r = project_begin(cli, "explain", &call);
    if (r == 0)
        r = plan(&a, &call.e, &call.json);
    int status = project_end(&call, r, show_plan);
    free_options(&a.o);
    return status;
}
