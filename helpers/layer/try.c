/* For a test: one act from inside the confinement. Forbidden ones have to fail, each with a twin that works. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "helpers/layer/layer.h"

static int gave(long r)
{
    if (r > 0)
        (void)px_fd_close((int)r);
    return r < 0 ? (int)-r : 0;
}

static int read_outside(int dir)
{
    (void)dir;
    return gave(px_sys(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY));
}

static int write_outside(int dir)
{
    return gave(px_sys(SYS_openat, dir, "../made-outside", O_WRONLY | O_CREAT, 0600));
}

static int write_inside(int dir)
{
    return gave(px_sys(SYS_openat, dir, "made-inside", O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static int make_link(int dir)
{
    return gave(px_sys(SYS_symlinkat, "/", dir, "made-link"));
}

static int make_device(int dir)
{
    return gave(px_sys(SYS_mknodat, dir, "made-device", 0020600, 0x103));
}

static int make_directory(int dir)
{
    return gave(px_sys(SYS_mkdirat, dir, "made-directory", 0700));
}

static int run_program(int dir)
{
    static const char *const argv[] = {"true", NULL};
    (void)dir;
    return gave(px_sys(SYS_execve, "/bin/true", argv, argv + 1));
}

static int new_process(int dir)
{
    (void)dir;
    long r = px_sys(SYS_fork);
    if (r == 0)
        _exit(0);
    return r < 0 ? (int)-r : 0;
}

static void *nothing(void *user)
{
    return user;
}

static int new_thread(int dir)
{
    pthread_t thread;
    (void)dir;
    int r = pthread_create(&thread, NULL, nothing, NULL);  /* banned: to see whether it is possible */
    return r ? r : pthread_join(thread, NULL);
}

static int new_socket(int dir)
{
    (void)dir;
    return gave(px_sys(SYS_socket, AF_INET, SOCK_STREAM, 0));
}

static int map(int protection)
{
    void *at = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return errno;
    (void)munmap(at, 4096);
    return 0;
}

static int code_memory(int dir)
{
    (void)dir;
    return map(PROT_READ | PROT_EXEC);
}

static int data_memory(int dir)
{
    (void)dir;
    return map(PROT_READ | PROT_WRITE);
}

static int change_owner(int dir)
{
    return gave(px_sys(SYS_fchownat, dir, ".", 12345, 12345, 0));  /* banned: to see that it is refused */
}

static int trace(int dir)
{
    (void)dir;
    return gave(px_sys(SYS_ptrace, 0, 0, 0, 0));
}

static int kill_parent(int dir)
{
    (void)dir;
    return gave(px_sys(SYS_kill, 1, 0));
}

static const struct {
    const char *name;
    int (*act)(int dir);
} acts[] = {
    {"read-outside", read_outside}, {"write-outside", write_outside}, {"write-inside", write_inside},
    {"make-device", make_device}, {"make-link", make_link},
    {"make-directory", make_directory}, {"run-program", run_program}, {"new-process", new_process},
    {"new-thread", new_thread},
    {"new-socket", new_socket}, {"code-memory", code_memory}, {"data-memory", data_memory},
    {"change-owner", change_owner},
    {"trace", trace}, {"signal", kill_parent},
};

int try_act(const char *act, int dir)
{
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        if (strcmp(acts[i].name, act) == 0)
            return acts[i].act(dir);
    return ENOENT;
}
