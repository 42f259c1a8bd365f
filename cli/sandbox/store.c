/* px sandbox list, status, gc, clean: what the store holds, and removing what is not needed. */
#include "cli/sandbox/project.h"
#include "cli/sandbox/sandbox.h"

#include <stdio.h>
#include <string.h>

static uint64_t count(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* ---- gc, clean ---- */

static int show_gc(const json_t *answer, bool quiet)
{
    bool dry = json_is_true(json_object_get(answer, "dry_run"));
    const json_t *removed = json_object_get(answer, "removed");
    char size[32];
    size_t i;
    json_t *row;
    if (quiet)
        return 0;
    json_array_foreach(dry ? removed : NULL, i, row)
        print("%-6s %s  %s\n", json_string_value(json_object_get(row, "kind")),
              json_string_value(json_object_get(row, "id")), size_text(count(row, "bytes"), size));
    json_array_foreach(dry ? NULL : removed, i, row)
        if (strcmp(json_string_value(json_object_get(row, "kind")), "name") == 0)
            print("%-6s %s: the directory is gone\n", "name", json_string_value(json_object_get(row, "id")));
    print("%s %llu records, %llu trees, %llu blobs: %s\n", dry ? "would remove" : "removed",
          (unsigned long long)count(answer, "records"), (unsigned long long)count(answer, "trees"),
          (unsigned long long)count(answer, "blobs"), size_text(count(answer, "bytes"), size));
    return 0;
}

int sandbox_gc(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_gc(call.sandbox, a->request, &call.json, &call.e);
    return sandbox_end(&call, r, show_gc);
}

int sandbox_clean(struct args *a)
{
    const struct px_gc_request *how = a->request;
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_clean(call.sandbox, how->dry_run, &call.json, &call.e);
    return sandbox_end(&call, r, show_gc);
}

/* ---- delete ---- */

static int show_deleted(const json_t *answer, bool quiet)
{
    size_t i;
    json_t *row;
    if (quiet)
        return 0;
    json_array_foreach(json_object_get(answer, "removed"), i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        bool last = json_is_true(json_object_get(row, "last"));
        print("removed %s%s %.16s%s%s%s\n", last ? "" : "a name of ", json_string_value(json_object_get(row, "kind")),
              json_string_value(json_object_get(row, "id")), name ? ", " : "", name ? name : "",
              last ? "; `px sandbox gc` frees its space" : "");
    }
    return 0;
}

int sandbox_delete(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_delete(call.sandbox, a->names, &call.json, &call.e);
    return sandbox_end(&call, r, show_deleted);
}

/* ---- list, status ---- */

static bool has(const json_t *names, const json_t *name)
{
    size_t i;
    json_t *other;
    json_array_foreach(names, i, other)
        if (json_equal(other, name))
            return true;
    return false;
}

static void print_records(const json_t *records, const char *kind)
{
    size_t i, k;
    json_t *row, *name;
    char size[32];
    json_array_foreach(records, i, row) {
        const json_t *names = json_object_get(row, "names"), *gone = json_object_get(row, "gone");
        print("%-6s %.16s  %-12s", kind, json_string_value(json_object_get(row, "id")),
              size_text(count(row, "bytes"), size));
        json_array_foreach(names, k, name)
            print(" %s%s", json_string_value(name), has(gone, name) ? " (gone)" : "");
        print("%s%s%s\n", json_array_size(names) ? "" : " -",
              json_is_true(json_object_get(row, "in_use")) ? " (in use)" : "",
              json_is_false(json_object_get(row, "readable")) ? " (cannot be read)" : "");
    }
}

static int show_list(const json_t *answer, bool quiet)
{
    if (quiet)
        return 0;
    print_records(json_object_get(answer, "bases"), "base");
    print_records(json_object_get(answer, "images"), "image");
    print_records(json_object_get(answer, "envs"), "env");
    return 0;
}

int sandbox_list(struct args *a)
{
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_list(call.sandbox, &call.json, &call.e);
    return sandbox_end(&call, r, show_list);
}

/* The sandbox of the project that this directory belongs to, or why it cannot be said. */
static void show_project(const json_t *project)
{
    const json_t *names = json_object_get(project, "capabilities"), *name;
    const char *id = json_string_value(json_object_get(project, "sbx_id"));
    const char *error = json_string_value(json_object_get(project, "error"));
    size_t i;
    if (!project)
        return;
    if (error) {
        print("project  %s\n", error);
        return;
    }
    print("project  %s\nsandbox  %.16s%s, base %s, capabilities ", json_string_value(json_object_get(project, "root")),
          id ? id : "not known yet", !id ? "" : json_is_true(json_object_get(project, "built")) ? " (built)" : " (not built yet)",
          json_string_value(json_object_get(project, "base")));
    json_array_foreach(names, i, name)
        print("%s%s", i ? "," : "", json_string_value(name));
    print("%s\n", json_array_size(names) ? "" : "none");
}

/* 1 if a look at every byte found something that is not as it was stored. */
static int show_status(const json_t *answer, bool quiet)
{
    const json_t *verified = json_object_get(answer, "verified"), *findings = json_object_get(verified, "findings");
    char blobs[32], trees[32];
    size_t i;
    json_t *line;
    int status = count(verified, "corrupt") > 0;
    if (quiet)
        return status;
    print("store    %s\n", json_string_value(json_object_get(answer, "store")));
    print("bases    %llu\nimages   %llu\nenvs     %llu\n", (unsigned long long)count(answer, "bases"),
          (unsigned long long)count(answer, "images"), (unsigned long long)count(answer, "envs"));
    print("blobs    %llu, %s\n", (unsigned long long)count(answer, "blobs"),
          size_text(count(answer, "blob_bytes"), blobs));
    print("trees    %llu, %s\n", (unsigned long long)count(answer, "trees"),
          size_text(count(answer, "tree_bytes"), trees));
    print("leases   %llu\ncorrupt  %llu\n", (unsigned long long)count(answer, "leases"),
          (unsigned long long)count(answer, "corrupt"));
    json_array_foreach(findings, i, line)
        print("  %s\n", json_string_value(line));
    show_project(json_object_get(answer, "project"));
    if (json_is_object(verified))
        print("verified %llu blobs, %llu trees: %s\n", (unsigned long long)count(verified, "blobs"),
              (unsigned long long)count(verified, "trees"),
              status ? "not all is as it was stored" : "all is as it was stored");
    return status;
}

int sandbox_status(struct args *a)
{
    const struct sandbox_look *how = a->request;
    struct sandbox_call call;
    int r = sandbox_begin(a->cli, &call);
    if (r >= 0)
        r = px_sandbox_status(call.sandbox, how->verify, &call.json, &call.e);
    if (r >= 0)
        sandbox_add_project(&call.json);
    return sandbox_end(&call, r, show_status);
}
