/* mcp/runner.h - the second process of a server, which starts boxes for it.
 *
 * Why:     the process that reads a model's requests has no rights; so another process must start boxes.
 * Owns:    one box for all commands, and its processes. Both end with the socket.
 * Mustn't: accept anything from the server but a command, a time, a number and an approval: the box's policy and the
 *          blocked commands are fixed before. */
#pragma once

#include <px/worker.h>

struct runner_config {
    const struct px_files *files;
    const struct px_worker *worker; /* whose rules apply to each command; NULL: all may run */
    bool network; /* for the text of notes */
    void *user;
    /* A new policy from the server's command line, with the roots bound; the runner frees it. */
    int (*policy)(void *user, struct px_policy **ret_policy, struct px_err *e);
};

/* Serves the socket until its other end is closed, and ends everything then. */
void runner_serve(int socket, const struct runner_config *config);
