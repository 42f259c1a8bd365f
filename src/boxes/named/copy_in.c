/* Copying into a box: the streams of a command in it, and a tree of the host as tar on its standard input. */
#include "named/copy_in.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "plan/source.h"
#include "transfer/layer.h"

enum { STILL_MSEC_MAX = 60 * 1000, SAID = 256, CHUNK = 32 << 10, AT_ONCE = 64 };

/* ---- a command with our hands on its streams ---- */

struct stream {
    const struct px_named_stream *how;
    struct px_box *box;
    int in, out, err;           /* our ends */
    int cancel;
    char chunk[CHUNK];          /* on its way in */
    size_t have, at;
    char *said;
    size_t said_length;
    uint64_t moved_nsec;        /* when bytes went last */
};

/* Sockets rather than a pipe where we write: a command that reads no more must not cost us a signal. */
static int open_streams(struct stream *s, struct px_io *io, struct px_err *e)
{
    int in[2] = {-EBADF, -EBADF}, out[2], err[2];
    int r = s->how->feed && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0 ? -errno : 0;
    if (r >= 0)
        r = px_pipe(out);
    if (r >= 0) {
        s->out = out[0];
        io->out = out[1];
        r = px_pipe(err);
    }
    if (r >= 0) {
        s->err = err[0];
        io->err = err[1];
    }
    s->in = in[0];
    io->in = in[1];
    io->use_in = in[1] >= 0;
    const int ours[] = {s->out, s->err};
    for (int i = 0; i < 2 && r >= 0; i++)
        r = (int)px_sys(SYS_fcntl, ours[i], F_SETFL, O_NONBLOCK);
    return r < 0 ? px_fail(e, PX_E_IO, r, "cannot open the streams of a copy") : 0;
}

static int feed(struct stream *s, struct px_err *e)
{
    if (s->at == s->have) {
        long n = s->how->feed(s->how->user, s->chunk, sizeof s->chunk, e);
        if (n < 0)
            return -1;
        s->have = (size_t)n;
        s->at = 0;
    }
    long n = s->have ? px_sys(SYS_sendto, s->in, s->chunk + s->at, s->have - s->at, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0) : 0;
    if (n == -EAGAIN || n == -EINTR)
        return 0;
    if (n <= 0) {               /* the end; or it reads no more, and its exit status will say why */
        s->in = px_fd_close(s->in);
        return 0;
    }
    s->at += (size_t)n;
    s->moved_nsec = px_now_nsec();
    return 0;
}

static int take(struct stream *s, struct px_err *e)
{
    char chunk[CHUNK];
    ssize_t n = 0;
    for (int i = 0; i < AT_ONCE && (n = px_read_some(s->out, chunk, sizeof chunk)) > 0; i++) {
        if (s->how->take && s->how->take(s->how->user, chunk, (size_t)n, e) < 0)
            return -1;
        s->moved_nsec = px_now_nsec();
    }
    if (n == 0)
        s->out = px_fd_close(s->out);
    return 0;
}

static void listen_to(struct stream *s)
{
    char chunk[4096];
    ssize_t n = 0;
    for (int k = 0; k < AT_ONCE && (n = px_read_some(s->err, chunk, sizeof chunk)) > 0; k++)
        for (ssize_t i = 0; i < n && s->said_length + 1 < SAID; i++)
            s->said[s->said_length++] = chunk[i];
    s->said[s->said_length] = '\0';
    if (n == 0)
        s->err = px_fd_close(s->err);
}

/* One turn: 1 while it runs. */
static int turn(struct stream *s, struct px_err *e)
{
    int r = px_box_step(s->box, e);
    if (r > 0) {
        const struct px_layer_stream *layer = s->how->layer;
        struct pollfd fds[6] = {{.fd = px_box_fd(s->box), .events = POLLIN}, {.fd = s->in, .events = POLLOUT},
                                {.fd = s->out, .events = POLLIN},            {.fd = s->err, .events = POLLIN},
                                {.fd = s->cancel, .events = POLLIN},
                                {.fd = layer ? layer->helper.socket : -1, .events = POLLIN}};
        (void)px_sys(SYS_poll, fds, 6, STILL_MSEC_MAX);
        if (fds[4].revents)
            return px_fail(e, PX_E_IO, EINTR, "the copy was given up");
        if (fds[5].revents)
            return px_layer_refused(s->how->layer, e);
        if (fds[1].revents && feed(s, e) < 0)
            return -1;
    }
    /* Once it has ended its pipes hold a bounded rest, which one look takes. */
    if (s->out >= 0 && take(s, e) < 0)
        return -1;
    if (s->err >= 0)
        listen_to(s);
    if (r > 0 && px_now_nsec() - s->moved_nsec > (uint64_t)STILL_MSEC_MAX * 1000000) {
        px_fail(e, PX_E_IO, 0, "nothing has moved for %d s, so the copy was given up", STILL_MSEC_MAX / 1000);
        return px_why(e, "The command that copies inside the box hangs, or something in the box holds it.");
    }
    return r;
}

