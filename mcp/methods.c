/* The methods of the server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/mcp_internal.h"

/* The newest first. */
static const struct version versions[] = {
    {"2026-07-28", true, false, true}, {"2025-11-25", false, false, true}, {"2025-06-18", false, false, true},
    {"2025-03-26", false, true, false}, {"2024-11-05", false, true, false},
};

/* The list of tools depends only on the command line, and does not change. */
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
    if (m->config.worker)
        px_buf_puts(&text, " Some commands and tools are refused, and some wait until a person has agreed.");
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
        v ? v : &versions[1]; /* the client decides whether it accepts this version */
    m->elicits = mcp_can_elicit(m->legacy, json_object_get(params, "capabilities"));
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
                        "cursor")) { /* the first page has everything, so no cursor was ever returned */
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

struct request mcp_pending_take(struct mcp *m, struct pending *p)
{
    struct request r = p->request;
    if (p->asking && r.id)
        mcp_withdraw(m, p);
    json_decref(p->args);
    *p = (struct pending){0};
    return r;
}

/* Runs it, or fills call->ask. */
static int do_tool(struct mcp *m, const struct tool *tool, struct tool_call *call, struct px_err *e)
{
    if (tool->flags & (TOOL_WRITES | TOOL_DESTROYS) && session_begin(&m->session, m->config.files, e) < 0)
        return -1;
    if (tools_run(tool, call, e) < 0)
        return -1;
    if (call->text.err < 0 || call->json.err < 0)
        return mcp_too_large(call->text.err == -ENOMEM || call->json.err == -ENOMEM, e);
    return 0;
}

static void answer_tool(struct mcp *m, struct request *r, const struct tool *tool, const json_t *args)
{
    struct tool_call call = {.files = m->config.files,
                             .session = &m->session,
                             .args = args,
                             .text = PX_BUF(ANSWER_MAX),
                             .json = PX_BUF(ANSWER_MAX)};
    struct px_err e = {0};
    if (do_tool(m, tool, &call, &e) < 0)
        mcp_tool_error(m, r, &e);
    else
        mcp_tool_answer(m, r, px_buf_text(&call.text), call.text.len, px_buf_text(&call.json), false);
    px_buf_done(&call.text);
    px_buf_done(&call.json);
}

static int hand_on(struct mcp *m, const struct pending *p, bool approved, struct px_err *e)
{
    struct tool_call call = {.files = m->config.files, .session = &m->session, .args = p->args};
    if (do_tool(m, p->tool, &call, e) < 0)
        return -1;
    call.ask.number = p->number;
    call.ask.approved = approved;
    if (!m->runner_gone && m->config.ask(m->config.user, &call.ask, call.command) == 0)
        return 0;
    (void)px_fail(e, PX_E_GONE, 0, "the process that runs commands has ended");
    return px_fix(e, "Start the server again.");
}

/* The request waits for the runner or for the user. */
static int wait_for_other(struct mcp *m, const struct request *r, const struct tool *tool, json_t *args,
                          struct px_err *e)
{
    struct pending *p = mcp_find_pending(m, 0);
    if (!p && !(p = mcp_forget_question(m))) {
        (void)px_fail(e, PX_E_LIMIT, 0, "%d commands are running or wait for approval already", PENDING_MAX);
        return px_fix(e, "Wait for one of them.");
    }
    m->last += m->last == UINT32_MAX ? 2 : 1; /* 0 means none */
    *p = (struct pending){.number = m->last, .request = *r, .tool = tool, .args = json_incref(args)};
    int done = tool->flags & TOOL_SHELL ? hand_on(m, p, false, e) : mcp_ask_person(m, p, e);
    if (done < 0)
        (void)mcp_pending_take(m, p);
    return done;
}

/* This process handles files; the runner checks and runs commands. */
void mcp_approved(struct mcp *m, struct pending *p)
{
    struct px_err e = {0};
    const struct tool *tool = p->tool;
    if (tool->flags & TOOL_SHELL && hand_on(m, p, true, &e) == 0)
        return;
    json_t *args = json_incref(p->args);
    struct request r = mcp_pending_take(m, p);
    if (tool->flags & TOOL_SHELL)
        mcp_tool_error(m, &r, &e);
    else
        answer_tool(m, &r, tool, args);
    json_decref(args);
}

static void call_tool(struct mcp *m, struct request *r, const struct tool *tool, json_t *args)
{
    struct px_err e = {0};
    bool waits = tool->flags & TOOL_SHELL || tools_rule(&m->set, tool) == PX_NEEDS_APPROVAL;
    int done = tools_check(tool, args, &e);
    if (done >= 0 && waits)
        done = wait_for_other(m, r, tool, args, &e);
    if (done < 0)
        mcp_tool_error(m, r, &e);
    else if (!waits)
        answer_tool(m, r, tool, args);
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
    if ((args || none) && m->config.worker && r->modern && json_object_get(params, "requestState"))
        mcp_hear_again(m, r, tool, args ? args : none, params);
    else if (args || none)
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
