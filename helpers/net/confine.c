/* What px-net keeps: sockets of the internet, pipes between them, and one page of memory. */
#include <errno.h>
#include <sys/socket.h>

#include "base/text.h"
#include "helpers/confine.h"
#include "helpers/net/relay.h"

enum { MEMORY_BYTES = 256 << 20, FILES = 6 * PX_NET_LINKS_MAX + 512 };

#define ALLOW_SOCKET(family) {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (family)}, CONFINE_RETURN(SECCOMP_RET_ALLOW)
#define ALLOW_SOCKETS                                                                                   \
    {BPF_JMP | BPF_JEQ | BPF_K, 0, 6, SYS_socket}, CONFINE_LOAD(CONFINE_ARGUMENT(0))                    \
    ALLOW_SOCKET(AF_INET) ALLOW_SOCKET(AF_INET6) CONFINE_RETURN(SECCOMP_RET_ERRNO | EACCES)

// clang-format off
static const struct sock_filter filter[] = {
    CONFINE_HEAD CONFINE_COMMON ALLOW_SOCKETS
    CONFINE_ALLOW(SYS_splice) CONFINE_ALLOW(SYS_epoll_wait) CONFINE_ALLOW(SYS_epoll_pwait) CONFINE_ALLOW(SYS_epoll_ctl)
    CONFINE_ALLOW(SYS_accept4) CONFINE_ALLOW(SYS_connect) CONFINE_ALLOW(SYS_shutdown)
    CONFINE_ALLOW(SYS_recvmsg) CONFINE_ALLOW(SYS_recvfrom) CONFINE_ALLOW(SYS_pipe2) CONFINE_ALLOW(SYS_fcntl)
    CONFINE_ALLOW(SYS_getsockname) CONFINE_ALLOW(SYS_getsockopt) CONFINE_ALLOW(SYS_setsockopt)
    CONFINE_TAIL};
// clang-format on

int relay_confine(void)
{
    return confine(&(struct confine){.filter = filter,
                                     .filter_length = PX_COUNT_OF(filter),
                                     .memory_bytes = MEMORY_BYTES,
                                     .files = FILES,
                                     .stays = true});
}
