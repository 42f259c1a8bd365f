/* The client of px-layer: sends requests, and checks the answers. */
#include "transfer/layer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "helper/helper.h"
#include "transfer/layer_wire.h"

enum { SKIP_MAX = 1000, FIXED_ARGS = 6 };

/* ---- answers ---- */

/* Cleans the helper's strings: NUL-terminated, without control bytes. */
static void clean(char *text, size_t size, bool lines)
{
    text[size - 1] = '\0';
    for (char *p = text; *p; p++)
        if (((unsigned char)*p < 0x20 && !(lines && *p == '\n')) || *p == 0x7f)
            *p = '?';
}

static int failed(struct px_layer_message *m, struct px_err *e)
{
    if (!px_err_find(m->err.code))
        return px_fail(e, PX_E_INTERNAL, 0, "px-layer failed and did not say why");
    clean(m->err.what, sizeof m->err.what, false);
    clean(m->err.why, sizeof m->err.why, false);
    clean(m->err.fix, sizeof m->err.fix, true);
    *e = m->err;
    return -1;
}

static int gone(struct px_helper *h, struct px_err *e)
{
    int status = px_helper_done(h);
    px_fail(e, PX_E_ARCHIVE, 0, "px-layer ended without an answer, with status %d", status);
    return px_why(e, "The archive made it fail, or it was killed, or a library that it needs is not installed.");
}

/* Reads messages until DONE or FAILED. */
static int listen_to(struct px_helper *h, const char *what, struct px_progress_to progress, struct px_layer_message *m,
                     struct px_err *e)
{
    for (;;) {
        long n = px_helper_receive(h, m, sizeof *m, NULL, 0);
        if (n == -EINTR || n == -EAGAIN)
            continue;
        if (n != (long)sizeof *m)
            return gone(h, e);
        if (m->kind == PX_LAYER_DONE)
            return 0;
        if (m->kind == PX_LAYER_FAILED)
            return failed(m, e);
        if (progress.tell)
            progress.tell(progress.user, what, m->done, m->total);
    }
}

static int digests(struct px_layer_message *m, bool packed, struct px_err *e)
{
    struct px_oid check;
    m->packed.hex[sizeof m->packed.hex - 1] = m->diff_id.hex[sizeof m->diff_id.hex - 1] = '\0';
    if (px_hash_oid_parse(m->diff_id.hex, false, &check) < 0 || (packed && px_hash_oid_parse(m->packed.hex, false, &check) < 0))
        return px_fail(e, PX_E_INTERNAL, 0, "px-layer gave an answer that is not one");
    return 0;
}

/* ---- unpacking ---- */

static int run_unpack(const char *const *args, int archive, int dirfd, struct px_progress_to progress,
                      struct px_unpacked *ret_done, struct px_err *e)
{
    const int fds[] = {archive, dirfd};
    struct px_layer_message m;
    struct px_helper h;
    if (px_helper_start("px-layer", args, fds, 2, &h, e) < 0)
        return -1;
    int r = listen_to(&h, "unpacking", progress, &m, e);
    (void)px_helper_done(&h);
    if (r < 0 || digests(&m, true, e) < 0)
        return -1;
    *ret_done = (struct px_unpacked){.packed = m.packed, .diff_id = m.diff_id, .packed_bytes = m.packed_bytes,
                                     .bytes = m.bytes, .entries = m.entries, .dropped = m.dropped};
    return 0;
}

struct numbers {
    char text[4][24];
};

static struct numbers write_numbers(uint64_t size, const struct px_unpack_limits *limits)
{
    const struct px_unpack_limits *l = limits ? limits : &px_unpack_limits_default;
    const uint64_t values[4] = {size, l->bytes, l->entries, l->ratio};
    struct numbers n;
    for (size_t i = 0; i < 4; i++)
        (void)snprintf(n.text[i], sizeof n.text[i], "%" PRIu64, values[i]);
    return n;
}

