/* The table of tools, their schemas and the check of their arguments. */
#include "mcp/tools.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#define PATH_ARG \
    { \
        "path", TOOL_TEXT, true, "path", "A path: the name of an allowed directory, a slash, and the rest." \
    }
#define EXCLUDE_ARG \
    { \
        "excludePatterns", TOOL_TEXTS, false, "exclude", \
            "Patterns of what to leave out, with everything below it." \
    }

#define SENTENCE "\"message\":{\"type\":\"string\"}"
#define ENTRIES \
    "\"entries\":{\"type\":\"array\"},\"count\":{\"type\":\"integer\"},\"truncated\":{\"type\":\"boolean\"}"
#define PROCESS "\"process\":{\"type\":\"integer\"},\"running\":{\"type\":\"boolean\"}"

/* Names and arguments of the files' tools are those that clients of file servers know. */
/* clang-format off */
const struct tool tools[] = {
    {"read_text_file", "Read a text file",
     "The text of a UTF-8 file: all of it, its first or last lines, or a part by characters.", TOOL_AGAIN, "read", tool_read,
     {PATH_ARG,
      {"head", TOOL_NUMBER, false, NULL, "Only the first so many lines."},
      {"tail", TOOL_NUMBER, false, NULL, "Only the last so many lines."},
      {"offset", TOOL_NUMBER, false, "offset", "Begin at this character (0)."},
      {"max_chars", TOOL_NUMBER, false, "max_chars", "At most so many characters (200000)."}},
     "\"content\":{\"type\":\"string\"},\"truncated\":{\"type\":\"boolean\"},\"total_chars\":{\"type\":\"integer\"}"},
    {"read_multiple_files", "Read several text files", "The texts of several files; one that cannot be read has its error instead.",
     TOOL_AGAIN, "read", tool_read_many, {{"paths", TOOL_TEXTS, true, NULL, "At most 64 paths."}},
     "\"files\":{\"type\":\"array\"}"},
    {"write_file", "Write a file", "Makes a file of this text or replaces it, whole or not at all. Directories above it are made.",
     TOOL_WRITES | TOOL_DESTROYS | TOOL_AGAIN, "write", NULL,
     {PATH_ARG, {"content", TOOL_TEXT, true, "content", "The whole text."}}, SENTENCE},
    {"edit_file", "Edit a file",
     "Replaces texts that each occur exactly once, all of them or none, and shows the diff. With dryRun nothing is changed.",
     TOOL_WRITES | TOOL_DESTROYS, "edit", tool_edit,
     {PATH_ARG,
      {"edits", TOOL_EDITS, true, "edits", "What to replace, one after another."},
      {"dryRun", TOOL_FLAG, false, "dry_run", "Only show the diff (false)."}},
     "\"diff\":{\"type\":\"string\"},\"dry_run\":{\"type\":\"boolean\"}"},
    {"create_directory", "Make a directory", "Makes a directory and those above it. It may be there already.",
     TOOL_WRITES | TOOL_AGAIN, "make_directory", NULL, {PATH_ARG}, SENTENCE},
    {"list_directory", "List a directory", "What lies in a directory, one line each: [FILE] or [DIR] and its name.", TOOL_AGAIN, "list",
     tool_list, {PATH_ARG}, ENTRIES},
    {"directory_tree", "List a tree", "Everything below a directory as nested JSON: name, type and, of a directory, children.",
     TOOL_AGAIN, "list", tool_tree, {PATH_ARG, EXCLUDE_ARG}, ENTRIES},
    {"move_file", "Move a file", "Moves or renames a file, or a directory within its root. The target must not exist.",
     TOOL_WRITES | TOOL_DESTROYS, "move", NULL,
     {{"source", TOOL_TEXT, true, "path", "What to move."}, {"destination", TOOL_TEXT, true, "to", "Where to."}}, SENTENCE},
    {"copy_file", "Copy a file", "Copies a file. The target must not exist.", TOOL_WRITES, "copy", NULL,
     {{"source", TOOL_TEXT, true, "path", "What to copy."}, {"destination", TOOL_TEXT, true, "to", "Where to."}}, SENTENCE},
    {"delete_file", "Delete a file", "Deletes a file or a link.", TOOL_WRITES | TOOL_DESTROYS, "delete", NULL, {PATH_ARG}, SENTENCE},
    {"search_files", "Find files by name",
     "Files and directories below a path that match a pattern: * and ? within a name, ** over directories, [a-z].", TOOL_AGAIN,
     "list", tool_search,
     {PATH_ARG, {"pattern", TOOL_TEXT, true, "pattern", "Relative to the path; '**/*.c' is every C file below it."}, EXCLUDE_ARG},
     ENTRIES},
    {"search_text", "Find lines by text", "Lines of text files that hold a text, as path:line:text.", TOOL_AGAIN, "search", NULL,
     {{"text", TOOL_TEXT, true, "text", "What to look for, literally."},
      {"path", TOOL_TEXT, false, "path", "A directory; all of them if left out."},
      {"pattern", TOOL_TEXT, false, "pattern", "Only in files whose path matches ('**/*')."},
      {"ignoreCase", TOOL_FLAG, false, "ignore_case", "Whether a and A are the same (false)."}},
     "\"matches\":{\"type\":\"array\"},\"count\":{\"type\":\"integer\"},\"truncated\":{\"type\":\"boolean\"}"},
    {"get_file_info", "What a path is", "Its kind, size, mode and times, and whether it may be read and written.", TOOL_AGAIN, "stat",
     NULL, {PATH_ARG}, "\"kind\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"}"},
    {"list_allowed_directories", "What may be used", "The allowed directories, with their modes and rules. Every path begins with one.",
     TOOL_AGAIN, "roots", tool_roots, {{0}}, "\"roots\":{\"type\":\"array\"}"},
    {"diff", "What was changed",
     "What the tools and commands of this session have changed, everywhere or below a path: a unified diff. With other or content: how "
     "the file differs from that.",
     TOOL_AGAIN, "diff", tool_diff,
     {{"path", TOOL_TEXT, false, "path", "A file or a directory; everything if left out."},
      {"other", TOOL_TEXT, false, "to", "Another file to compare the file with; or:"},
      {"content", TOOL_TEXT, false, "content", "A text to compare it with."}},
     "\"diff\":{\"type\":\"string\"},\"same\":{\"type\":\"boolean\"}"},
    {"execute", "Run a command",
     "Runs a shell command in a sandbox that has the allowed directories under the same names below the working directory, and "
     "read-only system directories; nothing else of the machine. With background it goes on and gives a process number.",
     TOOL_SHELL | TOOL_DESTROYS, NULL, tool_execute,
     {{"command", TOOL_TEXT, true, NULL, "For /bin/sh."},
      {"timeout", TOOL_NUMBER, false, NULL, "Seconds until it is ended, 1 to 300 (30). In the background: none unless given."},
      {"background", TOOL_FLAG, false, NULL, "Do not wait for its end (false)."}},
     "\"note\":{\"type\":[\"string\",\"null\"]},\"result\":{\"type\":\"object\"}," PROCESS},
    {"process_output", "Read a process's output",
     "What a background process wrote since the last call, and whether it still runs. Only the latest 256 KiB of a stream are kept.",
     TOOL_SHELL, NULL, tool_output, {{"process", TOOL_NUMBER, true, NULL, "Its number."}},
     PROCESS ",\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"}"},
    {"process_kill", "End a process", "Ends a background process and everything it started.", TOOL_SHELL | TOOL_DESTROYS | TOOL_AGAIN,
     NULL, tool_kill, {{"process", TOOL_NUMBER, true, NULL, "Its number."}}, PROCESS},
    {0},
};
/* clang-format on */

