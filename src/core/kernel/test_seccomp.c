/* The filter in three views: the programs run by an interpreter, a model of the policy written without looking at the
 * table, and the kernel itself. The model says what is refused where the table says what is allowed, so that a call
 * forgotten in either shows. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/bpf.h"
#include "harness/test.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const enum px_filter filters[] = {
    PX_FILTER_DEFAULT, PX_FILTER_WORKSPACE, PX_FILTER_STRICT, PX_FILTER_STRICT_WORKSPACE,
    PX_FILTER_FLOOR, PX_FILTER_FLOOR_WORKSPACE,
};

static bool is_strict(enum px_filter filter)
{
    return filter == PX_FILTER_STRICT || filter == PX_FILTER_STRICT_WORKSPACE;
}

static bool is_floor(enum px_filter filter)
{
    return filter == PX_FILTER_FLOOR || filter == PX_FILTER_FLOOR_WORKSPACE;
}

static bool is_for_workspace(enum px_filter filter)
{
    return filter == PX_FILTER_WORKSPACE || filter == PX_FILTER_STRICT_WORKSPACE || filter == PX_FILTER_FLOOR_WORKSPACE;
}

/* ---- the model ---- */

enum {
    HIGHEST = 467,              /* open_tree_attr, the last call px takes a decision about */
    NO_PERMISSION = SECCOMP_RET_ERRNO | EPERM,
    NO_SUCH_CALL = SECCOMP_RET_ERRNO | ENOSYS,
    DONE_NOTHING = SECCOMP_RET_ERRNO,           /* and says 0 */
    NO_SUCH_FAMILY = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
    NO_SUCH_PROTOCOL = SECCOMP_RET_ERRNO | EPROTONOSUPPORT,
};

/* clang-format off */
static bool is_refused(uint32_t nr)
{
    switch (nr) {
    /* other processes */
    case SYS_ptrace: case SYS_process_vm_readv: case SYS_process_vm_writev: case SYS_process_madvise:
    case SYS_pidfd_getfd: case SYS_kcmp: case SYS_process_mrelease:
    /* surface */
    case SYS_io_uring_setup: case SYS_io_uring_enter: case SYS_io_uring_register:
    case SYS_keyctl: case SYS_add_key: case SYS_request_key:
    case SYS_userfaultfd: case SYS_memfd_secret: case SYS_fanotify_init: case SYS_fanotify_mark:
    case SYS_quotactl: case SYS_quotactl_fd: case SYS_modify_ldt: case SYS_bpf: case SYS_perf_event_open:
    case SYS_lookup_dcookie: case SYS_name_to_handle_at: case SYS_open_by_handle_at:
    case 459: case 460: case 461:                               /* lsm_* */
    /* mounts and namespaces */
    case SYS_mount: case SYS_umount2: case SYS_pivot_root: case SYS_chroot: case SYS_setns: case SYS_unshare:
    case SYS_open_tree: case SYS_move_mount: case SYS_fsopen: case SYS_fsconfig: case SYS_fsmount: case SYS_fspick:
    case SYS_mount_setattr: case 457: case 458: case 467:       /* statmount, listmount, open_tree_attr */
    /* the machine */
    case SYS_vhangup: case SYS_acct: case SYS_swapon: case SYS_swapoff: case SYS_sethostname: case SYS_setdomainname:
    case SYS_adjtimex: case SYS_clock_adjtime: case SYS_clock_settime: case SYS_settimeofday: case SYS_iopl:
    case SYS_ioperm: case SYS_syslog: case SYS_reboot: case SYS_kexec_load: case SYS_kexec_file_load:
    case SYS_create_module: case SYS_init_module: case SYS_finit_module: case SYS_delete_module: case SYS_query_module:
    /* memory placement */
    case SYS_mbind: case SYS_move_pages: case SYS_migrate_pages: case SYS_set_mempolicy_home_node:
    /* never in any container's list */
    case SYS_uselib: case SYS_ustat: case SYS_sysfs: case SYS__sysctl: case SYS_get_kernel_syms: case SYS_nfsservctl:
    case SYS_getpmsg: case SYS_putpmsg: case SYS_afs_syscall: case SYS_tuxcall: case SYS_security: case SYS_vserver:
        return true;
    default:
        return nr > 335 && nr < SYS_pidfd_send_signal;          /* numbers x86-64 has never used, after uretprobe */
    }
}

/* What a user's own profile may open although the default filter refuses it. */
static bool is_open_to_profiles(uint32_t nr)
{
    switch (nr) {
    case SYS_ptrace: case SYS_process_vm_readv: case SYS_process_vm_writev: case SYS_process_madvise:
    case SYS_process_mrelease: case SYS_name_to_handle_at:
    case SYS_mbind: case SYS_move_pages: case SYS_migrate_pages: case SYS_set_mempolicy_home_node:
        return true;
    default:
        return false;
    }
}

