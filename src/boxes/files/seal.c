/* What a server of these files can still do once it begins to read requests: these files, its open descriptors, nothing else. */
#include <errno.h>
#include <sys/prctl.h>

#include "base/sys.h"
#include "files/files.h"
#include "kernel/allow.h"
#include "kernel/privs.h"
#include "kernel/seccomp.h"

/* CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID: what root needs to work on files that are not its own and to keep
 * their owners. Landlock says which files. */
static const uint32_t kept_caps = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4;

#ifndef __SANITIZE_ADDRESS__ /* whose runtime makes calls of its own; the walls are tested in the other build */
/* set-id bits in a mode are refused where a filter can see the mode: nothing here needs them, and as root they would be worth
 * something. That of openat2 lies in memory, which a filter cannot read. No call that names a file without opening it is here but
 * those that Landlock judges, and those that only look. */
enum { SET_ID = 06000 };
/* clang-format off */
static const struct sock_filter filter[] = {
    CONFINE_HEAD CONFINE_COMMON
    CONFINE_ALLOW(SYS_readv) CONFINE_ALLOW(SYS_writev) CONFINE_ALLOW(SYS_pread64)
    CONFINE_ALLOW(SYS_pwrite64) CONFINE_ALLOW(SYS_ftruncate)
    CONFINE_ALLOW(SYS_poll) CONFINE_ALLOW(SYS_ppoll) CONFINE_ALLOW(SYS_recvmsg) CONFINE_ALLOW(SYS_recvfrom)
    CONFINE_ALLOW(SYS_shutdown) CONFINE_ALLOW(SYS_lseek) CONFINE_ALLOW(SYS_fcntl) CONFINE_ALLOW(SYS_fstat)
    CONFINE_ALLOW(SYS_newfstatat) CONFINE_ALLOW(SYS_statx) CONFINE_ALLOW(SYS_getdents64) CONFINE_ALLOW(SYS_openat2)
    CONFINE_ALLOW(SYS_readlinkat) CONFINE_ALLOW(SYS_mkdirat) CONFINE_ALLOW(SYS_unlinkat) CONFINE_ALLOW(SYS_renameat2)
    CONFINE_ALLOW(SYS_faccessat) CONFINE_ALLOW(SYS_faccessat2)
    CONFINE_ALLOW_WITHOUT(SYS_openat, 3, SET_ID)
    CONFINE_ALLOW_WITHOUT(SYS_fchmod, 1, SET_ID) CONFINE_ALLOW(SYS_fchown)
    CONFINE_ALLOW(SYS_fsync) CONFINE_ALLOW(SYS_fdatasync)
    CONFINE_ALLOW(SYS_geteuid) CONFINE_ALLOW(SYS_getegid) CONFINE_ALLOW(SYS_getuid) CONFINE_ALLOW(SYS_getgid)
    CONFINE_ALLOW(SYS_wait4) CONFINE_ALLOW(SYS_waitid)
    CONFINE_TAIL
};
/* clang-format on */
#endif

int px_files_seal(const struct px_files *files, struct px_err *e)
{
    PX_ERR(e);
    int in_force = px_files_confine(files, e);
    if (in_force < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return px_fail(e, PX_E_PRIVS, -errno, "the server cannot give up its rights");
    int r = px_privs_keep(kept_caps);
    if (r < 0)
        return px_fail(e, PX_E_PRIVS, r, "the server cannot give up its rights");
#ifndef __SANITIZE_ADDRESS__
    r = px_seccomp_load(filter, sizeof filter / sizeof filter[0]);
    if (r < 0)
        return px_fail(e, PX_E_SECCOMP, r, "the server cannot be confined");
#endif
    return in_force;
}