/* Rules exist for operations of px/files.h and the shell, not for the list of roots and for running processes. */
enum px_approval tools_rule(const struct tool_set *set, const struct tool *tool)
{
    const char *name = tool->run == tool_execute ? "shell" : tool->op;
    if (!set->worker || !name || tool->run == tool_roots)
        return PX_PRE_APPROVED;
    return px_worker_tool(set->worker, name, NULL);
}

static bool is_there(const struct tool_set *set, const struct tool *tool)
{
    return !(set->read_only && tool->flags & TOOL_WRITES) && (set->shell || !(tool->flags & TOOL_SHELL)) &&
           tools_rule(set, tool) != PX_BLOCKED;
}

const struct tool *tools_find(const struct tool_set *set, const char *name)
{
    for (const struct tool *t = tools; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return is_there(set, t) ? t : NULL;
    return NULL;
}

/* ---- schemas ---- */

static const struct {
    const char *schema; /* without its braces */
    const char *wanted;
} types[] = {
    [TOOL_TEXT] = {"\"type\":\"string\"", "a text"},
    [TOOL_NUMBER] = {"\"type\":\"integer\",\"minimum\":0", "a whole number from 0"},
    [TOOL_FLAG] = {"\"type\":\"boolean\"", "true or false"},
    [TOOL_TEXTS] = {"\"type\":\"array\",\"items\":{\"type\":\"string\"}", "an array of texts"},
    [TOOL_EDITS] =
        {"\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"object\",\"properties\":{\"oldText\":{\"type\":"
         "\"string\"},\"newText\":{\"type\":\"string\"}},\"required\":[\"oldText\",\"newText\"],"
         "\"additionalProperties\":false}",
         "an array of objects with oldText and newText"},
};

static void list_arg(const struct tool_arg *a, struct px_json *j)
{
    px_auto_buf struct px_buf out = PX_BUF(4096);
    struct px_json help = {.out = &out};
    px_buf_printf(&out, "{%s,\"description\":", types[a->type].schema);
    px_json_text(&help, NULL, a->help);
    px_buf_putc(&out, '}');
    px_json_value(j, a->name, px_buf_text(&out));
}

static void list_input(const struct tool *t, struct px_json *j)
{
    px_json_object(j, "inputSchema");
    px_json_text(j, "type", "object");
    px_json_object(j, "properties");
    for (const struct tool_arg *a = t->args; a->name; a++)
        list_arg(a, j);
    px_json_end(j);
    px_json_array(j, "required");
    for (const struct tool_arg *a = t->args; a->name; a++)
        if (a->required)
            px_json_text(j, NULL, a->name);
    px_json_end(j);
    px_json_bool(j, "additionalProperties", false);
    px_json_end(j);
}

static void list_output(const struct tool *t, struct px_json *j)
{
    px_auto_buf struct px_buf out = PX_BUF(4096);
    if (!t->output)
        return;
    px_buf_printf(
        &out, "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"},%s},\"required\":[\"ok\"]}",
        t->output);
    px_json_value(j, "outputSchema", px_buf_text(&out));
}

