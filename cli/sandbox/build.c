/* px sandbox build: an image from a base and capabilities. */
#include "cli/sandbox/project.h"
#include "cli/sandbox/sandbox.h"

#include <string.h>

enum { WITH_MAX = 256 };

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

static int show_image(const json_t *answer, bool quiet)
{
    const json_t *capabilities = json_object_get(answer, "capabilities");
    char size[32];
    size_t i;
    json_t *name;
    if (quiet)
        return 0;
    print("image         %s%s\n", text(answer, "image_digest"),
          json_is_true(json_object_get(answer, "cached")) ? " (as it was)" : "");
    print("sbx_id        %s\nbase          %s\ncapabilities  ", text(answer, "sbx_id"), text(answer, "base"));
    json_array_foreach(capabilities, i, name)
        print("%s%s", i ? "," : "", json_string_value(name));
    print("%s\nsize          %s, compressed\n", json_array_size(capabilities) ? "" : "none",
          size_text((uint64_t)json_integer_value(json_object_get(answer, "size")), size));
    if (*text(answer, "tag"))
        print("tag           %s%s\n", text(answer, "tag"),
              json_is_true(json_object_get(answer, "pushed")) ? " (pushed)" : "");
    if (*text(answer, "out"))
        print("written to    %s\n", text(answer, "out"));
    return 0;
}

/* "a,b" and "c" of several --with: names into `out`. The commas in the words of the command line become their ends. */
static int split(const struct option_list *with, const char **out)
{
    size_t count = 0;
    for (size_t i = 0; i < with->count; i++)
        for (char *rest = (char *)(uintptr_t)with->items[i], *name; (name = strsep(&rest, ","));) {
            if (count == WITH_MAX && *name)
                return -1;
            if (*name)
                out[count++] = name;
        }
    return 0;
}

/* Without a word about base and capabilities, in a project: the project's own. false: this is none. */
static bool build_project(struct cli *cli, const struct px_image_build *how, int *ret_status)
{
    struct project_call call;
    int r;
    if (!sandbox_in_project(cli, "sandbox build", &call, &r))
        return false;
    if (r == 0)
        r = px_project_sandbox_build(call.project, how, &call.json, &call.e);
    *ret_status = project_end(&call, r, show_image);
    return true;
}

static int build_plain(struct cli *cli, const struct px_image_build *how)
{
    struct sandbox_call call;
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_build(call.sandbox, how, &call.json, &call.e);
    return sandbox_end(&call, r, show_image);
}

int sandbox_build(struct args *a)
{
    const char *names[WITH_MAX + 1] = {NULL};
    struct sandbox_image *asked = a->request;
    int status = 0;
    asked->how.capabilities = names;
    if (split(&asked->with, names) < 0)
        return usage_error(a->cli, USAGE_STATUS, NULL, "more than %d capabilities", WITH_MAX);
    bool own = !asked->how.base && !names[0];
    return own && build_project(a->cli, &asked->how, &status) ? status : build_plain(a->cli, &asked->how);
}

/* ---- update ---- */

static int show_updated(const json_t *answer, bool quiet)
{
    json_t *row;
    size_t i;
    if (quiet)
        return 0;
    json_array_foreach(json_object_get(answer, "updated"), i, row) {
        bool changed = json_is_true(json_object_get(row, "changed"));
        print("%-6s %-24s %.16s%s%.16s\n", text(row, "kind"), text(row, "name"), text(row, "from"),
              changed ? " -> " : "", changed ? text(row, "to") : ", as it was");
    }
    json_array_foreach(json_object_get(answer, "kept"), i, row)
        print("image  %-24s kept: of a project, or on a base that was imported\n", json_string_value(row));
    if (json_array_size(json_object_get(answer, "updated")) == 0)
        print("there is no base that px built, and no image with a tag\n");
    return 0;
}

int sandbox_update(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_update(call.sandbox, &call.json, &call.e);
    return sandbox_end(&call, r, show_updated);
}
