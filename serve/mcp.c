/* Messages to requests, requests to answers. */
#include "serve/mcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "serve/lines.h"
#include "serve/tools.h"

enum {
    PENDING_MAX = 32,
    BATCH_MAX = 64,
    ID_MAX = 1024,
    ANSWER_MAX = 512 << 20,
};

/* Codes of JSON-RPC, and one of MCP. */
enum {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_VERSION = -32022,
};

#define META "io.modelcontextprotocol/"

/* The newest first. Modern ones say their version in every request, the others agree on one by `initialize`. */
static const struct version {
    const char *name;
    bool modern, batch;
} versions[] = {
    {"2026-07-28", true, false},  {"2025-11-25", false, false}, {"2025-06-18", false, false},
    {"2025-03-26", false, true},  {"2024-11-05", false, true},
};

/* Answers to the requests of one array, which go out together. */
struct batch {
    struct px_buf out;
    size_t waiting;             /* one more while the array is still being read */
};

struct request {
    char *id;                   /* as JSON; NULL: a notification */
    bool modern;
    struct batch *batch;
};

struct pending {
    uint32_t number;            /* 0: free */
    struct request request;
};

struct mcp {
    struct mcp_config config;
    struct tool_set set;
    struct serve_lines lines;
    const struct version *legacy;       /* agreed upon by `initialize`; NULL: not yet */
    bool runner_gone;
    bool failed;                /* the client is gone, or there is no memory */
    uint32_t last;
    struct pending pending[PENDING_MAX];
};

/* ---- answers ---- */

static void request_done(struct request *r)
{
    free(r->id);
    r->id = NULL;
}

static void send_text(struct mcp *m, struct px_buf *out)
{
    px_buf_putc(out, '\n');
    if (out->err < 0 || m->config.send(m->config.user, out->data, out->len) < 0)
        m->failed = true;
}

static void batch_end(struct mcp *m, struct batch *b)
{
    if (--b->waiting > 0)
        return;
    if (b->out.len > 0) {       /* notifications alone are not answered */
        px_buf_putc(&b->out, ']');
        send_text(m, &b->out);
    }
    px_buf_done(&b->out);
    free(b);
}

/* One whole answer; ends the request. */
static void answer(struct mcp *m, struct request *r, struct px_buf *out)
{
    struct batch *b = r->batch;
    if (b) {
        px_buf_puts(&b->out, b->out.len ? "," : "[");
        px_buf_add(&b->out, out->data, out->len);
        if (out->err < 0)
            m->failed = true;
    } else {
        send_text(m, out);
    }
    request_done(r);
    if (b)
        batch_end(m, b);
}

static void begin_answer(struct px_json *j, const struct request *r)
{
    px_json_object(j, NULL);
    px_json_text(j, "jsonrpc", "2.0");
    px_json_value(j, "id", r->id ? r->id : "null");
}

static void refuse_with(struct mcp *m, struct request *r, int code, const char *words, const char *data)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    begin_answer(&j, r);
    px_json_object(&j, "error");
    px_json_int(&j, "code", code);
    px_json_text(&j, "message", words);
    if (data)
        px_json_value(&j, "data", data);
    px_json_end(&j);
    px_json_end(&j);
    answer(m, r, &out);
}

static void refuse(struct mcp *m, struct request *r, int code, const char *words)
{
    refuse_with(m, r, code, words, NULL);
}

static void server_info(struct px_json *j, const char *name)
{
    px_json_object(j, name);
    px_json_text(j, "name", "px");
    px_json_text(j, "title", "px sandbox");
    px_json_text(j, "version", px_version());
    px_json_end(j);
}

static void begin_result(struct px_json *j, const struct request *r)
{
    begin_answer(j, r);
    px_json_object(j, "result");
    if (!r->modern)
        return;
    px_json_text(j, "resultType", "complete");
    px_json_object(j, "_meta");
    server_info(j, META "serverInfo");
    px_json_end(j);
}

static void end_result(struct mcp *m, struct request *r, struct px_json *j)
{
    px_json_end(j);
    px_json_end(j);
    answer(m, r, j->out);
}

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
        px_buf_printf(&text, "%s %s (%s)", i ? "," : "", root.name, root.writable ? "read and write" : "read only");
    px_buf_puts(&text, ". Nothing else of the machine can be reached.");
    if (m->set.shell)
        px_buf_puts(&text, " Commands run in a sandbox where the same paths, relative to the working directory, are the same files.");
    px_json_text(j, "instructions", px_buf_text(&text));
}

