#include "helpers/pasta/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/idmap.h"

enum { MAP_MAX = 4096 };

/* The highest and the lowest id of a map of this process. */
static int read_map(const char *path, unsigned *ret_low, unsigned *ret_high)
{
    char text[MAP_MAX], *rest = text;
    ssize_t size = px_read_file(AT_FDCWD, path, text, sizeof text);
    uint64_t extent[3], low = UINT32_MAX, high = 0;
    int more = size < 0 ? (int)size : 0;
    while (size > 0 && (more = px_idmap_line(&rest, extent)) > 0) {
        if (extent[2] == 0)
            return -EPROTO;
        low = extent[0] < low ? extent[0] : low;
        high = extent[0] + extent[2] - 1 > high ? extent[0] + extent[2] - 1 : high;
    }
    if (more < 0 || low > high)
        return more < 0 ? more : -ENOENT;
    *ret_low = (unsigned)low;
    *ret_high = (unsigned)high;
    return 0;
}

static int become(void)
{
    unsigned low, uid, gid;
    int r = read_map("/proc/self/uid_map", &low, &uid);
    if (r == 0)
        r = read_map("/proc/self/gid_map", &low, &gid);
    if (r < 0)
        return r;
    /* refused where the box has only one id; then they are the caller's, which it has anyway */
    (void)setgroups(0, NULL);
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    return 0;
}

int enter_box(int network)
{
    px_auto_fd int user = ioctl(network, NS_GET_USERNS);
    if (user < 0 || setns(user, CLONE_NEWUSER) < 0)
        return -errno;
    int r = become();
    if (r < 0)
        return r;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (px_sys(SYS_capget, &head, data) < 0)
        return -EPERM;
    for (int i = 0; i < 2; i++)         /* a change of ids has taken them out of use */
        data[i].effective = data[i].permitted;
    r = (int)px_sys(SYS_capset, &head, data);
    return r < 0 ? r : unshare(CLONE_NEWPID) < 0 ? -errno : 0;
}

int keep_privileges(void)
{
    static const int kept[] = {CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, CAP_SYS_ADMIN};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    for (size_t i = 0; i < PX_COUNT_OF(kept); i++)
        data[0].permitted |= 1u << kept[i];
    data[0].effective = data[0].inheritable = data[0].permitted;
    int r = (int)px_sys(SYS_capset, &head, data);
    for (size_t i = 0; r >= 0 && i < PX_COUNT_OF(kept); i++)
        r = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) < 0 ? -errno : 0;
    return r;
}

int allow_echo(int network)
{
    char range[32];
    unsigned low, high;
    int r = read_map("/proc/self/gid_map", &low, &high);
    if (r < 0)
        return r;
    if (setns(network, CLONE_NEWNET) < 0)
        return -errno;
    px_auto_fd int fd = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC);
    int n = snprintf(range, sizeof range, "%u %u\n", low, high);
    return fd < 0 || write(fd, range, (size_t)n) < 0 ? -errno : 0;
}
