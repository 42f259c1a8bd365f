/* px policy: a policy in full, its system call filter, or the same in another program's format. */
#include "args.h"

#include <px/runtime.h>

#include <stdlib.h>

struct policy_words {
    const char *seccomp, *to;   /* seccomp: "" if no profile was named */
};

/* The policy of the options; 0, or the exit status of what is wrong with them. */
static int make_policy(struct args *a)
{
    struct px_err e = {0};
    const struct policy_words *w = a->request;
    if (args_policy(a, NULL, &a->o.policy, &e) < 0 ||
        (w->seccomp && *w->seccomp && px_policy_set(a->o.policy, "seccomp", w->seccomp, &e) < 0))
        return say_error(a->cli, &e, status_of_words(&e));
    return 0;
}

static int print_result(const struct args *a, int r, char *text, const struct px_err *e)
{
    int status = r < 0 ? say_error(a->cli, e, 1) : print_text(text) < 0 ? 1 : 0;
    free(text);
    return status;
}

static int show(struct args *a)
{
    const struct policy_words *w = a->request;
    struct px_err e = {0};
    char *text = NULL;
    int status = make_policy(a);
    if (status)
        return status;
    say_warnings(a->cli, a->o.policy);
    int r = w->seccomp ? px_policy_seccomp(a->o.policy, &text, &e) : px_policy_json(a->o.policy, &text, &e);
    return print_result(a, r, text, &e);
}

static int export(struct args *a)
{
    static const char *shell[] = {"/bin/sh", NULL};
    const struct policy_words *w = a->request;
    struct px_err e = {0};
    char *text = NULL;
    if (!w->to)
        return usage_error(a->cli, USAGE_STATUS, "Write px policy export --to oci|bwrap|docker|seatbelt [OPTIONS] [-- COMMAND...].",
                           "the format is missing");
    int status = make_policy(a);
    if (status)
        return status;
    int r = px_policy_export(a->o.policy, a->o.argc ? a->o.argv : shell, w->to, &text, &e);
    return print_result(a, r, text, &e);
}

/* 1 if there is something to say. */
static int check(struct args *a)
{
    struct px_err e = {0};
    char *found = NULL, *warnings = NULL;
    int status = make_policy(a);
    if (status)
        return status;
    status = px_policy_check(a->o.policy, &found, &e) < 0 || px_policy_warnings(a->o.policy, &warnings, &e) < 0 ? say_error(a->cli, &e, 1)
             : found || warnings ? 1 : 0;
    if (found)
        (void)print_text(found);
    if (warnings)
        (void)print_text(warnings);
    free(found);
    free(warnings);
    return status;
}

static const struct option_row show_rows[] = {
    {"seccomp", 0, OPTION_TEXT, offsetof(struct policy_words, seccomp), "PROFILE",
     "the system call filter in force, or this one, in the containers' JSON format", OPTION_MAYBE},
    {0},
};
static const struct option_row export_rows[] = {
    {"to", 0, OPTION_TEXT, offsetof(struct policy_words, to), "FORMAT",
     "oci: the config.json of a bundle; bwrap, docker: a script; seatbelt: a profile"},
    {0},
};

#define POLICY .size = sizeof(struct policy_words), .command = COMMAND_NEXT, .policy = &args_every_field

const struct verb policy_verbs[] = {
    {"show", "[OPTIONS]", "the policy that the options of px exec make", show, show_rows, POLICY},
    {"check", "[OPTIONS]", "what contradicts itself, has no effect or is too wide; the exit status is 1 then", check, POLICY},
    {"export", "--to FORMAT [OPTIONS] [-- COMMAND...]", "the same policy for another engine", export, export_rows, POLICY},
    {0},
};