/* Features that code which only computes can do without, and acts that it has no business with. */
static uint32_t model_taken_by_strict(uint32_t nr)
{
    switch (nr) {
    /* System V objects and POSIX queues */
    case SYS_shmget: case SYS_shmat: case SYS_shmdt: case SYS_shmctl: case SYS_semget: case SYS_semop: case SYS_semtimedop:
    case SYS_semctl: case SYS_msgget: case SYS_msgsnd: case SYS_msgrcv: case SYS_msgctl: case SYS_mq_open: case SYS_mq_unlink:
    case SYS_mq_timedsend: case SYS_mq_timedreceive: case SYS_mq_notify: case SYS_mq_getsetattr:
    /* asynchronous input and output, watching files, moving pages between pipes, packets in bulk */
    case SYS_io_setup: case SYS_io_destroy: case SYS_io_submit: case SYS_io_cancel: case SYS_io_getevents: case 333:
    case SYS_inotify_init: case SYS_inotify_init1: case SYS_inotify_add_watch: case SYS_inotify_rm_watch:
    case SYS_splice: case SYS_tee: case SYS_vmsplice: case SYS_recvmmsg: case SYS_sendmmsg:
    /* filters and keys of its own, placement of memory, what the page cache holds, relics */
    case SYS_seccomp: case 444: case 445: case 446: case SYS_pkey_alloc: case SYS_pkey_free: case SYS_pkey_mprotect:
    case SYS_get_mempolicy: case 451: case SYS_remap_file_pages: case SYS_set_thread_area: case SYS_get_thread_area:
    case SYS_epoll_ctl_old: case SYS_epoll_wait_old:
        return NO_SUCH_CALL;
    /* the scheduler, privileges, and writing back the whole machine's files */
    case SYS_setpriority: case SYS_sched_setparam: case SYS_sched_setscheduler: case SYS_sched_setattr:
    case SYS_sched_setaffinity: case SYS_ioprio_set: case SYS_sync: case SYS_syncfs: case SYS_capset:
        return NO_PERMISSION;
    default:
        return SECCOMP_RET_ALLOW;
    }
}
/* clang-format on */

static uint32_t model_internet(int type, int protocol)
{
    int base_type = type & 0xf;
    static const int harmless[] = {0, 6, 17, 1, 58};            /* any, TCP, UDP, ping of either family */

    if (base_type != SOCK_STREAM && base_type != SOCK_DGRAM)
        return NO_SUCH_FAMILY;
    for (size_t i = 0; i < COUNT_OF(harmless); i++)
        if (protocol == harmless[i])
            return SECCOMP_RET_ALLOW;
    return NO_SUCH_PROTOCOL;
}

static uint32_t model_socket(enum px_filter filter, int family, int type, int protocol)
{
    if (family == AF_UNIX)
        return SECCOMP_RET_ALLOW;
    if (is_strict(filter))
        return NO_SUCH_FAMILY;
    if (family == AF_INET || family == AF_INET6)
        return model_internet(type, protocol);
    return family == AF_NETLINK && protocol == 0 ? SECCOMP_RET_ALLOW : NO_SUCH_FAMILY;
}

static uint32_t model_prctl(enum px_filter filter, uint32_t option, uint32_t value)
{
    bool refused = option == PR_SET_MM || option == PR_SET_PTRACER || (option == PR_SET_CHILD_SUBREAPER && value != 1) ||
                   (is_strict(filter) && option == PR_SET_SECCOMP);

    return refused ? NO_PERMISSION : SECCOMP_RET_ALLOW;
}

static uint32_t model_ioctl(unsigned command)
{
    return command == TIOCSTI || command == TIOCLINUX || command == TIOCCONS || command == TIOCSETD ? NO_PERMISSION
                                                                                                    : SECCOMP_RET_ALLOW;
}

/* Of an address 63 bits count. */
static uint32_t model_prlimit(uint32_t pid, uint32_t resource, uint64_t new_limit)
{
    if (pid != 0)
        return NO_PERMISSION;
    return resource == 4 && new_limit << 1 ? DONE_NOTHING : SECCOMP_RET_ALLOW;
}

/* The kernel's modes have 16 bits. */
static uint32_t model_mode(uint16_t mode)
{
    return mode & S_ISUID || mode & S_ISGID ? NO_PERMISSION : SECCOMP_RET_ALLOW;
}

static uint32_t model_node(uint16_t mode)
{
    unsigned type = mode & 0170000U;
    bool harmless = type == 0 || S_ISREG(mode) || S_ISFIFO(mode) || S_ISSOCK(mode);

    return harmless ? model_mode(mode) : NO_PERMISSION;
}

static uint32_t model_open(int flags, uint16_t mode)
{
    bool creates = flags & O_CREAT || flags & 020000000;        /* the latter is __O_TMPFILE */

    return creates ? model_mode(mode) : SECCOMP_RET_ALLOW;
}

static uint32_t model_number(enum px_filter filter, uint32_t nr)
{
    if (is_refused(nr) && !(is_floor(filter) && is_open_to_profiles(nr)))
        return NO_PERMISSION;
    if (nr == SYS_set_mempolicy && !is_floor(filter))           /* libnuma asks in every program that has it */
        return NO_SUCH_CALL;
    return is_strict(filter) ? model_taken_by_strict(nr) : SECCOMP_RET_ALLOW;
}

