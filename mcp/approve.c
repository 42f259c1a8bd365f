/* Approval: asks the user of the client (elicitation/create) and checks the answer. A client that began with
 * `initialize` gets a request; a modern one gets the question as the result of the call, and calls again with the
 * answer. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/mcp_internal.h"

enum { SECOND = 1000 };
static const char too_late[] = "nobody answered the question in time";

static int64_t now_msec(void)
{
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * SECOND + ts.tv_nsec / 1000000;
}

/* An empty object means forms; since 2025-11-25 there are other named modes; before, any content means forms. */
bool mcp_can_elicit(const struct version *version, const json_t *capabilities)
{
    const json_t *found = json_object_get(capabilities, "elicitation");
    if (!version->elicits || !json_is_object(found))
        return false;
    return json_object_size(found) == 0 || json_object_get(found, "form") || strcmp(version->name, "2025-06-18") == 0;
}

/* ---- the question ---- */

/* The whole command, without control characters and look-alike characters, so that the user knows what to approve. */
static void add_printable(struct px_buf *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c >= ' ' && *c < 0x7f)
            px_buf_putc(out, (char)*c);
        else
            px_buf_printf(out, "\\x%02x", *c);
}

static int add_call(const struct pending *p, struct px_buf *out)
{
    bool background = json_is_true(json_object_get(p->args, "background"));
    if (p->tool->flags & TOOL_SHELL) {
        px_buf_printf(out, "The worker wants to run%s: ", background ? " in the background" : "");
        add_printable(out, json_string_value(json_object_get(p->args, "command")));
        return 0;
    }
    px_auto_free char *args = json_dumps(p->args, JSON_ENSURE_ASCII | JSON_COMPACT);
    px_buf_printf(out, "The worker wants to use %s: ", p->tool->name);
    add_printable(out, args ? args : "");
    return args ? 0 : -1;
}

static int make_words(const struct pending *p, struct px_buf *out, struct px_err *e)
{
    if (add_call(p, out) < 0)
        return px_no_memory(e);
    if (out->err == 0)
        return 0;
    (void)px_fail(e, PX_E_LIMIT, 0, "the call of %s needs approval, and is too large to be shown to a person",
                  p->tool->name);
    return px_fix(e, "Do it in smaller parts.");
}

static void begin_message(struct px_json *j, const char *method)
{
    px_json_object(j, NULL);
    px_json_text(j, "jsonrpc", "2.0");
    px_json_text(j, "method", method);
}

static int refused(const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_APPROVAL, 0, "the call needs approval and was not approved: %s", why);
    (void)px_why(e, "The worker's file says approval_required. Nothing was done.");
    return px_fix(e, "Use what needs no approval, or tell the person whom you work for what is needed.");
}

static void add_params(struct px_json *j, const char *words)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"approve\":{\"type\":\"boolean\",\"title\":\"Allow it\","
        "\"description\":\"Whether this may be done, once.\",\"default\":false}},\"required\":[\"approve\"]}";
    px_json_object(j, "params");
    px_json_text(j, "message", words);
    px_json_value(j, "requestedSchema", schema);
    px_json_end(j);
}

static void send_question(struct mcp *m, const struct pending *p, const char *words)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    begin_message(&j, "elicitation/create");
    px_json_uint(&j, "id", p->number);
    add_params(&j, words);
    px_json_end(&j);
    mcp_send(m, &out);
}

/* A modern server sends no requests: the question is the result, and the client repeats the call with the user's
 * answer. */
static void answer_with_question(struct mcp *m, struct pending *p, const char *words)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    char state[16];
    (void)px_fmt(state, sizeof state, "%u", p->number);
    mcp_begin_result_as(&j, &p->request, "input_required");
    px_json_object(&j, "inputRequests");
    px_json_object(&j, "approve");
    px_json_text(&j, "method", "elicitation/create");
    add_params(&j, words);
    px_json_end(&j);
    px_json_end(&j);
    px_json_text(&j, "requestState", state);
    mcp_end_result(m, &p->request, &j);
    p->request = (struct request){0};
}

int mcp_ask_person(struct mcp *m, struct pending *p, struct px_err *e)
{
    px_auto_buf struct px_buf words = PX_BUF(QUESTION_MAX);
    if (!p->request.elicits)
        return refused("the client did not declare the capability elicitation, so that nobody can be asked", e);
    if (make_words(p, &words, e) < 0)
        return -1;
    if (p->request.modern)
        answer_with_question(m, p, px_buf_text(&words));
    else
        send_question(m, p, px_buf_text(&words));
    p->asking = true;
    p->until = now_msec() + (int64_t)m->config.approval_s * SECOND;
    return 0;
}

