#include "kernel/pidfd.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/sys.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
enum { WAIT_PIDFD = 3 };        /* P_PIDFD */

int px_pidfd_signal(int pidfd, int signal)
{
    return (int)px_sys(SYS_pidfd_send_signal, pidfd, signal, 0, 0);
}

int px_pidfd_signal_group(int pidfd, int signal)
{
    long r = px_sys(SYS_pidfd_send_signal, pidfd, signal, 0, 4 /* PIDFD_SIGNAL_PROCESS_GROUP */);
    return r == -EINVAL ? px_pidfd_signal(pidfd, signal) : (int)r;
}

/* waitid tells exit and signal apart in two fields; one wait status is what everybody knows how to read. */
static int to_wait_status(const siginfo_t *info)
{
    return info->si_code == CLD_EXITED ? (info->si_status & 0xff) << 8 : info->si_status & 0x7f;
}

int px_pidfd_wait(int pidfd, bool no_hang, int *ret_status, struct rusage *ret_usage)
{
    siginfo_t info = {0};
    struct rusage usage = {0};
    long r;

    do {
        r = px_sys(SYS_waitid, WAIT_PIDFD, pidfd, &info, WEXITED | __WALL | (no_hang ? WNOHANG : 0), &usage);
    } while (r == -EINTR);
    if (r < 0)
        return (int)r;
    if (info.si_pid == 0)
        return 0;
    *ret_status = to_wait_status(&info);
    if (ret_usage)
        *ret_usage = usage;
    return 1;
}
