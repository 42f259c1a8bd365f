#include "kernel/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
enum { WAIT_PIDFD = 3 };        /* P_PIDFD */

int px_pidfd_open(int pid)
{
    return (int)px_sys(SYS_pidfd_open, pid, 0);
}

int px_pidfd_signal(int pidfd, int signal)
{
    return (int)px_sys(SYS_pidfd_send_signal, pidfd, signal, 0, 0);
}

int px_pidfd_signal_group(int pidfd, int signal)
{
    long r = px_sys(SYS_pidfd_send_signal, pidfd, signal, 0, 4 /* PIDFD_SIGNAL_PROCESS_GROUP */);
    return r == -EINVAL ? px_pidfd_signal(pidfd, signal) : (int)r;
}

/* waitid gives exit code and signal in two fields; callers get one wait status. */
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

/* "Pid:\t123" in the descriptor's fdinfo; -1 for a process that has ended. */
int px_pidfd_number(int pidfd)
{
    char path[64], text[1024];
    uint64_t pid = 0;
    if (px_fmt(path, sizeof path, "/proc/self/fdinfo/%d", pidfd) < 0 || px_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    char *line = strstr(text, "\nPid:\t");
    if (!line)
        return 0;
    line += 6;
    line[strcspn(line, "\n")] = '\0';
    return px_parse_u64(line, INT32_MAX, &pid) < 0 ? 0 : (int)pid;
}

/* Reads /proc/PID/stat, as only a parent may ask by the descriptor. Afterwards the descriptor is asked for its
 * number again: if it is the same, the file was this process's. */
bool px_pidfd_stopped(int pidfd)
{
    char path[64], text[512];
    int pid = px_pidfd_number(pidfd);
    if (pid == 0 || px_fmt(path, sizeof path, "/proc/%d/stat", pid) < 0 ||
        px_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return false;
    const char *state = strrchr(text, ')');     /* the name before it may contain anything */
    return state && (px_starts_with(state, ") T") || px_starts_with(state, ") t")) && px_pidfd_number(pidfd) == pid;
}