struct pending *mcp_forget_question(struct mcp *m)
{
    struct pending *oldest = NULL;
    for (size_t i = 0; i < PENDING_MAX; i++) {
        struct pending *p = &m->pending[i];
        if (p->number && !p->request.id && (!oldest || p->until < oldest->until))
            oldest = p;
    }
    if (oldest)
        (void)mcp_pending_take(m, oldest);
    return oldest;
}

void mcp_withdraw(struct mcp *m, const struct pending *p)
{
    px_auto_buf struct px_buf out = PX_BUF(ANSWER_MAX);
    struct px_json j = {.out = &out};
    begin_message(&j, "notifications/cancelled");
    px_json_object(&j, "params");
    px_json_uint(&j, "requestId", p->number);
    px_json_text(&j, "reason", "the answer is no longer needed");
    px_json_end(&j);
    px_json_end(&j);
    mcp_send(m, &out);
}

/* ---- the answer ---- */

static bool is_word(const json_t *value, const char *word)
{
    return json_is_string(value) && json_string_length(value) == strlen(word) &&
           memcmp(json_string_value(value), word, strlen(word)) == 0;
}

/* Why it is refused; NULL: approved. */
static const char *why_not(const json_t *result)
{
    const json_t *action = json_object_get(result, "action"),
                 *approve = json_object_get(json_object_get(result, "content"), "approve");
    if (is_word(action, "decline") || (is_word(action, "accept") && json_is_false(approve)))
        return "the person said no";
    if (is_word(action, "cancel"))
        return "the question was closed without an answer";
    if (is_word(action, "accept") && json_is_true(approve))
        return NULL;
    return "the client's answer is not of the kind that was asked for";
}

/* A question that was sent as a result is not pending. */
static void refuse(struct mcp *m, struct pending *p, const char *why)
{
    struct px_err e = {0};
    struct request r = mcp_pending_take(m, p);
    (void)refused(why, &e);
    if (r.id)
        mcp_tool_error(m, &r, &e);
}

static void settle(struct mcp *m, struct pending *p, const char *why)
{
    p->asking = false;
    if (p->until <= now_msec())
        refuse(m, p, too_late);
    else if (why)
        refuse(m, p, why);
    else
        mcp_approved(m, p);
}

void mcp_hear_person(struct mcp *m, const json_t *doc)
{
    json_int_t id = json_integer_value(json_object_get(doc, "id"));
    struct pending *p = id > 0 && id <= UINT32_MAX ? mcp_find_pending(m, (uint32_t)id) : NULL;
    if (!p || !p->asking || !p->request.id)
        return;
    settle(m, p,
           json_object_get(doc, "error") ? "the client answered the question with an error"
                                         : why_not(json_object_get(doc, "result")));
}

/* An approval is valid only for the call in the question. */
void mcp_hear_again(struct mcp *m, struct request *r, const struct tool *tool, const json_t *args,
                    const json_t *params)
{
    const char *state = json_string_value(json_object_get(params, "requestState"));
    uint64_t number = 0;
    struct px_err e = {0};
    struct pending *p = NULL;
    if (state && px_parse_u64(state, UINT32_MAX, &number) == 0 && number)
        p = mcp_find_pending(m, (uint32_t)number);
    if (p && p->asking && !p->request.id && p->tool == tool && json_equal(p->args, args)) {
        p->request = *r;
        settle(m, p, why_not(json_object_get(json_object_get(params, "inputResponses"), "approve")));
        return;
    }
    (void)refused("the answer is to no open question about this call", &e);
    mcp_tool_error(m, r, &e);
}

/* ---- silence ---- */

int mcp_wait_msec(const struct mcp *m)
{
    int64_t now = now_msec(), least = -1;
    for (size_t i = 0; i < PENDING_MAX; i++) {
        const struct pending *p = &m->pending[i];
        int64_t left = p->until > now ? p->until - now : 0;
        if (p->asking && (least < 0 || left < least))
            least = left;
    }
    return least > INT_MAX ? INT_MAX : (int)least;
}

int mcp_tick(struct mcp *m)
{
    int64_t now = now_msec();
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (m->pending[i].asking && m->pending[i].until <= now)
            refuse(m, &m->pending[i], too_late);
    return m->failed ? -1 : 0;
}
