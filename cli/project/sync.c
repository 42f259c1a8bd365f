/* px sync: the lock and the environment of a project. */
#include "cli/project/project.h"

static int show(const json_t *answer, bool quiet)
{
    const json_t *warning;
    size_t i;
    if (quiet)
        return 0;
    print("%s\n", json_string_value(json_object_get(answer, "message")));
    json_array_foreach(json_object_get(json_object_get(answer, "details"), "warnings"), i, warning)
        say("px: warning: %s", json_string_value(warning));
    return 0;
}

int cmd_sync(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sync [--frozen] [--dry-run].";
    struct px_sync how = {0};
    const struct word words[] = {{"--frozen", 0, &how.frozen, NULL}, {"--dry-run", 0, &how.dry_run, NULL}, {0}};
    struct project_call call;
    int status = 0, left = take_words(cli, "sync", usage, words, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > 0)
        return usage_error(cli, USAGE_STATUS, usage, "px sync takes no '%.100s'", argv[0]);
    int r = project_begin(cli, "sync", &call);
    if (r == 0)
        r = px_project_sync(call.project, &how, &call.json, &call.e);
    return project_end(&call, r, cli->verbose < 0 ? NULL : show);
}