/* Each argument is cut to the type the kernel gives it. */
static uint32_t model_native(enum px_filter filter, uint32_t nr, const uint64_t *args)
{
    uint32_t a = (uint32_t)args[0], b = (uint32_t)args[1], c = (uint32_t)args[2], d = (uint32_t)args[3], e = (uint32_t)args[4];

    switch (nr) {
    case SYS_clone3:
        return NO_SUCH_CALL;
    case SYS_openat2:
        return is_for_workspace(filter) ? NO_SUCH_CALL : SECCOMP_RET_ALLOW;
    case SYS_clone:
        return a & (0x8000 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000)
                   ? NO_PERMISSION : SECCOMP_RET_ALLOW;
    case SYS_ioctl:
        return model_ioctl(b);
    case SYS_socket:
        return model_socket(filter, (int)a, (int)b, (int)c);
    case SYS_socketpair:
        return a == AF_UNIX ? SECCOMP_RET_ALLOW : NO_SUCH_FAMILY;
    case SYS_personality:
        return a == 0 || a == 0xffffffff ? SECCOMP_RET_ALLOW : NO_PERMISSION;
    case SYS_setrlimit:
        return a == 4 ? DONE_NOTHING : SECCOMP_RET_ALLOW;       /* RLIMIT_CORE */
    case SYS_prlimit64:
        return model_prlimit(a, b, args[2]);
    case SYS_fcntl:
        /* leases, dnotify, delegations */
        return b == 1024 || b == 1026 || b == 1040 ? NO_PERMISSION : SECCOMP_RET_ALLOW;
    case SYS_prctl:
        return model_prctl(filter, a, b);
    case SYS_renameat2:
        return e & 4 ? NO_PERMISSION : SECCOMP_RET_ALLOW;       /* RENAME_WHITEOUT */
    case SYS_chmod:
    case SYS_fchmod:
    case SYS_creat:
        return model_mode((uint16_t)b);
    case SYS_fchmodat:
    case 452:                                                   /* fchmodat2 */
        return model_mode((uint16_t)c);
    case SYS_mknod:
        return model_node((uint16_t)b);
    case SYS_mknodat:
        return model_node((uint16_t)c);
    case SYS_open:
        return model_open((int)b, (uint16_t)c);
    case SYS_openat:
        return model_open((int)c, (uint16_t)d);
    default:
        return model_number(filter, nr);
    }
}

static uint32_t model(enum px_filter filter, const struct seccomp_data *data)
{
    uint32_t nr = (uint32_t)data->nr;
    uint64_t args[6];

    memcpy(args, data->args, sizeof args);
    if (data->arch != AUDIT_ARCH_X86_64)
        return SECCOMP_RET_KILL_PROCESS;
    if (nr >= 0x40000000)       /* x32 */
        return NO_SUCH_CALL;
    return nr > HIGHEST ? NO_SUCH_CALL : model_native(filter, nr, args);
}

/* The calls whose arguments the policy looks at. */
static const uint32_t ruled[] = {
    SYS_clone, SYS_ioctl, SYS_socket, SYS_socketpair, SYS_personality, SYS_prlimit64, SYS_setrlimit,
    SYS_fcntl, SYS_prctl, SYS_chmod, SYS_fchmod, SYS_creat, SYS_fchmodat, 452, SYS_mknod, SYS_mknodat, SYS_open,
    SYS_openat, SYS_renameat2,
};

static bool is_ruled(uint32_t nr)
{
    for (size_t i = 0; i < COUNT_OF(ruled); i++)
        if (ruled[i] == nr)
            return true;
    return false;
}

/* ---- interpreter against model ---- */

static struct px_bpf_outcome interpret(enum px_filter filter, const struct seccomp_data *data)
{
    uint16_t len = 0;
    const struct sock_filter *code = px_seccomp_program(filter, &len);

    return px_bpf_run(code, len, data);
}