int px_layer_unpack(int archive, uint64_t size, int dirfd, bool whiteouts, const struct px_unpack_limits *limits,
                    struct px_progress_to progress, struct px_unpacked *ret_done, struct px_err *e)
{
    const struct numbers n = write_numbers(size, limits);
    const char *const args[] = {"unpack", n.text[0], whiteouts ? "1" : "0", n.text[1], n.text[2], n.text[3], NULL};
    return run_unpack(args, archive, dirfd, progress, ret_done, e);
}

int px_layer_unzip(int archive, uint64_t size, int dirfd, const struct px_unpack_limits *limits,
                   struct px_progress_to progress, struct px_unpacked *ret_done, struct px_err *e)
{
    const struct numbers n = write_numbers(size, limits);
    const char *const args[] = {"unzip", n.text[0], n.text[1], n.text[2], n.text[3], NULL};
    return run_unpack(args, archive, dirfd, progress, ret_done, e);
}

/* ---- a tar as a stream ---- */

static int start_stream(const char *const *args, int fd, int cancel, struct px_layer_stream *ret_stream, struct px_err *e)
{
    struct px_layer_stream s = {.cancel = cancel};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot make the socket of px-layer");
    const int fds[] = {ends[1], fd};
    int r = px_helper_start("px-layer", args, fds, 2, &s.helper, e);
    (void)px_fd_close(ends[1]);
    s.fd = ends[0];
    if (r < 0)
        (void)px_fd_close(s.fd);
    else
        *ret_stream = s;
    return r;
}

int px_layer_receive(int dirfd, const char *top, const struct px_unpack_limits *limits, int cancel,
                     struct px_layer_stream *ret_stream, struct px_err *e)
{
    const struct numbers n = write_numbers(0, limits);
    const char *const args[] = {"receive", n.text[1], n.text[2], top, NULL};
    return start_stream(args, dirfd, cancel, ret_stream, e);
}

int px_layer_send(int fd, const char *name, int cancel, struct px_layer_stream *ret_stream, struct px_err *e)
{
    const char *const args[] = {"send", name, NULL};
    return start_stream(args, fd, cancel, ret_stream, e);
}

/* 1: px-layer has answered; 0: its stream is ready for `events`. What it sends is read to its end first. */
static int wait_for(const struct px_layer_stream *s, short events, struct px_err *e)
{
    struct pollfd fds[3] = {{.fd = events == POLLIN ? -1 : s->helper.socket, .events = POLLIN}, {.fd = s->cancel, .events = POLLIN},
                            {.fd = events ? s->fd : -1, .events = events}};
    (void)px_sys(SYS_poll, fds, 3, -1);
    return fds[1].revents ? px_fail(e, PX_E_IO, EINTR, "the copy was given up") : fds[0].revents != 0;
}

