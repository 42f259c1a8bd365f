/* px init: a directory becomes a project. */
#include "cli/project/project.h"

struct init {
    const char *name;
};

static int run_init(struct args *a)
{
    const struct init *how = a->request;
    struct project_call call = {.cli = a->cli, .command = "init"};
    progress_begin(&call.progress, true);
    return project_end(&call, px_project_init(a->names[0], how->name, &call.json, &call.e), NULL);
}

static const struct option_row rows[] = {
    {"name", 0, OPTION_TEXT, offsetof(struct init, name), "NAME", "the project's name (the directory's)"},
    {0},
};
const struct verb init_verbs[] = {
    {"", "[OPTIONS] [DIRECTORY]", NULL, run_init, rows, .size = sizeof(struct init), .most = 1},
    {0},
};