TEST(only_the_caller_itself_can_be_slowed_down)
{
    static const struct {
        uint32_t nr;
        uint64_t first, second;
        bool allowed;
    } rows[] = {
        {SYS_sched_setaffinity, 0, 8, true},     {SYS_sched_setaffinity, 7, 8, false},    {SYS_sched_setaffinity, 1ull << 32, 8, true},
        {SYS_sched_setscheduler, 0, 5, true},    {SYS_sched_setscheduler, 7, 5, false},   {SYS_sched_setparam, 0, 0, true},
        {SYS_sched_setparam, 7, 0, false},       {SYS_sched_setattr, 0, 0, true},         {SYS_sched_setattr, 7, 0, false},
        {SYS_setpriority, PRIO_PROCESS, 0, true}, {SYS_setpriority, PRIO_PROCESS, 7, false}, {SYS_setpriority, PRIO_PGRP, 0, false},
        {SYS_setpriority, PRIO_USER, 0, false},  {SYS_setpriority, PRIO_USER, 7, false},  {SYS_ioprio_set, 1, 0, true},
        {SYS_ioprio_set, 1, 7, false},           {SYS_ioprio_set, 2, 0, false},           {SYS_ioprio_set, 3, 0, false},
        {SYS_read, 7, 7, true},                  {SYS_kill, 7, 7, true},                  {SYS_getpriority, 7, 7, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct seccomp_data data = {.nr = (int)rows[i].nr, .args = {rows[i].first, rows[i].second}};
        struct px_bpf_outcome out = interpret(PX_FILTER_SELF, &data);
        ASSERT(!out.broken);
        if ((out.action == SECCOMP_RET_ALLOW) != rows[i].allowed)
            FAIL("row %zu: call %u with %llu and %llu", i, rows[i].nr, (unsigned long long)rows[i].first, (unsigned long long)rows[i].second);
    }
}

/* What is not refused here goes on to the filter of every box, which refuses other types and families. */
TEST(no_socket_of_the_internet_can_be_made)
{
    static const struct {
        uint32_t nr;
        uint64_t family, type;
        bool allowed;
    } rows[] = {{SYS_socket, AF_UNIX, SOCK_STREAM, true},           {SYS_socket, AF_INET, SOCK_STREAM, false},
                {SYS_socket, AF_INET6, SOCK_STREAM, false},         {SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, false},
                {SYS_socket, AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, false}, {SYS_socket, AF_INET, SOCK_RAW, true},
                {SYS_socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC, true}, {SYS_socket, AF_INET, 6, true},
                {SYS_socket, AF_NETLINK, SOCK_RAW, true},           {SYS_socket, 1ull << 32 | AF_INET, SOCK_STREAM, false},
                {SYS_socket, AF_INET, 1ull << 32 | SOCK_STREAM, false}, {SYS_socketpair, AF_INET, SOCK_STREAM, true},
                {SYS_connect, AF_INET, SOCK_STREAM, true},          {SYS_read, AF_INET, SOCK_STREAM, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct seccomp_data data = {.nr = (int)rows[i].nr, .args = {rows[i].family, rows[i].type}};
        struct px_bpf_outcome out = interpret(PX_FILTER_OFFLINE, &data);
        ASSERT(!out.broken);
        if (out.action != (rows[i].allowed ? (uint32_t)SECCOMP_RET_ALLOW : (uint32_t)SECCOMP_RET_ERRNO | ENETUNREACH))
            FAIL("row %zu", i);
    }
}

static bool agrees_in(enum px_filter filter, const struct seccomp_data *data)
{
    struct px_bpf_outcome out = interpret(filter, data);
    uint32_t expected = model(filter, data);

    if (!out.broken && out.action == expected)
        return true;
    (void)fprintf(stderr, "filter %d, arch %x, call %d(%llx, %llx, %llx, %llx, %llx): %s%x instead of %x\n", (int)filter,
                  data->arch, data->nr, data->args[0], data->args[1], data->args[2], data->args[3], data->args[4],
                  out.broken ? "broken, " : "", out.action, expected);
    return false;
}

static bool agrees(const struct seccomp_data *data)
{
    bool all = true;

    for (size_t i = 0; i < COUNT_OF(filters); i++)
        all = agrees_in(filters[i], data) && all;
    return all;
}

static struct seccomp_data native_call(uint32_t nr)
{
    return (struct seccomp_data){.nr = (int)nr, .arch = AUDIT_ARCH_X86_64};
}

/* ---- values to try ---- */

/* A fixed seed: the same values in every run. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const uint32_t telling[] = {
    0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 15, 16, 17, 22, 28, 33, 35, 36, 38, 40, 58, 115, 132, 136, 256, 262,
    0x59616d61, 0x59616d62, 1023, 1024, 1025, 1026, 1027, 1039, 1040, 1041,
    0xffffffff, 0xfffffffe, 0x7fffffff,
    TIOCSTI, TIOCSTI - 1, TIOCSTI + 1, TIOCLINUX, TIOCCONS, TIOCCONS + 1, TIOCSETD, TIOCSETD + 1, TCGETS, TIOCGWINSZ,
    SOCK_STREAM | SOCK_CLOEXEC, SOCK_DGRAM | SOCK_NONBLOCK, SOCK_RAW | SOCK_CLOEXEC, SOCK_SEQPACKET | SOCK_NONBLOCK,
    0644, 0755, 01777, 02755, 04755, 06755, S_IFREG | 0644, S_IFREG | 04644, S_IFIFO | 0600, S_IFIFO | 02600,
    S_IFSOCK | 0600, S_IFCHR | 0600, S_IFBLK | 0600, S_IFDIR | 0755, S_IFLNK | 0777, 0x40000 | 04755, 0x10000 | S_IFCHR,
    O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, O_TMPFILE | O_RDWR,
    020000000, O_DIRECTORY, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
    CLONE_NEWUSER | SIGCHLD, CLONE_NEWNS | SIGCHLD, SIGCHLD,
};
static const uint32_t garbage[] = {0, 1, 0xdeadbeef, 0x80000000, 0xffffffff};

static uint64_t pick(uint64_t *state)
{
    uint64_t r = next_random(state);
    uint64_t low = r % 4 == 0 ? (uint32_t)next_random(state) : telling[(r >> 8) % COUNT_OF(telling)];

    return low | (uint64_t)garbage[(r >> 32) % COUNT_OF(garbage)] << 32;
}

static void fill(struct seccomp_data *data, uint64_t *state)
{
    data->instruction_pointer = next_random(state);
    for (int i = 0; i < 6; i++)
        data->args[i] = pick(state);
}

/* ---- the programs ---- */

TEST(seccomp_programs_are_short_and_end)
{
    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        uint16_t len = 0;
        const struct sock_filter *code = px_seccomp_program(filters[i], &len);

        ASSERT(code != NULL);
        ASSERT(len > 4 && len < BPF_MAXINSNS);
        ASSERT_EQ(BPF_CLASS(code[len - 1].code), BPF_RET);
    }
}

TEST(seccomp_every_number_follows_the_model)
{
    uint64_t state = 0x9e3779b97f4a7c15;

    for (uint32_t nr = 0; nr <= 1024; nr++) {
        struct seccomp_data data = native_call(nr);
        ASSERT(agrees(&data));
        for (int i = 0; i < 50; i++) {
            fill(&data, &state);
            ASSERT(agrees(&data));
        }
    }
}

/* Without this the kernel would run the filter at every call instead of remembering its answer. */
TEST(seccomp_plain_calls_are_decided_by_number)
{
    for (uint32_t nr = 0; nr <= 1024; nr++) {
        struct seccomp_data data = native_call(nr);
        for (size_t i = 0; i < COUNT_OF(filters); i++)
            ASSERT_EQ(interpret(filters[i], &data).looked_at_arguments, is_ruled(nr));
    }
}

TEST(seccomp_x32_and_unknown_numbers_do_not_exist)
{
    static const uint32_t numbers[] = {
        HIGHEST + 1, 4096, 0x3fffffff, 0x40000000 + HIGHEST + 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
    };

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct seccomp_data data = native_call(numbers[i]);
        ASSERT(agrees(&data));
        ASSERT_EQ(interpret(PX_FILTER_DEFAULT, &data).action, NO_SUCH_CALL);
    }
    for (uint32_t nr = 0; nr <= 1024; nr++) {
        struct seccomp_data data = native_call(0x40000000 | nr);
        ASSERT(agrees(&data));
        ASSERT_EQ(interpret(PX_FILTER_DEFAULT, &data).action, NO_SUCH_CALL);
    }
}

