/* px sandbox in a project: build, explain, add, remove. */
#include "cli/sandbox/project.h"
#include "cli/sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_PROJECT = 100 };

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

/* ---- build ---- */

bool sandbox_in_project(struct cli *cli, const char *command, struct project_call *ret_call, int *ret_r)
{
    *ret_r = project_begin(cli, command, ret_call);
    if (*ret_r == 0 || ret_call->e.code != NO_PROJECT)
        return true;
    progress_end(&ret_call->progress);
    return false;
}

/* ---- status ---- */

void sandbox_add_project(char **json)
{
    struct px_project *p = NULL;
    struct px_err e = {0};
    char *said = NULL;
    if (px_project_open(NULL, NULL, &p, &e) < 0 && e.code == NO_PROJECT)
        return;
    if (e.code == 0)
        (void)px_project_sandbox_explain(p, &said, &e);
    px_project_close(p);
    json_t *explained = said ? json_loads(said, 0, NULL) : NULL, *answer = json_loads(*json, 0, NULL);
    json_t *about = explained ? json_incref(json_object_get(explained, "details")) : json_pack("{ssss}", "error", e.what, "fix", e.fix);
    if (answer && about && json_object_set(answer, "project", about) == 0) {
        char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
        if (text) {
            free(*json);
            *json = text;
        }
    }
    json_decref(about);
    json_decref(answer);
    json_decref(explained);
    free(said);
}

/* ---- explain ---- */

/* "lock: psycopg2 (static map)", "elf: psycopg2 -> libpq.so.5 (cas)", "[tool.px.sandbox.capabilities] (explicit)" */
static void show_reason(const json_t *reason)
{
    const char *source = text(reason, "source"), *detail = text(reason, "detail"), *aside = text(reason, "set_aside");
    const char *library = strcmp(source, "cas") == 0 ? strstr(detail, ": ") : NULL;
    if (library)
        print("elf: %.*s -> %s (%s)", (int)(library - detail), detail, library + 2, source);
    else
        print("%s%s (%s)", strcmp(source, "explicit") == 0 ? "" : "lock: ", detail, source);
    print("%s%s\n", *aside ? "; " : "", aside);
}

/* Each name once, its reasons below each other. */
static void show_reasons(const json_t *reasons, bool counting, const char *label)
{
    const char *last = "";
    json_t *reason;
    size_t i;
    bool any = false;
    json_array_foreach(reasons, i, reason) {
        const char *name = text(reason, "capability");
        if (json_is_true(json_object_get(reason, "counts")) != counting)
            continue;
        print("%-14s%-14s", any ? "" : label, strcmp(name, last) == 0 ? "" : name);
        show_reason(reason);
        last = name;
        any = true;
    }
    if (!any && counting)
        print("%-14snone\n", label);
}

static int show_explain(const json_t *answer, bool quiet)
{
    const json_t *reasons = json_object_get(answer, "reasons");
    const char *oid = text(answer, "base_os_oid"), *unknown = text(answer, "unknown"), *id = text(answer, "sbx_id");
    bool built = json_is_true(json_object_get(answer, "built"));
    if (quiet)
        return 0;
    print("project       %s\nbase          %s", text(answer, "root"), text(answer, "base"));
    if (*oid)
        print(" (base_os_oid=%s)", oid);
    print("\nenv           %s\n", *text(answer, "profile_oid") ? text(answer, "profile_oid") : "not made yet");
    print("sbx_id        %s%s\n", *id ? id : "not known yet", !*id ? "" : built ? " (built)" : " (not built yet)");
    if (*id)
        print("packages      %s\n",
              json_is_true(json_object_get(answer, "pinned")) ? "pinned by px.lock" : "not pinned");
    show_reasons(reasons, true, "capabilities");
    show_reasons(reasons, false, "set aside");
    if (*unknown)
        print("note          %s\n", unknown);
    return 0;
}

int sandbox_explain(struct args *a)
{
    struct project_call call;
    int r = project_begin(a->cli, "sandbox explain", &call);
    if (r == 0)
        r = px_project_sandbox_explain(call.project, &call.json, &call.e);
    return project_end(&call, r, show_explain);
}

/* ---- add, remove ---- */

static int edit(struct args *a, bool adding)
{
    struct project_call call;
    int r = project_begin(a->cli, adding ? "sandbox add" : "sandbox remove", &call);
    if (r == 0)
        r = px_project_sandbox_edit(call.project, adding, a->names, &call.json, &call.e);
    return project_end(&call, r, NULL);
}

int sandbox_add(struct args *a)
{
    return edit(a, true);
}

int sandbox_remove(struct args *a)
{
    return edit(a, false);
}
