/* probe/net.c - a network namespace: loopback, tun devices, and nftables by raw netlink. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"
#include "base/sys.h"
#include "kernel/abi.h"
#include "kernel/netns.h"
#include "probe/probe_internal.h"

enum { OWN_NET = PX_CLONE_NEWUSER | PX_CLONE_NEWNET };

static const struct timeval patience = {.tv_sec = 2};

/* ---- loopback ---- */

/* A listener on 127.0.0.1; its port in *ret_port. The descriptor, or -errno. */
static int listen_here(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    uint32_t size = sizeof at;
    int fd = (int)px_sys(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long r = fd < 0 ? fd : px_sys(SYS_bind, fd, &at, sizeof at);
    if (r >= 0)
        r = px_sys(SYS_listen, fd, 1);
    if (r >= 0)
        r = px_sys(SYS_getsockname, fd, &at, &size);
    if (r < 0) {
        (void)px_fd_close(fd);
        return (int)r;
    }
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static long reach(uint16_t port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = (int)px_sys(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)                /* loopback answers at once; this bounds a failure */
        (void)px_sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    long r = fd < 0 ? fd : px_sys(SYS_connect, fd, &to, sizeof to);
    (void)px_fd_close(fd);
    return r;
}

enum { NOTE_PORT, NOTE_REACHED };

static void inside_network(struct px_probe_ctx *c)
{
    uint16_t port = 0;
    if (!px_probe_works(c, px_netns_loopback_up(), "switching its own loopback on"))
        return;
    /* Tests this first: a listener of our own could get the same port. */
    const char *act = c->shared->note[NOTE_REACHED] ? "reaching a listener of the host's loopback, which answers outside,"
                                                    : "reaching a listener of the host's loopback";
    if (!px_probe_refused(c, reach((uint16_t)c->shared->note[NOTE_PORT]), ECONNREFUSED, ENETUNREACH, act))
        return;
    int own = listen_here(&port);
    if (px_probe_works(c, own < 0 ? own : reach(port), "reaching a listener of its own loopback"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_network(struct px_probe_ctx *c)
{
    uint16_t port = 0;
    px_auto_fd int listener = listen_here(&port);
    if (listener < 0) {
        px_probe_unknown(c, listener, "no listener can be made on the host to try it with");
        return;
    }
    c->shared->note[NOTE_PORT] = port;
    c->shared->note[NOTE_REACHED] = reach(port) >= 0;   /* not where the host's own loopback is down */
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_NET, .inside = inside_network});
}

/* ---- tun ---- */

/* Creates a device that is removed when its descriptor is closed. */
static long make_tun(void)
{
    struct ifreq request = {.ifr_name = "pxprobe%d"};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, "/dev/net/tun", O_RDWR | O_CLOEXEC);
    long r = fd < 0 ? fd : px_sys(SYS_ioctl, fd, TUNSETIFF, &request);
    (void)px_fd_close(fd);
    return r;
}

static void inside_tun(struct px_probe_ctx *c)
{
    long r = make_tun();
    if (px_probe_works(c, r, "making a tun device in its own network"))
        c->row->state = PX_PROBE_ENFORCED;
    else
        c->row->raise = r == -EACCES ? PX_RAISE_TUN_ACCESS : PX_RAISE_TUN;
}

static void inside_foreign_tun(struct px_probe_ctx *c)
{
    (void)px_probe_refused(c, make_tun(), EPERM, EACCES, "making one in the host's network from a user namespace");
}

/* If only root may open /dev/net/tun, root can still open it in the namespace of a box. */
void px_probe_tun(struct px_probe_ctx *c)
{
    int r = px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_NET, .inside = inside_tun});
    if (r >= 0 && c->row->state != PX_PROBE_ENFORCED && c->row->raise == PX_RAISE_TUN_ACCESS && c->host->root) {
        r = px_probe_child(c, &(struct px_probe_job){.namespaces = PX_CLONE_NEWNET, .inside = inside_tun});
        if (r >= 0 && c->row->state == PX_PROBE_ENFORCED)
            px_probe_say(c->row->found, "/dev/net/tun is for root alone");
    }
    if (r < 0 || c->row->state != PX_PROBE_ENFORCED)
        return;
    c->row->state = PX_PROBE_ABSENT;    /* until the other side is seen as well */
    r = px_probe_child(c, &(struct px_probe_job){.namespaces = PX_CLONE_NEWUSER, .inside = inside_foreign_tun});
    if (r >= 0 && c->row->forbidden[0])
        c->row->state = PX_PROBE_ENFORCED;
}

