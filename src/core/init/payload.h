/* init/payload.h - the last steps of a process before it executes a program of the box.
 *
 * Why:     three programs take them: the child of a box, px-init for one more command, px-start under an OCI
 *          runtime. What a program finds must not depend on which of them started it.
 * Owns:    nothing.
 * Mustn't: use anything but raw system calls: two of the three have no C library, and one shares its parent's
 *          memory. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>

#include "base/sys.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* Limits are only lowered: to the smaller of the current and the wanted value. */
static inline int px_payload_lower(uint32_t resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now = {0};
    long r = px_sys(SYS_prlimit64, 0, resource, 0, &now);
    if (r < 0)
        return (int)r;
    struct rlimit want = {.rlim_cur = soft, .rlim_max = hard};
    if (want.rlim_max > now.rlim_max)
        want.rlim_max = now.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    return (int)px_sys(SYS_prlimit64, 0, resource, &want, 0);
}

/* Opens a terminal of the box's own devpts without a path, and makes it the controlling terminal and descriptors 0,
 * 1, 2. */
static inline int px_payload_terminal(const char *ptmx, uint16_t rows, uint16_t cols, int *ret_master)
{
    const struct winsize size = {.ws_row = rows, .ws_col = cols};
    int unlock = 0, master = (int)px_sys(SYS_openat, AT_FDCWD, ptmx, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0)
        return master;
    long r = px_sys(SYS_ioctl, master, TIOCSPTLCK, &unlock);
    if (r >= 0)
        r = px_sys(SYS_ioctl, master, TIOCSWINSZ, &size);
    int terminal = r < 0 ? (int)r : (int)px_sys(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return terminal;
    r = px_sys(SYS_ioctl, terminal, TIOCSCTTY, 0);
    for (int i = 0; i < 3 && r >= 0; i++)
        r = px_sys(SYS_dup3, terminal, i, 0);
    *ret_master = master;
    return r < 0 ? (int)r : 0;
}

/* The profile takes effect at the exec. -ENOENT: the kernel does not know it, or AppArmor is off. */
static inline int px_payload_apparmor(const char *profile)
{
    static const char verb[] = "exec ";
    char text[300];
    size_t n = 0, length = 0;
    for (; verb[n]; n++)
        text[n] = verb[n];
    for (; profile[length]; length++) {
        if (n + length == sizeof text)
            return -ENAMETOOLONG;
        text[n + length] = profile[length];
    }
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, "/proc/thread-self/attr/apparmor/exec", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    long r = px_sys(SYS_write, fd, text, n + length);
    (void)px_sys(SYS_close, fd);
    return r < 0 ? (int)r : 0;
}

/* Tries `count` paths, one after the other in memory: the results of a search in PATH. Returns only if none could be
 * executed, with the error of the first that exists; *ret_found: whether one exists. */
static inline int px_payload_exec(const char *path, uint64_t count, char *const argv[], char *const envp[], uint32_t *ret_found)
{
    int answer = -ENOENT;
    for (uint64_t i = 0; i < count; i++) {
        long r = px_sys(SYS_execve, path, argv, envp);
        if (r == -ENOENT ? px_sys(SYS_faccessat, AT_FDCWD, path, 0) == 0 : r != -ENOTDIR)
            *ret_found = 1;     /* -ENOENT for a file that exists: its interpreter is missing */
        if (*ret_found && answer == -ENOENT)
            answer = (int)r;
        if (*ret_found && r != -EACCES)
            break;
        while (*path++)
            ;
    }
    return answer;
}
