/* attacks/syscall.c - section D: system calls, other ABIs, socket families, terminal ioctls. */
#include "attack.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <netinet/in.h>

#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif

static const unsigned long namespaces[] = {0x20000,    0x2000000,  0x4000000, 0x8000000,
                                           0x10000000, 0x20000000, 0x40000000};

/* ---- D1, D2: namespaces ---- */

int d1_unshare(void)
{
    for (size_t i = 0; i < COUNT(namespaces); i++)
        if (refused("unshare", syscall(SYS_unshare, namespaces[i])) ||
            refused("unshare with user", syscall(SYS_unshare, namespaces[i] | 0x10000000)) ||
            refused("unshare, high garbage", syscall(SYS_unshare, 0xffff00000000ul | namespaces[i])))
            return FAILED;
    return refused("unshare time", syscall(SYS_unshare, 0x80));
}

int d1_clone(void)
{
    for (size_t i = 0; i < COUNT(namespaces); i++)
        for (int k = 0; k < 2; k++) {
            unsigned long flags = namespaces[i] | SIGCHLD | (k ? 0xabcd00000000ul : 0);
            long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
            if (pid == 0)
                _exit(0);
            if (refused("clone", pid))
                return FAILED;
        }
    return DONE;
}

int d2_clone3(void)
{
    uint64_t args[11] = {0x10000000, 0, 0, 0, SIGCHLD};
    long pid = syscall(435, args, sizeof args);
    if (pid == 0)
        _exit(0);
    return pid < 0 && errno == ENOSYS ? DONE : failed("clone3: %ld, %s", pid, strerror(errno));
}

/* The second layer: even without the filter no user namespace could be made. */
int d1_max(void)
{
    char text[64] = "";
    return read_text("/proc/sys/user/max_user_namespaces", text, sizeof text) > 0 && atoi(text) == 0
               ? DONE
               : failed("max_user_namespaces is %s", text);
}

/* ---- D3 to D5: other ABIs ---- */

static long int80(long number, long a, long b)
{
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "0"(number), "b"(a), "c"(b) : "memory", "r8", "r9", "r10", "r11");
    return r;
}
static int d3_child(void)
{
    return int80(20 /* getpid */, 0, 0) > 0 ? 1 : 2;
}
static int d4_child(void)
{
    uint32_t *low =
        mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    low[0] = AF_VSOCK, low[1] = SOCK_STREAM, low[2] = 0;
    return int80(102 /* socketcall */, 1 /* SYS_SOCKET */, 0x10000000) >= 0 ? 1 : 2;
}
static int killed(int (*run)(void))
{
    int status = in_child(run);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS
               ? DONE
               : failed("not ended by the filter: wait status %x", status);
}
int d3_int80(void)
{
    return killed(d3_child);
}
int d4_socketcall(void)
{
    return killed(d4_child);
}

int d5_x32(void)
{
    static const long numbers[] = {
        39 /* getpid */, 41 /* socket */, 56 /* clone */, 512, 520 /* execve */, 165 /* mount */};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        long r = syscall(0x40000000 | numbers[i], 0, 0, 0);
        if (r >= 0 || errno != ENOSYS)
            return failed("x32 call %ld: %ld, %s", numbers[i], r, strerror(errno));
    }
    return DONE;
}

/* ---- D6 to D9, D14 to D16: calls that are not on the list ---- */

struct call {
    int number;
    const char *name;
};

static int all_refused(const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (refused(calls[i].name, syscall(calls[i].number, 0, 0, 0, 0, 0, 0)))
            return FAILED;
    return DONE;
}

int d6_io_uring(void)
{
    static const struct call calls[] = {{425, "io_uring_setup"}, {426, "io_uring_enter"}, {427, "io_uring_register"}};
    char params[256] = {0};
    return refused("io_uring_setup", syscall(425, 4, params)) || all_refused(calls, COUNT(calls));
}

int d7_surface(void)
{
    static const struct call calls[] = {{323, "userfaultfd"},
                                        {447, "memfd_secret"},
                                        {298, "perf_event_open"},
                                        {321, "bpf"},
                                        {250, "keyctl"},
                                        {248, "add_key"},
                                        {249, "request_key"},
                                        {300, "fanotify_init"},
                                        {301, "fanotify_mark"},
                                        {179, "quotactl"},
                                        {443, "quotactl_fd"},
                                        {312, "kcmp"},
                                        {154, "modify_ldt"},
                                        {212, "lookup_dcookie"},
                                        {440, "process_madvise"},
                                        {448, "process_mrelease"},
                                        {459, "lsm_get_self_attr"},
                                        {460, "lsm_set_self_attr"},
                                        {461, "lsm_list_modules"},
                                        {310, "process_vm_readv"},
                                        {311, "process_vm_writev"},
                                        {438, "pidfd_getfd"},
                                        {101, "ptrace"},
                                        {237, "mbind"},
                                        {238, "set_mempolicy"},
                                        {256, "migrate_pages"},
                                        {279, "move_pages"},
                                        {450, "set_mempolicy_home_node"}};
    return all_refused(calls, COUNT(calls));
}

