/* px add and px remove: the dependencies of a project. */
#include "cli/project/project.h"

static int edit(struct args *a, const char *command, bool adding)
{
    struct px_depend *how = a->request;
    struct project_call call;
    how->adding = adding;
    how->requirements = a->names;
    int r = project_begin(a->cli, command, &call);
    if (r == 0)
        r = px_project_depend(call.project, how, &call.json, &call.e);
    return project_end(&call, r, NULL);
}

static int run_add(struct args *a)
{
    return edit(a, "add", true);
}

static int run_remove(struct args *a)
{
    return edit(a, "remove", false);
}

static const struct option_row rows[] = {
    {"group", 0, OPTION_TEXT, offsetof(struct px_depend, group), "NAME", "this list of [dependency-groups], not the dependencies"},
    {0},
};
const struct verb add_verbs[] = {
    {"", "[OPTIONS] REQUIREMENT...", NULL, run_add, rows, .size = sizeof(struct px_depend), .least = 1, .most = NAMES_ANY,
     .needs = "a requirement"},
    {0},
};
const struct verb remove_verbs[] = {
    {"", "[OPTIONS] NAME...", NULL, run_remove, rows, .size = sizeof(struct px_depend), .least = 1, .most = NAMES_ANY,
     .needs = "the name of a package"},
    {0},
};