static const struct version *find_version(const char *name, bool modern)
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
        refuse(m, r, RPC_PARAMS, "initialize needs a protocolVersion");
        return;
    }
    const struct version *v = find_version(json_string_value(wanted), false);
    m->legacy = v ? v : &versions[1];   /* the client decides whether it can live with the newest of that kind */
    begin_result(&j, r);
    px_json_text(&j, "protocolVersion", m->legacy->name);
    add_capabilities(&j);
    server_info(&j, "serverInfo");
    add_instructions(m, &j);
    end_result(m, r, &j);
}

static void add_versions(struct px_json *j, const char *name)
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
    begin_result(&j, r);
    add_versions(&j, "supportedVersions");
    add_capabilities(&j);
    server_info(&j, "serverInfo");
    add_instructions(m, &j);
    cache_hints(&j, r);
    end_result(m, r, &j);
}

static void do_ping(struct mcp *m, struct request *r, const json_t *params)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    (void)params;
    begin_result(&j, r);
    end_result(m, r, &j);
}

/* ---- tools ---- */

static void do_list(struct mcp *m, struct request *r, const json_t *params)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    if (json_object_get(params, "cursor")) {    /* all of them are on the first page, so that none was ever given out */
        refuse(m, r, RPC_PARAMS, "there is no such cursor");
        return;
    }
    begin_result(&j, r);
    tools_list(&m->set, &j);
    cache_hints(&j, r);
    end_result(m, r, &j);
}

static void tool_answer(struct mcp *m, struct request *r, const char *text, size_t len, const char *json, bool is_error)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    begin_result(&j, r);
    px_json_array(&j, "content");
    px_json_object(&j, NULL);
    px_json_text(&j, "type", "text");
    px_json_bytes(&j, "text", text, len);
    px_json_end(&j);
    px_json_end(&j);
    px_json_value(&j, "structuredContent", json);
    px_json_bool(&j, "isError", is_error);
    end_result(m, r, &j);
}

/* What is allowed instead is in the words: px_files_message. */
static void tool_error(struct mcp *m, struct request *r, const struct px_err *e)
{
    px_auto_free char *words = NULL, *json = NULL;
    if (px_files_message(e, &words, NULL) < 0 || px_files_error_json(m->config.files, e, &json, NULL) < 0)
        m->failed = true;
    else
        tool_answer(m, r, words, strlen(words), json, true);
    if (m->failed)
        request_done(r);
}

static struct pending *find_pending(struct mcp *m, uint32_t number)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (m->pending[i].number == number)
            return &m->pending[i];
    return NULL;
}

/* The request waits for the runner. */
static int hand_on(struct mcp *m, struct request *r, struct tool_call *call, struct px_err *e)
{
    struct pending *p = find_pending(m, 0);
    if (!p) {
        (void)px_fail(e, PX_E_LIMIT, 0, "%d commands are running already", PENDING_MAX);
        return px_fix(e, "Wait for one of them.");
    }
    m->last += m->last == UINT32_MAX ? 2 : 1;   /* 0 stands for none */
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
    struct tool_call call = {.files = m->config.files, .args = args, .text = PX_BUF(ANSWER_MAX), .json = PX_BUF(ANSWER_MAX)};
    struct px_err e = {0};
    int done = tools_check(tool, args, &e);
    if (done >= 0)
        done = tools_run(tool, &call, &e);
    if (done >= 0 && tool->flags & TOOL_SHELL)
        done = hand_on(m, r, &call, &e);
    else if (done >= 0 && (call.text.err < 0 || call.json.err < 0))
        done = px_fail(&e, PX_E_MEMORY, 0, "px ran out of memory");
    else if (done >= 0)
        tool_answer(m, r, px_buf_text(&call.text), call.text.len, px_buf_text(&call.json), false);
    if (done < 0)
        tool_error(m, r, &e);
    px_buf_done(&call.text);
    px_buf_done(&call.json);
}

