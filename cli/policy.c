/* px policy: a policy in full, its system call filter, or the same in another program's format. */
#include "cli.h"

#include <px/runtime.h>

#include <stdlib.h>
#include <string.h>

/* `--seccomp` asks for the filter here; the profile behind it may be left out. Takes it out of the words if it is. */
static bool asks_for_filter(int *argc, char **argv)
{
    for (int i = 0; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--seccomp=", 10) == 0)
            return true;
        if (strcmp(argv[i], "--seccomp") != 0)
            continue;
        if (i + 1 == *argc || argv[i + 1][0] == '-') {
            memmove(argv + i, argv + i + 1, (size_t)(*argc - i - 1) * sizeof *argv);
            (*argc)--;
        }
        return true;
    }
    return false;
}

static int show(struct cli *cli, int argc, char **argv)
{
    struct options o;
    struct px_err e = {0};
    char *text = NULL;
    bool filter = asks_for_filter(&argc, argv);

    if (parse_options(cli, argc, argv, &o, &e) < 0)
        return say_error(cli, &e, status_of_words(&e));
    if (o.help) {
        free_options(&o);
        return print_help(find_command("policy"));
    }
    say_warnings(cli, o.policy);
    int r = filter ? px_policy_seccomp(o.policy, &text, &e) : px_policy_json(o.policy, &text, &e);
    int status = r < 0 ? say_error(cli, &e, 1) : print_text(text) < 0 ? 1 : 0;
    free(text);
    free_options(&o);
    return status;
}

/* --to FORMAT stands before the policy's own options. */
static int export(struct cli *cli, int argc, char **argv)
{
    static const char *shell[] = {"/bin/sh", NULL};
    struct options o;
    struct px_err e = {0};
    char *text = NULL;
    const char *to = argc >= 2 && strcmp(argv[0], "--to") == 0 ? argv[1] : NULL;

    if (!to)
        return usage_error(cli, USAGE_STATUS, "Write px policy export --to oci|bwrap|docker|seatbelt [OPTIONS] [-- COMMAND...].", "the format is missing");
    if (parse_options(cli, argc - 2, argv + 2, &o, &e) < 0)
        return say_error(cli, &e, status_of_words(&e));
    if (o.help) {
        free_options(&o);
        return print_help(find_command("policy"));
    }
    int r = px_policy_export(o.policy, o.argc ? o.argv : shell, to, &text, &e);
    int status = r < 0 ? say_error(cli, &e, 1) : print_text(text) < 0 ? 1 : 0;
    free(text);
    free_options(&o);
    return status;
}

/* 1 if there is something to say. */
static int check(struct cli *cli, int argc, char **argv)
{
    struct options o;
    struct px_err e = {0};
    char *found = NULL, *warnings = NULL;
    if (parse_options(cli, argc, argv, &o, &e) < 0)
        return say_error(cli, &e, status_of_words(&e));
    if (o.help) {
        free_options(&o);
        return print_help(find_command("policy"));
    }
    int status = px_policy_check(o.policy, &found, &e) < 0 || px_policy_warnings(o.policy, &warnings, &e) < 0 ? say_error(cli, &e, 1)
                 : found || warnings ? 1 : 0;
    if (found)
        (void)print_text(found);
    if (warnings)
        (void)print_text(warnings);
    free(found);
    free(warnings);
    free_options(&o);
    return status;
}

int cmd_policy(struct cli *cli, int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "show") == 0)
        return show(cli, argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "export") == 0)
        return export(cli, argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "check") == 0)
        return check(cli, argc - 1, argv + 1);
    return usage_error(cli, USAGE_STATUS, "Write px policy show [--preset NAME], px policy check, or px policy export --to oci|bwrap|docker|seatbelt.",
                       "px policy knows only: show, check, export");
}
