/* Turns messages into requests, and handles the runner's answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/mcp_internal.h"

/* ---- the runner ---- */

int mcp_answer(struct mcp *m, const struct wire_answer *head, const char *text, const char *json)
{
    struct pending *p = head->number ? mcp_find_pending(m, head->number) : NULL;
    if (!p)
        return m->failed ? -1 : 0; /* it was cancelled */
    struct px_err e = {0};
    if (head->needs_approval && mcp_ask_person(m, p, &e) == 0)
        return m->failed ? -1 : 0;
    struct request r = mcp_pending_take(m, p);
    if (head->needs_approval)
        mcp_tool_error(m, &r, &e);
    else
        mcp_tool_answer(m, &r, text, head->text_len, json, head->is_error);
    return m->failed ? -1 : 0;
}

int mcp_runner_gone(struct mcp *m)
{
    struct px_err e = {0};
    m->runner_gone = true;
    for (size_t i = 0; i < PENDING_MAX; i++) {
        if (m->pending[i].number == 0 || !(m->pending[i].tool->flags & TOOL_SHELL))
            continue;
        struct request r = mcp_pending_take(m, &m->pending[i]);
        if (!r.id)
            continue;
        (void)px_fail(&e, PX_E_GONE, 0, "the process that runs commands has ended");
        mcp_tool_error(m, &r, &e);
    }
    return m->failed ? -1 : 0;
}

/* ---- requests ---- */

/* Sends no answer; ends the command, and withdraws a question. */
static void cancelled(struct mcp *m, const json_t *params)
{
    const json_t *id = json_object_get(params, "requestId");
    px_auto_free char *text = id ? json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    for (size_t i = 0; text && i < PENDING_MAX; i++) {
        struct pending *p = &m->pending[i];
        if (!p->request.id || strcmp(p->request.id, text) != 0)
            continue;
        struct wire_ask ask = {.op = WIRE_CANCEL, .number = p->number};
        if (!p->asking)
            (void)m->config.ask(m->config.user, &ask, NULL);
        struct request r = mcp_pending_take(m, p);
        mcp_request_done(&r);
        if (r.batch)
            mcp_batch_end(m, r.batch);
    }
}

/* -1: refused. The request itself shows whether it is modern. */
static int check_version(struct mcp *m, struct request *r, const json_t *params)
{
    const json_t *meta = json_object_get(params, "_meta"),
                 *wanted = json_object_get(meta, META "protocolVersion");
    r->modern = wanted != NULL;
    r->elicits = m->elicits;
    if (!r->modern)
        return 0;
    if (!json_is_string(wanted) || !json_is_object(json_object_get(meta, META "clientCapabilities"))) {
        mcp_refuse(m, r, RPC_PARAMS,
                   "_meta needs the text " META "protocolVersion and the object " META "clientCapabilities");
        return -1;
    }
    const struct version *version = mcp_find_version(json_string_value(wanted), true);
    r->elicits = version && mcp_can_elicit(version, json_object_get(meta, META "clientCapabilities"));
    if (version)
        return 0;
    px_auto_buf struct px_buf out = PX_BUF(1 << 20);
    struct px_json j = {.out = &out};
    px_json_object(&j, NULL);
    mcp_add_versions(&j, "supported");
    px_json_bytes(&j, "requested", json_string_value(wanted),
                  json_string_length(wanted) > 64 ? 64 : json_string_length(wanted));
    px_json_end(&j);
    mcp_refuse_with(m, r, RPC_VERSION, "Unsupported protocol version", px_buf_text(&out));
    return -1;
}

static void run_request(struct mcp *m, struct request *r, const char *name, const json_t *params)
{
    if (params && !json_is_object(params)) {
        mcp_refuse(m, r, RPC_PARAMS, "params must be an object");
        return;
    }
    if (check_version(m, r, params) < 0)
        return;
    const struct method *method = mcp_find_method(name, r->modern);
    if (!method)
        mcp_refuse(m, r, RPC_NO_METHOD, "there is no such method");
    else if (method->when & ONLY_MODERN && !r->modern)
        mcp_refuse(m, r, RPC_PARAMS, "this method needs " META "protocolVersion in _meta");
    else if (!r->modern && !m->legacy && !(method->when & ANY_TIME))
        mcp_refuse(m, r, RPC_INVALID, "begin with initialize, or say " META "protocolVersion in _meta");
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
        if (m->pending[i].request.id && strcmp(m->pending[i].request.id, id) == 0)
            return true;
    return false;
}

static void message(struct mcp *m, const json_t *doc, struct batch *batch)
{
    struct request r = {.batch = batch};
    const json_t *method = json_object_get(doc, "method"), *id = json_object_get(doc, "id"),
                 *version = json_object_get(doc, "jsonrpc"), *params = json_object_get(doc, "params");
    bool ours = json_is_string(version) && strcmp(json_string_value(version), "2.0") == 0;
    if (ours && !method && (json_object_get(doc, "result") || json_object_get(doc, "error"))) {
        mcp_hear_person(m, doc);
        return;
    }
    if (ours && json_is_string(method) && !id) {
        if (strcmp(json_string_value(method), "notifications/cancelled") == 0)
            cancelled(m, params);
        return;
    }
    r.id = take_id(id);
    if (batch)
        batch->waiting++;
    if (!ours || !json_is_string(method) || !r.id)
        mcp_refuse(m, &r, RPC_INVALID,
                   "that is no request of JSON-RPC 2.0 with an id that is a text or a whole number");
    else if (is_pending(m, r.id))
        mcp_refuse(m, &r, RPC_INVALID, "a request with this id is still running");
    else
        run_request(m, &r, json_string_value(method), params);
}

static void messages(struct mcp *m, const json_t *array)
{
    struct request none = {0};
    size_t n = json_array_size(array);
    struct batch *b = n && n <= BATCH_MAX && m->legacy && m->legacy->batch ? calloc(1, sizeof *b) : NULL;
    if (!b) {
        mcp_refuse(
            m, &none, RPC_INVALID,
            "an array of 1 to 64 messages is for revisions 2025-03-26 and 2024-11-05, after initialize");
        return;
    }
    *b = (struct batch){.out = PX_BUF(ANSWER_MAX), .waiting = 1};
    for (size_t i = 0; i < n && !m->failed; i++)
        message(m, json_array_get(array, i), b);
    mcp_batch_end(m, b);
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
        mcp_refuse(m, &none, RPC_INVALID, "the message is longer than 4 MiB");
    else if (!serve_lines_small(l->data, l->len))
        mcp_refuse(m, &none, RPC_INVALID, "the message is too deep or has too many values");
    else if (!(doc = json_loadb(l->data, l->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
                                NULL)))
        mcp_refuse(m, &none, RPC_PARSE, "that is no JSON");
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
    m->set = (struct tool_set){.read_only = config->read_only, .shell = config->shell, .worker = config->worker};
    serve_lines_init(&m->lines);
    return m;
}

void mcp_free(struct mcp *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < PENDING_MAX; i++) {
        struct batch *b = m->pending[i].number ? m->pending[i].request.batch : NULL;
        mcp_request_done(&m->pending[i].request);
        json_decref(m->pending[i].args);
        if (b && --b->waiting == 0) {
            px_buf_done(&b->out);
            free(b);
        }
    }
    session_done(&m->session);
    serve_lines_done(&m->lines);
    free(m);
}