static void do_call(struct mcp *m, struct request *r, const json_t *params)
{
    const json_t *name = json_object_get(params, "name");
    json_t *args = json_object_get(params, "arguments"), *none = NULL;
    const struct tool *tool = json_is_string(name) ? tools_find(&m->set, json_string_value(name)) : NULL;
    if (!tool) {
        refuse(m, r, RPC_PARAMS, json_is_string(name) ? "there is no tool of that name; see tools/list" : "tools/call needs a name");
        return;
    }
    if (args && !json_is_object(args)) {
        refuse(m, r, RPC_PARAMS, "arguments must be an object");
        return;
    }
    if (!args)
        none = json_object();
    if (args || none)
        call_tool(m, r, tool, args ? args : none);
    else
        refuse(m, r, RPC_INTERNAL, "out of memory");
    json_decref(none);
}

/* ---- the runner ---- */

int mcp_answer(struct mcp *m, const struct wire_answer *head, const char *text, const char *json)
{
    struct pending *p = head->number ? find_pending(m, head->number) : NULL;
    if (!p)
        return m->failed ? -1 : 0;      /* it was cancelled */
    struct request r = p->request;
    *p = (struct pending){0};
    tool_answer(m, &r, text, head->text_len, json, head->is_error);
    return m->failed ? -1 : 0;
}

int mcp_runner_gone(struct mcp *m)
{
    struct px_err e = {0};
    m->runner_gone = true;
    for (size_t i = 0; i < PENDING_MAX; i++) {
        struct request r = m->pending[i].request;
        if (m->pending[i].number == 0)
            continue;
        m->pending[i] = (struct pending){0};
        (void)px_fail(&e, PX_E_GONE, 0, "the process that runs commands has ended");
        tool_error(m, &r, &e);
    }
    return m->failed ? -1 : 0;
}

/* ---- requests ---- */

/* Not answered; what it ran is ended. */
static void cancelled(struct mcp *m, const json_t *params)
{
    const json_t *id = json_object_get(params, "requestId");
    px_auto_free char *text = id ? json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    for (size_t i = 0; text && i < PENDING_MAX; i++) {
        struct pending *p = &m->pending[i];
        if (p->number == 0 || strcmp(p->request.id, text) != 0)
            continue;
        struct wire_ask ask = {.op = WIRE_CANCEL, .number = p->number};
        struct batch *b = p->request.batch;
        (void)m->config.ask(m->config.user, &ask, NULL);
        request_done(&p->request);
        *p = (struct pending){0};
        if (b)
            batch_end(m, b);
    }
}

enum { ANY_TIME = 1, ONLY_LEGACY = 2, ONLY_MODERN = 4 };
static const struct method {
    const char *name;
    unsigned when;
    void (*run)(struct mcp *m, struct request *r, const json_t *params);
} methods[] = {
    {"initialize", ANY_TIME | ONLY_LEGACY, do_initialize},
    {"ping", ANY_TIME | ONLY_LEGACY, do_ping},
    {"server/discover", ONLY_MODERN, do_discover},
    {"tools/list", 0, do_list},
    {"tools/call", 0, do_call},
};

static const struct method *find_method(const char *name, bool modern)
{
    for (size_t i = 0; i < PX_COUNT_OF(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return methods[i].when & ONLY_LEGACY && modern ? NULL : &methods[i];
    return NULL;
}

/* -1: it was refused. Whether a request is modern is said by the request itself. */
static int check_version(struct mcp *m, struct request *r, const json_t *params)
{
    const json_t *meta = json_object_get(params, "_meta"), *wanted = json_object_get(meta, META "protocolVersion");
    r->modern = wanted != NULL;
    if (!r->modern)
        return 0;
    if (!json_is_string(wanted) || !json_is_object(json_object_get(meta, META "clientCapabilities"))) {
        refuse(m, r, RPC_PARAMS, "_meta needs the text " META "protocolVersion and the object " META "clientCapabilities");
        return -1;
    }
    if (find_version(json_string_value(wanted), true))
        return 0;
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_json j = {.out = &out};
    px_json_object(&j, NULL);
    add_versions(&j, "supported");
    px_json_bytes(&j, "requested", json_string_value(wanted), json_string_length(wanted) > 64 ? 64 : json_string_length(wanted));
    px_json_end(&j);
    refuse_with(m, r, RPC_VERSION, "Unsupported protocol version", px_buf_text(&out));
    return -1;
}

static void run_request(struct mcp *m, struct request *r, const char *name, const json_t *params)
{
    if (params && !json_is_object(params)) {
        refuse(m, r, RPC_PARAMS, "params must be an object");
        return;
    }
    if (check_version(m, r, params) < 0)
        return;
    const struct method *method = find_method(name, r->modern);
    if (!method)
        refuse(m, r, RPC_NO_METHOD, "there is no such method");
    else if (method->when & ONLY_MODERN && !r->modern)
        refuse(m, r, RPC_PARAMS, "this method needs " META "protocolVersion in _meta");
    else if (!r->modern && !m->legacy && !(method->when & ANY_TIME))
        refuse(m, r, RPC_INVALID, "begin with initialize, or say " META "protocolVersion in _meta");
    else
        method->run(m, r, params);
}

/* A text or a whole number, as JSON; NULL if it is neither or too long. */
static char *take_id(const json_t *id)
{
    if (json_is_string(id) ? json_string_length(id) > ID_MAX : !json_is_integer(id))
        return NULL;
    return json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);
}

static bool is_pending(const struct mcp *m, const char *id)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (m->pending[i].number && strcmp(m->pending[i].request.id, id) == 0)
            return true;
    return false;
}