int px_layer_write(struct px_layer_stream *s, const void *data, size_t size, struct px_err *e)
{
    for (const char *at = data; size > 0;) {
        long n = px_sys(SYS_sendto, s->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
        int ended = n == -EPIPE || n == -ECONNRESET ? 1 : n == -EAGAIN ? wait_for(s, POLLOUT, e) : 0;
        if (ended != 0)
            return ended < 0 ? -1 : px_layer_refused(s, e);
        if (n < 0 && n != -EAGAIN && n != -EINTR)
            return px_fail(e, PX_E_IO, (int)n, "cannot hand the archive to px-layer");
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

long px_layer_read(struct px_layer_stream *s, void *out, size_t size, struct px_err *e)
{
    struct px_unpacked none;
    long n;
    while ((n = px_sys(SYS_recvfrom, s->fd, out, size, MSG_DONTWAIT, NULL, NULL)) == -EAGAIN || n == -EINTR)
        if (wait_for(s, POLLIN, e) < 0)
            return -1;
    if (n < 0)
        return px_fail(e, PX_E_IO, (int)n, "cannot read from px-layer");
    return n > 0 ? n : px_layer_finish(s, &none, e);
}

int px_layer_finish(struct px_layer_stream *s, struct px_unpacked *ret_done, struct px_err *e)
{
    struct px_layer_message m;
    s->fd = px_fd_close(s->fd);
    if (wait_for(s, 0, e) < 0 || listen_to(&s->helper, "copying", (struct px_progress_to){0}, &m, e) < 0)
        return -1;
    *ret_done = (struct px_unpacked){.dropped = m.dropped};
    return 0;
}

int px_layer_refused(struct px_layer_stream *s, struct px_err *e)
{
    struct px_unpacked none;
    return px_layer_finish(s, &none, e) < 0 ? -1 : px_fail(e, PX_E_INTERNAL, 0, "px-layer has ended too early");
}

void px_layer_drop(struct px_layer_stream *s)
{
    s->fd = px_fd_close(s->fd);
    (void)px_helper_done(&s->helper);
}

/* ---- packing ---- */

static int finish_pack(const char *const *args, const int *fds, size_t fd_count, struct px_progress_to progress,
                       struct px_layer_message *m, struct px_err *e)
{
    struct px_helper h;
    if (px_helper_start("px-layer", args, fds, fd_count, &h, e) < 0)
        return -1;
    int r = listen_to(&h, "packing", progress, m, e);
    (void)px_helper_done(&h);
    return r < 0 ? -1 : digests(m, fd_count > 1, e);
}

static int run_pack(const struct px_pack *pack, int out, struct px_progress_to progress, struct px_layer_message *m,
                    struct px_err *e)
{
    const char *args[SKIP_MAX + FIXED_ARGS] = {"pack", px_compression_word(pack->compression), pack->upper ? "1" : "0",
                                               pack->prefix ? pack->prefix : ""};
    const int fds[] = {pack->dirfd, out};
    size_t n = 0;
    for (; pack->skip && pack->skip[n]; n++) {
        if (n == SKIP_MAX)
            return px_fail(e, PX_E_LIMIT, 0, "more than %d paths to leave out of a layer", SKIP_MAX);
        args[4 + n] = pack->skip[n];
    }
    return finish_pack(args, fds, out < 0 ? 1 : 2, progress, m, e);
}

static int run_pack_listed(const struct px_pack *pack, int out, struct px_progress_to progress, struct px_layer_message *m,
                           struct px_err *e)
{
    const char *const args[] = {"pack-listed", px_compression_word(pack->compression), pack->prefix ? pack->prefix : "", NULL};
    const int fds[] = {pack->dirfd, out, pack->list};
    return finish_pack(args, fds, PX_COUNT_OF(fds), progress, m, e);
}

int px_layer_pack(struct px_store *store, const struct px_pack *pack, struct px_progress_to progress,
                  struct px_layer *ret_layer, struct px_err *e)
{
    struct px_blob_writer *writer = NULL;
    struct px_layer_message m;
    uint64_t size = 0;
    if (px_blob_begin(store, px_unpack_limits_default.bytes, &writer, e) < 0)
        return -1;
    int out = px_blob_writer_fd(writer);
    int r = pack->listed ? run_pack_listed(pack, out, progress, &m, e) : run_pack(pack, out, progress, &m, e);
    if (r < 0) {
        px_blob_drop(writer);
        return -1;
    }
    struct px_layer layer = {.diff_id = m.diff_id, .tar_size = m.bytes, .entries = m.entries,
                             .compression = pack->compression};
    if (px_blob_commit(writer, &m.packed, &layer.digest, &size, e) < 0)
        return -1;
    layer.size = size;
    *ret_layer = layer;
    return 0;
}

int px_layer_diff_id(const struct px_pack *pack, struct px_oid *ret_diff_id, struct px_err *e)
{
    struct px_pack plain = *pack;
    struct px_layer_message m;
    plain.compression = PX_COMPRESS_NONE;
    if (run_pack(&plain, -1, (struct px_progress_to){0}, &m, e) < 0)
        return -1;
    *ret_diff_id = m.diff_id;
    return 0;
}