/* ---- nftables ---- */

enum { FAMILY_INET = 1 };       /* NFPROTO_INET, whose header clashes with the C library's */

static const char table_name[] = "px-probe";

struct message {
    uint32_t length;
    char bytes[256] __attribute__((aligned(4)));
};

/* Adds one nfnetlink message; with a table's name as its attribute if there is one. */
static void add(struct message *m, uint16_t type, uint16_t flags, uint8_t family, uint16_t resource, bool named)
{
    uint32_t size = NLMSG_ALIGN((uint32_t)sizeof(struct nlmsghdr) + (uint32_t)sizeof(struct nfgenmsg));
    const struct nlattr name = {.nla_len = NLA_HDRLEN + sizeof table_name, .nla_type = NFTA_TABLE_NAME};
    const struct nfgenmsg family_header = {.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource)};
    const uint32_t whole = size + (named ? NLMSG_ALIGN(name.nla_len) : 0);
    const struct nlmsghdr header = {
        .nlmsg_len = whole, .nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags), .nlmsg_seq = 1};
    char *at = m->bytes + m->length;

    memset(at, 0, whole);
    memcpy(at, &header, sizeof header);
    memcpy(at + NLMSG_HDRLEN, &family_header, sizeof family_header);
    if (named) {
        memcpy(at + size, &name, sizeof name);
        memcpy(at + size + NLA_HDRLEN, table_name, sizeof table_name);
    }
    m->length += whole;
}

/* Sends, and returns what the kernel answers: 0 for an acknowledgement or a table, or its -errno. */
static long converse(int fd, const struct message *m)
{
    char answer[4096] __attribute__((aligned(4))) = {0};
    long n = px_sys(SYS_sendto, fd, m->bytes, m->length, 0, 0, 0);
    if (n >= 0)
        n = px_sys(SYS_recvfrom, fd, answer, sizeof answer, 0, 0, 0);
    if (n < (long)sizeof(struct nlmsghdr))
        return n < 0 ? n : -EPROTO;
    const struct nlmsghdr *header = (const void *)answer;
    if (header->nlmsg_type != NLMSG_ERROR)
        return 0;
    const struct nlmsgerr *error = (const void *)(answer + NLMSG_HDRLEN);
    return n < (long)(NLMSG_HDRLEN + sizeof *error) ? -EPROTO : error->error;
}

static uint16_t nft(uint16_t type)
{
    return (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
}

/* One change as a batch of its own. */
static long change(int fd, uint16_t type, uint16_t flags)
{
    struct message m = {0};
    add(&m, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, false);
    add(&m, nft(type), NLM_F_ACK | flags, FAMILY_INET, 0, true);
    add(&m, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, false);
    return converse(fd, &m);
}

static long look(int fd)
{
    struct message m = {0};
    add(&m, nft(NFT_MSG_GETTABLE), 0, FAMILY_INET, 0, true);
    return converse(fd, &m);
}

static int open_netfilter(void)
{
    int fd = (int)px_sys(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (fd >= 0)
        (void)px_sys(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static void inside_nftables(struct px_probe_ctx *c)
{
    int fd = open_netfilter();
    c->row->raise = PX_RAISE_NFT;
    if (px_probe_works(c, fd < 0 ? fd : change(fd, NFT_MSG_NEWTABLE, NLM_F_CREATE), "making a table") &&
        px_probe_works(c, look(fd), "finding the table") &&
        px_probe_works(c, change(fd, NFT_MSG_DELTABLE, 0), "making, finding and deleting a table in its own network") &&
        px_probe_refused(c, look(fd), ENOENT, 0, "finding the table after it was deleted"))
        c->row->state = PX_PROBE_ENFORCED;
}

static void inside_foreign_nftables(struct px_probe_ctx *c)
{
    int fd = open_netfilter();
    long r = fd < 0 ? fd : change(fd, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    if (r >= 0)
        (void)change(fd, NFT_MSG_DELTABLE, 0);
    if (px_probe_refused(c, r, EPERM, 0, "making a table in the host's network from a user namespace"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_nftables(struct px_probe_ctx *c)
{
    if (px_probe_child(c, &(struct px_probe_job){.namespaces = OWN_NET, .inside = inside_nftables}) < 0 ||
        c->row->state != PX_PROBE_ENFORCED)
        return;
    c->row->state = PX_PROBE_ABSENT;
    (void)px_probe_child(c, &(struct px_probe_job){.namespaces = PX_CLONE_NEWUSER, .inside = inside_foreign_nftables});
}
