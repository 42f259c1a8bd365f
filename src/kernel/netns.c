#include "kernel/netns.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/sys.h"

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