int d8_mounts(void)
{
    static const struct call calls[] = {
        {165, "mount"},         {166, "umount2"},        {155, "pivot_root"}, {161, "chroot"},  {428, "open_tree"},
        {429, "move_mount"},    {430, "fsopen"},         {431, "fsconfig"},   {432, "fsmount"}, {433, "fspick"},
        {442, "mount_setattr"}, {467, "open_tree_attr"}, {308, "setns"}};
    return all_refused(calls, COUNT(calls));
}

int d9_machine(void)
{
    static const struct call calls[] = {{175, "init_module"},
                                        {176, "delete_module"},
                                        {313, "finit_module"},
                                        {246, "kexec_load"},
                                        {320, "kexec_file_load"},
                                        {169, "reboot"},
                                        {167, "swapon"},
                                        {168, "swapoff"},
                                        {172, "iopl"},
                                        {173, "ioperm"},
                                        {164, "settimeofday"},
                                        {227, "clock_settime"},
                                        {159, "adjtimex"},
                                        {305, "clock_adjtime"},
                                        {170, "sethostname"},
                                        {171, "setdomainname"},
                                        {163, "acct"},
                                        {153, "vhangup"},
                                        {103, "syslog"},
                                        {304, "open_by_handle_at"},
                                        {303, "name_to_handle_at"},
                                        {134, "uselib"},
                                        {136, "ustat"},
                                        {139, "sysfs"},
                                        {156, "_sysctl"},
                                        {180, "nfsservctl"}};
    return all_refused(calls, COUNT(calls));
}

int d14_unknown(void)
{
    static const long numbers[] = {468, 469, 470, 480, 500, 600, 999, 1023, 4095, 0x3fffffff};
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (syscall(numbers[i], 0, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS)
            return failed("call %ld: %s", numbers[i], strerror(errno));
    return DONE;
}

int d15_listing(void)
{
    static const struct call calls[] = {{457, "statmount"}, {458, "listmount"}};
    return all_refused(calls, COUNT(calls));
}

int d16_personality(void)
{
    static const unsigned long values[] = {READ_IMPLIES_EXEC, ADDR_NO_RANDOMIZE, ADDR_COMPAT_LAYOUT,
                                           MMAP_PAGE_ZERO,    PER_LINUX32,       PER_LINUX32 | ADDR_NO_RANDOMIZE};
    for (size_t i = 0; i < COUNT(values); i++)
        if (refused("personality", syscall(SYS_personality, values[i])) ||
            refused("personality, high garbage", syscall(SYS_personality, values[i] | 0xff00000000ul)))
            return FAILED;
    return syscall(SYS_personality, 0xffffffff) == 0 ? DONE : failed("personality is %d", personality(0xffffffff));
}

int d7_prctl(void)
{
    return refused("PR_SET_MM", prctl(PR_SET_MM, PR_SET_MM_START_CODE, 0, 0, 0)) ||
           refused("PR_SET_PTRACER", prctl(PR_SET_PTRACER, 1, 0, 0, 0)) ||
           refused("PR_SET_PTRACER, high garbage", syscall(SYS_prctl, 0x1200000000ul | PR_SET_PTRACER, 1, 0, 0, 0));
}

/* ---- D10: sockets ---- */

static int no_socket(const char *what, unsigned long family, unsigned long type, unsigned long protocol)
{
    long fd = syscall(SYS_socket, family, type, protocol);
    if (fd >= 0)
        return failed("%s can be made", what);
    return errno == EAFNOSUPPORT || errno == EPERM ? DONE
                                                   : failed("%s got past the filter: %s", what, strerror(errno));
}

int d10_families(void)
{
    for (unsigned long family = 0; family < 64; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
            continue;
        for (unsigned long type = 1; type <= 10; type++) {
            char what[64];
            snprintf(what, sizeof what, "family %lu type %lu", family, type);
            if (no_socket(what, family, type, 0) || no_socket(what, family | 0x7700000000ul, type | SOCK_CLOEXEC, 0))
                return FAILED;
        }
    }
    return DONE;
}

int d10_raw(void)
{
    static const unsigned long families[] = {AF_INET, AF_INET6};
    static const unsigned long types[] = {3 /* RAW */, 4, 5, 6 /* DCCP */, 10 /* PACKET */};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < COUNT(types); k++)
            if (no_socket("raw", families[i], types[k], 1) ||
                no_socket("raw with flags", families[i], types[k] | SOCK_CLOEXEC | SOCK_NONBLOCK, 255) ||
                no_socket("raw, high garbage", families[i] | 0xff00000000ul, types[k] | 0xff00000000ul, 17))
                return FAILED;
    return DONE;
}

