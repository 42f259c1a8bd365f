#include "helpers/confine.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"

enum { CAP_VERSION_3 = 0x20080522, CAPS_MAX = 64 };

static int set_limit(int resource, uint64_t value)
{
    struct rlimit old, limit;
    if (value == 0)
        return 0;
    if (getrlimit(resource, &old) < 0)
        return -errno;
    limit.rlim_cur = limit.rlim_max = value < old.rlim_max ? value : old.rlim_max;
    return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

static int set_limits(const struct confine *c)
{
    const struct rlimit none = {0, 0};
    int r = setrlimit(RLIMIT_CORE, &none) < 0 ? -errno : 0;
#ifndef __SANITIZE_ADDRESS__    /* which reserves terabytes */
    r = r < 0 ? r : set_limit(RLIMIT_AS, c->memory_bytes);
#endif
    r = r < 0 ? r : set_limit(RLIMIT_FSIZE, c->file_bytes);
    return r < 0 ? r : set_limit(RLIMIT_NOFILE, c->files);
}

/* As root the bounding set goes too; who has no privilege to begin with cannot drop that, and no_new_privs stands for
 * it. */
static int drop_caps(uint64_t keep)
{
    struct {
        uint32_t version;
        int32_t pid;
    } header = {.version = CAP_VERSION_3};
    struct {
        uint32_t effective, permitted, inheritable;
    } have[2] = {{0}};
    long r = px_sys(SYS_capget, &header, have);
    if (r < 0)
        return (int)r;
    for (int i = 0; i < CAPS_MAX; i++) {
        if ((r = px_sys(SYS_prctl, PR_CAPBSET_DROP, i, 0, 0, 0)) == -EINVAL)
            break;              /* past the kernel's last one */
        if (r < 0 && r != -EPERM)
            return (int)r;
    }
    for (int i = 0; i < 2; i++) {
        have[i].permitted &= (uint32_t)(keep >> (32 * i));
        have[i].effective = have[i].permitted;
        have[i].inheritable = 0;
    }
    r = px_sys(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return r < 0 ? (int)r : (int)px_sys(SYS_capset, &header, have);
}

#ifndef __SANITIZE_ADDRESS__
static int only_paths(const struct confine_path *paths, size_t count)
{
    int abi = px_landlock_abi();
    if (abi < 1)
        return 0;
    px_auto_fd int rules = px_landlock_new(abi);
    int r = rules < 0 ? rules : 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = px_landlock_allow(rules, abi, paths[i].fd, paths[i].access);
    return r < 0 ? r : px_landlock_enforce(rules);
}
#endif

int confine(const struct confine *c)
{
    (void)umask(0);             /* modes are what the caller of open says */
    long r = px_sys(SYS_prctl, PR_SET_PDEATHSIG, c->stays ? 0 : SIGKILL, 0, 0, 0);
    r = r < 0 ? r : px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    r = r < 0 ? r : set_limits(c);
    r = r < 0 ? r : px_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    r = r < 0 ? r : drop_caps(c->keep_caps);
#ifdef __SANITIZE_ADDRESS__     /* whose runtime needs files and calls of its own; the walls are tested in the other build */
    return r < 0 ? (int)r : 0;
#else
    r = r < 0 ? r : only_paths(c->paths, c->path_count);
    return r < 0 ? (int)r : px_seccomp_load(c->filter, c->filter_length);
#endif
}
