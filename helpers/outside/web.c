/* Gives one answer to every request. The request is not parsed. */
#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "helpers/outside/outside.h"
#include "net/outside.h"

_Static_assert(sizeof PX_OUTSIDE_ANSWER - 1 == 8, "the length below");
static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n"
                            "Connection: close\r\n\r\n" PX_OUTSIDE_ANSWER;

static void drop(struct connection *c)
{
    SSL_free(c->tls);
    c->tls = NULL;
    c->fd = px_fd_close(c->fd);
}

void web_accept(struct web *web, int listener, bool tls)
{
    px_auto_fd int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct connection *c = &web->connections[web->next++ % WEB_MAX];
    if (c->fd >= 0)
        drop(c);
    SSL *session = tls ? SSL_new(web->context) : NULL;
    if (tls && (!session || SSL_set_fd(session, fd) != 1)) {
        SSL_free(session);
        return;
    }
    *c = (struct connection){.fd = px_fd_take(&fd), .tls = session, .events = POLLIN};
    if (session)
        SSL_set_accept_state(session);
}

/* What OpenSSL or the kernel waits for before it can go on; false: nothing, it is over. */
static bool can_wait(struct connection *c, int r)
{
    int plain = errno == EAGAIN || errno == EINTR ? SSL_ERROR_WANT_READ : SSL_ERROR_SYSCALL;
    int why = c->tls ? SSL_get_error(c->tls, r) : plain;
    c->events = why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* The end of a request's head is there: 1, 0 if it is yet to come, -1 if it never will. */
static int read_head(struct connection *c)
{
    while (c->have < sizeof c->head) {
        ERR_clear_error();
        int room = (int)(sizeof c->head - c->have);
        char *at = c->head + c->have;
        int n = c->tls ? SSL_read(c->tls, at, room) : (int)recv(c->fd, at, (size_t)room, 0);
        if (n <= 0)
            return (n < 0 || c->tls) && can_wait(c, n) ? 0 : -1;
        c->have += (size_t)n;
        if (memmem(c->head, c->have, "\r\n\r\n", 4))
            return 1;
    }
    return -1;
}

/* It is short enough for a fresh connection to take whole. */
static bool send_reply(struct connection *c)
{
    size_t length = sizeof reply - 1;
    ERR_clear_error();
    if (!c->tls)
        return send(c->fd, reply, length, MSG_NOSIGNAL) == (ssize_t)length;
    return SSL_write(c->tls, reply, (int)length) == (int)length && SSL_shutdown(c->tls) >= 0;
}

/* Closing a socket with unread bytes would reset the connection and lose the answer. */
void web_step(struct connection *c)
{
    if (c->answered) {
        ssize_t n = recv(c->fd, c->head, sizeof c->head, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            drop(c);
        return;
    }
    int r = read_head(c);
    if (r == 0)
        return;
    if (r < 0 || !send_reply(c) || shutdown(c->fd, SHUT_WR) < 0) {
        drop(c);
        return;
    }
    c->answered = true;
    c->events = POLLIN;
}