TEST(seccomp_foreign_architectures_are_killed)
{
    static const uint32_t arches[] = {
        AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64 & 0xffff, 0,
    };

    for (size_t i = 0; i < COUNT_OF(arches); i++)
        for (uint32_t nr = 0; nr <= 1024; nr++) {
            struct seccomp_data data = {.nr = (int)nr, .arch = arches[i]};
            ASSERT(agrees(&data));
            ASSERT_EQ(interpret(PX_FILTER_WORKSPACE, &data).action, SECCOMP_RET_KILL_PROCESS);
        }
}

TEST(seccomp_argument_rules_ignore_high_words)
{
    uint64_t state = 0x2545f4914f6cdd1d;

    for (size_t i = 0; i < COUNT_OF(ruled); i++) {
        struct seccomp_data data = native_call(ruled[i]);
        for (int n = 0; n < 20000; n++) {
            fill(&data, &state);
            ASSERT(agrees(&data));
        }
    }
}

TEST(seccomp_socket_families)
{
    uint64_t state = 0x853c49e6748fea9b;

    for (uint32_t family = 0; family < 64; family++)
        for (uint32_t type = 0; type < 32; type++)
            for (uint32_t protocol = 0; protocol < (family == AF_INET || family == AF_INET6 ? 300 : 34); protocol++) {
                uint64_t high = (uint64_t)garbage[next_random(&state) % COUNT_OF(garbage)] << 32;
                struct seccomp_data data = native_call(SYS_socket);
                data.args[0] = high | family;
                data.args[1] = high | type;
                data.args[2] = high | protocol;
                ASSERT(agrees(&data));
                data.nr = SYS_socketpair;
                ASSERT(agrees(&data));
            }
}

TEST(seccomp_every_mode_word)
{
    static const uint32_t flags[] = {0, O_CREAT, 020000000, O_TMPFILE | O_WRONLY, O_DIRECTORY, 0x80000000};
    static const uint32_t calls[] = {SYS_chmod, SYS_fchmod, SYS_creat, SYS_mknod, SYS_fchmodat, 452, SYS_mknodat};

    for (uint64_t mode = 0; mode <= 0xffff; mode++) {
        uint64_t value = mode | (mode * 0x9e3779b1) << 16;      /* garbage above the 16 bits that count */
        for (size_t i = 0; i < COUNT_OF(calls); i++) {
            struct seccomp_data data = native_call(calls[i]);
            data.args[1] = i < 4 ? value : ~value;
            data.args[2] = i < 4 ? ~value : value;
            ASSERT(agrees(&data));
        }
        for (size_t i = 0; i < COUNT_OF(flags); i++) {
            struct seccomp_data data = native_call(SYS_open);
            data.args[1] = flags[i];
            data.args[2] = value;
            ASSERT(agrees(&data));
            data = native_call(SYS_openat);
            data.args[2] = flags[i] | 0xdeadbeef00000000;
            data.args[3] = value;
            ASSERT(agrees(&data));
        }
    }
}

