#include "kernel/fork.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "base/sys.h"
#include "kernel/abi.h"
#include "kernel/clone.h"
#include "kernel/pidfd.h"

_Noreturn void px_fork_exit(int code)
{
    for (;;)
        (void)px_sys(SYS_exit_group, code);
}

/* A filter around px may answer ENOSYS to clone3, so that callers use clone, whose flags it can see. */
long px_fork_into(uint64_t namespaces, int cgroup_fd, int *ret_pidfd)
{
    int pidfd = -EBADF;
    struct px_clone_args args = {
        .flags = namespaces | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&pidfd};
    if (cgroup_fd >= 0) {
        args.flags |= PX_CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    long pid = px_sys(SYS_clone3, &args, sizeof args);
    if (pid == -ENOSYS && cgroup_fd < 0)
        pid = px_sys(SYS_clone, namespaces | PX_CLONE_PIDFD, 0, &pidfd, 0, 0);
    if (pid > 0)
        *ret_pidfd = pidfd;
    return pid;
}

long px_fork(int *ret_pidfd)
{
    long pid = px_fork_into(0, -EBADF, ret_pidfd);
    if (pid == 0)
        (void)px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return pid;
}

int px_fork_reap(int pidfd, int *ret_status)
{
    int r = px_pidfd_wait(pidfd, false, ret_status, NULL);
    return r < 0 ? r : 0;
}
