/* The commands of px-main: every command. */
#include "args.h"

#include <stddef.h>

#define RUN_LAUNCHER(name) cmd_##name
#define RUN_MAIN(name) cmd_##name
#define PX_COMMAND(where, name, summary, usage, policy_options, details) \
    {#name, summary, usage, details, policy_options, RUN_##where(name), NULL},
#define PX_VERBS(where, name, summary, details) {#name, summary, NULL, details, false, NULL, name##_verbs},

const struct command commands[] = {
#include "commands.def"
    {0},
};

bool must_hand_over(const struct px_policy *policy)
{
    (void)policy;
    return false;
}

int hand_over(struct cli *cli, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return fail(cli, PX_E_INTERNAL, START_STATUS, NULL, "px-main would hand over to itself");
}
