/* Moving bytes: from socket to pipe to socket, without looking at them. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "helpers/net/link.h"

/* With 1 MiB px-net needs about half the processor time that it needs with 256 KiB. Large pipes count for all
 * processes of the user (pipe-user-pages-soft), so that a box has a few of them, for whoever needs one now; a connection that
 * finds none has one of the usual size. */
enum { PIPE_BYTES = 1 << 20, TURN_BYTES = 4 << 20 };

void flow_init(struct flow *f)
{
    *f = (struct flow){.pipe = {-EBADF, -EBADF}};
}

static int take_pipe(struct relay *r, struct flow *f)
{
    if (r->pipes_count > 0) {
        r->pipes_count--;
        f->pipe[0] = r->pipes[r->pipes_count][0];
        f->pipe[1] = r->pipes[r->pipes_count][1];
        f->large = true;
        return 0;
    }
    if (pipe2(f->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        f->pipe[0] = f->pipe[1] = -EBADF;
        return -errno;
    }
    f->large = r->pipes_large < PIPES_LARGE && fcntl(f->pipe[0], F_SETPIPE_SZ, PIPE_BYTES) >= 0;
    r->pipes_large += f->large;
    return 0;
}

void flow_done(struct relay *r, struct flow *f)
{
    if (f->pipe[0] < 0)
        return;
    if (f->held == 0 && f->large) {
        r->pipes[r->pipes_count][0] = f->pipe[0];
        r->pipes[r->pipes_count++][1] = f->pipe[1];
    } else {
        (void)px_fd_close(f->pipe[0]);
        (void)px_fd_close(f->pipe[1]);
        r->pipes_large -= f->large;
    }
    f->pipe[0] = f->pipe[1] = -EBADF;
}

static int fill(struct relay *r, struct flow *f, struct end *from)
{
    if (f->pipe[0] < 0 && take_pipe(r, f) < 0)
        return -EMFILE;
    ssize_t n = splice(from->w.fd, NULL, f->pipe[1], NULL, PIPE_BYTES, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0)
        f->held = (size_t)n;
    else if (n == 0)
        f->ended = true;
    else if (errno == EAGAIN)
        from->in = false;
    else if (errno != EINTR)
        return -errno;
    return 0;
}

static int empty(struct flow *f, struct end *to, uint64_t *count)
{
    ssize_t n = splice(f->pipe[0], NULL, to->w.fd, NULL, f->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0) {
        f->held -= (size_t)n;
        *count += (uint64_t)n;
    } else if (n < 0 && errno == EAGAIN) {
        to->out = false;
    } else if (n == 0 || errno != EINTR) {
        return n == 0 ? -EPIPE : -errno;
    }
    return 0;
}

int flow_move(struct relay *r, struct flow *f, struct end *from, struct end *to, uint64_t *count, bool *ret_more)
{
    uint64_t start = *count;
    int e = 0;
    while (e == 0 && !f->done) {
        bool can_fill = f->held == 0 && !f->ended && from->in, can_empty = f->held > 0 && to->out;
        if (can_empty)
            e = empty(f, to, count);
        else if (can_fill && *count - start >= TURN_BYTES) {
            *ret_more = true;   /* the others have their turn first */
            break;
        } else if (can_fill)
            e = fill(r, f, from);
        else
            break;
        if (f->ended && f->held == 0) {
            (void)shutdown(to->w.fd, SHUT_WR);
            f->done = true;
        }
    }
    if (f->held == 0 && !*ret_more)
        flow_done(r, f);
    return e;
}
