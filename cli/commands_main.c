/* The commands of px-main: every command. */
#include "args.h"

#include <stddef.h>

#define PX_COMMAND(where, name, summary, details) {#name, summary, details, name##_verbs},

const struct command commands[] = {
#include "commands.def"
    {0},
};

bool must_hand_over(const struct px_policy *policy)
{
    (void)policy;
    return false;
}

int hand_over(const struct cli *cli)
{
    return fail(cli, PX_E_INTERNAL, START_STATUS, NULL, "px-main would hand over to itself");
}