/* As other commands of the box, but for the clock and the bounds on output, which we have our own of. */
static struct px_policy *stream_policy(struct px_living *l, struct px_err *e)
{
    struct px_policy *policy = NULL;
    if (px_living_policy(l, &policy, e) < 0)
        return NULL;
    policy->timeout_msec = policy->output_bytes = PX_UNLIMITED;
    policy->output_end = false;
    return policy;
}

int px_named_stream(struct px_living *l, const char *const argv[], const struct px_named_stream *how, int *ret_exit_code,
                   char ret_said[256], struct px_err *e)
{
    struct px_io io = {.use_out = true, .use_err = true, .in = -EBADF, .out = -EBADF, .err = -EBADF};
    struct px_policy *policy = stream_policy(l, e);
    struct stream *s = policy ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        px_policy_free(policy);
        return policy ? px_no_memory(e) : -1;
    }
    *s = (struct stream){.how = how, .in = -EBADF, .out = -EBADF, .err = -EBADF, .cancel = l->cancel, .said = ret_said,
                         .moved_nsec = px_now_nsec()};
    ret_said[0] = '\0';
    int r = open_streams(s, &io, e);
    if (r >= 0)
        r = px_living_exec(l, policy, argv, &io, &s->box, e);
    const int theirs[] = {io.in, io.out, io.err}, *ours[] = {&s->in, &s->out, &s->err};
    for (int i = 0; i < 3; i++)
        (void)px_fd_close(theirs[i]);
    while (r >= 0 && (r = turn(s, e)) > 0)
        ;
    if (r == 0)
        *ret_exit_code = px_box_result(s->box)->exit_code;
    px_box_free(s->box);
    for (int i = 0; i < 3; i++)
        (void)px_fd_close(*ours[i]);
    px_policy_free(policy);
    free(s);
    return r;
}

/* ---- paths ---- */

int px_named_box_path(struct px_living *l, const char *path, char *out, size_t size, struct px_err *e)
{
    char whole[PX_NAMED_PATH_MAX];
    struct px_policy *policy = NULL;
    if (px_living_policy(l, &policy, e) < 0)
        return -1;
    int r = px_fmt(whole, sizeof whole, "%s%s%s", path[0] == '/' ? "" : policy->workdir, path[0] == '/' ? "" : "/", path);
    px_policy_free(policy);
    if (r >= 0)
        r = px_path_clean(whole, out, size);
    if (r >= 0)
        return 0;
    px_fail(e, PX_E_VALUE, 0, "'%s' is not a path in a box", path);
    return px_fix(e, "Write a path without '..', such as %s:/tmp/file.", l->name);
}

void px_named_split_path(const char *path, char *dir, size_t size, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash + 1;
    if (px_fmt(dir, size, "%.*s", slash == path ? 1 : (int)(slash - path), path) < 0)
        dir[0] = '\0';
}

int px_named_copy_failed(const char *what, const char *path, int exit_code, const char *said, struct px_err *e)
{
    px_fail(e, PX_E_IO, 0, "%s '%s' failed in the box (exit status %d)", what, path, exit_code);
    return *said ? px_why(e, "The box says: %.*s", (int)strcspn(said, "\n"), said) : -1;
}

struct answer {
    char text[16];
    size_t length;
};

static int take_answer(void *user, const char *data, size_t size, struct px_err *e)
{
    struct answer *a = user;
    if (size >= sizeof a->text - a->length)
        return px_fail(e, PX_E_IO, 0, "sh in the box says more than it was asked");
    memcpy(a->text + a->length, data, size);
    a->length += size;
    return 0;
}

int px_named_there(struct px_living *l, const char *path, struct px_named_there *ret, struct px_err *e)
{
    static const char script[] = "{ [ -e \"$1\" ] || [ -L \"$1\" ]; } && printf e; [ -d \"$1\" ] && printf d; [ -f \"$1\" ] && printf f\n"
                                 "IFS=:; for d in $PATH; do [ -x \"$d/tar\" ] && printf t && break; done; exit 0";
    const char *const argv[] = {"sh", "-c", script, "sh", path, NULL};
    struct answer a = {.length = 0};
    const struct px_named_stream how = {.take = take_answer, .user = &a};
    char said[SAID];
    int status = 0;
    if (px_named_stream(l, argv, &how, &status, said, e) < 0)
        return -1;
    if (status != 0)
        return px_named_copy_failed("looking at", path, status, said, e);
    *ret = (struct px_named_there){.exists = strchr(a.text, 'e'), .directory = strchr(a.text, 'd'), .file = strchr(a.text, 'f'),
                                  .tar = strchr(a.text, 't')};
    return 0;
}

/* ---- in ---- */

static long feed_tar(void *user, char *out, size_t size, struct px_err *e)
{
    return px_layer_read(user, out, size, e);
}