int d10_netlink(void)
{
    for (unsigned long protocol = 1; protocol < 32; protocol++) {
        char what[64];
        snprintf(what, sizeof what, "netlink protocol %lu", protocol);
        if (no_socket(what, AF_NETLINK, SOCK_RAW, protocol) ||
            no_socket(what, AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, protocol | 0x100000000ul))
            return FAILED;
    }
    return DONE;
}

int d10_pairs(void)
{
    for (int family = 2; family < 64; family++) {
        int ends[2];
        if (syscall(SYS_socketpair, family, SOCK_STREAM, 0, ends) == 0 || (errno != EAFNOSUPPORT && errno != EPERM))
            return failed("socketpair of family %d: %s", family, strerror(errno));
    }
    return DONE;
}

/* Whole protocol engines of the kernel behind the two ordinary types. */
int d10_protocols(void)
{
    static const struct {
        unsigned long type, protocol;
        const char *name;
    } kinds[] = {{SOCK_STREAM, 262, "MPTCP"},    {SOCK_STREAM, 132, "SCTP"},    {SOCK_DGRAM, 136, "UDPLITE"},
                 {SOCK_STREAM, 256, "SMC"},      {SOCK_DGRAM, 115, "L2TP"},     {SOCK_STREAM | SOCK_CLOEXEC, 262, "MPTCP"},
                 {SOCK_STREAM, 0x100000106, "MPTCP, high garbage"}};
    static const unsigned long families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t k = 0; k < COUNT(families); k++)
            if (syscall(SYS_socket, families[k], kinds[i].type, kinds[i].protocol) >= 0)
                return failed("%s can be made", kinds[i].name);
            else if (errno != EPROTONOSUPPORT && errno != EAFNOSUPPORT && errno != EPERM)
                return failed("%s got past the filter: %s", kinds[i].name, strerror(errno));
    return DONE;
}

/* The hypervisor's own network, which no namespace holds. */
int g6_vsock(void)
{
    for (unsigned long type = 1; type <= 5; type++)
        if (no_socket("vsock", AF_VSOCK, type, 0) || no_socket("vsock with flags", AF_VSOCK, type | SOCK_CLOEXEC, 0))
            return FAILED;
    return DONE;
}

int d10_twin(void)
{
    static const int kinds[][3] = {{AF_UNIX, SOCK_STREAM, 0},
                                   {AF_UNIX, SOCK_DGRAM, 0},
                                   {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0},
                                   {AF_INET, SOCK_STREAM, 0},
                                   {AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0},
                                   {AF_INET6, SOCK_STREAM, 0},
                                   {AF_INET6, SOCK_DGRAM, 0},
                                   {AF_NETLINK, SOCK_RAW, 0}};
    int ends[2];
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (socket(kinds[i][0], kinds[i][1], kinds[i][2]) < 0)
            return failed("family %d type %d: %s", kinds[i][0], kinds[i][1], strerror(errno));
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? DONE : failed("socketpair");
}

/* ---- D11, D12: terminals ---- */

int d11_ioctls(void)
{
    static const struct {
        unsigned long request;
        const char *name;
    } requests[] = {{0x5412, "TIOCSTI"}, {0x541c, "TIOCLINUX"}, {0x541d, "TIOCCONS"}, {0x5423, "TIOCSETD"}};
    static const unsigned long high[] = {0, 1ul << 32, 0xdeadbeef00000000ul, 0x8000000000000000ul};
    char byte = 'x';
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC), line = 0;
    for (size_t i = 0; i < COUNT(requests); i++)
        for (size_t k = 0; k < COUNT(high); k++)
            for (int fd = 0; fd < 3; fd++) {
                void *data = i == 3 ? (void *)&line : &byte;
                int at = fd == 2 && tty >= 0 ? tty : fd;
                long r = syscall(SYS_ioctl, at, high[k] | requests[i].request, data);
                if (r == 0 || errno != EPERM)
                    return failed("%s on %d: %s", requests[i].name, at, r ? strerror(errno) : "accepted");
            }
    return DONE;
}

