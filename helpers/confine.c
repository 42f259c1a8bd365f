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
#include "kernel/privs.h"
#include "kernel/seccomp.h"

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
    int r = set_limit(RLIMIT_CORE, 1);  /* with 0 a crash would start the handler of a core_pattern "|..." */
#ifndef __SANITIZE_ADDRESS__    /* which reserves terabytes */
    r = r < 0 ? r : set_limit(RLIMIT_AS, c->memory_bytes);
#endif
    r = r < 0 ? r : set_limit(RLIMIT_FSIZE, c->file_bytes);
    return r < 0 ? r : set_limit(RLIMIT_NOFILE, c->files);
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
    (void)umask(c->umask);      /* banned: a program of its own */
    long r = px_sys(SYS_prctl, PR_SET_PDEATHSIG, c->stays ? 0 : SIGKILL, 0, 0, 0);
    r = r < 0 ? r : px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    r = r < 0 ? r : set_limits(c);
    r = r < 0 ? r : px_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    r = r < 0 ? r : px_privs_keep(c->keep_caps);
#ifdef __SANITIZE_ADDRESS__     /* whose runtime needs files and calls of its own; the walls are tested in the other build */
    return r < 0 ? (int)r : 0;
#else
    r = r < 0 ? r : only_paths(c->paths, c->path_count);
    return r < 0 ? (int)r : px_seccomp_load(c->filter, c->filter_length);
#endif
}
