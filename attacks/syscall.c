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

static int d1_unshare(void)
{
    for (size_t i = 0; i < COUNT(namespaces); i++)
        if (refused("unshare", syscall(SYS_unshare, namespaces[i])) ||
            refused("unshare with user", syscall(SYS_unshare, namespaces[i] | 0x10000000)) ||
            refused("unshare, high garbage", syscall(SYS_unshare, 0xffff00000000ul | namespaces[i])))
            return FAILED;
    return refused("unshare time", syscall(SYS_unshare, 0x80));
}

static int d1_clone(void)
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

static int d2_clone3(void)
{
    uint64_t args[11] = {0x10000000, 0, 0, 0, SIGCHLD};
    long pid = syscall(435, args, sizeof args);
    if (pid == 0)
        _exit(0);
    return pid < 0 && errno == ENOSYS ? DONE : failed("clone3: %ld, %s", pid, strerror(errno));
}

/* The second layer: even without the filter no user namespace could be made. */
static int d1_max(void)
{
    char text[64];
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
static int d3_int80(void)
{
    return killed(d3_child);
}
static int d4_socketcall(void)
{
    return killed(d4_child);
}

static int d5_x32(void)
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

static int d6_io_uring(void)
{
    static const struct call calls[] = {{425, "io_uring_setup"}, {426, "io_uring_enter"}, {427, "io_uring_register"}};
    char params[256] = {0};
    return refused("io_uring_setup", syscall(425, 4, params)) || all_refused(calls, COUNT(calls));
}

static int d7_surface(void)
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
                                        {450, "set_mempolicy_home_node"},
                                        {126, "capset"}};
    return all_refused(calls, COUNT(calls));
}

static int d8_mounts(void)
{
    static const struct call calls[] = {
        {165, "mount"},         {166, "umount2"},        {155, "pivot_root"}, {161, "chroot"},  {428, "open_tree"},
        {429, "move_mount"},    {430, "fsopen"},         {431, "fsconfig"},   {432, "fsmount"}, {433, "fspick"},
        {442, "mount_setattr"}, {467, "open_tree_attr"}, {308, "setns"}};
    return all_refused(calls, COUNT(calls));
}

static int d9_machine(void)
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

static int d14_unknown(void)
{
    static const long numbers[] = {468, 469, 470, 480, 500, 600, 999, 1023, 4095, 0x3fffffff};
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (syscall(numbers[i], 0, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS)
            return failed("call %ld: %s", numbers[i], strerror(errno));
    return DONE;
}

static int d15_listing(void)
{
    static const struct call calls[] = {{457, "statmount"}, {458, "listmount"}};
    return all_refused(calls, COUNT(calls));
}

static int d16_personality(void)
{
    static const unsigned long values[] = {READ_IMPLIES_EXEC, ADDR_NO_RANDOMIZE, ADDR_COMPAT_LAYOUT,
                                           MMAP_PAGE_ZERO,    PER_LINUX32,       PER_LINUX32 | ADDR_NO_RANDOMIZE};
    for (size_t i = 0; i < COUNT(values); i++)
        if (refused("personality", syscall(SYS_personality, values[i])) ||
            refused("personality, high garbage", syscall(SYS_personality, values[i] | 0xff00000000ul)))
            return FAILED;
    return syscall(SYS_personality, 0xffffffff) == 0 ? DONE : failed("personality is %d", personality(0xffffffff));
}

static int d7_prctl(void)
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

static int d10_families(void)
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

static int d10_raw(void)
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

static int d10_netlink(void)
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

static int d10_pairs(void)
{
    for (int family = 2; family < 64; family++) {
        int ends[2];
        if (syscall(SYS_socketpair, family, SOCK_STREAM, 0, ends) == 0 || (errno != EAFNOSUPPORT && errno != EPERM))
            return failed("socketpair of family %d: %s", family, strerror(errno));
    }
    return DONE;
}

static int d10_twin(void)
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

static int d11_ioctls(void)
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

static int d11_twin(void)
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

static int d13_kept(void)
{
    int status = in_child(d1_unshare);
    if (status != 0)
        return failed("a child is not under the filter");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
        return failed("no_new_privs or the filter is missing");
    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
        return failed("no_new_privs can be taken back");
    const char *again = "LD_SHOW_AUXV=1 exec /attack/px-attack D1_unshare >/dev/null";
    return system(again) == 0 ? DONE : failed("an exec gets rid of the filter");
}

/* ---- twins: what ordinary programs do ---- */

static void *thread_main(void *arg)
{
    ++*(int *)arg;
    return NULL;
}
static int d2_twin(void)
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

static int d7_twin(void)
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

static const struct row rows[] = {
    {ATTACK, "D1_unshare", d1_unshare, NULL, BARE},
    {ATTACK, "D1_clone", d1_clone, NULL, BARE},
    {ATTACK, "D1_max_user_namespaces", d1_max, NULL, BARE},
    {ATTACK, "D2_clone3", d2_clone3, NULL, BARE},
    {TWIN, "D2_twin_threads", d2_twin, NULL, 0},
    {ATTACK, "D3_int80", d3_int80, NULL, BARE},
    {ATTACK, "D4_socketcall", d4_socketcall, NULL, BARE},
    {ATTACK, "D5_x32", d5_x32, NULL, 0},
    {ATTACK, "D6_io_uring", d6_io_uring, NULL, BARE},
    {ATTACK, "D6_io_uring_workspace", d6_io_uring, "-v @WS:/ws", 0},
    {ATTACK, "D7_surface", d7_surface, NULL, BARE},
    {ATTACK, "D7_prctl", d7_prctl, NULL, BARE},
    {TWIN, "D7_twin_calls", d7_twin, NULL, 0},
    {ATTACK, "D8_mount_calls", d8_mounts, NULL, 0},
    {ATTACK, "D9_machine_calls", d9_machine, NULL, 0},
    {ATTACK, "D10_families", d10_families, NULL, BARE},
    {ATTACK, "D10_families_host_net", d10_families, "--net host", 0},
    {ATTACK, "D10_raw", d10_raw, NULL, BARE},
    {ATTACK, "D10_raw_loopback", d10_raw, "--net loopback", 0},
    {ATTACK, "D10_netlink", d10_netlink, NULL, BARE},
    {ATTACK, "D10_pairs", d10_pairs, NULL, BARE},
    {TWIN, "D10_twin_sockets", d10_twin, NULL, 0},
    {ATTACK, "D11_ioctls", d11_ioctls, NULL, BARE},
    {ATTACK, "D11_ioctls_on_terminal", d11_ioctls, "-t", 0},
    {TWIN, "D11_twin_pty", d11_twin, NULL, 0},
    {ATTACK, "D13_kept_after_exec", d13_kept, NULL, 0},
    {ATTACK, "D14_unknown_calls", d14_unknown, NULL, 0},
    {ATTACK, "D15_mount_listing", d15_listing, NULL, BARE},
    {ATTACK, "D16_personality", d16_personality, NULL, BARE},
};
const struct table syscall_table = {rows, COUNT(rows)};
