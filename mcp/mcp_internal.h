/* mcp/mcp_internal.h - what the parts of the MCP server share.
 *
 * Why:     messages, answers and methods are separate files; a request passes through all.
 * Owns:    see mcp/mcp.h.
 * Mustn't: be included outside of mcp/. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "mcp/lines.h"
#include "mcp/mcp.h"
#include "mcp/session.h"
#include "mcp/tools.h"

enum {
    PENDING_MAX = 32,
    BATCH_MAX = 64,
    ID_MAX = 1024,
    ANSWER_MAX = 64 << 20,
    BATCH_REST = 1 << 20, /* reserved for the errors of answers that do not fit */
    QUESTION_MAX = 512 << 10, /* for the user: room for any command, whose bytes may take four characters each */
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

/* Modern clients send their version in every request, others agree on one by `initialize`. */
struct version {
    const char *name;
    bool modern, batch;
    bool elicits; /* supports questions of the server to the user */
};

/* Answers to the requests of one array, which are sent together. */
struct batch {
    struct px_buf out;
    size_t waiting; /* one more while the array is still being read */
};

struct request {
    char *id; /* as JSON; NULL: a notification */
    bool modern;
    bool elicits; /* the client can ask the user */
    struct batch *batch;
};

struct pending {
    uint32_t number; /* for the runner, and the id of a question to the client; 0: free */
    struct request request; /* without id: the question was the answer, and the client calls again */
    const struct tool *tool;
    json_t *args;  /* kept for the call after the approval */
    bool asking;   /* the client has the question */
    int64_t until; /* CLOCK_MONOTONIC in milliseconds: the deadline for the approval */
};

struct mcp {
    struct mcp_config config;
    struct tool_set set;
    struct session session;
    struct serve_lines lines;
    const struct version *legacy; /* agreed upon by `initialize`; NULL: not yet */
    bool elicits;                 /* and whether that client can ask the user */
    bool runner_gone;
    bool failed; /* the client is closed, or memory is short */
    uint32_t last;
    struct pending pending[PENDING_MAX];
};

/* ---- mcp_say.c: each of these that takes a request answers and ends it ---- */

void mcp_request_done(struct request *r);
void mcp_batch_end(struct mcp *m, struct batch *b);
void mcp_send(struct mcp *m, struct px_buf *out); /* one message, and the newline */
void mcp_refuse(struct mcp *m, struct request *r, int code, const char *words);
void mcp_refuse_with(struct mcp *m, struct request *r, int code, const char *words, const char *data);
void mcp_begin_result(struct px_json *j, const struct request *r);
void mcp_begin_result_as(struct px_json *j, const struct request *r, const char *type);
void mcp_end_result(struct mcp *m, struct request *r, struct px_json *j);
void mcp_server_info(struct px_json *j, const char *name);
void mcp_tool_answer(struct mcp *m, struct request *r, const char *text, size_t len, const char *json,
                     bool is_error);
/* Fills e: the tool's output does not fit into an answer, or into memory. */
int mcp_too_large(bool memory, struct px_err *e);
void mcp_tool_error(struct mcp *m, struct request *r, const struct px_err *e);

/* ---- mcp_methods.c ---- */

enum { ANY_TIME = 1, ONLY_LEGACY = 2, ONLY_MODERN = 4 };
struct method {
    const char *name;
    unsigned when;
    void (*run)(struct mcp *m, struct request *r, const json_t *params);
};
/* NULL if absent or of another type. */
const struct method *mcp_find_method(const char *name, bool modern);
const struct version *mcp_find_version(const char *name, bool modern);
void mcp_add_versions(struct px_json *j, const char *name);
struct pending *mcp_find_pending(struct mcp *m, uint32_t number);
/* Ends the waiting; the caller then owns the request. An open question is withdrawn. */
struct request mcp_pending_take(struct mcp *m, struct pending *p);
/* The user approved. */
void mcp_approved(struct mcp *m, struct pending *p);

/* ---- mcp_approve.c ---- */

/* Whether a client with these capabilities can ask the user. */
bool mcp_can_elicit(const struct version *version, const json_t *capabilities);
/* Sends the question; -1 with an error if it cannot be sent. */
int mcp_ask_person(struct mcp *m, struct pending *p, struct px_err *e);
/* The slot of the oldest question that a modern client has not answered; NULL: none. */
struct pending *mcp_forget_question(struct mcp *m);
void mcp_withdraw(struct mcp *m, const struct pending *p);
/* An answer of the client, if it is one to a question of ours. */
void mcp_hear_person(struct mcp *m, const json_t *doc);
/* The same, of a modern client: the call again, with the answer in its params. */
void mcp_hear_again(struct mcp *m, struct request *r, const struct tool *tool, const json_t *args,
                    const json_t *params);
