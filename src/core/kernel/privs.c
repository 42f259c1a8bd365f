#include "kernel/privs.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/sys.h"

#ifndef PR_CAP_AMBIENT
#define PR_CAP_AMBIENT 47
#define PR_CAP_AMBIENT_RAISE 2
#define PR_CAP_AMBIENT_CLEAR_ALL 4
#endif

enum {
    PRIVILEGES_MAX = 63,        /* the kernel's sets have 64 bits; past its last capability it answers EINVAL */
    SECUREBITS_ALL = 0x2f,      /* NOROOT, NO_SETUID_FIXUP and their locks, KEEP_CAPS locked off */
    /* as above, but a change of ids drops all capabilities, and no more can become ambient */
    SECUREBITS_STARTER = 0xeb,
    STARTER = 1 << 5 | 1 << 6 | 1 << 7, /* CAP_KILL, CAP_SETGID, CAP_SETUID */
    CAP_VERSION_3 = 0x20080522,
};

struct cap_header {
    uint32_t version;
    int32_t pid;
};
struct cap_data {
    uint32_t effective, permitted, inheritable;
};

static int drop_bounding_set(void)
{
    long r = 0;
    for (int i = 0; i <= PRIVILEGES_MAX && r >= 0; i++)
        r = px_sys(SYS_prctl, PR_CAPBSET_DROP, i, 0, 0, 0);
    return r == -EINVAL ? 0 : (int)r;
}

int px_privs_bound_starter(void)
{
    struct cap_header header = {.version = CAP_VERSION_3};
    struct cap_data data[2] = {{0}};
    long r = px_sys(SYS_capget, &header, data);
    data[0].inheritable = STARTER;
    data[1].inheritable = 0;
    if (r < 0 || (r = px_sys(SYS_capset, &header, data)) < 0)
        return (int)r;
    if ((r = px_sys(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) < 0)
        return (int)r;
    for (int i = 0; i < 32; i++)
        if (STARTER >> i & 1 && (r = px_sys(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0)) < 0)
            return (int)r;
    if ((r = drop_bounding_set()) < 0 || (r = px_sys(SYS_prctl, PR_SET_SECUREBITS, SECUREBITS_STARTER, 0, 0, 0)) < 0)
        return (int)r;
    return (int)px_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int px_privs_bound(void)
{
    long r = drop_bounding_set();
    if (r < 0)
        return (int)r;
    if ((r = px_sys(SYS_prctl, PR_SET_SECUREBITS, SECUREBITS_ALL, 0, 0, 0)) < 0)
        return (int)r;
    if ((r = px_sys(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) < 0)
        return (int)r;
    return (int)px_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int verify_dropped(uint32_t uid, uint32_t gid, int bounded)
{
    struct cap_header header = {.version = CAP_VERSION_3};
    struct cap_data data[2] = {{0}};
    uint32_t u[3] = {0}, g[3] = {0};

    if (px_sys(SYS_getresuid, &u[0], &u[1], &u[2]) < 0 || px_sys(SYS_getresgid, &g[0], &g[1], &g[2]) < 0 ||
        px_sys(SYS_capget, &header, data) < 0)
        return -EPERM;
    for (int i = 0; i < 3; i++)
        if (u[i] != uid || g[i] != gid)
            return -EPERM;
    for (int i = 0; i < 2; i++)
        if (data[i].effective | data[i].permitted | data[i].inheritable)
            return -EPERM;
    for (int i = 0; bounded && i <= PRIVILEGES_MAX; i++) {
        long r = px_sys(SYS_prctl, PR_CAPBSET_READ, i, 0, 0, 0);
        if (r == -EINVAL)       /* past the last one of this kernel */
            break;
        if (r != 0)
            return -EPERM;
    }
    return px_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -EPERM;
}

int px_privs_drop(uint32_t uid, uint32_t gid, int may_setgroups, int bounded)
{
    struct cap_header header = {.version = CAP_VERSION_3};
    struct cap_data none[2] = {{0}};
    long r = 0;

    if (may_setgroups && (r = px_sys(SYS_setgroups, 0, 0)) < 0)
        return (int)r;
    if ((r = px_sys(SYS_setresgid, gid, gid, gid)) < 0 || (r = px_sys(SYS_setresuid, uid, uid, uid)) < 0 ||
        (r = px_sys(SYS_capset, &header, none)) < 0)
        return (int)r;
    return verify_dropped(uid, gid, bounded);
}

int px_privs_keep(uint64_t keep)
{
    struct cap_header header = {.version = CAP_VERSION_3};
    struct cap_data data[2] = {{0}};
    long r = px_sys(SYS_capget, &header, data);
    if (r < 0)
        return (int)r;
    if ((r = drop_bounding_set()) < 0 && r != -EPERM)
        return (int)r;
    if ((r = px_sys(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) < 0)
        return (int)r;
    for (int i = 0; i < 2; i++) {
        data[i].permitted &= (uint32_t)(keep >> (32 * i));
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    return (int)px_sys(SYS_capset, &header, data);
}
