/* helper/helper.h - starts a helper: a program of px that does one task with the descriptors it gets, and can do
 * nothing else.
 *
 * Why:     archives and answers of servers are parsed outside of the process that holds the store. A helper gets
 *          descriptors, confines itself (no_new_privs, Landlock, a system call filter, limits) before it reads the
 *          first untrusted byte, and answers over a socket.
 * Owns:    the process: px_helper_done kills and reaps it in every state.
 * Mustn't: pass any descriptor that was not given, or the caller's environment. */
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

/* name: "px-layer", "px-fetch"; found in the directory of the program, or in ../libexec/px. argv[0] is added. In the
 * helper the socket is descriptor 3, and fds[i] is 4 + i. */
int px_helper_start(const char *name, const char *const *args, const int *fds, size_t fd_count, struct px_helper *ret_helper,
                    struct px_err *e);
/* Receives one message; 0 when the helper has ended or closed the socket, or -errno. Waits at most timeout_msec (0:
 * no limit). */
long px_helper_receive(struct px_helper *h, void *out, size_t size, int *ret_fd, uint64_t timeout_msec);
int px_helper_send(struct px_helper *h, const void *data, size_t size, int fd /* -1: none */);
/* Returns the exit status, or 128 + signal. Kills the helper if it still runs. */
int px_helper_done(struct px_helper *h);
