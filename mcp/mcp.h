/* mcp/mcp.h - the Model Context Protocol over a pair of streams: JSON-RPC in, tools' answers out.
 *
 * Why:     agents call tools by it. Revision 2026-07-28 is stateless; older ones begin with `initialize`. One server
 *          supports both.
 * Owns:    the pending requests, which wait for the runner or for the user's approval.
 * Mustn't: do input or output itself (fuzzers feed it), or need rights beyond its files. */
#pragma once

#include <px/worker.h>

#include "mcp/wire.h"

struct mcp;

struct mcp_config {
    const struct px_files *files;
    bool read_only; /* without tools that write */
    bool shell;     /* tools of the runner */
    const struct px_worker *worker; /* whose tool_rules hold; NULL: none */
    unsigned approval_s;            /* how long to wait for the user's approval */
    void *user;
    int (*send)(void *user, const char *data, size_t len);                /* to the client; -1: closed */
    int (*ask)(void *user, const struct wire_ask *ask, const char *text); /* the runner; -1: closed */
};

struct mcp *mcp_new(const struct mcp_config *config); /* NULL: no memory */
void mcp_free(struct mcp *m);
/* Handles bytes of the client. 0, or -1 if the client is closed or memory is short. */
int mcp_feed(struct mcp *m, const char *data, size_t len);
/* What the runner answered. */
int mcp_answer(struct mcp *m, const struct wire_answer *head, const char *text, const char *json);
/* The runner has ended: pending and later requests get an error. */
int mcp_runner_gone(struct mcp *m);
/* Milliseconds until mcp_tick must be called; -1: it need not be. */
int mcp_wait_msec(const struct mcp *m);
/* Refuses requests that were not approved in time. 0, or -1 as mcp_feed. */
int mcp_tick(struct mcp *m);
