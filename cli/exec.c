/* px exec and px shell: one command in a box of its own, on the caller's streams. */
#include "args.h"

#include <stdlib.h>
#include <unistd.h>

static int start_box(void *user, const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    const struct options *o = user;
    return px_box_start(o->policy, o->argv, io, ret_box, e);
}

static int print_plan(struct cli *cli, struct options *o)
{
    struct px_err e = {0};
    char *text = NULL;
    if (px_plan_json(o->policy, o->argv, &text, &e) < 0)
        return say_error(cli, &e, START_STATUS);
    int r = print_text(text);
    free(text);
    return r < 0 ? START_STATUS : 0;
}

static int run_command(struct args *a)
{
    struct cli *cli = a->cli;
    struct options *o = &a->o;
    struct px_err e = {0};
    if (args_policy(a, NULL, &o->policy, &e) < 0)
        return say_error(cli, &e, START_STATUS);
    if (o->argc == 0)
        return usage_error(cli, START_STATUS, "Write the command after the options: px exec -- echo hello.",
                           "there is no command to run");
    if (o->keeps && !o->detach)
        return usage_error(cli, START_STATUS, "Add -d, or leave them out: a box that runs one command ends with it.",
                           "--name, --idle and --max-life are for a box that stays");
    if (must_hand_over(o->policy))
        return hand_over(cli);
    say_warnings(cli, o->policy);
    if (o->plan)
        return print_plan(cli, o);
    if (px_policy_prepare(o->policy, &e) < 0)   /* while signals still end it as they should */
        return say_error(cli, &e, START_STATUS);
    return o->detach ? run_detached(cli, o) : run_on_streams(cli, o, &(struct run){.start = start_box, .user = o});
}

static int run_shell(struct args *a)
{
    struct options *o = &a->o;
    bool tty = isatty(STDIN_FILENO);
    a->fields[a->field_count++] = (struct said_field){tty ? "tty" : "interactive", "true"};
    o->tty = o->tty || tty;
    o->interactive = true;
    if (o->argc == 0)
        o->argv[o->argc++] = "/bin/bash";
    return run_command(a);
}

const struct verb exec_verbs[] = {
    {"", "[OPTIONS] [--] COMMAND [ARG...] | -c TEXT", NULL, run_command, .command = COMMAND_NEXT, .policy = &args_every_field,
     .status = START_STATUS, .alone = true},
    {0},
};
const struct verb shell_verbs[] = {
    {"", "[OPTIONS] [--] [COMMAND...]", NULL, run_shell, .command = COMMAND_NEXT, .policy = &args_every_field,
     .status = START_STATUS, .alone = true},
    {0},
};
