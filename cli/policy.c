/* px policy show: a preset, with options on top, as JSON. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

int cmd_policy(struct cli *cli, int argc, char **argv)
{
    struct options o;
    struct px_err e = {0};
    char *text = NULL;

    if (argc == 0 || strcmp(argv[0], "show") != 0)
        return usage_error(cli, USAGE_STATUS, "Write px policy show [--preset NAME].", "px policy knows only: show");
    if (parse_options(cli, argc - 1, argv + 1, &o, &e) < 0)
        return say_error(cli, &e, 1);
    if (o.help) {
        int shown = print_help(find_command("policy"));
        free_options(&o);
        return shown;
    }
    int status = px_policy_json(o.policy, &text, &e) < 0 ? say_error(cli, &e, 1) : print_text(text) < 0 ? 1 : 0;
    free(text);
    free_options(&o);
    return status;
}
