/* px init: a directory becomes a project. */
#include "cli/project/project.h"

int cmd_init(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px init [--name NAME] [DIRECTORY].";
    const char *name = NULL;
    const struct word words[] = {{"--name", 0, NULL, &name}, {0}};
    struct project_call call = {.cli = cli, .command = "init"};
    int status = 0, left = take_words(cli, "init", usage, words, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > 1)
        return usage_error(cli, USAGE_STATUS, usage, "px init takes one directory");
    progress_begin(&call.progress, true);
    return project_end(&call, px_project_init(left ? argv[0] : NULL, name, &call.json, &call.e), NULL);
}
