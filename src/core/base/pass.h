/* base/pass.h - passes descriptors with a message over a Unix socket.
 *
 * Why:     one function knows how the kernel packs them, so that none is lost, taken twice or left open when the
 *          receiver has room for fewer.
 * Owns:    nothing: sent descriptors stay the sender's, received ones are the caller's, close-on-exec.
 * Mustn't: use anything but raw system calls: a child that shares its parent's memory and programs without a C
 *          library use it too. */
#pragma once

#include <stddef.h>
#include <sys/uio.h>

enum { PX_PASS_MAX = 16 };      /* descriptors with one message */

struct px_passed {
    size_t count;               /* received; those without room are closed */
    int pid;                    /* the sender's, if the socket has SO_PASSCRED; else 0 */
    int flags;                  /* MSG_TRUNC, MSG_CTRUNC */
};

/* Sends the whole message, 0 or -errno; flags of sendmsg, to which MSG_NOSIGNAL is added. EINTR is retried. */
int px_pass_send(int socket, const void *data, size_t size, const int *fds, size_t count, int flags);
int px_pass_send_parts(int socket, const struct iovec *parts, size_t parts_count, const int *fds, size_t count, int flags);
/* The length of a message, 0 at the end, or -errno; flags of recvmsg. fds[0..max-1] are the received descriptors,
 * the rest -EBADF. ret_passed may be NULL. EINTR is retried. */
long px_pass_receive(int socket, void *data, size_t size, int flags, int *fds, size_t max, struct px_passed *ret_passed);
