/* px-start - pid 1 of a container that an OCI runtime has made: looks whether it is as asked for, runs the command, reports.
 *
 * Why:     without it the command would be pid 1, which no signal without a handler reaches and which has to reap; and a
 *          runtime cannot tell an exit status from a signal, or its own failure from the command's.
 * Owns:    the socket of runtime/start.h, if there is one; it comes as descriptor 3.
 * Mustn't: read anything the command can write, except exit statuses from the kernel. It has the command's ids but is not
 *          dumpable, and the command's filter knows no ptrace.
 *
 *     px-start         with its orders in /.px/orders */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/bare.h"
#include "base/pass.h"
#include "base/sys.h"
#include "init/payload.h"
#include "kernel/landlock.h"
#include "kernel/notify.h"
#include "kernel/privs.h"
#include "runtime/start.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { CLOSED = -1, HIGH_FD = 64, PRIVILEGES_MAX = 63, CAP_VERSION_3 = 0x20080522 };

/* Of this process and, until its exec, of the command's: in memory and a table of descriptors that both have. */
struct shared {
    struct px_start_message failure;    /* kind 0: none */
    int listener, master;
};

struct start {
    const struct px_start_orders *orders;
    struct shared *shared;
    char **argv, **envp;
    int socket, events;
    int stdio[3];               /* from the supervisor; CLOSED: none */
};

static const void *at(const struct start *s, uint32_t offset)
{
    return (const char *)s->orders + offset;
}

/* Out of the way of the numbers that the command may have. */
static int above(int fd)
{
    int moved = (int)px_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (moved < 0)              /* not there, or the caller's own limit is lower */
        return fd;
    (void)px_sys(SYS_close, fd);
    return moved;
}

/* ---- saying ---- */

static void say(const struct start *s, const struct px_start_message *message, const int *fds, unsigned count)
{
    if (s->socket >= 0)
        (void)px_pass_send(s->socket, message, sizeof *message, fds, count, 0);
}

/* Without a socket prints the error for a person; with one, the supervisor has a better message. */
static _Noreturn void give_up(const struct start *s, const struct px_start_message *failure)
{
    static const char *const words[] = {
        [PX_START_ORDERED] = "px: px-start has no orders\n",
        [PX_START_IDS] = "px: the runtime did not set the ids that were asked for\n",
        [PX_START_PRIVILEGES] = "px: the runtime left privileges\n",
        [PX_START_PROCESS] = "px: the command's process cannot be made\n",
        [PX_START_STDIO] = "px: the standard streams cannot be opened\n",
        [PX_START_TERMINAL] = "px: the terminal cannot be used\n",
        [PX_START_OTHER_IDS] = "px: the ids of the command cannot be had\n",
        [PX_START_WORKDIR] = "px: the working directory cannot be entered\n",
        [PX_START_LANDLOCK] = "px: Landlock cannot be applied\n",
        [PX_START_RLIMIT] = "px: a limit cannot be set\n",
        [PX_START_SECCOMP] = "px: the system call filter cannot be loaded\n",
        [PX_START_EXEC] = "px: the command was not found, or cannot be run\n",
    };
    const char *text = words[failure->step];
    size_t n = 0;
    say(s, failure, NULL, 0);
    while (text[n])
        n++;
    if (s->socket < 0)
        (void)px_sys(SYS_write, 2, text, n);
    leave(failure->step != PX_START_EXEC ? 125 : failure->found ? 126 : 127);
}

static _Noreturn void fail(const struct start *s, enum px_start_step step, long err)
{
    const struct px_start_message failure = {.kind = PX_START_FAILED, .step = step, .err = (int32_t)err};
    give_up(s, &failure);
}

/* ---- is it as asked for? ---- */

static bool has_ids(const struct px_start_orders *o)
{
    uint32_t u[3] = {0}, g[3] = {0};
    if (px_sys(SYS_getresuid, &u[0], &u[1], &u[2]) < 0 || px_sys(SYS_getresgid, &g[0], &g[1], &g[2]) < 0)
        return false;
    for (int i = 0; i < 3; i++)
        if (u[i] != o->uid || g[i] != o->gid)
            return false;
    return true;
}