/* What a build box is told is done, what it may do more, and that all else is as in the default filter. */
TEST(seccomp_build_differs_only_where_it_says)
{
    static const int pretended[] = {SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat, SYS_setuid, SYS_setgid, SYS_setreuid,
                                    SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid, SYS_setfsgid, SYS_capset};
    static const int allowed[] = {SYS_chmod, SYS_fchmod, SYS_fchmodat, SYS_creat, SYS_open, SYS_openat, 437 /* openat2 */,
                                  452 /* fchmodat2 */};
    for (int nr = 0; nr < 1024; nr++) {
        struct seccomp_data data = {.nr = nr, .arch = AUDIT_ARCH_X86_64};
        uint32_t wanted = interpret(PX_FILTER_DEFAULT, &data).action;
        for (size_t i = 0; i < COUNT_OF(pretended); i++)
            wanted = pretended[i] == nr ? SECCOMP_RET_ERRNO : wanted;
        ASSERT_EQ(interpret(PX_FILTER_BUILD, &data).action, wanted);
    }
    for (size_t i = 0; i < COUNT_OF(allowed); i++) {
        struct seccomp_data data = {.nr = allowed[i], .arch = AUDIT_ARCH_X86_64, .args = {~0ull, ~0ull, ~0ull, ~0ull}};
        ASSERT_EQ(interpret(PX_FILTER_BUILD, &data).action, SECCOMP_RET_ALLOW);
    }
    static const unsigned types[][2] = {{S_IFCHR, SECCOMP_RET_ERRNO}, {S_IFBLK, SECCOMP_RET_ERRNO}, {S_IFREG, SECCOMP_RET_ALLOW},
                                        {S_IFIFO, SECCOMP_RET_ALLOW}, {0, SECCOMP_RET_ALLOW}};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct seccomp_data node = {.nr = SYS_mknod, .arch = AUDIT_ARCH_X86_64, .args = {0, types[i][0] | 0644}};
        struct seccomp_data nodeat = {.nr = SYS_mknodat, .arch = AUDIT_ARCH_X86_64, .args = {0, 0, types[i][0] | 0644}};
        ASSERT_EQ(interpret(PX_FILTER_BUILD, &node).action, types[i][1]);
        ASSERT_EQ(interpret(PX_FILTER_BUILD, &nodeat).action, types[i][1]);
    }
}

TEST(seccomp_every_bit_of_clone_flags_and_every_terminal_ioctl)
{
    for (int bit = 0; bit < 64; bit++) {
        struct seccomp_data data = native_call(SYS_clone);
        data.args[0] = (uint64_t)1 << bit | SIGCHLD;
        ASSERT(agrees(&data));
    }
    for (uint64_t command = 0x5400; command < 0x5500; command++) {
        struct seccomp_data data = native_call(SYS_ioctl);
        for (size_t i = 0; i < COUNT_OF(garbage); i++) {
            data.args[1] = command | (uint64_t)garbage[i] << 32;
            ASSERT(agrees(&data));
        }
    }
}

/* ---- the kernel ---- */

struct end {
    long value;                 /* what the function returned, if it did */
    int signal;                 /* what killed it, or 0 */
};

static int load(enum px_filter filter)
{
    uint16_t len = 0;
    const struct sock_filter *program = px_seccomp_program(filter, &len);

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return px_seccomp_load(program, len);
}

/* Runs a function in a child and tells how it ended; -1 as signal if there was no child to be had. */
static struct end in_child(long (*function)(const void *arg), const void *arg)
{
    struct end end = {.signal = -1};
    const struct rlimit no_core = {0};
    int ends[2];
    int status = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return end;
    pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        long value = function(arg);
        _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
    }
    (void)close(ends[1]);
    if (child > 0 && waitpid(child, &status, 0) == child) {
        if (WIFSIGNALED(status))
            end.signal = WTERMSIG(status);
        else if (read(ends[0], &end.value, sizeof end.value) == sizeof end.value)
            end.signal = 0;
    }
    (void)close(ends[0]);
    return end;
}

struct attempt {
    long nr;
    long args[5];
    long expected;
};

static long attempt_filtered(const struct attempt *a, enum px_filter filter)
{
    int r = load(filter);

    return r < 0 ? -10000 + r : px_sys(a->nr, a->args[0], a->args[1], a->args[2], a->args[3], a->args[4]);
}

static long attempt_default(const void *arg)
{
    return attempt_filtered(arg, PX_FILTER_WORKSPACE);
}

static long attempt_strict(const void *arg)
{
    return attempt_filtered(arg, PX_FILTER_STRICT);
}

static long attempt_floor(const void *arg)
{
    return attempt_filtered(arg, PX_FILTER_FLOOR_WORKSPACE);
}

static void check_attempts(long (*function)(const void *arg), const struct attempt *attempts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct end end = in_child(function, &attempts[i]);
        ASSERT_EQ(end.signal, 0);
        if (end.value != attempts[i].expected)
            FAIL("attempt %zu, call %ld: %ld instead of %ld", i, attempts[i].nr, end.value, attempts[i].expected);
    }
}

static long high(uint32_t low)
{
    return (long)(0xdeadbeef00000000 | low);
}

