/* File tools: converts arguments to a request of px/files.h, and its answer to text for the model. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/tools.h"

enum { PATHS_MAX = 64, TREE_LEVELS_MAX = 200 };

/* The arguments under the names of px/files.h; those of the tool itself are left out. */
static json_t *make_request(const struct tool *tool, const json_t *args)
{
    json_t *request = json_object();
    for (const struct tool_arg *a = tool->args; request && a->name; a++) {
        json_t *value = json_object_get(args, a->name);
        if (value && a->member && json_object_set(request, a->member, value) < 0) {
            json_decref(request);
            return NULL;
        }
    }
    return request;
}

/* Takes ownership of the request. */
static int ask(const struct px_files *files, const char *op, json_t *request, struct px_files_answer *ret,
               struct px_err *e)
{
    px_auto_free char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    return text ? px_files_call_json(files, op, text, strlen(text), ret, e) : px_no_memory(e);
}

/* Takes ownership of the answer. */
static int tell(struct tool_call *call, struct px_files_answer *a, bool with_text)
{
    if (with_text)
        px_buf_add(&call->text, a->text, a->text_len);
    px_buf_puts(&call->json, a->json);
    px_files_answer_done(a);
    return 0;
}

int tool_files(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    struct px_files_answer a = {0};
    return ask(call->files, tool->op, make_request(tool, call->args), &a, e) < 0 ? -1 : tell(call, &a, true);
}

/* The answer as a document; its text is already in the output. NULL with an error. */
static json_t *ask_document(const struct tool *tool, struct tool_call *call, json_t *request,
                            struct px_err *e)
{
    struct px_files_answer a = {0};
    if (ask(call->files, tool->op, request, &a, e) < 0)
        return NULL;
    json_t *doc = json_loads(a.json, JSON_ALLOW_NUL, NULL);
    (void)tell(call, &a, false);
    if (!doc)
        (void)px_no_memory(e);
    return doc;
}

static void add_text(struct tool_call *call, const json_t *doc, const char *member)
{
    const json_t *text = json_object_get(doc, member);
    if (json_is_string(text))
        px_buf_add(&call->text, json_string_value(text), json_string_length(text));
}

int tool_edit(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    json_t *doc = ask_document(tool, call, make_request(tool, call->args), e);
    if (!doc)
        return -1;
    add_text(call, doc, "message");
    px_buf_puts(&call->text, call->text.len ? "\n" : "");
    add_text(call, doc, "diff");
    json_decref(doc);
    return 0;
}

int tool_diff(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    const json_t *path = json_object_get(call->args, "path");
    if (!json_object_get(call->args, "other") && !json_object_get(call->args, "content") &&
        strlen(path ? json_string_value(path) : "") == json_string_length(path))
        return session_diff(call->session, call->files, json_string_value(path), &call->text, &call->json, e);
    if (tool_files(tool, call, e) < 0)
        return -1;
    if (call->text.len == 0)
        px_buf_puts(&call->text, "No difference.\n");
    return 0;
}

/* ---- reading ---- */

/* The first or the last lines of a text: [*begin, *end). */
static void cut_lines(const char *data, size_t len, uint64_t lines, bool last, size_t *begin, size_t *end)
{
    *begin = 0;
    *end = len;
    if (last) {
        size_t at =
            len - (len > 0 && data[len - 1] == '\n'); /* the final newline does not start a line */
        while (at > 0 && (data[at - 1] != '\n' || --lines > 0))
            at--;
        *begin = at;
    } else {
        size_t at = 0;
        while (at < len && lines > 0)
            lines -= data[at++] == '\n';
        *end = at;
    }
}

static int read_lines(struct tool_call *call, uint64_t lines, bool last, struct px_err *e)
{
    const char *path = json_string_value(json_object_get(call->args, "path"));
    struct px_files_text t = {0};
    struct px_json j = {.out = &call->json};
    size_t begin, end;
    if (px_files_read(call->files, path, 0, UINT64_MAX, &t, e) < 0)
        return -1;
    cut_lines(t.data, t.len, lines, last, &begin, &end);
    if (lines == 0)
        begin = end = 0;
    px_buf_add(&call->text, t.data + begin, end - begin);
    px_json_object(&j, NULL);
    px_json_bool(&j, "ok", true);
    px_json_text(&j, "path", path);
    px_json_bytes(&j, "content", t.data + begin, end - begin);
    px_json_bool(&j, "truncated", end - begin < t.len);
    px_json_uint(&j, "total_chars", t.total_chars);
    px_json_end(&j);
    px_files_text_done(&t);
    return 0;
}

