/* attacks/tmp.c - A20: directories that a box can write are its own, and bounded. */
#include "attack.h"

#include <sys/mman.h>

/* ---- A20: private and bounded ---- */

int a20_private(void)
{
    static const char *const dirs[] = {"/tmp", "/var/tmp", "/dev/shm", "/home/sandbox"};
    for (size_t i = 0; i < COUNT(dirs); i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", dirs[i], argument("A_MARK"));
        if (access(path, F_OK) == 0)
            return failed("%s of the host is visible", dirs[i]);
        snprintf(path, sizeof path, "%s/inside-%s", dirs[i], argument("A_MARK"));
        (void)!close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); /* the runner looks for it outside */
    }
    return DONE;
}

/* A tmpfs without a limit shows "size=0k". */
static bool bounded(const char *super)
{
    return strstr(super, "size=") && !strstr(super, "size=0k") && strstr(super, "nr_inodes=") && !strstr(super, "nr_inodes=0");
}

static int check_bound(const struct seen_mount *m)
{
    if (strncmp(m->options, "ro", 2) == 0 || !strcmp(m->type, "proc") || !strcmp(m->type, "devpts") || is_device_mount(m))
        return DONE;
    if (!granted(m->target) && strcmp(m->target, workspace()))
        return failed("%s is writable", m->target);
    return strcmp(m->type, "tmpfs") || bounded(m->super) ? DONE : failed("%s is not bounded: %s", m->target, m->super);
}
int a20_bounded(void)
{
    return each_mount(check_bound);
}

static long fill(const char *path, long megabytes)
{
    static char block[1 << 20];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    long done = 0;
    memset(block, 'x', sizeof block);
    for (; fd >= 0 && done < megabytes; done++)
        if (write(fd, block, sizeof block) != sizeof block)
            break;
    close(fd);
    return done;
}

int a20_fill(void)
{
    long tmp = fill("/tmp/f", 20), shm = fill("/dev/shm/f", 20);
    return tmp <= 8 && shm <= 8 ? DONE : failed("%ld MiB in /tmp, %ld MiB in /dev/shm", tmp, shm);
}

int a20_inodes(void)
{
    int n = 0;
    for (char path[64]; n < 5000; n++) {
        snprintf(path, sizeof path, "/small/%d", n);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
            break;
        close(fd);
    }
    return n < 5000 ? DONE : failed("%d files in a tmpfs of 1 MiB", n);
}

int a20_twin(void)
{
    static const char *const dirs[] = {"/tmp", "/var/tmp", "/dev/shm", "/home/sandbox"};
    for (size_t i = 0; i < COUNT(dirs); i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/f", dirs[i]);
        if (!host_base() && access(dirs[i], F_OK) < 0)
            continue;
        if (fill(path, 1) != 1 || unlink(path) < 0)
            return failed("%s: %s", dirs[i], strerror(errno));
    }
    return DONE;
}

static int copy_self(int to)
{
    char block[65536];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; (n = read(from, block, sizeof block)) > 0;)
        if (write(to, block, (size_t)n) != n)
            return failed("cannot copy: %s", strerror(errno));
    return DONE;
}

/* Not even this program, which does run from elsewhere. */
int a20_noexec(void)
{
    static const char copy[] = "/dev/shm/copy";
    int to = open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    if (copy_self(to))
        return FAILED;
    close(to);
    execl(copy, copy, "H3_twin_timeout", NULL);
    return errno == EACCES ? DONE : failed("a program in /dev/shm: %s", strerror(errno));
}

/* Where no directory that can be written holds programs, memory without a name does not, either. */
int a20_memfd(void)
{
    enum { EXEC = 16 /* MFD_EXEC */ };
    char *const argv[] = {"copy", "H3_twin_timeout", NULL}, *const none[] = {NULL};
    static const unsigned flags[] = {0, EXEC};
    if (access("/proc/sys/vm/memfd_noexec", F_OK) < 0)
        return skipped("this kernel cannot refuse it");
    for (size_t i = 0; i < COUNT(flags); i++) {
        int fd = memfd_create("copy", flags[i]);
        if (fd < 0)
            continue;
        if (copy_self(fd))
            return FAILED;
        (void)fchmod(fd, 0755);
        (void)syscall(SYS_execveat, fd, "", argv, none, AT_EMPTY_PATH);
        if (errno != EACCES)
            return failed("a program in memory without a name: %s", strerror(errno));
    }
    return DONE;
}

int a20_twin_memfd(void)
{
    int fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    char *memory = ftruncate(fd, 4096) < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return failed("memory without a name: %s", strerror(errno));
    *memory = 'x';
    return DONE;
}
