/* px update: what a project's lock pins, moved to what there is now. */
#include "cli/project/project.h"

static void show_changes(const json_t *changes)
{
    const json_t *row;
    size_t i;
    json_array_foreach(changes, i, row) {
        const char *from = json_string_value(json_object_get(row, "from"));
        const char *to = json_string_value(json_object_get(row, "to"));
        print("%-24s %s -> %s\n", json_string_value(json_object_get(row, "name")), from ? from : "not there",
              to ? to : "not needed");
    }
}

static int show_update(const json_t *answer, bool quiet)
{
    const json_t *changes = json_object_get(json_object_get(answer, "details"), "changed");
    if (quiet)
        return 0;
    if (json_array_size(changes) > 1)
        show_changes(changes);
    print("%s\n", json_string_value(json_object_get(answer, "message")));
    return 0;
}

static int run_update(struct args *a)
{
    struct px_update *how = a->request;
    struct project_call call;
    if (a->count > 0 && how->system)
        return usage_error(a->cli, USAGE_STATUS, NULL, "px update --system takes no '%.100s'", a->names[0]);
    how->names = a->names;
    int r = project_begin(a->cli, "update", &call);
    if (r == 0)
        r = px_project_update(call.project, how, &call.json, &call.e);
    return project_end(&call, r, show_update);
}

static const struct option_row rows[] = {
    {"system", 0, OPTION_FLAG, offsetof(struct px_update, system), NULL,
     "instead: today's packages of the base and of the system libraries, and a sandbox of them"},
    {0},
};
const struct verb update_verbs[] = {
    {"", "[PACKAGE...] | --system", NULL, run_update, rows, .size = sizeof(struct px_update), .most = NAMES_ANY},
    {0},
};
