/* px update: what a project's lock pins, moved to what there is now. */
#include "cli/project/project.h"

enum { NAMES_MAX = 1024 };

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

int cmd_update(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px update [PACKAGE...], or px update --system.";
    const char *names[NAMES_MAX + 1];
    struct px_update how = {.names = names};
    const struct word words[] = {{"--system", 0, &how.system, NULL}, {0}};
    struct project_call call;
    int status = 0, left = take_words(cli, "update", usage, words, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > NAMES_MAX || (left > 0 && how.system))
        return usage_error(cli, USAGE_STATUS, usage,
                           left > NAMES_MAX ? "more than 1024 packages" : "px update --system takes no names of packages");
    for (int i = 0; i < left; i++)
        names[i] = argv[i];
    names[left] = NULL;
    int r = project_begin(cli, "update", &call);
    if (r == 0)
        r = px_project_update(call.project, &how, &call.json, &call.e);
    return project_end(&call, r, show_update);
}
