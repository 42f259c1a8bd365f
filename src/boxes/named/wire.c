/* Messages between a keeper and the users of its box: one fixed struct each, with at most one descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "named/named_internal.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ---- sending and receiving ---- */

int px_named_send(int socket, const struct px_named_message *m, int fd)
{
    struct px_named_message copy = *m;
    copy.version = PX_KEEP_VERSION;
    return px_pass_send(socket, &copy, sizeof copy, &fd, fd >= 0, MSG_DONTWAIT);
}

static void end_texts(struct px_err *e)
{
    e->what[sizeof e->what - 1] = e->why[sizeof e->why - 1] = e->fix[sizeof e->fix - 1] = '\0';
}

int px_named_receive(int socket, struct px_named_message *m, int *ret_fd)
{
    px_auto_fd int fd = -EBADF;
    struct px_passed passed;
    long n = px_pass_receive(socket, m, sizeof *m, MSG_DONTWAIT, &fd, 1, &passed);
    if (n == -EAGAIN)
        return -EAGAIN;
    if (n != sizeof *m || passed.flags & MSG_TRUNC || m->version != PX_KEEP_VERSION)
        return 0;
    end_texts(&m->err);
    *ret_fd = px_fd_take(&fd);
    return 1;
}

int px_named_await(int socket, int msec, struct px_named_message *m, int *ret_fd)
{
    uint64_t end = px_now_nsec() + (uint64_t)msec * 1000000;
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    for (;;) {
        int r = px_named_receive(socket, m, ret_fd);
        if (r != -EAGAIN)
            return r;
        uint64_t now = px_now_nsec();
        if (now >= end)
            return -ETIMEDOUT;
        (void)px_sys(SYS_poll, &ready, 1, (int)((end - now) / 1000000) + 1);
    }
}

/* ---- long texts ---- */

int px_named_text_file(const char *text, size_t length)
{
    return px_fd_memory("px-text", text, length, PX_MEMORY_SEALED);
}

/* By offset: another process may read the file at the same time. */
int px_named_text_read(int fd, struct px_buf *out)
{
    char chunk[4096];
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EPROTO;
    for (off_t at = 0; at < st.st_size;) {
        ssize_t n = pread(fd, chunk, sizeof chunk, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EPROTO;
        if (px_buf_add(out, chunk, (size_t)n) < 0)
            return out->err;
        at += n;
    }
    return 0;
}

/* ---- who is the peer ---- */

/* How confined a process is: its depth of pid namespaces below our /proc, and its number of seccomp filters. */
struct confined {
    int depth, no_new_privs, filters;
};

static int number_at(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    uint64_t value = 0;
    char digits[16] = "";
    if (!line)
        return 0;
    line += strlen(key);
    line += strspn(line, " \t");
    size_t n = strspn(line, "0123456789");
    if (n >= sizeof digits)
        return -1;
    memcpy(digits, line, n);
    return px_parse_u64(digits, 1 << 20, &value) < 0 ? -1 : (int)value;
}

static int read_confined(const char *process, struct confined *ret)
{
    char path[64], text[8192];
    if (px_fmt(path, sizeof path, "/proc/%s/status", process) < 0)
        return -EINVAL;
    ssize_t n = px_read_file(AT_FDCWD, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    const char *ids = strstr(text, "\nNSpid:");
    *ret = (struct confined){.no_new_privs = number_at(text, "\nNoNewPrivs:"),
                             .filters = number_at(text, "\nSeccomp_filters:")};
    for (ids = ids ? ids + 7 : "\n"; *ids && *ids != '\n'; ids++)
        ret->depth += *ids == '\t';
    return 0;
}

/* A bind of the directory brings the socket into a box, and without subordinate ids the box's user is the owner. So
 * the peer's namespaces and filters are compared too. Its pidfd shows that the pid still is the same process. */
int px_named_trusts(int socket, bool confined_too)
{
    struct ucred peer = {0};
    struct confined theirs, ours;
    char process[24];
    socklen_t size = sizeof peer, fd_size = sizeof(int);
    px_auto_fd int pidfd = -EBADF;
    int fd = -1;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid() || peer.pid <= 0)
        return 0;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &fd_size) == 0)
        pidfd = fd;
    else if (errno != ENOPROTOOPT)
        /* EINVAL: a kernel that gives no pidfd of an ended process */
        return errno == ESRCH || errno == EINVAL ? -ESRCH : 0;
    int r = px_fmt(process, sizeof process, "%d", (int)peer.pid) < 0 || read_confined("self", &ours) < 0
                ? -EINVAL
                : read_confined(process, &theirs);
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    if (pidfd >= 0 && px_sys(SYS_poll, &gone, 1, 0) != 0)
        return -ESRCH;
    if (r < 0)
        return r == -ENOENT || r == -ESRCH ? -ESRCH : 0;
    return theirs.depth == ours.depth &&
           (confined_too || (theirs.no_new_privs <= ours.no_new_privs && theirs.filters <= ours.filters));
}
