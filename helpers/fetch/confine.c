/* What px-fetch keeps: certificates, the resolver's files, and sockets. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/text.h"
#include "helpers/confine.h"
#include "helpers/fetch/fetch.h"
#include "kernel/abi.h"

/* Threads of the resolver have stacks of eight megabytes each. */
enum { MEMORY_BYTES = 1 << 30, FILES = 64 };

/* Local sockets stay closed: behind them are other programs of this machine. */
#define ALLOW_SOCKET(family) {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (family)}, CONFINE_RETURN(SECCOMP_RET_ALLOW)
#define ALLOW_SOCKETS                                                                                   \
    {BPF_JMP | BPF_JEQ | BPF_K, 0, 8, SYS_socket}, CONFINE_LOAD(CONFINE_ARGUMENT(0))                    \
    ALLOW_SOCKET(AF_INET) ALLOW_SOCKET(AF_INET6) ALLOW_SOCKET(AF_NETLINK)                               \
    CONFINE_RETURN(SECCOMP_RET_ERRNO | EACCES)

// clang-format off
static const struct sock_filter filter[] = {
    CONFINE_HEAD CONFINE_COMMON ALLOW_SOCKETS
    CONFINE_ALLOW(SYS_socketpair) CONFINE_ALLOW(SYS_pipe2) CONFINE_ALLOW(SYS_eventfd2)
    CONFINE_ALLOW(SYS_connect) CONFINE_ALLOW(SYS_bind) CONFINE_ALLOW(SYS_shutdown)
    CONFINE_ALLOW(SYS_recvmsg) CONFINE_ALLOW(SYS_recvfrom) CONFINE_ALLOW(SYS_sendmmsg)
    CONFINE_ALLOW(SYS_getsockname) CONFINE_ALLOW(SYS_getpeername) CONFINE_ALLOW(SYS_getsockopt)
    CONFINE_ALLOW(SYS_setsockopt)
    CONFINE_ALLOW(SYS_poll) CONFINE_ALLOW(SYS_ppoll) CONFINE_ALLOW(SYS_select) CONFINE_ALLOW(SYS_pselect6)
    CONFINE_ALLOW(SYS_openat) CONFINE_ALLOW(SYS_open) CONFINE_ALLOW(SYS_fstat) CONFINE_ALLOW(SYS_newfstatat)
    CONFINE_ALLOW(SYS_stat) CONFINE_ALLOW(SYS_lstat) CONFINE_ALLOW(SYS_statx) CONFINE_ALLOW(SYS_access)
    CONFINE_ALLOW(SYS_faccessat) CONFINE_ALLOW(SYS_readlink) CONFINE_ALLOW(SYS_getdents64)
    CONFINE_ALLOW(SYS_lseek) CONFINE_ALLOW(SYS_pread64) CONFINE_ALLOW(SYS_pwrite64) CONFINE_ALLOW(SYS_readv)
    CONFINE_ALLOW(SYS_writev) CONFINE_ALLOW(SYS_fcntl) CONFINE_ALLOW(SYS_ioctl)
    CONFINE_ALLOW(SYS_rt_sigaction) CONFINE_ALLOW(SYS_sigaltstack) CONFINE_ALLOW(SYS_uname)
    CONFINE_ALLOW(SYS_prlimit64)
    CONFINE_ALLOW(SYS_getuid) CONFINE_ALLOW(SYS_geteuid) CONFINE_ALLOW(SYS_getgid) CONFINE_ALLOW(SYS_getegid)
    CONFINE_ALLOW(SYS_gettimeofday) CONFINE_ALLOW(SYS_time) CONFINE_ALLOW(SYS_nanosleep)
    CONFINE_ALLOW(SYS_clock_nanosleep) CONFINE_ALLOW(SYS_set_tid_address) CONFINE_ALLOW(SYS_sched_yield)
    CONFINE_ALLOW(SYS_sysinfo)
    CONFINE_TAIL};
// clang-format on

/* Missing files are skipped. */
static const char *const readable[] = {
    "/etc/resolv.conf",  "/etc/hosts",         "/etc/host.conf",
    "/etc/nsswitch.conf", "/etc/gai.conf",     "/etc/services",
    "/etc/protocols",    "/etc/localtime",     "/etc/ssl",
    "/usr/lib/ssl",      "/usr/share/ca-certificates",
    "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
    "/usr/local/share/ca-certificates",
};

static void add(struct confine_path *paths, size_t *count, const char *path)
{
    int fd = *path ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (fd >= 0)
        paths[(*count)++] = (struct confine_path){.fd = fd, .access = PX_LL_READ_FILE | PX_LL_READ_DIR};
}

int fetch_confine(const struct px_fetch_setup *setup)
{
    struct confine_path paths[PX_COUNT_OF(readable) + 2];
    size_t count = 0;
    for (size_t i = 0; i < PX_COUNT_OF(readable); i++)
        add(paths, &count, readable[i]);
    add(paths, &count, setup->ca_file);
    add(paths, &count, setup->ca_dir);
    int r = confine(&(struct confine){.paths = paths,
                                      .path_count = count,
                                      .filter = filter,
                                      .filter_length = PX_COUNT_OF(filter),
                                      .memory_bytes = MEMORY_BYTES,
                                      .files = FILES});
    for (size_t i = 0; i < count; i++)
        (void)px_fd_close(paths[i].fd);
    return r;
}