/* A read-only tool of the runner changes nothing; a command may do whatever the box allows. */
static void list_annotations(const struct tool_set *set, const struct tool *t, struct px_json *j)
{
    bool changes = t->flags & (TOOL_WRITES | TOOL_DESTROYS);
    px_json_object(j, "annotations");
    px_json_text(j, "title", t->title);
    px_json_bool(j, "readOnlyHint", !changes);
    px_json_bool(j, "destructiveHint", t->flags & TOOL_DESTROYS && !set->read_only);
    px_json_bool(j, "idempotentHint", t->flags & TOOL_AGAIN);
    px_json_bool(j, "openWorldHint", t->run == tool_execute);
    px_json_end(j);
}

void tools_list(const struct tool_set *set, struct px_json *j)
{
    px_json_array(j, "tools");
    for (const struct tool *t = tools; t->name; t++) {
        if (!is_there(set, t))
            continue;
        px_json_object(j, NULL);
        px_json_text(j, "name", t->name);
        px_json_text(j, "title", t->title);
        px_json_text(j, "description", t->help);
        list_input(t, j);
        list_output(t, j);
        list_annotations(set, t, j);
        px_json_end(j);
    }
    px_json_end(j);
}

/* ---- arguments ---- */

static bool all_texts(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_string(json_array_get(value, i)))
            return false;
    return json_is_array(value);
}

static bool fits(enum tool_type type, const json_t *value)
{
    switch (type) {
    case TOOL_TEXT:
        return json_is_string(value);
    case TOOL_NUMBER:
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case TOOL_FLAG:
        return json_is_boolean(value);
    case TOOL_TEXTS:
        return all_texts(value);
    default:
        return json_is_array(value); /* its content is checked where it is used */
    }
}

static const struct tool_arg *find_arg(const struct tool *tool, const char *name)
{
    for (const struct tool_arg *a = tool->args; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

static int unknown_arg(const struct tool *tool, const char *name, struct px_err *e)
{
    px_auto_buf struct px_buf names = PX_BUF(400);
    for (const struct tool_arg *a = tool->args; a->name; a++)
        px_buf_printf(&names, "%s%s", names.len ? ", " : "", a->name);
    (void)px_fail(e, PX_E_VALUE, 0, "%s has no argument '%.64s'", tool->name, name);
    (void)px_why(e, "It is not in the tool's schema.");
    return px_fix(e, "Its arguments are: %s", names.len ? px_buf_text(&names) : "none");
}

int tools_check(const struct tool *tool, const json_t *args, struct px_err *e)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)args, name, value)
    {
        const struct tool_arg *a = find_arg(tool, name);
        if (!a)
            return unknown_arg(tool, name, e);
        if (!fits(a->type, value)) {
            (void)px_fail(e, PX_E_VALUE, 0, "'%s' of %s must be %s", a->name, tool->name,
                          types[a->type].wanted);
            (void)px_why(e, "It has another type or value.");
            return px_fix(e, "%s", a->help);
        }
    }
    for (const struct tool_arg *a = tool->args; a->name; a++)
        if (a->required && !json_object_get(args, a->name)) {
            (void)px_fail(e, PX_E_VALUE, 0, "%s needs '%s'", tool->name, a->name);
            (void)px_why(e, "The argument is missing.");
            return px_fix(e, "%s", a->help);
        }
    return 0;
}

int tools_run(const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    return tool->run ? tool->run(tool, call, e) : tool_files(tool, call, e);
}
