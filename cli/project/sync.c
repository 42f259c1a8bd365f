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

static int run_sync(struct args *a)
{
    struct project_call call;
    int r = project_begin(a->cli, "sync", &call);
    if (r == 0)
        r = px_project_sync(call.project, a->request, &call.json, &call.e);
    return project_end(&call, r, a->cli->verbose < 0 ? NULL : show);
}

static const struct option_row rows[] = {
    {"frozen", 0, OPTION_FLAG, offsetof(struct px_sync, frozen), NULL, "use the lock as it is; fail if it does not fit"},
    {"dry-run", 0, OPTION_FLAG, offsetof(struct px_sync, dry_run), NULL, "say what would be done"},
    {0},
};
const struct verb sync_verbs[] = {
    {"", "[OPTIONS]", NULL, run_sync, rows, .size = sizeof(struct px_sync)},
    {0},
};
