/* px status: where a project stands. */
#include <stdio.h>

#include "cli/project/project.h"

static const char *text_of(const json_t *answer, const char *object, const char *name)
{
    const char *text = json_string_value(json_object_get(json_object_get(answer, object), name));
    return text ? text : "";
}

static void row(const char *label, const char *fmt, const char *a, const char *b)
{
    print("%-9s ", label);
    print(fmt, a, b);
    print("\n");
}

static bool consistent(const json_t *answer)
{
    const char *kind = text_of(answer, "next_action", "kind");
    return kind[0] == 'n';      /* "none" */
}

static int show_brief(const json_t *answer, bool quiet)
{
    const char *version = text_of(answer, "runtime", "version"), *command = text_of(answer, "next_action", "command");
    if (!quiet)
        print("%s: %s (%s, Python %s)%s%s\n", text_of(answer, "project", "name"), text_of(answer, "project", "state"),
              text_of(answer, "context", "kind"), version, *command ? " – run " : "", command);
    return consistent(answer) ? 0 : 1;
}

static void show_reasons(const json_t *answer)
{
    const json_t *reason;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(answer, "project"), "reasons"), i, reason) {
        row("", "- %s%s", json_string_value(reason), "");
    }
}

static int show_status(const json_t *answer, bool quiet)
{
    const json_t *warning;
    const char *version = text_of(answer, "runtime", "version"), *next = text_of(answer, "next_action", "command");
    const char *member = text_of(answer, "context", "member"), *path = text_of(answer, "env", "path");
    size_t i;
    if (quiet)
        return consistent(answer) ? 0 : 1;
    row(text_of(answer, "context", "kind")[0] == 'w' ? "workspace:" : "project:", "%s (%s)",
        text_of(answer, "project", "name"), text_of(answer, "context", "root"));
    if (*member)
        row("member:", "%s%s", member, "");
    row("runtime:", "Python %s (%s)", version, text_of(answer, "runtime", "base"));
    row("state:", "%s%s", text_of(answer, "project", "state"), "");
    show_reasons(answer);
    row("env:", *path ? "%s (%s)" : "%s%s", text_of(answer, "env", "status"), path);
    row("lock:", "%s (%s)", text_of(answer, "lock", "status"), text_of(answer, "lock", "file"));
    json_array_foreach(json_object_get(answer, "warnings"), i, warning) {
        row("warning:", "%s%s", json_string_value(warning), "");
    }
    if (*next)
        row("next:", "%s%s", next, "");
    return consistent(answer) ? 0 : 1;
}

struct brief {
    bool brief;
};

static int run_status(struct args *a)
{
    const struct brief *how = a->request;
    bool ignored = false;
    struct project_call call;
    int r = project_begin(a->cli, "status", &call);
    if (r == 0)
        r = px_project_status(call.project, &call.json, &ignored, &call.e);
    return project_end(&call, r, how->brief ? show_brief : show_status);
}

static const struct option_row rows[] = {
    {"brief", 0, OPTION_FLAG, offsetof(struct brief, brief), NULL, "one line"},
    {0},
};
const struct verb status_verbs[] = {
    {"", "[OPTIONS]", NULL, run_status, rows, .size = sizeof(struct brief)},
    {0},
};