TEST(seccomp_kernel_enforces)
{
    int file = memfd_create("seccomp", MFD_CLOEXEC);
    char path[64];

    ASSERT(file >= 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const struct attempt attempts[] = {
        {SYS_getuid, {0}, (long)getuid()},
        {SYS_unshare, {CLONE_NEWUSER}, -EPERM},
        {SYS_clone, {CLONE_NEWUSER | SIGCHLD}, -EPERM},
        {SYS_clone, {high(CLONE_NEWNS | SIGCHLD)}, -EPERM},
        {SYS_clone, {CLONE_PARENT | SIGCHLD}, -EPERM},
        {SYS_prctl, {PR_SET_CHILD_SUBREAPER, 0}, -EPERM},
        {SYS_prctl, {PR_SET_CHILD_SUBREAPER, 1}, 0},
        {SYS_clone3, {0}, -ENOSYS},
        {SYS_openat2, {AT_FDCWD}, -ENOSYS},
        {SYS_io_uring_setup, {1}, -EPERM},
        {SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, -EAFNOSUPPORT},
        {SYS_socket, {AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1}, -EAFNOSUPPORT},
        {SYS_socket, {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 15}, -EAFNOSUPPORT},
        {SYS_socketpair, {AF_VSOCK, SOCK_STREAM, 0}, -EAFNOSUPPORT},
        {SYS_ioctl, {file, TIOCSTI, (long)path}, -EPERM},
        {SYS_ioctl, {file, high(TIOCSTI), (long)path}, -EPERM},
        {SYS_ioctl, {file, TCGETS, (long)path}, -ENOTTY},
        {SYS_chmod, {(long)path, 04755}, -EPERM},
        {SYS_chmod, {(long)path, 02755}, -EPERM},
        {SYS_chmod, {(long)path, 0755}, 0},
        {SYS_fchmod, {file, high(0x10000 | 06755)}, -EPERM},
        {SYS_fchmod, {file, 0700}, 0},
        {SYS_mknodat, {AT_FDCWD, (long)"/dev/null", S_IFCHR | 0600, 0}, -EPERM},
        {SYS_mknodat, {AT_FDCWD, (long)"/dev/null", S_IFIFO | 0600, 0}, -EEXIST},
        {SYS_personality, {0xffffffff}, px_sys(SYS_personality, 0xffffffff)},
        {SYS_personality, {0x40000}, -EPERM},
        {SYS_prctl, {PR_SET_PTRACER, -1}, -EPERM},
        {SYS_ptrace, {0}, -EPERM},
        {SYS_renameat2, {AT_FDCWD, (long)"/proc/none", AT_FDCWD, (long)"/proc/other", 4}, -EPERM},
        {SYS_renameat2, {AT_FDCWD, (long)"/proc/none", AT_FDCWD, (long)"/proc/other", high(4 | 1)}, -EPERM},
        {SYS_renameat2, {AT_FDCWD, (long)"/proc/none/a", AT_FDCWD, (long)"/proc/none/b", 1}, -ENOENT},
        {SYS_socket, {AF_INET, SOCK_STREAM, 262}, -EPROTONOSUPPORT},
        {SYS_socket, {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 132}, -EPROTONOSUPPORT},
        {SYS_socket, {AF_INET, high(SOCK_DGRAM), high(136)}, -EPROTONOSUPPORT},
        {0x40000000 | SYS_getpid, {0}, -ENOSYS},
        {HIGHEST + 1, {0}, -ENOSYS},
    };
    check_attempts(attempt_default, attempts, COUNT_OF(attempts));
    (void)close(file);
}

TEST(seccomp_kernel_enforces_strict)
{
    static const struct attempt attempts[] = {
        {SYS_socket, {AF_INET, SOCK_STREAM, 0}, -EAFNOSUPPORT},
        {SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, -EAFNOSUPPORT},
        {SYS_socket, {AF_UNIX, SOCK_RDM, 0}, -ESOCKTNOSUPPORT},
        {SYS_shmget, {0, 4096, 01600}, -ENOSYS},
        {SYS_semget, {0, 1, 01600}, -ENOSYS},
        {SYS_mq_open, {0}, -ENOSYS},
        {SYS_io_setup, {1, 0}, -ENOSYS},
        {SYS_inotify_init1, {0}, -ENOSYS},
        {SYS_splice, {-1, 0, -1, 0, 1}, -ENOSYS},
        {SYS_seccomp, {1, 0, 0}, -ENOSYS},
        {SYS_prctl, {PR_SET_SECCOMP, 2, 0}, -EPERM},
        {SYS_prctl, {PR_GET_SECCOMP}, 2},
        {SYS_sched_setaffinity, {0}, -EPERM},
        {SYS_setpriority, {0, 0, 5}, -EPERM},
        {SYS_syncfs, {-1}, -EPERM},
        {SYS_openat2, {AT_FDCWD, 0, 0, 0}, -EINVAL},
        {SYS_unshare, {CLONE_NEWUSER}, -EPERM},
    };
    check_attempts(attempt_strict, attempts, COUNT_OF(attempts));
}

TEST(seccomp_kernel_enforces_the_floor)
{
    static const struct attempt attempts[] = {
        {SYS_unshare, {CLONE_NEWUSER}, -EPERM},
        {SYS_clone, {CLONE_NEWUSER | SIGCHLD}, -EPERM},
        {SYS_clone3, {0}, -ENOSYS},
        {SYS_openat2, {AT_FDCWD}, -ENOSYS},
        {SYS_io_uring_setup, {1}, -EPERM},
        {SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, -EAFNOSUPPORT},
        {SYS_chmod, {(long)"/proc/none", 04755}, -EPERM},
        {SYS_chmod, {(long)"/proc/none", 0755}, -ENOENT},
        {SYS_ioctl, {-1, TIOCSTI, 0}, -EPERM},
        {SYS_keyctl, {0}, -EPERM},
        {SYS_prlimit64, {1, 0, 0, 0}, -EPERM},
        {SYS_mount, {0}, -EPERM},
        {SYS_ptrace, {2, 0, 0, 0}, -ESRCH},
        {HIGHEST + 1, {0}, -ENOSYS},
    };
    check_attempts(attempt_floor, attempts, COUNT_OF(attempts));
}

static long i386_getpid(const void *filtered)
{
    long r = 20;                /* getpid of i386 */

    if (filtered && load(PX_FILTER_DEFAULT) < 0)
        return -1;
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    return r;
}

TEST(seccomp_kernel_kills_i386_calls)
{
    if (in_child(i386_getpid, NULL).signal != 0)
        SKIP("this kernel has no i386 calls");
    ASSERT_EQ(in_child(i386_getpid, "filtered").signal, SIGSYS);
}

static void *answer(void *arg)
{
    return arg;
}

static long make_thread(const void *arg)
{
    pthread_t thread;
    void *result = NULL;
    char token = 0;

    if (load(*(const enum px_filter *)arg) < 0 || pthread_create(&thread, NULL, answer, &token) != 0)
        return 1;
    return pthread_join(thread, &result) == 0 && result == &token ? 0 : 2;
}

TEST(seccomp_threads_still_start)
{
    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        struct end end = in_child(make_thread, &filters[i]);

        ASSERT_EQ(end.signal, 0);
        ASSERT_EQ(end.value, 0);
    }
}

