/* mcp/mcp.h - the Model Context Protocol over a pair of streams: JSON-RPC in, tools' answers out.
 *
 * Why:     agents reach their tools by it. Revision 2026-07-28 says everything in each request; those before it begin with
 *          `initialize`, and both may be spoken to one server.
 * Owns:    what is pending: requests that the runner, or a person whom the client asks, has not answered yet.
 * Mustn't: do input or output itself (fuzzers feed it), or have a right that its files do not give. */
#pragma once

#include <px/worker.h>

#include "mcp/wire.h"

struct mcp;

struct mcp_config {
    const struct px_files *files;
    bool read_only; /* no tool that writes */
    bool shell;     /* tools of the runner */
    const struct px_worker *worker; /* whose tool_rules hold; NULL: none */
    unsigned approval_s;            /* how long a person may think before silence is a refusal */
    void *user;
    int (*send)(void *user, const char *data, size_t len);                /* to the client; -1: it is gone */
    int (*ask)(void *user, const struct wire_ask *ask, const char *text); /* the runner; -1: it is gone */
};

struct mcp *mcp_new(const struct mcp_config *config); /* NULL: no memory */
void mcp_free(struct mcp *m);
/* Bytes of the client. 0, or -1 when it cannot go on: the client is gone, or there is no memory. */
int mcp_feed(struct mcp *m, const char *data, size_t len);
/* What the runner answered. */
int mcp_answer(struct mcp *m, const struct wire_answer *head, const char *text, const char *json);
/* The runner is gone: what is pending ends with an error, and so does what comes. */
int mcp_runner_gone(struct mcp *m);
/* Milliseconds until mcp_tick must be called; -1: it need not be. */
int mcp_wait_msec(const struct mcp *m);
/* Refuses what nobody approved in time. 0, or -1 as mcp_feed. */
int mcp_tick(struct mcp *m);
