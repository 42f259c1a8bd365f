/* What can be asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "serve/mcp_inside.h"

/* The newest first. */
static const struct version versions[] = {
    {"2026-07-28", true, false}, {"2025-11-25", false, false}, {"2025-06-18", false, false},
    {"2025-03-26", false, true}, {"2024-11-05", false, true},
};

/* The list of tools is that of the command line: the same for everybody and for as long as the server lives. */
static void cache_hints(struct px_json *j, const struct request *r)
{
    if (!r->modern)
        return;
    px_json_int(j, "ttlMs", 3600000);
    px_json_text(j, "cacheScope", "private");
}

/* ---- what the server is ---- */

static void add_capabilities(struct px_json *j)
{
    px_json_object(j, "capabilities");
    px_json_object(j, "tools");
    px_json_end(j);
    px_json_end(j);
}

static void add_instructions(const struct mcp *m, struct px_json *j)
{
    px_auto_buf struct px_buf text = PX_BUF(16 << 10);
    struct px_files_root root;
    px_buf_puts(&text, "Paths begin with the name of an allowed directory:");
    for (size_t i = 0; px_files_root_at(m->config.files, i, &root) == 0; i++)
        px_buf_printf(&text, "%s %s (%s)", i ? "," : "", root.name,
                      root.writable ? "read and write" : "read only");
    px_buf_puts(&text, ". Nothing else of the machine can be reached.");
    if (m->set.shell)
        px_buf_puts(
            &text,
            " Commands run in a sandbox where the same paths, relative to the working directory, are the same files.");
    px_json_text(j, "instructions", px_buf_text(&text));
}

const struct version *mcp_find_version(const char *name, bool modern)
{
    for (size_t i = 0; name && i < PX_COUNT_OF(versions); i++)
        if (versions[i].modern == modern && strcmp(versions[i].name, name) == 0)
            return &versions[i];
    return NULL;
}

static void do_initialize(struct mcp *m, struct request *r, const json_t *params)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    const json_t *wanted = json_object_get(params, "protocolVersion");
    if (!json_is_string(wanted)) {
        mcp_refuse(m, r, RPC_PARAMS, "initialize needs a protocolVersion");
        return;
    }
    const struct version *v = mcp_find_version(json_string_value(wanted), false);
    m->legacy =
        v ? v : &versions[1]; /* the client decides whether it can live with the newest of that kind */
    mcp_begin_result(&j, r);
    px_json_text(&j, "protocolVersion", m->legacy->name);
    add_capabilities(&j);
    mcp_server_info(&j, "serverInfo");
    add_instructions(m, &j);
    mcp_end_result(m, r, &j);
}

void mcp_add_versions(struct px_json *j, const char *name)
{
    px_json_array(j, name);
    for (size_t i = 0; i < PX_COUNT_OF(versions); i++)
        px_json_text(j, NULL, versions[i].name);
    px_json_end(j);
}

static void do_discover(struct mcp *m, struct request *r, const json_t *params)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    (void)params;
    mcp_begin_result(&j, r);
    mcp_add_versions(&j, "supportedVersions");
    add_capabilities(&j);
    mcp_server_info(&j, "serverInfo");
    add_instructions(m, &j);
    cache_hints(&j, r);
    mcp_end_result(m, r, &j);
}

static void do_ping(struct mcp *m, struct request *r, const json_t *params)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    (void)params;
    mcp_begin_result(&j, r);
    mcp_end_result(m, r, &j);
}

/* ---- tools ---- */

static void do_list(struct mcp *m, struct request *r, const json_t *params)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    if (json_object_get(params,
                        "cursor")) { /* all of them are on the first page, so that none was ever given out */
        mcp_refuse(m, r, RPC_PARAMS, "there is no such cursor");
        return;
    }
    mcp_begin_result(&j, r);
    tools_list(&m->set, &j);
    cache_hints(&j, r);
    mcp_end_result(m, r, &j);
}

struct pending *mcp_find_pending(struct mcp *m, uint32_t number)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (m->pending[i].number == number)
            return &m->pending[i];
    return NULL;
}

/* The request waits for the runner. */
static int hand_on(struct mcp *m, struct request *r, struct tool_call *call, struct px_err *e)
{
    struct pending *p = mcp_find_pending(m, 0);
    if (!p) {
        (void)px_fail(e, PX_E_LIMIT, 0, "%d commands are running already", PENDING_MAX);
        return px_fix(e, "Wait for one of them.");
    }
    m->last += m->last == UINT32_MAX ? 2 : 1; /* 0 stands for none */
    call->ask.number = m->last;
    if (m->runner_gone || m->config.ask(m->config.user, &call->ask, call->command) < 0) {
        (void)px_fail(e, PX_E_GONE, 0, "the process that runs commands has ended");
        return px_fix(e, "Start the server again.");
    }
    *p = (struct pending){.number = m->last, .request = *r};
    return 0;
}

static void call_tool(struct mcp *m, struct request *r, const struct tool *tool, const json_t *args)
{
    struct tool_call call = {
        .files = m->config.files, .session = &m->session, .args = args, .text = PX_BUF(ANSWER_MAX), .json = PX_BUF(ANSWER_MAX)};
    struct px_err e = {0};
    int done = tools_check(tool, args, &e);
    if (done >= 0 && tool->flags & (TOOL_WRITES | TOOL_DESTROYS))
        done = session_begin(&m->session, m->config.files, &e);
    if (done >= 0)
        done = tools_run(tool, &call, &e);
    if (done >= 0 && tool->flags & TOOL_SHELL)
        done = hand_on(m, r, &call, &e);
    else if (done >= 0 && (call.text.err < 0 || call.json.err < 0))
        done = mcp_too_large(call.text.err == -ENOMEM || call.json.err == -ENOMEM, &e);
    else if (done >= 0)
        mcp_tool_answer(m, r, px_buf_text(&call.text), call.text.len, px_buf_text(&call.json), false);
    if (done < 0)
        mcp_tool_error(m, r, &e);
    px_buf_done(&call.text);
    px_buf_done(&call.json);
}

static void do_call(struct mcp *m, struct request *r, const json_t *params)
{
    const json_t *name = json_object_get(params, "name");
    json_t *args = json_object_get(params, "arguments"), *none = NULL;
    const struct tool *tool = json_is_string(name) ? tools_find(&m->set, json_string_value(name)) : NULL;
    if (!tool) {
        mcp_refuse(m, r, RPC_PARAMS,
                   json_is_string(name) ? "there is no tool of that name; see tools/list"
                                        : "tools/call needs a name");
        return;
    }
    if (args && !json_is_object(args)) {
        mcp_refuse(m, r, RPC_PARAMS, "arguments must be an object");
        return;
    }
    if (!args)
        none = json_object();
    if (args || none)
        call_tool(m, r, tool, args ? args : none);
    else
        mcp_refuse(m, r, RPC_INTERNAL, "out of memory");
    json_decref(none);
}

static const struct method methods[] = {
    {"initialize", ANY_TIME | ONLY_LEGACY, do_initialize},
    {"ping", ANY_TIME | ONLY_LEGACY, do_ping},
    {"server/discover", ONLY_MODERN, do_discover},
    {"tools/list", 0, do_list},
    {"tools/call", 0, do_call},
};

const struct method *mcp_find_method(const char *name, bool modern)
{
    for (size_t i = 0; i < PX_COUNT_OF(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return methods[i].when & ONLY_LEGACY && modern ? NULL : &methods[i];
    return NULL;
}