/* None, but for the one that renaming an id takes. */
static bool has_no_privileges(const struct px_start_orders *o)
{
    enum { SETFCAP = 31 };
    const uint32_t allowed = o->other_ids ? 1u << SETFCAP : 0;
    struct {
        uint32_t version;
        int32_t pid;
    } header = {.version = CAP_VERSION_3};
    uint32_t sets[6] = {0};
    if (px_sys(SYS_capget, &header, sets) < 0)
        return false;
    for (int i = 0; i < 6; i++)         /* effective, permitted, inheritable: the low 32, then the others */
        if (i < 2 ? sets[i] & ~allowed : sets[i])
            return false;
    for (int i = 0; i <= PRIVILEGES_MAX; i++) {
        long r = px_sys(SYS_prctl, PR_CAPBSET_READ, i, 0, 0, 0);
        if (r == -EINVAL)       /* past the last one that this kernel has */
            break;
        if (r != 0 && !(o->other_ids && i == SETFCAP))
            return false;
    }
    return px_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

/* ---- the command, before its exec ---- */

static _Noreturn void stop(const struct start *s, enum px_start_step step, long err, bool found)
{
    s->shared->failure = (struct px_start_message){.kind = PX_START_FAILED, .step = step, .err = (int32_t)err, .found = found};
    leave(127);
}

/* The kernel's own layout; libc's struct differs. */
struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static void reset_signals(void)
{
    const struct kernel_sigaction normal = {0};
    for (int i = 1; i <= 64; i++)
        if (i != SIGKILL && i != SIGSTOP)
            (void)px_sys(SYS_rt_sigaction, i, &normal, 0, 8);
}

static long put_file(const char *path, const char *text, size_t len)
{
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    long r = fd < 0 ? fd : px_sys(SYS_write, fd, text, len);
    (void)px_sys(SYS_close, fd);
    return r < 0 ? r : 0;
}

/* "INSIDE OUTSIDE 1" */
static long put_map(const char *path, uint32_t inside, uint32_t outside)
{
    char text[32];
    char *p = text + sizeof text;
    const uint32_t numbers[] = {1, outside, inside};
    for (int i = 0; i < 3; i++) {
        uint32_t n = numbers[i];
        if (i)
            *--p = ' ';
        do
            *--p = (char)('0' + n % 10);
        while ((n /= 10));
    }
    return put_file(path, p, (size_t)(text + sizeof text - p));
}

static long rename_ids(uint32_t uid, uint32_t gid, uint32_t from_uid, uint32_t from_gid)
{
    long r = px_sys(SYS_unshare, CLONE_NEWUSER);
    if (r >= 0)
        r = put_file("/proc/thread-self/setgroups", "deny", 4);
    if (r >= 0)
        r = put_map("/proc/thread-self/uid_map", uid, from_uid);
    return r < 0 ? r : put_map("/proc/thread-self/gid_map", gid, from_gid);
}

/* Where the caller has one id, a runtime wants it to be the container's root. The command has it by its own numbers, in a user
 * namespace below; with one more between, so that none of its ids is a 0 of anybody's. The privileges that come with a
 * namespace are given up as in a native box. */
static long take_other_ids(const struct px_start_orders *o)
{
    enum { BETWEEN = 1 };
    (void)px_sys(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);       /* until the exec: the maps are files of our own */
    long r = rename_ids(BETWEEN, BETWEEN, o->uid, o->gid);
    if (r >= 0)
        r = rename_ids(o->command_uid, o->command_gid, BETWEEN, BETWEEN);
    if (r >= 0)
        r = px_privs_bound();
    return r < 0 ? r : px_privs_drop(o->command_uid, o->command_gid, 0, 1);
}

static long apply_landlock(const struct start *s)
{
    const struct px_start_rule *rules = at(s, s->orders->rules);
    int abi = (int)s->orders->landlock_abi;
    int ruleset = px_landlock_new(abi);
    long r = ruleset;
    for (uint32_t i = 0; r >= 0 && i < s->orders->rules_count; i++) {
        int fd = (int)px_sys(SYS_openat, AT_FDCWD, at(s, rules[i].path), O_PATH | O_CLOEXEC);
        if (fd < 0 && rules[i].maybe)
            continue;
        r = fd < 0 ? fd : px_landlock_allow(ruleset, abi, fd, rules[i].rights);
        (void)px_sys(SYS_close, fd);
    }
    if (r >= 0)
        r = px_landlock_enforce(ruleset);
    (void)px_sys(SYS_close, ruleset);
    return r;
}

static long load_filter(const struct start *s, const struct px_start_filter *f)
{
    const struct {
        uint16_t length;
        const void *code;
    } request = {(uint16_t)f->length, at(s, f->code)};
    if (f->length == 0)
        return 0;
    if (!f->listen)
        return px_sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &request);
    s->shared->listener = px_notify_load(request.code, request.length);
    return s->shared->listener;
}

