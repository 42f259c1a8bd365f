#include "kernel/netns.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pass.h"
#include "harness/test.h"

struct request {
    struct nlmsghdr head;
    struct ifaddrmsg address;
    struct rtattr attr;
    uint8_t value[4];
};

static struct request add_address(uint32_t device)
{
    return (struct request){
        .head = {.nlmsg_len = sizeof(struct request), .nlmsg_type = RTM_NEWADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
        .address = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = device},
        .attr = {.rta_len = 8, .rta_type = IFA_LOCAL},
        .value = {192, 0, 2, 1},
    };
}

static void enter_own_network(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        SKIP("no user namespace can be made here");
}

TEST(netlink_says_what_was_refused)
{
    enter_own_network();
    struct request both[2] = {add_address(0x7ffffff0), add_address(1)};
    ASSERT_EQ(px_netns_netlink(NETLINK_ROUTE, &both[1], sizeof both[1]), 0);
    ASSERT_EQ(px_netns_netlink(NETLINK_ROUTE, both, sizeof both), -ENODEV);     /* the first, though the second fails otherwise */
    ASSERT_EQ(px_netns_netlink(12345, both, sizeof both), -EPROTONOSUPPORT);
}

TEST(sockets_are_handed_on)
{
    int ends[2];
    enter_own_network();
    ASSERT_OK(px_netns_loopback_up());
    ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    int fd = px_netns_socket(AF_INET, SOCK_STREAM, 53);
    ASSERT_OK(fd);
    ASSERT_EQ(px_netns_socket(AF_INET, SOCK_STREAM, 53), -EADDRINUSE);
    ASSERT_OK(px_pass_send(ends[0], "k", 1, &fd, 1, 0));
    char byte = 0;
    int got;
    ASSERT_EQ(px_pass_receive(ends[1], &byte, 1, 0, &got, 1, NULL), 1);
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    ASSERT_OK(getsockname(got, (struct sockaddr *)&at, &len));
    ASSERT(byte == 'k' && ntohs(at.sin_port) == 53 && ntohl(at.sin_addr.s_addr) == INADDR_LOOPBACK);
    const int all[] = {ends[0], ends[1], fd, got};
    for (int i = 0; i < 4; i++)
        (void)px_fd_close(all[i]);
}
