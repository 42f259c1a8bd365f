/* box/handover.h - passes a container from the process that made it to a process that uses it.
 *
 * Why:     a process with the control socket can run commands in the box. Another process may make it and clean up
 *          after it: a pool server or a keeper.
 * Owns:    nothing.
 * Mustn't: be used between users: the peer must run as the same user. */
#pragma once

struct px_box;
struct px_err;

/* Sends the descriptors and facts that using the box takes, over a SEQPACKET socket; 0 or -errno. */
int px_handover_send(int socket, const struct px_box *home);
/* Sends the reason why there is no box instead. */
int px_handover_refuse(int socket, const struct px_err *why);
/* Receives a message if one is there: 1, 0 if none is, -1 with an error. The container can run commands. Freeing it
 * here does not end it in the process that made it. */
int px_handover_take(int socket, struct px_box **ret_home, struct px_err *e);
/* Waits at most msec for the message; 0 or -1. */
int px_handover_receive(int socket, int msec, struct px_box **ret_home, struct px_err *e);
