/* probe/calls.c - the kernel's age, and the calls that every start of a box makes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/abi.h"
#include "kernel/pidfd.h"
#include "probe/probe_internal.h"

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { OLDEST_MAJOR = 5, OLDEST_MINOR = 12 };   /* mount_setattr */

/* Parses the number at *text and moves past it; -1 if there is none. */
static int take_number(const char **text)
{
    char digits[8];
    uint64_t value;
    size_t n = strspn(*text, "0123456789");
    if (px_fmt(digits, sizeof digits, "%.*s", (int)n, *text) < 0 || px_parse_u64(digits, 1000000, &value) < 0)
        return -1;
    *text += n;
    return (int)value;
}

void px_probe_version(struct px_probe_ctx *c)
{
    struct utsname host;
    if (uname(&host) < 0) {
        px_probe_unknown(c, -errno, "uname does not answer");
        return;
    }
    const char *text = host.release;
    int major = take_number(&text), minor = *text == '.' ? (text++, take_number(&text)) : -1;
    px_probe_say(c->row->found, "%s", host.release);
    px_probe_say(c->row->permitted, "uname says Linux %s on %s", host.release, host.machine);
    c->row->raise = PX_RAISE_KERNEL;
    if (major < 0 || minor < 0)
        px_probe_say(c->row->why, "unknown: '%s' is not a version", host.release);
    else if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR))
        px_probe_say(c->row->why, "Linux %d.%d or newer is needed", OLDEST_MAJOR, OLDEST_MINOR);
    else
        c->row->state = PX_PROBE_ENFORCED;
}

/* Does not use px_fork, which falls back to the older call. */
void px_probe_clone3(struct px_probe_ctx *c)
{
    px_auto_fd int pidfd = -EBADF;
    int status, held = -EBADF;
    struct px_clone_args args = {.flags = PX_CLONE_PIDFD | PX_CLONE_CLEAR_SIGHAND, .pidfd = (uintptr_t)&held};
    long pid = px_sys(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        (void)px_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        px_probe_linger();
        px_fork_exit(0);
    }
    if (pid == -EAGAIN || pid == -ENOMEM)
        c->row->raise = PX_RAISE_PROCESSES;
    else
        c->row->raise = c->host->filtered ? PX_RAISE_OUTER_FILTER : PX_RAISE_KERNEL;
    if (!px_probe_works(c, pid, "starting a process"))
        return;
    pidfd = held;
    bool works = px_probe_works(c, px_pidfd_signal(pidfd, SIGKILL), "ending a process by its descriptor");
    if (!works)
        (void)px_sys(SYS_kill, pid, SIGKILL);   /* ours, and not reaped yet */
    (void)px_fork_reap(pidfd, &status);
    if (works && px_probe_refused(c, px_pidfd_signal(pidfd, 0), ESRCH, 0, "a signal to the process that is gone"))
        c->row->state = PX_PROBE_ENFORCED;
}

static void inside_close_range(struct px_probe_ctx *c)
{
    int ends[2];
    if (px_pipe(ends) < 0)
        return;
    long r = px_sys(SYS_close_range, ends[1], ends[1], 0);
    if (!px_probe_works(c, r, "close_range"))
        return;
    if (px_probe_works(c, px_sys(SYS_fcntl, ends[0], F_GETFD, 0), "using a descriptor outside of the range") &&
        px_probe_refused(c, px_sys(SYS_fcntl, ends[1], F_GETFD, 0), EBADF, 0, "using a descriptor of the range"))
        c->row->state = PX_PROBE_ENFORCED;
}

void px_probe_close_range(struct px_probe_ctx *c)
{
    (void)px_probe_child(c, &(struct px_probe_job){.inside = inside_close_range});
}

void px_probe_openat2(struct px_probe_ctx *c)
{
    px_auto_fd int root = (int)px_sys(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    px_auto_fd int here = px_open_beneath(root, ".", O_PATH | O_DIRECTORY, 0);
    px_auto_fd int above = px_open_beneath(root, "..", O_PATH | O_DIRECTORY, 0);
    if (px_probe_works(c, here, "opening a directory below another") &&
        px_probe_refused(c, above, EXDEV, 0, "leaving that directory by .."))
        c->row->state = PX_PROBE_ENFORCED;
}
