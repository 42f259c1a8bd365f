/* base/fd.c - owned descriptors, whole reads and writes; raw system calls, so errno is not changed. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

void px_fd_done(int *fd)
{
    *fd = px_fd_close(*fd);
}

int px_fd_close(int fd)
{
    if (fd >= 0)
        (void)px_sys(SYS_close, fd);            /* Linux has closed it even after EINTR */
    return -EBADF;
}

int px_fd_take(int *fd)
{
    int taken = *fd;

    *fd = -EBADF;
    return taken;
}

ssize_t px_read_some(int fd, void *out, size_t size)
{
    long r;

    do
        r = px_sys(SYS_read, fd, out, size);
    while (r == -EINTR);
    return r;
}

ssize_t px_read_full(int fd, void *out, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t r = px_read_some(fd, (char *)out + have, size - have);
        if (r < 0)
            return r;
        if (r == 0)
            break;
        have += (size_t)r;
    }
    return (ssize_t)have;
}

static ssize_t write_some(int fd, const void *data, size_t size)
{
    long r;

    do
        r = px_sys(SYS_write, fd, data, size);
    while (r == -EINTR);
    return r;
}

int px_write_full(int fd, const void *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t r = write_some(fd, (const char *)data + done, size - done);
        if (r < 0)
            return (int)r;
        if (r == 0)
            return -EIO;        /* a file that takes no bytes would loop for ever */
        done += (size_t)r;
    }
    return 0;
}

/* In a directory another user may have put a link or a pipe under the file's name. A path alone is the caller's own
 * choice. */
static int open_flags(int dirfd)
{
    return O_CLOEXEC | O_NOCTTY | (dirfd == AT_FDCWD ? 0 : O_NOFOLLOW | O_NONBLOCK);
}

ssize_t px_read_file(int dirfd, const char *path, char *out, size_t size)
{
    if (size == 0)
        return -EINVAL;
    out[0] = 0;

    px_auto_fd int fd = (int)px_sys(SYS_openat, dirfd, path, O_RDONLY | open_flags(dirfd));
    if (fd < 0)
        return fd;
    /* The byte for the NUL is read as well: if it is filled, the file is too long. */
    ssize_t n = px_read_full(fd, out, size);
    if (n >= 0 && (size_t)n == size)
        n = -EFBIG;
    out[n < 0 ? 0 : n] = 0;
    return n;
}

int px_write_file(int dirfd, const char *path, const char *text)
{
    size_t len = strlen(text);
    px_auto_fd int fd = (int)px_sys(SYS_openat, dirfd, path, O_WRONLY | open_flags(dirfd));

    if (fd < 0)
        return fd;
    ssize_t r = write_some(fd, text, len);
    if (r < 0)
        return (int)r;
    return (size_t)r == len ? 0 : -EIO;         /* the kernel takes the text of such a file as a whole */
}

int px_pipe(int ret_ends[2])
{
    int ends[2] = {-EBADF, -EBADF};
    long r = px_sys(SYS_pipe2, ends, O_CLOEXEC);

    if (r < 0)
        return (int)r;
    ret_ends[0] = ends[0];
    ret_ends[1] = ends[1];
    return 0;
}

int px_fd_above_stdio(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int higher = (int)px_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
    (void)px_fd_close(fd);
    return higher;
}

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#define F_SEAL_WRITE 8
#endif
enum { MEMORY_CLOEXEC = 1, MEMORY_SEALABLE = 2, MEMORY_EXEC = 0x10 };

int px_fd_memory(const char *name, const void *data, size_t size, unsigned flags)
{
    const unsigned kind = MEMORY_CLOEXEC | (flags & PX_MEMORY_SEALED ? MEMORY_SEALABLE : 0u);
    const unsigned exec = flags & PX_MEMORY_PROGRAM ? MEMORY_EXEC : 0u;
    px_auto_fd int fd = (int)px_sys(SYS_memfd_create, name, kind | exec);
    if (fd == -EINVAL && exec)  /* before Linux 6.3 every memfd can be executed */
        fd = (int)px_sys(SYS_memfd_create, name, kind);
    int r = fd < 0 ? fd : px_write_full(fd, data, size);
    if (r >= 0)
        r = (int)px_sys(SYS_lseek, fd, 0, SEEK_SET);
    if (r >= 0 && flags & PX_MEMORY_SEALED)
        r = (int)px_sys(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return r < 0 ? r : px_fd_take(&fd);
}
