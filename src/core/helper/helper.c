#include "helper/helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/clone.h"
#include "kernel/pidfd.h"

enum { SOCKET_IN_HELPER = 3, FIRST_IN_HELPER = 4, HIGH = 64, ARGS_MAX = 4096, STACK = 64 << 10 };

/* ---- finding it ---- */

/* Finds `name` in one of these directories, relative to that of `self`. */
static int find_below(const char *self, const char *name, const char *const *places, size_t count, char *out, size_t size)
{
    const char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < count; i++)
        if (px_fmt(out, size, "%.*s/%s%s", (int)(slash - self), self, places[i], name) >= 0 && access(out, X_OK) == 0)
            return 0;
    return -1;
}

/* Looks beside the program (where px-main lies), in the installed directories and in a build directory; then the
 * same relative to the library, where that is a shared object in another program. */
static int find_helper(const char *name, char *out, size_t size, struct px_err *e)
{
    static const char *const by_program[] = {"", "../libexec/px/", "../"};
    static const char *const by_library[] = {"", "../libexec/px/", "../../libexec/px/"};
    char self[4096];
    Dl_info info;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        if (find_below(self, name, by_program, PX_COUNT_OF(by_program), out, size) == 0)
            return 0;
    }
    if (dladdr((const void *)(uintptr_t)px_helper_start, &info) && info.dli_fname && info.dli_fname[0] == '/' &&
        find_below(info.dli_fname, name, by_library, PX_COUNT_OF(by_library), out, size) == 0)
        return 0;
    px_fail(e, PX_E_NOT_BUILT, 0, "this needs the program %s, and it is not beside px nor in ../libexec/px", name);
    return px_fix(e, "Install px as a whole (make install), or run it from its build directory.");
}

/* ---- starting ---- */

struct launch {
    const char *path;
    const char *const *argv;
    int socket;
    const int *fds;
    size_t fd_count;
    long parent;
    int failed;                 /* written by the child, which shares our memory */
};

/* Moves the descriptors to their numbers and closes all others. They are first moved above all of these numbers. */
static long arrange_fds(const struct launch *l)
{
    long r = px_sys(SYS_fcntl, l->socket, F_DUPFD, HIGH), null = px_sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    long socket = r, high[PX_HELPER_FDS];
    for (size_t i = 0; i < l->fd_count && r >= 0; i++)
        r = high[i] = px_sys(SYS_fcntl, l->fds[i], F_DUPFD, HIGH);
    if (r < 0 || null < 0)
        return r < 0 ? r : null;
    r = null = px_sys(SYS_fcntl, null, F_DUPFD, HIGH);
    for (int i = 0; i < SOCKET_IN_HELPER && r >= 0; i++)
        r = px_sys(SYS_dup3, null, i, 0);
    if (r >= 0)
        r = px_sys(SYS_dup3, socket, SOCKET_IN_HELPER, 0);
    for (size_t i = 0; i < l->fd_count && r >= 0; i++)
        r = px_sys(SYS_dup3, high[i], FIRST_IN_HELPER + i, 0);
    if (r >= 0)
        r = px_sys(436 /* close_range */, FIRST_IN_HELPER + l->fd_count, ~0u, 0);
    return r;
}

static void run_child(void *user)
{
    static const char *const no_environment[] = {NULL};
    struct launch *l = user;
    const uint64_t no_signals = 0;
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof no_signals);
    (void)px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);        /* it ends with its parent */
    if (px_sys(SYS_getppid) != l->parent)
        (void)px_sys(SYS_exit, 127);
    (void)px_sys(SYS_setsid);   /* the terminal's signals go to the caller, which then ends the helper */
    long r = arrange_fds(l);
    if (r >= 0)
        r = px_sys(SYS_execve, l->path, l->argv, no_environment);
    l->failed = (int)r;
    for (;;)
        (void)px_sys(SYS_exit, 127);
}

/* Returns its process id. */
static int clone_child(struct launch *l, int *ret_pidfd)
{
    int pidfd = -EBADF;
    struct px_clone_args args = {
        .flags = PX_CLONE_VM | PX_CLONE_VFORK | PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND,
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    px_auto_free void *stack = malloc(STACK);
    sigset_t all, before;
    if (!stack)
        return -ENOMEM;
    /* A signal handler of ours must not run in the child, which shares our memory. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    long r = px_clone_run(&args, (void *)(((uintptr_t)stack + 15) & ~(uintptr_t)15), STACK - 16, run_child, l);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0)
        return (int)r;
    if (l->failed < 0) {
        int status;
        (void)px_pidfd_wait(pidfd, false, &status, NULL);
        (void)px_fd_close(pidfd);
        return l->failed;
    }
    *ret_pidfd = pidfd;
    return (int)r;
}

int px_helper_start(const char *name, const char *const *args, const int *fds, size_t fd_count,
                    struct px_helper *ret_helper, struct px_err *e)
{
    char path[4400];
    int ends[2];
    size_t n = 0;

    while (args[n])
        n++;
    if (n >= ARGS_MAX || fd_count > PX_HELPER_FDS)
        return px_fail(e, PX_E_LIMIT, 0, "%s is given too much at once", name);
    if (find_helper(name, path, sizeof path, e) < 0)
        return -1;
    px_auto_free const char **argv = calloc(n + 2, sizeof *argv);
    if (!argv)
        return px_no_memory(e);
    argv[0] = name;
    memcpy(argv + 1, args, n * sizeof *argv);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return px_fail(e, PX_E_IO, errno, "cannot make the socket of %s", name);
    px_auto_fd int ours = ends[0], theirs = ends[1];
    struct launch l = {.path = path, .argv = argv, .socket = theirs, .fds = fds, .fd_count = fd_count,
                       .parent = px_sys(SYS_getpid)};
    struct px_helper h = {.pidfd = -EBADF};
    int r = clone_child(&l, &h.pidfd);
    if (r < 0)
        return px_fail(e, PX_E_CLONE, r, "cannot start %s", path);
    h.socket = px_fd_take(&ours);
    h.pid = r;
    *ret_helper = h;
    return 0;
}

/* ---- messages ---- */

long px_helper_receive(struct px_helper *h, void *out, size_t size, int *ret_fd, uint64_t timeout_msec)
{
    struct pollfd ready = {.fd = h->socket, .events = POLLIN};
    struct px_passed passed;
    int wait = timeout_msec == 0 ? -1 : timeout_msec > 1 << 30 ? 1 << 30 : (int)timeout_msec;
    if (ret_fd)
        *ret_fd = -EBADF;
    int r = poll(&ready, 1, wait);
    if (r <= 0)
        return r == 0 ? -ETIMEDOUT : -errno;
    long n = px_pass_receive(h->socket, out, size, MSG_DONTWAIT, ret_fd, ret_fd ? 1 : 0, &passed);
    if (n < 0)
        return n == -ECONNRESET ? 0 : n;
    return passed.flags & MSG_TRUNC ? -EMSGSIZE : n;
}

int px_helper_send(struct px_helper *h, const void *data, size_t size, int fd)
{
    return px_pass_send(h->socket, data, size, &fd, fd >= 0, 0);
}

int px_helper_done(struct px_helper *h)
{
    int status = 0;
    if (h->pidfd < 0)
        return 0;
    h->socket = px_fd_close(h->socket);
    if (px_pidfd_wait(h->pidfd, true, &status, NULL) == 0) {
        (void)px_pidfd_signal(h->pidfd, SIGKILL);
        (void)px_pidfd_wait(h->pidfd, false, &status, NULL);
    }
    h->pidfd = px_fd_close(h->pidfd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
