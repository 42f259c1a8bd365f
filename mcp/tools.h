/* mcp/tools.h - the tools of the MCP server: one table for listing, checking and running.
 *
 * Why:     a schema that is separate from the code that checks it would diverge.
 * Owns:    nothing.
 * Mustn't: know of messages, ids or versions. */
#pragma once

#include <jansson.h>
#include <px/worker.h>
#include <stdbool.h>

#include "base/buf.h"
#include "mcp/session.h"
#include "mcp/wire.h"

enum tool_type { TOOL_TEXT, TOOL_NUMBER, TOOL_FLAG, TOOL_TEXTS, TOOL_EDITS };

struct tool_arg {
    const char *name; /* as clients name it; NULL past the end */
    enum tool_type type;
    bool required;
    const char *member; /* of a request to px/files.h; NULL: the tool's own */
    const char *help;
};

/* The input and output of one call. */
struct tool_call {
    const struct px_files *files;
    struct session *session;
    const json_t *args;  /* an object that has been checked */
    struct px_buf text;  /* for a model */
    struct px_buf json;  /* one object */
    struct wire_ask ask; /* of a tool of the runner */
    const char *command;
};

enum tool_flags {
    TOOL_WRITES = 1 << 0,   /* not there with --read-only */
    TOOL_DESTROYS = 1 << 1, /* may change or remove what was there */
    TOOL_AGAIN = 1 << 2,    /* idempotent */
    TOOL_SHELL = 1 << 3,    /* for the runner */
};

enum { TOOL_ARGS_MAX = 5 };

struct tool {
    const char *name, *title, *help;
    unsigned flags;
    const char *op; /* of px/files.h, if `run` is NULL */
    int (*run)(const struct tool *tool, struct tool_call *call, struct px_err *e);
    struct tool_arg args[TOOL_ARGS_MAX + 1];
    const char *output; /* properties of the structured answer, as JSON */
};

extern const struct tool tools[]; /* ends with a NULL name */

/* Which tools there are. */
struct tool_set {
    bool read_only, shell;
    const struct px_worker *worker; /* whose tool_rules hold; NULL: none */
};
/* The verdict of the worker's tool_rules. A blocked tool is not listed. The runner also checks commands. */
enum px_approval tools_rule(const struct tool_set *set, const struct tool *tool);
const struct tool *tools_find(const struct tool_set *set, const char *name);
/* {"tools":[...] without the brace that would close it, for what a version adds. */
struct px_json;
void tools_list(const struct tool_set *set, struct px_json *j);
/* Fails for arguments that do not match the table. */
int tools_check(const struct tool *tool, const json_t *args, struct px_err *e);
/* Runs it, or fills call->ask; 0 or -1 with an error for the model. */
int tools_run(const struct tool *tool, struct tool_call *call, struct px_err *e);

/* ---- tools_files.c and tools_shell.c: those that are more than one operation ---- */

int tool_files(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_read(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_read_many(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_edit(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_list(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_tree(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_search(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_roots(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_diff(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_execute(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_output(const struct tool *tool, struct tool_call *call, struct px_err *e);
int tool_kill(const struct tool *tool, struct tool_call *call, struct px_err *e);
