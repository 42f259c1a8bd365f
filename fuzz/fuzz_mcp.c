/* fuzz/fuzz_mcp.c - a client of the MCP server that sends anything: every line that goes back is one JSON document. */
#include <jansson.h>
#include <string.h>

#include "files/files.h"
#include "fuzz.h"
#include "mcp/lines.h"
#include "mcp/mcp.h"
#include "worker/worker.h"

/* Nothing can be reached, so that a request that is understood is harmless. */
static const struct px_files nothing;

struct seen {
    uint32_t asked; /* of the runner, and not answered yet */
    size_t lines;
    bool agreed, approved; /* by the text; by what the runner was told */
};

static int to_client(void *user, const char *data, size_t len)
{
    struct seen *seen = user;
    json_t *doc = json_loadb(data, len, JSON_ALLOW_NUL, NULL);

    CHECK(len > 1 && data[len - 1] == '\n' && memchr(data, '\n', len) == data + len - 1);
    CHECK(json_is_object(doc) || json_is_array(doc));
    json_decref(doc);
    seen->lines++;
    return 0;
}

static int to_runner(void *user, const struct wire_ask *ask, const char *text)
{
    struct seen *seen = user;

    CHECK(ask->number != 0 && ask->len <= WIRE_TEXT_MAX);
    CHECK(!ask->approved || seen->agreed);
    seen->approved = seen->approved || ask->approved;
    CHECK((ask->len == 0) == (text == NULL || *text == 0));
    seen->asked = ask->op == WIRE_CANCEL ? 0 : ask->number;
    return 0;
}

static void answer(struct mcp *m, struct seen *seen)
{
    struct wire_answer head = {.number = seen->asked, .text_len = 2, .json_len = 2};

    if (seen->asked)
        CHECK(mcp_answer(m, &head, "ok", "{}") == 0);
    seen->asked = 0;
}

/* Whether this is the one answer that is a yes. */
static bool agrees(json_t *doc)
{
    json_t *approve = NULL;
    const char *action = "";
    size_t len = 0;
    return json_unpack(doc, "{s:s%,s:{s:o}}", "action", &action, &len, "content", "approve", &approve) == 0 &&
           len == 6 && memcmp(action, "accept", len) == 0 && json_is_true(approve);
}

/* The same in the revision where a question is a result: the call comes again with the text in it. */
static void approval_by_result(struct mcp *m, struct seen *seen, const char *text)
{
    static const char call[] =
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":"
        "{\"elicitation\":{}}},\"name\":\"execute\",\"arguments\":{\"command\":\"x\"}%s}}\n",
                      answer[] = ",\"requestState\":\"%u\",\"inputResponses\":{\"approve\":%s}";
    size_t size = sizeof call + sizeof answer + strlen(text) + 64;
    char *more = malloc(size), *lines = malloc(size);
    seen->approved = false;
    CHECK(more && lines);
    (void)snprintf(lines, size, call, "");
    CHECK(mcp_feed(m, lines, strlen(lines)) == 0 && seen->asked);
    struct wire_answer question = {.number = seen->asked, .needs_approval = true};
    CHECK(mcp_answer(m, &question, "", "") == 0 && !seen->approved);
    (void)snprintf(more, size, answer, question.number, text);
    (void)snprintf(lines, size, call, more);
    CHECK(mcp_feed(m, lines, strlen(lines)) == 0);
    CHECK(!serve_lines_small(lines, strlen(lines)) || seen->approved == seen->agreed);
    free(more);
    free(lines);
}

/* The text as the answer to a question about a tool for files, and to one about a command. */
static void approval(json_t *doc, const char *text)
{
    static const char begin[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
        "\"capabilities\":{\"elicitation\":{}}}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"write_file\",\"arguments\":{"
        "\"path\":\"a/b\",\"content\":\"c\"}}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"execute\",\"arguments\":{"
        "\"command\":\"x\"}}}\n";
    static struct px_worker worker;
    struct seen seen = {.agreed = agrees(doc)};
    bool small = true;
    struct mcp_config config = {.files = &nothing,
                                .shell = true,
                                .worker = &worker,
                                .approval_s = 3600,
                                .user = &seen,
                                .send = to_client,
                                .ask = to_runner};
    char *lines = malloc(strlen(text) + 256);
    struct mcp *m = mcp_new(&config);
    for (size_t i = 0; i < PX_WORKER_TOOLS; i++)
        worker.tools[i].approval = true;
    CHECK(m && lines && mcp_feed(m, begin, strlen(begin)) == 0 && seen.lines == 2 && seen.asked == 2);
    struct wire_answer question = {.number = seen.asked, .needs_approval = true};
    CHECK(mcp_answer(m, &question, "", "") == 0 && seen.lines == 3 && mcp_wait_msec(m) > 0);
    for (int id = 1; id <= 2; id++) {
        (void)snprintf(lines, strlen(text) + 256, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":%s}\n", id, text);
        small = small && serve_lines_small(lines, strlen(lines));
        CHECK(mcp_feed(m, lines, strlen(lines)) == 0);
    }
    CHECK(!small || seen.approved == seen.agreed);
    CHECK(mcp_tick(m) == 0 && (!small || mcp_wait_msec(m) == -1));
    approval_by_result(m, &seen, text);
    mcp_free(m);
    free(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Where the bytes stand in a message that is otherwise well-formed, and once as they are. */
    static const char *const forms[] = {
        "%s\n",
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-03-26\"}}\n[%s]\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%s\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
        "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}},\"name\":\"edit_file\",\"arguments\":%s}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
        "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}},\"name\":\"execute\",\"arguments\":{\"command\":\"%s\"}}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":3}}\n",
    };
    char *text = fuzz_text(data, size), *lines = malloc(size + 640);

    CHECK(lines);
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        struct seen seen = {0};
        struct mcp_config config = {
            .files = &nothing, .shell = true, .user = &seen, .send = to_client, .ask = to_runner};
        struct mcp *m = mcp_new(&config);

        CHECK(m);
        (void)snprintf(lines, size + 640, forms[form], text);
        size_t len = strlen(lines), half = len / 2;
        CHECK(mcp_feed(m, lines, half) == 0 && mcp_feed(m, lines + half, len - half) == 0);
        answer(m, &seen);
        CHECK(mcp_runner_gone(m) == 0);
        mcp_free(m);
    }
    json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    char *line = doc ? json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (line)
        approval(doc, line);
    free(line);
    json_decref(doc);
    (void)serve_lines_small(text, size);
    free(lines);
    free(text);
    return 0;
}
