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

int sandbox_base_build(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_base_build(call.sandbox, a->count ? a->names[0] : "debian-12", a->request, &call.json, &call.e);
    return sandbox_end(&call, r, show_base);
}

int sandbox_base_import(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_base_import(call.sandbox, a->names[0], a->names[1], &call.json, &call.e);
    return sandbox_end(&call, r, show_base);
}

static int show_removed(const json_t *answer, bool quiet)
{
    if (!quiet)
        print("removed %s; `px sandbox gc` frees its space\n", text(answer, "name"));
    return 0;
}

int sandbox_base_remove(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_base_remove(call.sandbox, a->names[0], &call.json, &call.e);
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

int sandbox_base_lock(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_base_lock(call.sandbox, a->count ? a->names[0] : "debian-12", &call.json, &call.e);
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

int sandbox_base_list(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_base_list(call.sandbox, &call.json, &call.e);
    return sandbox_end(&call, r, show_bases);
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

int sandbox_capabilities(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_capabilities(call.sandbox, &call.json, &call.e);
    return sandbox_end(&call, r, show_capabilities);
}
