#include "state/key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "state/home.h"
#include "state/state.h"

static const struct px_home_use use = {PX_E_STATE, "the key of px's state"};
static const char key_name[] = "key";

/* The file must be the caller's own, and readable by nobody else: otherwise -EPERM. */
static int read_key(int home, uint8_t ret[PX_MAC_SIZE])
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(home, key_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0 || st.st_size != PX_MAC_SIZE)
        return -EPERM;
    ssize_t n = px_read_full(fd, ret, PX_MAC_SIZE);
    return n < 0 ? (int)n : n == PX_MAC_SIZE ? 0 : -EIO;
}

/* Syncs the key to disk: if a power cut lost it, all directories with a mark would be refused. */
static int sync_key(int home)
{
    px_auto_fd int fd = px_open_in_root(home, key_name, O_RDONLY | O_NOFOLLOW, 0);
    return fd < 0 ? fd : fsync(fd) < 0 || fsync(home) < 0 ? -errno : 0;
}

/* Of two processes that begin at the same time, the second one finds the key of the first. */
static int make_key(int home, uint8_t ret[PX_MAC_SIZE])
{
    long r;
    while ((r = px_sys(SYS_flock, home, LOCK_EX)) == -EINTR)
        ;
    if (r >= 0)
        r = read_key(home, ret);
    if (r == -ENOENT) {
        r = px_sys(SYS_getrandom, ret, PX_MAC_SIZE, 0) == PX_MAC_SIZE ? 0 : -EIO;
        if (r >= 0)
            r = px_state_write(home, key_name, ret, PX_MAC_SIZE);
        if (r >= 0)
            r = sync_key(home);
    }
    (void)px_sys(SYS_flock, home, LOCK_UN);
    return (int)r;
}

int px_state_key(const char *home, uint8_t ret[PX_MAC_SIZE], struct px_err *e)
{
    char path[PATH_MAX];
    px_auto_fd int fd = -EBADF;
    if (px_home_find(home, &use, path, sizeof path, e) < 0)
        return -1;
    if (px_home_enter(AT_FDCWD, path, path, true, 022, &use, &fd, e) < 0)
        return e->sys ? px_fix(e, "Set PX_HOME to the absolute path of a directory that you can write to.") : -1;
    int r = read_key(fd, ret);
    if (r == -ENOENT)
        r = make_key(fd, ret);
    if (r >= 0)
        return 0;
    (void)px_fail(e, PX_E_STATE, r == -EPERM ? 0 : r, "'%.200s/key' cannot be used", path);
    if (r == -EPERM) {
        (void)px_why(e, "It is not a file of 32 bytes that you alone can read.");
        (void)px_fix(e, "Move it away: px makes another one, and refuses directories with marks by this one then.");
    }
    return -1;
}