static _Noreturn void try_candidates(const struct start *s)
{
    uint32_t found = 0;
    int answer = px_payload_exec(at(s, s->orders->candidates), s->orders->candidates_count, s->argv, s->envp, &found);
    stop(s, PX_START_EXEC, answer, found != 0);
}

static long put_stdio(const struct start *s)
{
    long r = 0;
    for (int i = 0; i < 3 && r >= 0; i++) {
        int fd = s->stdio[i];
        if (fd < 0)
            fd = (int)px_sys(SYS_openat, AT_FDCWD, "/dev/null", (i ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        r = fd < 0 ? fd : px_sys(SYS_dup3, fd, i, 0);
        (void)px_sys(SYS_close, fd);
    }
    return r;
}

/* As the native engine does: from the box's own devpts, found without a path; the supervisor gets the master. */
static long make_terminal(const struct start *s)
{
    int master = CLOSED;
    int r = px_payload_terminal("/dev/pts/ptmx", (uint16_t)s->orders->rows, (uint16_t)s->orders->cols, &master);
    s->shared->master = above(master);
    return r;
}

static _Noreturn void become(const struct start *s)
{
    const struct px_start_orders *o = s->orders;
    const struct px_start_limit *limits = at(s, o->limits);
    const uint64_t none = 0;
    long r = px_sys(SYS_setsid);

    if (r >= 0 && o->terminal == PX_START_OWN_TERMINAL)
        r = make_terminal(s);
    else if (r >= 0 && o->terminal != PX_START_NO_TERMINAL)
        r = px_sys(SYS_ioctl, 0, TIOCSCTTY, 0);
    if (r < 0)
        stop(s, PX_START_TERMINAL, r, false);
    if (o->socket && o->terminal == PX_START_NO_TERMINAL && (r = put_stdio(s)) < 0)
        stop(s, PX_START_STDIO, r, false);
    (void)px_sys(SYS_umask, 022);
    reset_signals();
    if (o->other_ids && (r = take_other_ids(o)) < 0)
        stop(s, PX_START_OTHER_IDS, r, false);
    if ((r = px_sys(SYS_chdir, at(s, o->workdir))) < 0)
        stop(s, PX_START_WORKDIR, r, false);
    if (o->landlock_abi && (r = apply_landlock(s)) < 0)
        stop(s, PX_START_LANDLOCK, r, false);
    for (uint32_t i = 0; i < o->limits_count; i++)
        if ((r = px_payload_lower(limits[i].resource, limits[i].soft, limits[i].hard)) < 0)
            stop(s, PX_START_RLIMIT, r, false);
    /* Number 3 is free for the listener, so that the limit of open files cannot stop it. */
    for (int i = 0; i < PX_START_FILTERS; i++)
        if ((r = load_filter(s, &o->filters[i])) < 0)
            stop(s, PX_START_SECCOMP, r, false);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    try_candidates(s);
}

/* What only the supervisor is to have is closed here, and so are the streams: the command's end is their end. */
static void tell_runs(const struct start *s, long pid)
{
    struct px_start_message message = {.kind = PX_START_RUNS};
    const int all[PX_START_CARRIES_MAX] = {(int)px_sys(SYS_pidfd_open, pid, 0), s->shared->listener, s->shared->master};
    int fds[PX_START_CARRIES_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < PX_START_CARRIES_MAX; i++)
        if (all[i] >= 0) {
            message.carries |= 1u << i;
            fds[count++] = all[i];
        }
    say(s, &message, fds, count);
    for (unsigned i = 0; i < count; i++)
        (void)px_sys(SYS_close, fds[i]);
    (void)px_sys(SYS_close_range, 0, 2, 0);
}

/* Returns when the command's program runs. CLONE_VFORK waits for that or for its failure; the child has memory of its own. */
static int launch(const struct start *s)
{
    /* The leader of the terminal's session must give it up before another can take it. */
    if (s->orders->terminal == PX_START_GIVEN_TERMINAL)
        (void)px_sys(SYS_ioctl, 0, TIOCNOTTY, 0);
    long pid = px_sys(SYS_clone, CLONE_VFORK | CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        become(s);
    if (pid < 0)
        fail(s, PX_START_PROCESS, pid);
    if (s->shared->failure.kind)
        give_up(s, &s->shared->failure);
    if (s->socket >= 0)
        tell_runs(s, pid);
    return (int)pid;
}

/* ---- its end ---- */

static uint64_t usec(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* A bit for each directory that has no block or no inode left. */
static uint32_t full_directories(const struct start *s)
{
    const char *path = at(s, s->orders->directories);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 32 && i < s->orders->directories_count; i++) {
        struct statfs fs = {0};
        if (px_sys(SYS_statfs, path, &fs) == 0 && fs.f_blocks && (fs.f_bavail == 0 || (fs.f_files && fs.f_ffree == 0)))
            bits |= 1u << i;
        while (*path++)
            ;
    }
    return bits;
}

static _Noreturn void finish(const struct start *s, int status)
{
    struct rusage used = {0};
    (void)px_sys(SYS_getrusage, RUSAGE_CHILDREN, &used);
    const struct px_start_message message = {
        .kind = PX_START_ENDED,
        .report = {
            .wait_status = status,
            .disk_full = full_directories(s),
            .user_usec = usec(&used.ru_utime),
            .sys_usec = usec(&used.ru_stime),
            .maxrss_kib = (uint64_t)used.ru_maxrss,
            .read_blocks = (uint64_t)used.ru_inblock,
            .write_blocks = (uint64_t)used.ru_oublock,
        },
    };
    say(s, &message, NULL, 0);
    leave(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void reap(const struct start *s, int command)
{
    for (;;) {
        int status = 0;
        long pid = px_sys(SYS_wait4, -1, &status, WNOHANG, 0);
        if (pid == command)
            finish(s, status);
        if (pid == -ECHILD)
            leave(126);         /* the command cannot vanish without us; never wait for ever */
        if (pid <= 0)
            return;
    }
}

/* Signals come from outside only: inside, pid 1 takes none that it does not ask for. They are the command's. */
static _Noreturn void serve(const struct start *s, int command)
{
    for (;;) {
        struct {
            uint32_t signal;
            char rest[124];
        } taken[8];
        reap(s, command);
        struct pollfd fds[2] = {{.fd = s->events, .events = POLLIN}, {.fd = s->socket, .events = POLLIN}};
        if (px_sys(SYS_poll, fds, 2, -1) <= 0)
            continue;
        long n = fds[0].revents ? px_sys(SYS_read, s->events, taken, sizeof taken) : 0;
        for (long i = 0; i < n / (long)sizeof taken[0]; i++)
            if (taken[i].signal != SIGCHLD)
                (void)px_sys(SYS_kill, -command, taken[i].signal);
        if (fds[1].revents)     /* nothing is sent to us any more: the supervisor is gone */
            leave(125);
    }
}

/* The answer brings the standard streams. */
static void wait_for_go(struct start *s)
{
    const struct px_start_message hello = {.kind = PX_START_HELLO};
    unsigned char given = 0;
    int fds[3], next = 0;
    if (s->socket < 0)
        return;
    say(s, &hello, NULL, 0);
    if (px_pass_receive(s->socket, &given, 1, 0, fds, 3, NULL) != 1)
        leave(125);
    for (int i = 0; i < 3; i++)
        s->stdio[i] = given & 1u << i ? above(fds[next++]) : CLOSED;
}

/* ---- the beginning ---- */

/* A file of px's on a read-only root; the supervisor computed its content. */
static const struct px_start_orders *read_orders(void)
{
    struct stat st = {0};
    int fd = (int)px_sys(SYS_openat, AT_FDCWD, PX_START_ORDERS, O_RDONLY | O_CLOEXEC);
    long r = fd < 0 ? fd : px_sys(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
    if (r >= 0 && st.st_size < (long)sizeof(struct px_start_orders))
        r = -EINVAL;
    if (r >= 0)
        r = px_sys(SYS_mmap, 0, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)px_sys(SYS_close, fd);
    const struct px_start_orders *orders = r < 0 && r > -4096 ? NULL : (const void *)r;
    return orders && orders->size == (uint64_t)st.st_size ? orders : NULL;
}

/* Texts one after the other as a vector; NULL if there is no memory. */
static char **vector_of(const struct start *s, uint32_t offset, uint32_t count)
{
    long r = px_sys(SYS_mmap, 0, (count + 1ul) * sizeof(char *), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char **v = r < 0 && r > -4096 ? NULL : (char **)r;
    char *text = (char *)at(s, offset);
    for (uint32_t i = 0; v && i < count; i++) {
        v[i] = text;
        while (*text++)
            ;
    }
    return v;
}

static int signal_events(void)
{
    /* What a terminal or a runtime may send, and the ends of children. */
    static const int taken[] = {SIGCHLD, SIGHUP,   SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP, SIGALRM};
    uint64_t mask = 0;
    for (unsigned i = 0; i < sizeof taken / sizeof taken[0]; i++)
        mask |= 1ull << (taken[i] - 1);
    return above((int)px_sys(SYS_signalfd4, -1, &mask, 8, O_CLOEXEC | O_NONBLOCK));
}

static void prepare(struct start *s)
{
    const struct px_start_orders *o = s->orders;
    if (!has_ids(o))
        fail(s, PX_START_IDS, -EPERM);
    if (!has_no_privileges(o))
        fail(s, PX_START_PRIVILEGES, -EPERM);
    s->events = signal_events();
    s->argv = vector_of(s, o->argv, o->argv_count);
    s->envp = vector_of(s, o->envp, o->envp_count);
    long shared = px_sys(SYS_mmap, 0, sizeof *s->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->events < 0 || !s->argv || !s->envp || (shared < 0 && shared > -4096))
        fail(s, PX_START_PROCESS, s->events < 0 ? s->events : -ENOMEM);
    s->shared = (struct shared *)shared;
    s->shared->listener = s->shared->master = CLOSED;
}

__attribute__((used)) static _Noreturn void begin(void)
{
    const uint64_t all = ~0ull;
    struct start s = {.events = CLOSED, .stdio = {CLOSED, CLOSED, CLOSED}};

    (void)px_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, 8);
    (void)px_sys(SYS_close_range, PX_START_FD + 1, ~0u, 0);
    (void)px_sys(SYS_fcntl, PX_START_FD, F_SETFD, FD_CLOEXEC);
    s.orders = read_orders();
    s.socket = !s.orders || s.orders->socket ? above(PX_START_FD) : CLOSED;
    if (!s.orders)
        fail(&s, PX_START_ORDERED, -EINVAL);
    prepare(&s);
    wait_for_go(&s);
    serve(&s, launch(&s));
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall begin\n\thlt\n");
