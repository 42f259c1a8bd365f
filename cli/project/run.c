/* px run and px test: a program of the project, on this machine or in its sandbox; and px explain run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/project/project.h"

enum { TRIES = 4 };             /* a run, and as many more as capabilities that it turned out to need */

struct words {
    bool sandbox, frozen, auto_add, read_only;
};

struct asked {
    struct cli *cli;
    const char *command;        /* "run" or "test" */
    struct project_call *call;
    struct options *o;          /* of the command line */
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
    const struct options *o = a->o;
    const char *fix = "Run `px run --help` for what can be said.";
    if (o->said && !a->how.sandbox)
        return make_error(e, PX_E_USAGE, "Add --sandbox: on this machine nothing bounds the program.", "--%s needs --sandbox",
                          o->said);
    if (o->report && !a->how.sandbox)
        return make_error(e, PX_E_USAGE, "Add --sandbox, or use --json.", "--report needs --sandbox");
    if (a->auto_add && !a->how.sandbox)
        return make_error(e, PX_E_USAGE, "Add --sandbox.", "--auto-add needs --sandbox");
    if (a->how.read_only && !a->how.sandbox)
        return make_error(e, PX_E_USAGE, "Add --sandbox.", "--read-only needs --sandbox");
    if (o->shell_text || o->plan)
        return make_error(e, PX_E_USAGE, o->plan ? "Run `px explain run`." : fix, "--%s is for px exec",
                          o->plan ? "plan" : "command");
    if (a->cli->json && (o->tty || o->interactive))
        return make_error(e, PX_E_USAGE, "Leave one of them out.", "--json has no terminal and no input for the program");
    if (o->argc == 0 && strcmp(a->command, "run") == 0)
        return make_error(e, PX_E_USAGE,
                          "Name a file of the project, python, or a script of one of its packages: px run app.py.",
                          "there is nothing to run");
    return 0;
}

static int read_words(struct args *args, struct asked *a, struct px_err *e)
{
    struct px_policy *policy = NULL;
    const struct words *w = args->request;
    a->o = &args->o;
    a->how.sandbox = w->sandbox;
    a->how.frozen = w->frozen;
    a->how.read_only = w->read_only;
    a->auto_add = w->auto_add;
    if (check_words(a, e) < 0 || px_project_policy(&policy, e) < 0)
        return -1;
    return args_policy(args, policy, &args->o.policy, e);
}

/* A person at all ends gets a terminal in the box as well. */
static int choose_terminal(struct asked *a, struct px_err *e)
{
    bool person = !a->cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    a->how.terminal = person;
    a->how.capture = a->cli->json;
    if (!a->how.sandbox || a->cli->json)
        return 0;
    a->o->interactive = true;
    a->o->tty = a->o->tty || (person && isatty(STDERR_FILENO));
    return px_policy_set(a->o->policy, a->o->tty ? "tty" : "interactive", "true", e);
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
    return run_on_streams(a->cli, a->o, &how);
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
    a->how.argv = a->o->argv;
    a->how.policy = a->o->policy;
    a->how.extra = a->extra;
    a->missing = NULL;
    if (px_project_launch(a->call->project, &a->how, &a->launch, e) < 0)
        return -1;
    progress_end(&a->call->progress);
    say_ready(a);
    if (a->how.sandbox && a->extra_count == 0)
        say_warnings(a->cli, a->o->policy);
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

static int command(struct args *args, const char *name)
{
    struct project_call call;
    struct asked a = {.cli = args->cli, .command = name, .call = &call, .how.command = name};
    struct px_err e = {0};
    if (read_words(args, &a, &e) < 0)
        return say_error(args->cli, &e, USAGE_STATUS);
    int r = project_begin(args->cli, name, &call);
    if (r == 0)
        r = run_all(&a, &call.e);
    int failed = r < 0 ? failure_status(&call.e) : 0;
    int status = project_end(&call, r, NULL);
    return r < 0 ? failed : status ? status : a.status;
}

static int run_run(struct args *a)
{
    return command(a, "run");
}

static int run_test(struct args *a)
{
    return command(a, "test");
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
    a->how.argv = a->o->argv;
    a->how.policy = a->o->policy;
    a->how.plan = true;
    if (px_project_launch(a->call->project, &a->how, &a->launch, e) < 0)
        return -1;
    int r = px_launch_explain(a->launch, ret_json, e);
    px_launch_free(a->launch);
    return r;
}

static int explain_run(struct args *args)
{
    struct project_call call;
    const char *name = args->verb->name;
    struct asked a = {.cli = args->cli, .command = name, .call = &call, .how.command = name};
    struct px_err e = {0};
    if (read_words(args, &a, &e) < 0)
        return say_error(args->cli, &e, USAGE_STATUS);
    int r = project_begin(args->cli, "explain", &call);
    if (r == 0)
        r = plan(&a, &call.e, &call.json);
    return project_end(&call, r, show_plan);
}

/* ---- the options ---- */

static const struct option_row rows[] = {
    {"sandbox", 0, OPTION_FLAG, offsetof(struct words, sandbox), NULL, "in a box on the project's image, with the project at /app"},
    {"frozen", 0, OPTION_FLAG, offsetof(struct words, frozen), NULL,
     "fail where the lock or the environment does not fit; CI=1 says the same"},
    {"auto-add", 0, OPTION_FLAG, offsetof(struct words, auto_add), NULL,
     "when a system library is missing, add what brings it for this run, and start again"},
    {"read-only", 0, OPTION_FLAG, offsetof(struct words, read_only), NULL, "the program cannot write in the project"},
    {0},
};
static const struct field_rules rules = {.project = true, .else_is = "is not for a project's sandbox",
                                         .fix = "Its root is the project's image, its working tree is at /app."};

#define RUN rows, .size = sizeof(struct words), .command = COMMAND_NEXT, .policy = &rules

const struct verb run_verbs[] = {
    {"", "[OPTIONS] TARGET [ARG...]", NULL, run_run, RUN, .alone = true},
    {0},
};
const struct verb test_verbs[] = {
    {"", "[OPTIONS] [ARG...]", NULL, run_test, RUN, .alone = true},
    {0},
};
const struct verb explain_verbs[] = {
    {"run", "[OPTIONS] TARGET [ARG...]", "what px run would do; nothing is written", explain_run, RUN},
    {"test", "[OPTIONS] [ARG...]", "what px test would do; nothing is written", explain_run, RUN},
    {"", "[PXnnn]", "more about an error, or the list of them", explain_error, .most = 1},
    {0},
};
