/* helper/helper.h - a program of px's own that does one thing with what it is given, and can do nothing else.
 *
 * Why:     archives and answers of servers are parsed outside the process that holds the store. A helper gets descriptors, confines
 *          itself (no new privileges, Landlock, a system call filter, limits) before it reads the first foreign byte, and answers
 *          over a socket.
 * Owns:    the process: it is killed and reaped by px_helper_done, whatever state it is in.
 * Mustn't: inherit any descriptor that was not given, or the caller's environment. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct px_err;

enum { PX_HELPER_FDS = 4 };

struct px_helper {
    int pidfd;                  /* -EBADF: none */
    int pid;
    int socket;                 /* SOCK_SEQPACKET; messages of at most 64 KiB */
};

/* name: "px-layer", "px-fetch"; found beside the program itself or in ../libexec/px of it. argv[0] is added. The helper has the socket as
 * descriptor 3 and fds[i] as 4 + i. */
int px_helper_start(const char *name, const char *const *args, const int *fds, size_t fd_count, struct px_helper *ret_helper,
                    struct px_err *e);
/* One message; 0 at the end of the conversation (the helper is gone or has closed), -errno. Waits at most timeout_msec (0: for ever). */
long px_helper_receive(struct px_helper *h, void *out, size_t size, int *ret_fd, uint64_t timeout_msec);
int px_helper_send(struct px_helper *h, const void *data, size_t size, int fd /* -1: none */);
/* How it ended: its exit status, or 128 + signal. Kills it if it still runs. */
int px_helper_done(struct px_helper *h);
