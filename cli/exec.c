/* px exec and px shell: one command in a box of its own, on the caller's streams. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
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

static int run_command(struct cli *cli, const char *name, struct options *o)
{
    if (o->help) {
        return print_help(find_command(name));
    }
    if (o->argc == 0)
        return usage_error(cli, START_STATUS, "Write the command after the options: px exec -- echo hello.",
                           "there is no command to run");
    if (o->keeps && !o->detach)
        return usage_error(cli, START_STATUS, "Add -d, or leave them out: a box that runs one command ends with it.",
                           "--name, --idle and --max-life are for a box that stays");
    if (must_hand_over(o->policy))
        return hand_over(cli, 0, NULL);
    say_warnings(cli, o->policy);
    if (o->plan)
        return print_plan(cli, o);
    struct px_err e = {0};
    if (px_policy_prepare(o->policy, &e) < 0)   /* while signals still end it as they should */
        return say_error(cli, &e, START_STATUS);
    return o->detach ? run_detached(cli, o) : run_on_streams(cli, o, &(struct run){.start = start_box, .user = o});
}

int cmd_exec(struct cli *cli, int argc, char **argv)
{
    struct options o;
    struct px_err e = {0};
    close_inherited();
    open_missing_stdio();
    if (parse_options(cli, argc, argv, &o, &e) < 0)
        return say_error(cli, &e, START_STATUS);
    int status = run_command(cli, "exec", &o);
    free_options(&o);
    return status;
}

int cmd_shell(struct cli *cli, int argc, char **argv)
{
    static const char *shell[] = {"/bin/bash", NULL};
    struct options o;
    struct px_err e = {0};
    bool tty = isatty(STDIN_FILENO);

    close_inherited();
    open_missing_stdio();
    if (parse_options(cli, argc, argv, &o, &e) < 0 ||
        px_policy_set(o.policy, tty ? "tty" : "interactive", "true", &e) < 0)
        return say_error(cli, &e, START_STATUS);
    o.tty = o.tty || tty;
    o.interactive = true;
    if (o.argc == 0) {
        free(o.argv);
        o.argv = calloc(2, sizeof *o.argv);
        if (!o.argv)
            return START_STATUS;
        memcpy(o.argv, shell, sizeof shell);
        o.argc = 1;
    }
    int status = run_command(cli, "shell", &o);
    free_options(&o);
    return status;
}
