#include "base/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sys.h"

int px_pass_send_parts(int socket, const struct iovec *parts, size_t parts_count, const int *fds, size_t count, int flags)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PX_PASS_MAX * sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct msghdr m = {.msg_iov = (struct iovec *)parts, .msg_iovlen = parts_count};
    if (count > PX_PASS_MAX)
        return -E2BIG;
    if (count) {
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(count * sizeof(int));
    }
    long n;
    do
        n = px_sys(SYS_sendmsg, socket, &m, flags | MSG_NOSIGNAL);
    while (n == -EINTR);
    return n < 0 ? (int)n : 0;
}

int px_pass_send(int socket, const void *data, size_t size, const int *fds, size_t count, int flags)
{
    const struct iovec part = {.iov_base = (void *)data, .iov_len = size};
    return px_pass_send_parts(socket, &part, 1, fds, count, flags);
}

static void take_rights(const struct cmsghdr *c, int *fds, size_t max, struct px_passed *passed)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (passed->count < max)
            fds[passed->count] = fd;
        else
            (void)px_sys(SYS_close, fd);
        passed->count++;
    }
}

static void take_sender(const struct cmsghdr *c, struct px_passed *passed)
{
    struct ucred who;
    if (c->cmsg_len != CMSG_LEN(sizeof who))
        return;
    memcpy(&who, CMSG_DATA(c), sizeof who);
    passed->pid = who.pid;
}

long px_pass_receive(int socket, void *data, size_t size, int flags, int *fds, size_t max, struct px_passed *ret_passed)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(PX_PASS_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    struct px_passed passed = {0};
    long n;
    for (size_t i = 0; i < max; i++)
        fds[i] = -EBADF;
    do
        n = px_sys(SYS_recvmsg, socket, &m, flags | MSG_CMSG_CLOEXEC);
    while (n == -EINTR);
    const struct cmsghdr *c;    /* not by CMSG_NXTHDR, which is a function of the C library */
    for (size_t at = 0; n >= 0 && at + sizeof *c <= m.msg_controllen; at += CMSG_ALIGN(c->cmsg_len)) {
        c = (const void *)(control.room + at);
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            take_rights(c, fds, max, &passed);
        else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
            take_sender(c, &passed);
    }
    passed.flags = n < 0 ? 0 : m.msg_flags;
    if (ret_passed)
        *ret_passed = passed;
    return n;
}