int tool_read(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    const json_t *head = json_object_get(call->args, "head"), *tail = json_object_get(call->args, "tail"),
                 *path = json_object_get(call->args, "path");
    bool part = json_object_get(call->args, "offset") || json_object_get(call->args, "max_chars");
    if ((head && tail) || ((head || tail) && part)) {
        (void)px_fail(e, PX_E_VALUE, 0,
                      "only one of head, tail, and offset with max_chars can be had at once");
        return px_fix(e, "Leave the others out.");
    }
    if ((head || tail) && strlen(json_string_value(path)) == json_string_length(path))
        return read_lines(call, (uint64_t)json_integer_value(head ? head : tail), !head, e);
    return tool_files(tool, call, e);
}

static void read_one(struct tool_call *call, json_t *path, bool first, struct px_json *j)
{
    struct px_files_answer a = {0};
    struct px_err e = {0};
    px_auto_free char *words = NULL;
    json_t *request = json_pack("{s:O}", "path", path);
    px_buf_puts(&call->text, first ? "" : "\n---\n");
    px_buf_quote(&call->text, json_string_value(path), json_string_length(path));
    if (ask(call->files, "read", request, &a, &e) == 0) {
        px_buf_puts(&call->text, ":\n");
        px_buf_add(&call->text, a.text, a.text_len);
        px_json_value(j, NULL, a.json);
        px_files_answer_done(&a);
        return;
    }
    if (px_files_message(&e, &words, NULL) == 0)
        px_buf_printf(&call->text, ": Error - %s", words);
    px_auto_free char *json = NULL;
    if (px_files_error_json(call->files, &e, &json, NULL) == 0)
        px_json_value(j, NULL, json);
}

int tool_read_many(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    const json_t *paths = json_object_get(call->args, "paths");
    struct px_json j = {.out = &call->json};
    (void)tool;
    if (json_array_size(paths) == 0 || json_array_size(paths) > PATHS_MAX) {
        (void)px_fail(e, PX_E_VALUE, 0, "'paths' must have from 1 to %d paths", PATHS_MAX);
        return px_fix(e, "Read them in several calls.");
    }
    px_json_object(&j, NULL);
    px_json_bool(&j, "ok", true);
    px_json_array(&j, "files");
    for (size_t i = 0; i < json_array_size(paths); i++)
        read_one(call, json_array_get(paths, i), i == 0, &j);
    px_json_end(&j);
    px_json_end(&j);
    return 0;
}

/* ---- listing ---- */

static json_t *list_request(const struct tool *tool, const json_t *args, const char *pattern)
{
    json_t *request = make_request(tool, args);
    if (request && (json_object_set_new(request, "directories", json_true()) < 0 ||
                    (pattern && json_object_set_new(request, "pattern", json_string(pattern)) < 0))) {
        json_decref(request);
        return NULL;
    }
    return request;
}

static const char *entry_path(const json_t *entry)
{
    return json_string_value(json_object_get(entry, "path"));
}

static bool is_directory(const json_t *entry)
{
    const char *kind = json_string_value(json_object_get(entry, "kind"));
    return kind && strcmp(kind, "directory") == 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_truncated(struct tool_call *call, const json_t *doc)
{
    const char *why = json_string_value(json_object_get(doc, "truncated_because"));
    if (why)
        px_buf_printf(&call->text, "... (%s)\n", why);
}

static int all_roots(struct tool_call *call, bool nested);

/* "." and "" mean all roots, whose names are then listed. */
static bool wants_roots(const struct tool_call *call)
{
    const char *path = json_string_value(json_object_get(call->args, "path"));
    return strcmp(path, ".") == 0 || *path == '\0' || strcmp(path, "/") == 0;
}

int tool_list(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    if (wants_roots(call))
        return all_roots(call, false);
    json_t *doc = ask_document(tool, call, list_request(tool, call->args, "*"), e);
    const json_t *entries = json_object_get(doc, "entries");
    if (!doc)
        return -1;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *name = last_part(entry_path(entry));
        px_buf_puts(&call->text, is_directory(entry) ? "[DIR] " : "[FILE] ");
        px_buf_quote(&call->text, name, strlen(name));
        px_buf_putc(&call->text, '\n');
    }
    if (json_array_size(entries) == 0)
        px_buf_puts(&call->text, "(empty)\n");
    add_truncated(call, doc);
    json_decref(doc);
    return 0;
}