static int send_tree(struct px_living *l, int fd, const char *path, struct px_err *e)
{
    char dir[PX_NAMED_PATH_MAX], said[SAID];
    const char *name;
    struct px_layer_stream layer;
    int status = 0;
    px_named_split_path(path, dir, sizeof dir, &name);
    if (px_layer_send(fd, name, l->cancel, &layer, e) < 0)
        return -1;
    const char *const argv[] = {"tar", "-x", "-f", "-", "-C", dir, NULL};
    const struct px_named_stream how = {.feed = feed_tar, .user = &layer};
    int r = px_named_stream(l, argv, &how, &status, said, e);
    px_layer_drop(&layer);
    return r < 0 ? -1 : status ? px_named_copy_failed("writing", path, status, said, e) : 0;
}

static long feed_file(void *user, char *out, size_t size, struct px_err *e)
{
    ssize_t n = px_read_some(*(int *)user, out, size);
    return n < 0 ? px_fail(e, PX_E_IO, (int)n, "the file cannot be read") : n;
}

static int send_file(struct px_living *l, int fd, const struct stat *st, const char *path, struct px_err *e)
{
    px_auto_fd int file = fd;
    char mode[8], said[SAID];
    int status = 0;
    if (px_fmt(mode, sizeof mode, "%o", (unsigned)(st->st_mode & 0777)) < 0)
        return -1;
    const char *const argv[] = {"sh", "-c", "cat >\"$1\" && chmod \"$2\" \"$1\"", "sh", path, mode, NULL};
    const struct px_named_stream how = {.feed = feed_file, .user = &file};
    if (px_named_stream(l, argv, &how, &status, said, e) < 0)
        return -1;
    return status ? px_named_copy_failed("writing", path, status, said, e) : 0;
}

/* The last part of a path of the host, whatever stands behind it. */
static int host_name(const char *path, char *out, size_t size)
{
    size_t end = strlen(path), from;
    while (end > 0 && path[end - 1] == '/')
        end--;
    for (from = end; from > 0 && path[from - 1] != '/'; from--)
        ;
    int r = px_fmt(out, size, "%.*s", (int)(end - from), path + from);
    return r < 0 || out[0] == '\0' || px_equal(out, ".") || px_equal(out, "..") ? -EINVAL : 0;
}

static int choose_target(struct px_living *l, const char *host_path, const char *box_path, char *out, size_t size,
                         struct px_named_there *there, struct px_err *e)
{
    char name[256];
    if (px_named_box_path(l, box_path, out, size, e) < 0 || px_named_there(l, out, there, e) < 0)
        return -1;
    if (!there->directory)
        return 0;
    size_t n = strlen(out);
    if (host_name(host_path, name, sizeof name) < 0 ||
        px_fmt(out + n, size - n, "%s%s", px_equal(out, "/") ? "" : "/", name) < 0) {
        px_fail(e, PX_E_VALUE, 0, "'%s' has no name of its own that it could have in the box", host_path);
        return px_fix(e, "Name the target: %s:%s/NAME.", l->name, out);
    }
    return 0;
}

int px_named_refuse_link(const char *path, const char *decides, struct px_err *e)
{
    char said[PX_SOURCE_TEXT];
    px_source_tell(path, said);
    px_fail(e, PX_E_IO, 0, "cannot copy: %s", said);
    px_why(e, "A box that could write there may have made the link; it decides %s.", decides);
    return px_fix(e, "Name what it leads to, if that is meant.");
}

static int cannot_read(const char *path, int err, struct px_err *e)
{
    px_fail(e, PX_E_IO, err, "cannot read '%s'", path);
    if (err != -ENOENT && err != -ENOTDIR)
        return px_fix(e, "Check the path and its permissions.");
    return px_fix(e, "Check the path: SOURCE is a file or a directory of this machine. What is in a box is written NAME:PATH.");
}

PX_API int px_living_copy_in(struct px_living *living, const char *host_path, const char *box_path, struct px_err *e)
{
    PX_ERR(e);
    char path[PX_NAMED_PATH_MAX];
    struct px_named_there there = {0};
    struct stat st;
    px_auto_fd int fd = px_source_open(host_path, O_RDONLY | O_NONBLOCK);
    if (fd == -ELOOP)
        return px_named_refuse_link(host_path, "what this box is given", e);
    if (fd < 0 || fstat(fd, &st) < 0)
        return cannot_read(host_path, fd < 0 ? fd : -errno, e);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return px_fail(e, PX_E_IO, 0, "'%s' is neither a file nor a directory", host_path);
    if (choose_target(living, host_path, box_path, path, sizeof path, &there, e) < 0)
        return -1;
    if (there.tar)
        return send_tree(living, fd, path, e);
    if (S_ISREG(st.st_mode))
        return send_file(living, px_fd_take(&fd), &st, path, e);
    px_fail(e, PX_E_NOT_FOUND, 0, "'%s' is a directory, and the box has no tar to take it", host_path);
    return px_fix(e, "Copy single files, or use a base that has tar.");
}
