#include "named/join.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/pidfd.h"
#include "named/client_internal.h"

static const char image[] = "/memfd:px-init (deleted)";

/* ---- by the name of a box ---- */

static int find_named(const char *name, struct px_err *e)
{
    struct px_living *living = NULL;
    if (px_living_open(NULL, name, &living, e) < 0)
        return -1;
    int pidfd = px_named_client_init(living, e);
    if (pidfd >= 0)
        pidfd = (int)px_sys(SYS_fcntl, pidfd, F_DUPFD_CLOEXEC, 3);
    px_living_close(living);
    return pidfd < -1 ? px_fail(e, PX_E_IO, pidfd, "box '%s' cannot be held", name) : pidfd;
}

/* ---- by the number of a process ---- */

/* Whether it runs px-init, which only its owner can see, and is pid 1 of its own pid namespace. */
static bool is_init(int pid)
{
    char path[64], text[4096];
    if (px_fmt(path, sizeof path, "/proc/%d/exe", pid) < 0)
        return false;
    long n = px_sys(SYS_readlinkat, AT_FDCWD, path, text, sizeof text);
    if (n != sizeof image - 1 || memcmp(text, image, sizeof image - 1) != 0)
        return false;
    if (px_fmt(path, sizeof path, "/proc/%d/status", pid) < 0 || px_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return false;
    char *line = strstr(text, "\nNSpid:");
    if (!line)
        return false;
    line++;
    line[strcspn(line, "\n")] = '\0';
    const char *last = strrchr(line, '\t');
    return last && px_equal(last, "\t1");
}

/* Even root joins only its own boxes. */
static bool is_ours(int pid)
{
    char path[64];
    uid_t owner = 0;
    if (px_fmt(path, sizeof path, "/proc/%d/ns/user", pid) < 0)
        return false;
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && ioctl(fd, NS_GET_OWNER_UID, &owner) == 0 && owner == geteuid();
}

static int find_numbered(const char *number, struct px_err *e)
{
    uint64_t pid = 0;
    (void)px_parse_u64(number, INT32_MAX, &pid);
    px_auto_fd int pidfd = px_pidfd_open((int)pid);
    if (pidfd >= 0 && is_init((int)pid) && is_ours((int)pid) && px_pidfd_number(pidfd) == (int)pid)
        return px_fd_take(&pidfd);
    px_fail(e, PX_E_NAME, 0, "process %s is no box of yours", number);
    px_why(e, "It is not pid 1 of a box, has ended, or belongs to another user.");
    return px_fix(e, "Python: the number is sandbox.network.namespace_pid().\nA box with a name: --net box:NAME.");
}

/* ---- either ---- */

static int shares_ours(int pid)
{
    char path[64];
    struct stat ours, theirs;
    if (px_fmt(path, sizeof path, "/proc/%d/ns/net", pid) < 0 || stat("/proc/self/ns/net", &ours) < 0 || stat(path, &theirs) < 0)
        return -errno;
    return ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

int px_named_join_find(const char *whose, struct px_err *e)
{
    const char *name = whose + strlen("box:");
    px_auto_fd int pidfd = px_starts_with(whose, "pid:") ? find_numbered(name, e) : find_named(name, e);
    if (pidfd < 0)
        return -1;
    int shared = shares_ours(px_pidfd_number(pidfd));
    if (shared < 0)
        return px_fail(e, PX_E_GONE, shared, "--net %s: the network of that box cannot be seen", whose);
    if (shared == 0)
        return px_fd_take(&pidfd);
    px_fail(e, PX_E_USAGE, 0, "--net %s: that box has the host's network, not one of its own", whose);
    return px_fix(e, "Use --net host, if the whole network of the host may be reached.");
}
