/* box/handover.h - a box that stays, handed from the process that made it to one that uses it.
 *
 * Why:     whoever holds the control socket can run commands in the box; making it, and cleaning up after it, may be another
 *          process's work: an engine's, or a keeper's.
 * Owns:    nothing.
 * Mustn't: be used across a boundary of trust: the other side is the same user's. */
#pragma once

struct px_box;
struct px_err;

/* Sends what it takes to use the box over a SEQPACKET socket; 0 or -errno. */
int px_handover_send(int socket, const struct px_box *home);
/* Sends in its place why there is none. */
int px_handover_refuse(int socket, const struct px_err *why);
/* Takes it if it is there: 1, 0 if nothing is, -1 with an error. A home that can run commands, and that ends here without ending
 * there. */
int px_handover_take(int socket, struct px_box **ret_home, struct px_err *e);
/* Waits for it, at most msec; 0 or -1. */
int px_handover_receive(int socket, int msec, struct px_box **ret_home, struct px_err *e);
