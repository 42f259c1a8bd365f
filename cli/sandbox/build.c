/* px sandbox build: an image from a base and capabilities. */
#include "cli/sandbox/project.h"
#include "cli/sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
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

/* "a,b" and "c" of several --with: names into `out`, whose texts lie in `copy`. */
static int split(char *copy, const char **out)
{
    size_t count = 0;
    for (char *at = copy; *at;) {
        size_t n = strcspn(at, ",");
        bool more = at[n] == ',';
        at[n] = '\0';
        if (n > 0) {
            if (count == WITH_MAX)
                return -1;
            out[count++] = at;
        }
        at += n + more;
    }
    out[count] = NULL;
    return 0;
}

/* take_words knows options that are given once; --with may come several times, and its values are joined beforehand. */
static char *take_with(int *argc, char **argv, bool *ret_missing)
{
    size_t room = 1, len = 0;
    int left = 0;
    for (int i = 0; i < *argc; i++)
        room += strlen(argv[i]) + 1;
    char *all = calloc(room, 1);
    for (int i = 0; all && i < *argc; i++) {
        const char *value = strcmp(argv[i], "--with") == 0 ? (i + 1 < *argc ? argv[++i] : NULL)
                            : strncmp(argv[i], "--with=", 7) == 0 ? argv[i] + 7 : "";
        if (!value) {
            *ret_missing = true;
            break;
        }
        if (*value == '\0') {
            argv[left++] = argv[i];
            continue;
        }
        len += (size_t)snprintf(all + len, room - len, "%s%s", len ? "," : "", value);
    }
    *argc = left;
    return all;
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

int sandbox_build(struct cli *cli, int argc, char **argv)
{
    static const char usage[] =
        "Write px sandbox build [--base NAME] [--with CAPABILITY[,CAPABILITY]] [--out PATH] [--format FORMAT] "
        "[--compression HOW] [--tag NAME] [--push] [--force].";
    const char *names[WITH_MAX + 1] = {NULL};
    struct px_image_build how = {.capabilities = names};
    const struct word words[] = {{"--base", 0, NULL, &how.base},     {"--out", 'o', NULL, &how.out},
                                 {"--format", 0, NULL, &how.format}, {"--compression", 0, NULL, &how.compression},
                                 {"--tag", 0, NULL, &how.tag},       {"--push", 0, &how.push, NULL},
                                 {"--force", 0, &how.force, NULL},   {NULL, 0, NULL, NULL}};
    bool missing = false;
    int status = 0;
    char *with = take_with(&argc, argv, &missing);
    int left = missing || !with ? 0 : take_words(cli, "sandbox", usage, words, argc, argv, &status);
    if (missing || !with)
        status = usage_error(cli, USAGE_STATUS, usage, "--with needs a value");
    else if (left > 0)
        status = usage_error(cli, USAGE_STATUS, usage, "px sandbox build takes no words but options");
    else if (left == 0 && split(with, names) < 0)
        status = usage_error(cli, USAGE_STATUS, usage, "more than %d capabilities", WITH_MAX);
    else if (left == 0)
        status = !how.base && !names[0] && build_project(cli, &how, &status) ? status : build_plain(cli, &how);
    free(with);
    return status;
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

int sandbox_update(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sandbox update.";
    struct sandbox_call call;
    int status = 0, left = take_words(cli, "sandbox", usage, NULL, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > 0)
        return usage_error(cli, USAGE_STATUS, usage, "px sandbox update takes no words");
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_update(call.sandbox, &call.json, &call.e);
    return sandbox_end(&call, r, show_updated);
}