/* Each number loads a driver where it is a module. */
int d12_discipline(void)
{
    for (int number = 0; number < 31; number++)
        if (refused("TIOCSETD", ioctl(0, 0x5423 /* TIOCSETD */, &number)))
            return FAILED;
    return DONE;
}

/* Paste into a console: the kernel's own keyboard, if there were a console to be had. */
int f2_console(void)
{
    static const char *const nodes[] = {"/dev/console", "/dev/tty0", "/dev/tty1", "/dev/vcs", "/dev/vcsa1", "/dev/vcsu1"};
    for (size_t i = 0; i < COUNT(nodes); i++)
        if (open(nodes[i], O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
            return failed("%s can be opened", nodes[i]);
    for (unsigned char code = 0; code < 18; code++) {
        unsigned char arguments[16] = {code};
        if (refused("TIOCLINUX", ioctl(0, 0x541c /* TIOCLINUX */, arguments)))
            return FAILED;
    }
    return DONE;
}

int d11_twin(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), zero = 0, other;
    unsigned number;
    if (master < 0 || ioctl(master, 0x40045431 /* TIOCSPTLCK */, &zero) < 0 ||
        ioctl(master, 0x80045430 /* TIOCGPTN */, &number) < 0)
        return failed("pty: %s", strerror(errno));
    other = ioctl(master, 0x5441 /* TIOCGPTPEER */, O_RDWR | O_NOCTTY | O_CLOEXEC);
    char text[8] = "";
    return other >= 0 && write(other, "hi\n", 3) == 3 && read(master, text, sizeof text) > 0
               ? DONE
               : failed("pty: %s", strerror(errno));
}

/* ---- D13: the filter and its condition stay ---- */

static int run_again(void)
{
    char *const argv[] = {(char *)"px-attack", (char *)"D1_unshare", NULL};
    execv(in(here(), "px-attack"), argv);
    return 99;
}

int d13_kept(void)
{
    int status = in_child(d1_unshare);
    if (status != 0)
        return failed("a child is not under the filter");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
        return failed("no_new_privs or the filter is missing");
    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
        return failed("no_new_privs can be taken back");
    return in_child(run_again) == 0 ? DONE : failed("an exec gets rid of the filter");
}

static long install(unsigned flags, uint32_t answer)
{
    struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, answer);
    struct sock_fprog program = {1, &code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* A filter that allows everything takes nothing back. */
int d13_own_filter(void)
{
    for (int i = 0; i < 4; i++)
        if (install(0, SECCOMP_RET_ALLOW) < 0 && errno != ENOSYS)
            return failed("a filter of its own: %s", strerror(errno));
    if (install(SECCOMP_FILTER_FLAG_LOG, SECCOMP_RET_ALLOW) < 0 && errno != EPERM && errno != EINVAL && errno != ENOSYS)
        return failed("a filter with a log: %s", strerror(errno));
    return d1_unshare() || d10_families();
}

/* The listener decides; there is only one, and it is not the box's. */
int d13_own_listener(void)
{
    long fd = install(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_ALLOW);
    if (fd >= 0)
        return failed("a listener of its own: descriptor %ld", fd);
    return errno == EBUSY || errno == EPERM || errno == ENOSYS ? DONE : failed("a listener of its own: %s", strerror(errno));
}

/* ---- twins: what ordinary programs do ---- */

static void *thread_main(void *arg)
{
    ++*(int *)arg;
    return NULL;
}
int d2_twin(void)
{
    int count[8] = {0};
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, thread_main, &count[i]) != 0)
            return failed("pthread_create: %s", strerror(errno));
    for (int i = 0; i < 8; i++)
        if (pthread_join(threads[i], NULL) != 0 || count[i] != 1)
            return failed("a thread did not run");
    FILE *p = popen("echo sub; exit 3", "r");
    char text[8] = "";
    return p && fgets(text, sizeof text, p) && WEXITSTATUS(pclose(p)) == 3 ? DONE
                                                                           : failed("subprocesses do not work");
}

int d7_twin(void)
{
    char word[16] = "named";
    if (memfd_create("x", MFD_CLOEXEC) < 0 || epoll_create1(0) < 0 || timerfd_create(CLOCK_MONOTONIC, 0) < 0 ||
        inotify_init1(0) < 0 || syscall(434, getpid(), 0) < 0 || prctl(PR_SET_NAME, word) < 0)
        return failed("an ordinary call is refused: %s", strerror(errno));
    void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return failed("no executable memory for compilers");
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0
               ? DONE
               : failed("a filter of its own: %s", strerror(errno));
}
