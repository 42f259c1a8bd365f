/* px add and px remove: the dependencies of a project. */
#include <stdlib.h>

#include "cli/project/project.h"

enum { NAMES_MAX = 256 };

static int edit(struct cli *cli, const char *command, bool adding, int argc, char **argv)
{
    const char *usage =
        adding ? "Write px add [--group NAME] REQUIREMENT..." : "Write px remove [--group NAME] NAME...";
    const char *names[NAMES_MAX + 1];
    struct px_depend how = {.adding = adding, .requirements = names};
    const struct word words[] = {{"--group", 0, NULL, &how.group}, {0}};
    struct project_call call;
    int status = 0, left = take_words(cli, command, usage, words, argc, argv, &status);
    if (left < 0)
        return status;
    if (left == 0 || left > NAMES_MAX)
        return usage_error(cli, USAGE_STATUS, usage, left ? "more than %d packages" : "which package?", NAMES_MAX);
    for (int i = 0; i < left; i++)
        names[i] = argv[i];
    names[left] = NULL;
    int r = project_begin(cli, command, &call);
    if (r == 0)
        r = px_project_depend(call.project, &how, &call.json, &call.e);
    return project_end(&call, r, NULL);
}

int cmd_add(struct cli *cli, int argc, char **argv)
{
    return edit(cli, "add", true, argc, argv);
}

int cmd_remove(struct cli *cli, int argc, char **argv)
{
    return edit(cli, "remove", false, argc, argv);
}
