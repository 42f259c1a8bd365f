#include "base/node.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

/* fchmod does not take O_PATH, and fchmodat2 needs Linux 6.6. The link in /proc leads to the object itself. */
int px_node_chmod(int fd, mode_t mode)
{
    char link[32];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    if (px_fmt(link, sizeof link, "/proc/self/fd/%d", fd) < 0)
        return -ENAMETOOLONG;
    return (int)px_sys(SYS_fchmodat, AT_FDCWD, link, mode); /* banned: a link of /proc, to what we hold */
}

int px_node_chmod_at(int dirfd, const char *path, mode_t type, mode_t mode)
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(dirfd, path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    return (st.st_mode & S_IFMT) == type ? px_node_chmod(fd, mode) : -ESTALE;
}

int px_node_open_dir(int dirfd, const char *name, mode_t *ret_was)
{
    struct stat st;
    px_auto_fd int held = (int)px_sys(SYS_openat, dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (held < 0)
        return held;
    if (fstat(held, &st) < 0)
        return -errno;
    *ret_was = st.st_mode & 07777;
    if ((st.st_mode & 0700) != 0700)
        (void)px_node_chmod(held, *ret_was | 0700);     /* the next call shows whether it was enough */
    return (int)px_sys(SYS_openat, held, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
