/* attacks/fd.c - A4 to A6: descriptors, the standard streams, the working directory. */
#include "attack.h"

#include <sys/sysmacros.h>

/* ---- A4 to A6: descriptors (the runner starts px with extra ones) ---- */

int a4_descriptors(void)
{
    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        char link[64], to[256] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        (void)!readlink(link, to, sizeof to - 1);
        return failed("descriptor %d is open: %s", fd, to);
    }
    return DONE;
}

int a5_kinds(void)
{
    for (int fd = 0; fd < 3; fd++) {
        struct stat st;
        if (fstat(fd, &st) < 0)
            return failed("descriptor %d is closed", fd);
        bool null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
        if (!S_ISFIFO(st.st_mode) && !null)
            return failed("descriptor %d is the caller's (mode %o)", fd, st.st_mode);
    }
    return DONE;
}

/* stdout is a file of the host that already holds a secret. */
int a5_stdout(void)
{
    char text[256] = "";
    int fd = open("/proc/self/fd/1", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (n > 0)
        return failed("read back %zd bytes", n);
    if (lseek(1, 0, SEEK_SET) >= 0 || ftruncate(1, 0) == 0)
        return failed("the caller's file can be moved in or truncated");
    if (open("/proc/self/fd/1", O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC) >= 0 && a5_kinds() != DONE)
        return FAILED;
    return a5_kinds();
}

int a5_stdin(void)
{
    const char *const paths[] = {"/proc/self/fd/0", "/dev/stdin", "/dev/fd/0"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        int fd = open(paths[i], O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
            (void)!write(fd, "forged", 6); /* into our own pipe at most; the runner compares the file */
    }
    if (lseek(0, 0, SEEK_SET) >= 0)
        return failed("the caller's file can be moved in");
    return a5_kinds();
}

int a5_twin(void)
{
    char text[64] = "";
    ssize_t n = read(0, text, sizeof text - 1);
    return n > 0 && strncmp(text, "content", 7) == 0 ? DONE : failed("stdin gave %zd bytes '%s'", n, text);
}

int a6_cwd(void)
{
    char where[4096];
    if (!getcwd(where, sizeof where))
        return failed("getcwd: %s", strerror(errno));
    if (where[0] != '/')
        return failed("the working directory is %s", where);
    struct stat here, there;
    return stat(".", &here) == 0 && stat(where, &there) == 0 && here.st_ino == there.st_ino &&
                   here.st_dev == there.st_dev
               ? DONE
               : failed("the working directory is not what its name says");
}
