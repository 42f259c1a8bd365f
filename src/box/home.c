#include "box/home.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/supervise.h"

enum { VERSION = 1, FDS = 2 };

/* Both sides are of one version of px, or refuse each other. */
struct message {
    uint32_t version, size;
    char id[20];
    uint32_t keep_ids;
    struct px_err refused;      /* code 0: here is one */
    uint32_t mechanisms, missing;
    char mechanism[PX_MECHANISMS_MAX][PX_NAME_MAX], lacks[PX_MECHANISMS_MAX][PX_NAME_MAX];
};

int px_home_send(int socket, const struct px_box *home)
{
    struct message m = {.version = VERSION, .size = sizeof m, .keep_ids = home->keep_ids};
    const struct px_result *r = &home->result;
    memcpy(m.id, home->id, sizeof m.id);
    m.mechanisms = (uint32_t)r->mechanisms_count;
    m.missing = (uint32_t)r->missing_count;
    memcpy(m.mechanism, r->mechanisms, sizeof m.mechanism);
    memcpy(m.lacks, r->missing, sizeof m.lacks);

    struct iovec iov = {.iov_base = &m, .iov_len = sizeof m};
    const int fds[FDS] = {home->control, home->pidfd};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof fds)];
    } room = {.header = {.cmsg_len = CMSG_LEN(sizeof fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&room.header), fds, sizeof fds);
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room.room};
    long n = px_sys(SYS_sendmsg, socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? (int)n : 0;
}

int px_home_refuse(int socket, const struct px_err *why)
{
    struct message m = {.version = VERSION, .size = sizeof m, .refused = *why};
    long n = px_sys(SYS_sendto, socket, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
    return n < 0 ? (int)n : 0;
}

static int receive(int socket, struct message *m, int fds[FDS])
{
    struct iovec iov = {.iov_base = m, .iov_len = sizeof *m};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(FDS * sizeof(int))];
    } room = {0};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room.room};
    long n = px_sys(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(FDS * sizeof(int)))
        memcpy(fds, CMSG_DATA(c), FDS * sizeof(int));
    if (n == -EINTR)
        n = -EAGAIN;
    return n == sizeof *m && m->version == VERSION && m->size == sizeof *m && (fds[0] >= 0 || m->refused.code) ? 0 : n < 0 ? (int)n : -EPROTO;
}

static void fill(struct px_box *home, const struct message *m)
{
    struct px_result *r = &home->result;
    memcpy(home->id, m->id, sizeof home->id);
    home->keep_ids = m->keep_ids;
    r->tier = "full";
    r->mechanisms_count = m->mechanisms < PX_MECHANISMS_MAX ? m->mechanisms : PX_MECHANISMS_MAX;
    r->missing_count = m->missing < PX_MECHANISMS_MAX ? m->missing : PX_MECHANISMS_MAX;
    memcpy(r->mechanisms, m->mechanism, sizeof r->mechanisms);
    memcpy(r->missing, m->lacks, sizeof r->missing);
}

int px_home_receive(int socket, int msec, struct px_box **ret_home, struct px_err *e)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    int fds[FDS] = {-EBADF, -EBADF};
    struct message *m = calloc(1, sizeof *m);
    struct px_box *home = px_supervise_guest();
    int r = m && home ? 0 : -ENOMEM;

    uint64_t end = px_now_nsec() + (uint64_t)msec * 1000000;
    while (r == 0 && (r = receive(socket, m, fds)) == -EAGAIN) {
        uint64_t now = px_now_nsec();   /* another thread may have taken what we were woken for */
        if (now >= end) {
            r = -ETIMEDOUT;
            break;
        }
        (void)px_sys(SYS_poll, &ready, 1, (int)((end - now) / 1000000) + 1);
        r = 0;
    }
    if (r < 0 || m->refused.code) {
        if (r == 0 && e)
            *e = m->refused;
        for (int i = 0; i < FDS; i++)
            (void)px_fd_close(fds[i]);
        free(home);
        free(m);
        return r == 0 ? -1 : px_fail(e, PX_E_GONE, r == -EPROTO ? 0 : r, "no box was handed over");
    }
    fill(home, m);
    home->control = fds[0];
    home->pidfd = fds[1];
    free(m);
    *ret_home = home;
    return 0;
}