static void message(struct mcp *m, const json_t *doc, struct batch *batch)
{
    struct request r = {.batch = batch};
    const json_t *method = json_object_get(doc, "method"), *id = json_object_get(doc, "id"),
                 *version = json_object_get(doc, "jsonrpc"), *params = json_object_get(doc, "params");
    bool ours = json_is_string(version) && strcmp(json_string_value(version), "2.0") == 0;
    if (ours && !method && (json_object_get(doc, "result") || json_object_get(doc, "error")))
        return;                 /* an answer, and we never ask */
    if (ours && json_is_string(method) && !id) {
        if (strcmp(json_string_value(method), "notifications/cancelled") == 0)
            cancelled(m, params);
        return;
    }
    r.id = take_id(id);
    if (batch)
        batch->waiting++;
    if (!ours || !json_is_string(method) || !r.id)
        refuse(m, &r, RPC_INVALID, "that is no request of JSON-RPC 2.0 with an id that is a text or a whole number");
    else if (is_pending(m, r.id))
        refuse(m, &r, RPC_INVALID, "a request with this id is still running");
    else
        run_request(m, &r, json_string_value(method), params);
}

static void messages(struct mcp *m, const json_t *array)
{
    struct request none = {0};
    size_t n = json_array_size(array);
    struct batch *b = n && n <= BATCH_MAX && m->legacy && m->legacy->batch ? calloc(1, sizeof *b) : NULL;
    if (!b) {
        refuse(m, &none, RPC_INVALID, "an array of 1 to 64 messages is for revisions 2025-03-26 and 2024-11-05, after initialize");
        return;
    }
    *b = (struct batch){.out = PX_BUF(ANSWER_MAX), .waiting = 1};
    for (size_t i = 0; i < n && !m->failed; i++)
        message(m, json_array_get(array, i), b);
    batch_end(m, b);
}

static void line(struct mcp *m, const struct serve_line *l)
{
    struct request none = {0};
    json_t *doc = NULL;
    size_t blank = 0;
    while (blank < l->len && memchr(" \t\r", l->data[blank], 3))
        blank++;
    if (l->data && blank == l->len)
        return;
    if (!l->data)
        refuse(m, &none, RPC_INVALID, "the message is longer than 4 MiB");
    else if (!serve_lines_small(l->data, l->len))
        refuse(m, &none, RPC_INVALID, "the message is too deep or has too many values");
    else if (!(doc = json_loadb(l->data, l->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL)))
        refuse(m, &none, RPC_PARSE, "that is no JSON");
    else if (json_is_array(doc))
        messages(m, doc);
    else
        message(m, doc, NULL);
    json_decref(doc);
}

int mcp_feed(struct mcp *m, const char *data, size_t len)
{
    struct serve_line l;
    int r;
    while ((r = serve_lines_next(&m->lines, &data, &len, &l)) > 0 && !m->failed)
        line(m, &l);
    return r < 0 || m->failed ? -1 : 0;
}

struct mcp *mcp_new(const struct mcp_config *config)
{
    struct mcp *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->config = *config;
    m->set = (struct tool_set){.read_only = config->read_only, .shell = config->shell};
    serve_lines_init(&m->lines);
    return m;
}

void mcp_free(struct mcp *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < PENDING_MAX; i++) {
        struct batch *b = m->pending[i].number ? m->pending[i].request.batch : NULL;
        request_done(&m->pending[i].request);
        if (b && --b->waiting == 0) {
            px_buf_done(&b->out);
            free(b);
        }
    }
    serve_lines_done(&m->lines);
    free(m);
}
