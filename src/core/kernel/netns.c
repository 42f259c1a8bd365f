#include "kernel/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/sys.h"

/* Not htons: with some C libraries that is a function. */
#define BIG16(value) __builtin_bswap16(value)
#define BIG32(value) __builtin_bswap32(value)

enum { BACKLOG = 512, SOL_NETLINK_LEVEL = 270, CAP_ACK_OPTION = 10, ANSWERS_MAX = 256 };

int px_netns_loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    request.ifr_flags = IFF_UP | IFF_RUNNING;

    int s = (int)px_sys(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return s;
    long r = px_sys(SYS_ioctl, s, SIOCSIFFLAGS, &request);
    (void)px_sys(SYS_close, s);
    return (int)r;
}

void px_netns_low_ports(int proc_sys)
{
    long fd = px_sys(SYS_openat, proc_sys, "net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)px_sys(SYS_write, fd, "0", 1);
    (void)px_sys(SYS_close, fd);
}

/* The first error among the answers in one datagram; 0 if there is none. */
static int first_error(const char *data, size_t size)
{
    while (size >= sizeof(struct nlmsghdr)) {
        const struct nlmsghdr *h = (const void *)data;
        const struct nlmsgerr *e = (const void *)(data + NLMSG_HDRLEN);
        if (h->nlmsg_len < sizeof *h || h->nlmsg_len > size)
            return -EPROTO;
        if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_HDRLEN + sizeof e->error && e->error < 0)
            return e->error;
        size_t step = NLMSG_ALIGN(h->nlmsg_len);
        if (step >= size)
            break;
        data += step;
        size -= step;
    }
    return 0;
}

/* The kernel has handled all messages when the send returns, so every answer is there already. */
static int exchange_messages(int s, const void *messages, size_t length)
{
    static const int on = 1;
    _Alignas(8) char answer[4096];
    (void)px_sys(SYS_setsockopt, s, SOL_NETLINK_LEVEL, CAP_ACK_OPTION, &on, sizeof on);        /* short answers */
    long r = px_sys(SYS_sendto, s, messages, length, 0, 0, 0);
    int worst = r < 0 ? (int)r : 0;
    for (int i = 0; i < ANSWERS_MAX && worst == 0; i++) {
        r = px_sys(SYS_recvfrom, s, answer, sizeof answer, MSG_DONTWAIT, 0, 0);
        if (r < 0)
            return r == -EAGAIN ? 0 : (int)r;
        worst = first_error(answer, (size_t)r);
    }
    return worst;
}

int px_netns_netlink(int protocol, const void *messages, size_t length)
{
    int s = (int)px_sys(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (s < 0)
        return s;
    int r = exchange_messages(s, messages, length);
    (void)px_sys(SYS_close, s);
    return r;
}

int px_netns_log(const void *messages, size_t length)
{
    int s = (int)px_sys(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
    if (s < 0)
        return s;
    int r = exchange_messages(s, messages, length);
    if (r >= 0)
        return s;
    (void)px_sys(SYS_close, s);
    return r;
}

static long bind_to_loopback(int s, int family, uint16_t port)
{
    static const int on = 1;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = BIG16(port), .sin_addr = {BIG32(INADDR_LOOPBACK)}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = BIG16(port)};
    six.sin6_addr.s6_addr[15] = 1;
    if (family == AF_INET)
        return px_sys(SYS_bind, s, &four, sizeof four);
    long r = px_sys(SYS_setsockopt, s, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    return r < 0 ? r : px_sys(SYS_bind, s, &six, sizeof six);
}

int px_netns_socket(int family, int type, uint16_t port)
{
    int s = (int)px_sys(SYS_socket, family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0 || port == 0)
        return s;
    long r = bind_to_loopback(s, family, port);
    if (r >= 0 && type == SOCK_STREAM)
        r = px_sys(SYS_listen, s, BACKLOG);
    if (r >= 0)
        return s;
    (void)px_sys(SYS_close, s);
    return (int)r;
}