int tool_search(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    struct px_files_answer a = {0};
    if (ask(call->files, tool->op, list_request(tool, call->args, NULL), &a, e) < 0)
        return -1;
    (void)tell(call, &a, true);
    if (call->text.len == 0)
        px_buf_puts(&call->text, "No matches found.\n");
    return 0;
}

int tool_roots(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    px_buf_puts(&call->text, "Allowed directories:\n");
    return tool_files(tool, call, e);
}

/* ---- a tree ---- */

/* The array for the children of a path: that of its nearest listed parent. Borrowed. */
static json_t *parent_of(json_t *places, const char *path, json_t *top)
{
    const char *slash = strrchr(path, '/');
    px_auto_free char *above = slash ? strndup(path, (size_t)(slash - path)) : NULL;
    json_t *found = above ? json_object_get(places, above) : NULL;
    return found ? found : top;
}

static int plant(json_t *places, json_t *top, const json_t *entry)
{
    const char *path = entry_path(entry);
    bool directory = is_directory(entry);
    json_t *node = json_pack("{s:s, s:s}", "name", last_part(path), "type", directory ? "directory" : "file");
    json_t *children = directory && node ? json_array() : NULL;
    if (!node || (directory && (!children || json_object_set(places, path, children) < 0 ||
                                json_object_set(node, "children", children) < 0))) {
        json_decref(children);
        json_decref(node);
        return -1;
    }
    json_decref(children);
    return json_array_append_new(parent_of(places, path, top), node);
}

static size_t levels(const char *path)
{
    size_t n = 1;
    while ((path = strchr(path, '/'))) {
        path++;
        n++;
    }
    return n;
}

/* Entries are sorted, so a directory comes before its content. Indentation makes the text of a deep tree grow with the
 * square of its depth; deeper entries than the limit are only in the list of paths. */
static char *tree_text(const json_t *entries, bool *ret_cut)
{
    json_t *top = json_array(), *places = json_object();
    char *text = NULL;
    size_t i = 0;
    while (top && places && i < json_array_size(entries)) {
        const json_t *entry = json_array_get(entries, i);
        bool deep = levels(entry_path(entry)) > TREE_LEVELS_MAX;
        *ret_cut = *ret_cut || deep;
        if (!deep && plant(places, top, entry) < 0)
            break;
        i++;
    }
    if (top && places && i == json_array_size(entries))
        text = json_dumps(top, JSON_INDENT(2));
    json_decref(places);
    json_decref(top);
    return text;
}

int tool_tree(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    json_t *doc =
        wants_roots(call) ? NULL : ask_document(tool, call, list_request(tool, call->args, NULL), e);
    if (wants_roots(call))
        return all_roots(call, true);
    if (!doc)
        return -1;
    bool cut = false;
    px_auto_free char *text = tree_text(json_object_get(doc, "entries"), &cut);
    int r = text ? 0 : px_no_memory(e);
    px_buf_puts(&call->text, text ? text : "");
    px_buf_putc(&call->text, '\n');
    if (cut)
        px_buf_printf(&call->text, "... (what lies deeper than %d levels is left out)\n", TREE_LEVELS_MAX);
    add_truncated(call, doc);
    json_decref(doc);
    return r; /* the caller reports a text that is too large */
}

static int all_roots(struct tool_call *call, bool nested)
{
    struct px_json j = {.out = &call->json};
    struct px_json tree = {.out = &call->text, .pretty = true};
    struct px_files_root root;
    size_t n = 0;
    px_json_object(&j, NULL);
    px_json_bool(&j, "ok", true);
    px_json_array(&j, "entries");
    if (nested)
        px_json_array(&tree, NULL);
    for (; px_files_root_at(call->files, n, &root) == 0; n++) {
        px_json_object(&j, NULL);
        px_json_text(&j, "path", root.name);
        px_json_text(&j, "kind", "directory");
        px_json_end(&j);
        if (nested) {
            px_json_object(&tree, NULL);
            px_json_text(&tree, "name", root.name);
            px_json_text(&tree, "type", "directory");
            px_json_end(&tree);
        } else {
            px_buf_printf(&call->text, "[DIR] %s\n", root.name);
        }
    }
    if (nested)
        px_json_end(&tree);
    px_json_end(&j);
    px_json_uint(&j, "count", n);
    px_json_bool(&j, "truncated", false);
    px_json_end(&j);
    return 0;
}
