/* attacks/modes.c - A19: set-id bits and privileged attributes on files that the host will see. */
#include "attack.h"

#include <sys/mman.h>
#include <sys/xattr.h>

/* ---- A19: set-id bits in a writable bind; the runner also looks at the host's side ---- */

enum { MODE_SET_ID = S_ISUID | S_ISGID };

static int bits_of(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 ? 0 : (int)(st.st_mode & MODE_SET_ID);
}

int a19_chmod(void)
{
    static const mode_t modes[] = {04755, 02755, 06755, 04000, 02010, 06777, 07777};
    const char *const places[] = {workspace(), argument("HOME")};
    for (size_t p = 0; p < COUNT(places); p++)
        for (size_t i = 0; i < COUNT(modes); i++) {
            char path[128];
            snprintf(path, sizeof path, "%s/chmod%zu", places[p], i);
            int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
            if (fd < 0)
                return failed("cannot make %s", path);
            unsigned long high = 0xffffffff00000000ul;
            if (chmod(path, modes[i]) == 0 || fchmod(fd, modes[i]) == 0 ||
                fchmodat(AT_FDCWD, path, modes[i], 0) == 0 || syscall(SYS_fchmodat, AT_FDCWD, path, modes[i]) == 0 ||
                syscall(452, AT_FDCWD, path, modes[i], 0) == 0 ||
                syscall(452, fd, "", modes[i], AT_EMPTY_PATH) == 0 ||
                syscall(SYS_chmod, path, high | modes[i]) == 0 || syscall(SYS_fchmod, fd, high | modes[i]) == 0 ||
                bits_of(path))
                return failed("mode %o on %s", modes[i], path);
        }
    return DONE;
}

int a19_create(void)
{
    static const mode_t modes[] = {04755, 02755, 06755};
    const char *const places[] = {workspace(), argument("HOME")};
    umask(0);
    for (size_t p = 0; p < COUNT(places); p++)
        for (size_t i = 0; i < COUNT(modes); i++) {
            char path[6][128];
            for (int k = 0; k < 6; k++)
                snprintf(path[k], sizeof path[k], "%s/new%zu.%d", places[p], i, k);
            struct {
                uint64_t flags, mode, resolve;
            } how = {O_RDWR | O_CREAT, modes[i], 0};
            (void)open(path[0], O_RDWR | O_CREAT | O_CLOEXEC, modes[i]);
            (void)syscall(SYS_open, path[1], O_RDWR | O_CREAT, modes[i]);
            (void)creat(path[2], modes[i]);
            (void)syscall(SYS_openat, AT_FDCWD, path[3], O_RDWR | O_CREAT, 0xdead00000000ul | modes[i]);
            (void)mknod(path[4], S_IFREG | modes[i], 0);
            if (p ==
                0) /* behind a pointer: off where files of the host can be written; a box's own tmpfs is nosuid */
                (void)syscall(437 /* openat2 */, AT_FDCWD, path[5], &how, sizeof how);
            int fd = open(places[p], O_TMPFILE | O_RDWR | O_CLOEXEC, modes[i]);
            struct stat st = {0};
            if (fd >= 0 && fstat(fd, &st) == 0 && st.st_mode & MODE_SET_ID)
                return failed("O_TMPFILE took mode %o", modes[i]);
            for (int k = 0; k < 6; k++)
                if (bits_of(path[k]))
                    return failed("%s was made with mode %o", path[k], modes[i]);
        }
    return DONE;
}

static int no_privileged_attributes(const char *path)
{
    static const uint32_t caps[] = {0x02000001, 0xffffffff, 0, 0x1ff, 0};
    static const uint32_t rooted[] = {0x03000001, 0xffffffff, 0, 0x1ff, 0, 0};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    if (fsetxattr(fd, "security.capability", caps, sizeof caps, 0) == 0 ||
        fsetxattr(fd, "security.capability", rooted, sizeof rooted, 0) == 0 ||
        fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0) == 0)
        return failed("privileged attributes can be set on %s", path);
    close(fd);
    return DONE;
}

/* A set-id file of the box's own file system, if one could be made, carried over; and attributes that do the same. */
int a19_carry(void)
{
    const char *own = in("/tmp", "own"), *to = in(workspace(), "own");
    int fd = open(own, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    (void)fchmod(fd, 04755);
    if (fd >= 0 && (rename(own, to) == 0 || link(own, to) == 0))
        return failed("a file moved between file systems");
    return no_privileged_attributes(in(workspace(), "caps")) || no_privileged_attributes(in(argument("HOME"), "caps"));
}

/* The bind's own name on the host becomes a link to somewhere else before the run ends. */
int a19_source_swap(void)
{
    if (rename("/o/inner", "/o/moved") < 0 || symlink(argument("A_VICTIM"), "/o/inner") < 0)
        return failed("cannot rename in the outer bind: %s", strerror(errno));
    return DONE;
}

/* A file with privileges in a root whose changes go to a directory: copied up with them, then changed through a
 * mapping, which takes nothing away. The kernel lets that happen, so the runner looks at who could reach the file, now
 * and after px was killed. */
static int change_through_mapping(const char *path)
{
    static const char text[] = "#!/bin/sh\necho of the box\n";
    if (utimensat(AT_FDCWD, path, NULL, 0) < 0)
        return failed("%s cannot be copied up: %s", path, strerror(errno));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof text, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return failed("%s cannot be mapped: %s", path, strerror(errno));
    memcpy(at, text, sizeof text - 1);
    return msync(at, sizeof text, MS_SYNC) < 0 ? failed("%s: %s", path, strerror(errno)) : DONE;
}

int a19_copy_up(void)
{
    const char *more = argument("A_MORE");
    if (change_through_mapping(argument("A_TARGET")) || (*more && change_through_mapping(more)))
        return FAILED;
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < 60; i++) /* until px ends */
        sleep(1);
    return DONE;
}

int a19_twin(void)
{
    const char *plain = in(workspace(), "plain"), *dir = in(workspace(), "d");
    int fd = open(plain, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || chmod(plain, 0755) < 0 || fchmod(fd, 01644) < 0 || mkdir(dir, 0700) < 0 || chmod(dir, 01777) < 0)
        return failed("ordinary modes: %s", strerror(errno));
    return syscall(SYS_open, plain, O_RDONLY, 04755) >= 0 ? DONE : failed("a mode without O_CREAT is refused");
}