static void *unshare_when_told(void *arg)
{
    const int *ends = arg;
    char byte = 0;
    long r = read(ends[0], &byte, 1) == 1 ? px_sys(SYS_unshare, CLONE_NEWUSER) : 1;

    return (void *)r;
}

static long filter_other_thread(const void *arg)
{
    pthread_t thread;
    void *result = NULL;
    int ends[2];

    (void)arg;
    if (pipe2(ends, O_CLOEXEC) < 0 || pthread_create(&thread, NULL, unshare_when_told, ends) != 0)
        return 2;
    if (load(PX_FILTER_DEFAULT) < 0 || write(ends[1], "", 1) != 1 || pthread_join(thread, &result) != 0)
        return 3;
    return (long)result;
}

TEST(seccomp_load_covers_threads_that_run_already)
{
    struct end end = in_child(filter_other_thread, NULL);

    ASSERT_EQ(end.signal, 0);
    ASSERT_EQ(end.value, -EPERM);
}

static long spawn_shell(const void *arg)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
    char *envp[] = {NULL};
    int status = 0;
    pid_t child = 0;

    if (load(*(const enum px_filter *)arg) < 0 || posix_spawn(&child, "/bin/sh", NULL, NULL, argv, envp) != 0 ||
        waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

TEST(seccomp_posix_spawn_works)
{
    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        struct end end = in_child(spawn_shell, &filters[i]);

        ASSERT_EQ(end.signal, 0);
        ASSERT_EQ(end.value, 7);
    }
}

static long ask_for_mode(const void *arg)
{
    char line[64] = "";

    (void)arg;
    if (load(PX_FILTER_DEFAULT) < 0)
        return -1;
    FILE *pipe = popen("grep '^Seccomp:' /proc/self/status", "r");
    if (!pipe)
        return -2;
    bool filtered = fgets(line, sizeof line, pipe) && strcmp(line, "Seccomp:\t2\n") == 0;
    return pclose(pipe) == 0 && filtered ? 0 : -3;
}

TEST(seccomp_survives_exec)
{
    struct end end = in_child(ask_for_mode, NULL);

    ASSERT_EQ(end.signal, 0);
    ASSERT_EQ(end.value, 0);
}

static long load_with_new_privs(const void *arg)
{
    uint16_t len = 0;
    const struct sock_filter *program = px_seccomp_program(PX_FILTER_DEFAULT, &len);

    (void)arg;
    return px_seccomp_load(program, len);
}

TEST(seccomp_load_insists_on_no_new_privs)
{
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
        SKIP("no_new_privs is set already and cannot be taken back");
    struct end end = in_child(load_with_new_privs, NULL);

    ASSERT_EQ(end.signal, 0);
    ASSERT_EQ(end.value, -EPERM);
}

static long load_nonsense(const void *arg)
{
    static const struct sock_filter unaligned[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 1)};

    (void)arg;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? 1 : px_seccomp_load(unaligned, 1);
}

TEST(seccomp_load_reports_the_kernels_refusal)
{
    ASSERT_EQ(in_child(load_nonsense, NULL).value, -EINVAL);
}
