/* Writes answers: results, errors, and the output of tools. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/mcp_internal.h"

void mcp_request_done(struct request *r)
{
    free(r->id);
    r->id = NULL;
}

void mcp_send(struct mcp *m, struct px_buf *out)
{
    px_buf_putc(out, '\n');
    if (out->err < 0 || m->config.send(m->config.user, out->data, out->len) < 0)
        m->failed = true;
}

void mcp_batch_end(struct mcp *m, struct batch *b)
{
    if (--b->waiting > 0)
        return;
    if (b->out.len > 0) { /* only notifications have no answer */
        px_buf_putc(&b->out, ']');
        mcp_send(m, &b->out);
    }
    px_buf_done(&b->out);
    free(b);
}

static void begin_answer(struct px_json *j, const struct request *r)
{
    px_json_object(j, NULL);
    px_json_text(j, "jsonrpc", "2.0");
    px_json_value(j, "id", r->id ? r->id : "null");
}

static void add_error(struct px_json *j, int code, const char *words, const char *data)
{
    px_json_object(j, "error");
    px_json_int(j, "code", code);
    px_json_text(j, "message", words);
    if (data)
        px_json_value(j, "data", data);
    px_json_end(j);
}

/* The replacement in an array for an answer that does not fit. */
static struct px_buf *no_room(const struct request *r, struct px_buf *out)
{
    struct px_json j = {.out = out};
    begin_answer(&j, r);
    add_error(&j, RPC_INTERNAL, "the answers of this array are too large together", NULL);
    px_json_end(&j);
    return out;
}

/* Sends one complete answer; ends the request. */
static void answer(struct mcp *m, struct request *r, struct px_buf *out)
{
    struct batch *b = r->batch;
    if (b) {
        px_auto_buf struct px_buf instead = PX_BUF(BATCH_REST);
        if (out->err == 0 && b->out.len + out->len > ANSWER_MAX - BATCH_REST)
            out = no_room(r, &instead);
        px_buf_puts(&b->out, b->out.len ? "," : "[");
        px_buf_add(&b->out, out->data, out->len);
        if (out->err < 0)
            m->failed = true;
    } else {
        mcp_send(m, out);
    }
    mcp_request_done(r);
    if (b)
        mcp_batch_end(m, b);
}

void mcp_refuse_with(struct mcp *m, struct request *r, int code, const char *words, const char *data)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    begin_answer(&j, r);
    add_error(&j, code, words, data);
    px_json_end(&j);
    answer(m, r, &out);
}

void mcp_refuse(struct mcp *m, struct request *r, int code, const char *words)
{
    mcp_refuse_with(m, r, code, words, NULL);
}

void mcp_server_info(struct px_json *j, const char *name)
{
    px_json_object(j, name);
    px_json_text(j, "name", "px");
    px_json_text(j, "title", "px sandbox");
    px_json_text(j, "version", px_version());
    px_json_end(j);
}

void mcp_begin_result(struct px_json *j, const struct request *r)
{
    mcp_begin_result_as(j, r, "complete");
}

void mcp_begin_result_as(struct px_json *j, const struct request *r, const char *type)
{
    begin_answer(j, r);
    px_json_object(j, "result");
    if (!r->modern)
        return;
    px_json_text(j, "resultType", type);
    px_json_object(j, "_meta");
    mcp_server_info(j, META "serverInfo");
    px_json_end(j);
}

void mcp_end_result(struct mcp *m, struct request *r, struct px_json *j)
{
    px_json_end(j);
    px_json_end(j);
    answer(m, r, j->out);
}

void mcp_tool_answer(struct mcp *m, struct request *r, const char *text, size_t len, const char *json,
                     bool is_error)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    mcp_begin_result(&j, r);
    px_json_array(&j, "content");
    px_json_object(&j, NULL);
    px_json_text(&j, "type", "text");
    px_json_bytes(&j, "text", text, len);
    px_json_end(&j);
    px_json_end(&j);
    px_json_value(&j, "structuredContent", json);
    px_json_bool(&j, "isError", is_error);
    if (out.err == -E2BIG) {
        struct px_err e = {0};
        (void)mcp_too_large(false, &e);
        mcp_tool_error(m, r, &e);
    } else {
        mcp_end_result(m, r, &j);
    }
}

int mcp_too_large(bool memory, struct px_err *e)
{
    if (memory)
        return px_no_memory(e);
    (void)px_fail(e, PX_E_LIMIT, 0, "the answer is larger than %d MiB", ANSWER_MAX >> 20);
    return px_fix(e, "Ask for less: a part of the file by offset and max_chars, fewer files, or a narrower pattern.");
}

/* px_files_message has what is allowed instead; other errors have a fix. */
int serve_error(const struct px_files *files, const struct px_err *e, char **ret_words, char **ret_json)
{
    px_auto_free char *words = NULL;
    px_auto_buf struct px_buf out = PX_BUF(8192);
    if (px_files_message(e, &words, NULL) < 0 || px_files_error_json(files, e, ret_json, NULL) < 0)
        return -1;
    px_buf_printf(&out, "%s%s%s", words, px_files_class(e->code) || !*e->fix ? "" : "\n",
                  px_files_class(e->code) ? "" : e->fix);
    *ret_words = px_buf_take(&out);
    return *ret_words ? 0 : -1;
}

void mcp_tool_error(struct mcp *m, struct request *r, const struct px_err *e)
{
    px_auto_free char *words = NULL, *json = NULL;
    if (serve_error(m->config.files, e, &words, &json) == 0) {
        mcp_tool_answer(m, r, words, strlen(words), json, true);
        return;
    }
    m->failed = true;
    mcp_request_done(r);
}
