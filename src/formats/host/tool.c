/* Programs of the host that px runs: finds them and reads their versions. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "host/tool.h"
#include "kernel/fork.h"
#include "kernel/pidfd.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { OUTPUT_MAX = 4096, OUTPUT_ROOM = 8192 };

/* ---- finding ---- */

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && px_sys(SYS_faccessat, AT_FDCWD, path, X_OK) == 0;
}

/* Uses only absolute directories of PATH: a file in the working directory is not a program of the host. */
static bool find_in(const char *list, const char *name, char *ret_path, size_t size)
{
    while (*list) {
        size_t n = strcspn(list, ":");
        if (*list == '/' && px_fmt(ret_path, size, "%.*s/%s", (int)n, list, name) >= 0 && is_program(ret_path))
            return true;
        list += n + (list[n] == ':');
    }
    return false;
}

bool px_tool_find(const char *name, char *ret_path, size_t size)
{
    const char *path = getenv("PATH");
    return (path && find_in(path, name, ret_path, size)) || find_in("/usr/bin:/usr/sbin:/bin:/sbin", name, ret_path, size);
}

/* ---- running ---- */

static _Noreturn void run_version(const char *path, int out)
{
    char *const argv[] = {(char *)path, (char *)"--version", NULL};
    char *const envp[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", (char *)"LC_ALL=C", NULL};
    const uint64_t none = 0;
    int null = px_fd_above_stdio((int)px_sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC));
    (void)px_sys(SYS_setsid);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    if (px_sys(SYS_dup3, null, 0, 0) >= 0 && px_sys(SYS_dup3, out, 1, 0) >= 0 && px_sys(SYS_dup3, out, 2, 0) >= 0) {
        (void)px_sys(SYS_close_range, 3, ~0u, 0);
        (void)px_sys(SYS_execve, path, argv, envp);
    }
    px_fork_exit(127);
}

/* Reads its output up to the size and time limits; -ETIMEDOUT if it does not exit in time. */
static int listen_to(int fd, unsigned msec, struct px_buf *out)
{
    uint64_t deadline = px_now_nsec() + msec * 1000000ull;
    struct pollfd event = {.fd = fd, .events = POLLIN};
    for (uint64_t now; (now = px_now_nsec()) < deadline && out->len < OUTPUT_MAX;) {
        char piece[512];
        int n = poll(&event, 1, (int)((deadline - now) / 1000000) + 1);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n <= 0)
            continue;
        ssize_t got = px_read_some(fd, piece, sizeof piece);
        if (got <= 0)
            return (int)got;
        (void)px_buf_add(out, piece, (size_t)got);
    }
    return out->len > 0 ? 0 : -ETIMEDOUT;
}

int px_tool_version(const char *path, unsigned msec, char *ret_line, size_t size)
{
    int ends[2], status = 0;
    px_auto_fd int pidfd = -EBADF;
    px_auto_buf struct px_buf out = PX_BUF(OUTPUT_ROOM);
    int r = px_pipe(ends);
    if (r < 0)
        return r;
    int out_end = px_fd_above_stdio(ends[1]);
    long pid = out_end < 0 ? out_end : px_fork(&pidfd);
    if (pid == 0)
        run_version(path, out_end);
    (void)px_fd_close(out_end);
    r = pid < 0 ? (int)pid : listen_to(ends[0], msec, &out);
    (void)px_fd_close(ends[0]);
    if (pid < 0)
        return r;
    (void)px_pidfd_signal_group(pidfd, SIGKILL);        /* its output is complete */
    (void)px_fork_reap(pidfd, &status);
    if (r < 0 || out.len == 0)
        return r < 0 ? r : -ENODATA;
    px_auto_buf struct px_buf line = PX_BUF(size - 1);
    (void)px_buf_quote(&line, out.data, strcspn(out.data, "\n"));
    return px_fmt(ret_line, size, "%s", px_buf_text(&line));
}
