/* The commands of the small px: what is not in it goes to px-main. */
#include "args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VERBS_LAUNCHER(name) name##_verbs
#define VERBS_MAIN(name) NULL
#define PX_COMMAND(where, name, summary, details) {#name, summary, details, VERBS_##where(name)},

const struct command commands[] = {
#include "commands.def"
    {0},
};

bool must_hand_over(const struct px_policy *policy)
{
    return !px_policy_is_small(policy);
}

int run_detached(struct cli *cli, struct options *o)
{
    (void)o;
    return hand_over(cli);
}

/* Beside this program in a build, in libexec when installed. */
int hand_over(const struct cli *cli)
{
    static const char *const places[] = {"px-main", "../libexec/px/px-main"};
    char self[4096], path[4200];

    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return fail(cli, PX_E_IO, START_STATUS, "Mount /proc.", "px cannot find its own place");
    self[n] = '\0';
    *(strrchr(self, '/') + 1) = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", self, places[i]);
        (void)execv(path, cli->argv);
        if (errno != ENOENT)
            return fail(cli, PX_E_IO, START_STATUS, NULL, "cannot run '%s'", path);
    }
    return fail(cli, PX_E_NOT_BUILT, START_STATUS, "Install px as a whole (make install), or run it from its build directory.",
                "this needs the program px-main, and it is not beside px nor in ../libexec/px");
}
