/* mcp/runner.h - the process beside a server that starts boxes for it.
 *
 * Why:     who reads requests of a model gives up its rights first; so somebody else must have the right to make a box.
 * Owns:    one box for all commands, and what runs in it. Both end with the socket.
 * Mustn't: take anything from the server but a command, a time, a number and whether a person agreed: what the box is, and which
 *          commands are blocked, was decided before. */
#pragma once

#include <px/worker.h>

struct runner_config {
    const struct px_files *files;
    const struct px_worker *worker; /* whose rules judge each command; NULL: all may run */
    bool network; /* for the words of notes */
    void *user;
    /* A new policy of the server's command line, with the roots bound; the runner's to free. */
    int (*policy)(void *user, struct px_policy **ret_policy, struct px_err *e);
};

/* Serves the socket until its other end is closed, and ends everything then. */
void runner_serve(int socket, const struct runner_config *config);
