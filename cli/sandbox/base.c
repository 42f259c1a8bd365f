/* px sandbox base build, import, list, lock, remove; px sandbox capabilities. */
#include "cli/sandbox/sandbox.h"

#include <stdio.h>
#include <string.h>

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

static uint64_t number(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* ---- one base ---- */

static int show_base(const json_t *answer, bool quiet)
{
    char size[32];
    if (quiet)
        return 0;
    print("base      %s (%s)%s\n", text(answer, "name"), text(answer, "variant"),
          json_is_true(json_object_get(answer, "cached")) ? ", as it was" : "");
    print("id        %s\n", text(answer, "base_os_oid"));
    print("contents  %zu packages, %llu files, %s\n", json_array_size(json_object_get(answer, "packages")),
          (unsigned long long)number(answer, "files"), size_text(number(answer, "bytes"), size));
    return 0;
}

static int base_build(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sandbox base build [NAME] [--lock FILE] [--force].";
    struct px_base_build how = {0};
    const struct word words[] = {
        {"--force", 0, &how.force, NULL}, {"--lock", 0, NULL, &how.lock}, {NULL, 0, NULL, NULL}};
    int status = 0, left = take_words(cli, "sandbox", usage, words, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > 1)
        return usage_error(cli, USAGE_STATUS, usage, "px sandbox base build takes one name");
    struct sandbox_call call;
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_base_build(call.sandbox, left ? argv[0] : "debian-12", &how, &call.json, &call.e);
    return sandbox_end(&call, r, show_base);
}

static int base_import(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sandbox base import NAME SOURCE.";
    int status = 0, left = take_words(cli, "sandbox", usage, NULL, argc, argv, &status);
    if (left < 0)
        return status;
    if (left != 2)
        return usage_error(cli, USAGE_STATUS, usage, "px sandbox base import takes a name and a source");
    struct sandbox_call call;
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_base_import(call.sandbox, argv[0], argv[1], &call.json, &call.e);
    return sandbox_end(&call, r, show_base);
}

static int show_removed(const json_t *answer, bool quiet)
{
    if (!quiet)
        print("removed %s; `px sandbox gc` frees its space\n", text(answer, "name"));
    return 0;
}

static int base_remove(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sandbox base remove NAME.";
    int status = 0, left = take_words(cli, "sandbox", usage, NULL, argc, argv, &status);
    if (left < 0)
        return status;
    if (left != 1)
        return usage_error(cli, USAGE_STATUS, usage, "px sandbox base remove takes one name");
    struct sandbox_call call;
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_base_remove(call.sandbox, argv[0], &call.json, &call.e);
    return sandbox_end(&call, r, show_removed);
}

/* A lock is for a file, so that it looks the same with and without --json. */
static int show_lock(const json_t *answer, bool quiet)
{
    if (!quiet && (json_dumpf(answer, stdout, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII) < 0 ||
                   putchar('\n') == EOF))
        return 1;
    return 0;
}

static int base_lock(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sandbox base lock [NAME].";
    int status = 0, left = take_words(cli, "sandbox", usage, NULL, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > 1)
        return usage_error(cli, USAGE_STATUS, usage, "px sandbox base lock takes one name");
    struct sandbox_call call;
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_base_lock(call.sandbox, left ? argv[0] : "debian-12", &call.json, &call.e);
    return sandbox_end(&call, r, show_lock);
}

/* ---- all of them ---- */

static int show_bases(const json_t *answer, bool quiet)
{
    const json_t *bases = json_object_get(answer, "bases"), *known = json_object_get(answer, "known");
    char size[32];
    size_t i;
    json_t *row;
    if (quiet)
        return 0;
    json_array_foreach(bases, i, row) print(
        "%-16s %-10s %.16s  %llu packages, %s\n", text(row, "name"), text(row, "variant"), text(row, "base_os_oid"),
        (unsigned long long)number(row, "packages"), size_text(number(row, "bytes"), size));
    if (json_array_size(bases) > 0)
        return 0;
    json_array_foreach(known, i, row)
        print("%-16s %-10s not here yet: px sandbox base %s %s\n", text(row, "name"), text(row, "variant"),
              json_is_true(json_object_get(row, "can_build")) ? "build" : "import", text(row, "name"));
    return 0;
}

static int base_list(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sandbox base list.";
    int status = 0, left = take_words(cli, "sandbox", usage, NULL, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > 0)
        return usage_error(cli, USAGE_STATUS, usage, "px sandbox base list takes no words");
    struct sandbox_call call;
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_base_list(call.sandbox, &call.json, &call.e);
    return sandbox_end(&call, r, show_bases);
}

int sandbox_base(struct cli *cli, int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(struct cli *cli, int argc, char **argv);
    } verbs[] = {{"build", base_build},
                 {"import", base_import},
                 {"list", base_list},
                 {"lock", base_lock},
                 {"remove", base_remove}};
    for (size_t i = 0; argc > 0 && i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[0], verbs[i].name) == 0)
            return verbs[i].run(cli, argc - 1, argv + 1);
    return usage_error(cli, USAGE_STATUS, "Write px sandbox base build|import|list|lock|remove.",
                       "px sandbox base needs one of its verbs");
}

/* ---- capabilities ---- */

static int show_capabilities(const json_t *answer, bool quiet)
{
    const json_t *rows = json_object_get(answer, "capabilities");
    size_t i;
    json_t *row;
    if (quiet)
        return 0;
    json_array_foreach(rows, i, row)
        print("%-14s %s\n", text(row, "name"), text(row, "summary"));
    return 0;
}

int sandbox_capabilities(struct cli *cli, int argc, char **argv)
{
    static const char usage[] = "Write px sandbox capabilities.";
    int status = 0, left = take_words(cli, "sandbox", usage, NULL, argc, argv, &status);
    if (left < 0)
        return status;
    if (left > 0)
        return usage_error(cli, USAGE_STATUS, usage, "px sandbox capabilities takes no words");
    struct sandbox_call call;
    int r = sandbox_begin(cli, &call);
    if (r >= 0)
        r = px_sandbox_capabilities(call.sandbox, &call.json, &call.e);
    return sandbox_end(&call, r, show_capabilities);
}
