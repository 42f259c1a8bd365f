/* px-init - pid 1 of a box: reaps, reports how the payload ended, and takes everything with it.
 *
 * Why:     whoever is pid 1 lives beside untrusted code, so it is a program of its own that has seen nothing of the caller:
 *          a few kilobytes without a C library, executed from a sealed image, with no file but the control socket.
 * Owns:    descriptor 0, the control socket: one report goes out, and its hang-up means that the supervisor is gone.
 * Mustn't: read anything the payload can write, except exit statuses from the kernel.
 *
 *     px-init PAYLOAD-PID p|r|s [WRITABLE-DIRECTORY...]
 *
 * p: the box has its own pid namespace; r: px-init is a subreaper; s: there is no payload, commands come over the socket. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/bare.h"
#include "base/sys.h"
#include "init/command.h"
#include "init/denials.h"
#include "init/filter.h"
#include "init/own.h"
#include "init/tree.h"
#include "init/wire.h"

enum { CONTROL = 0 };

static int number(const char *text)
{
    int value = 0;
    for (; *text >= '0' && *text <= '9' && value < 100000000; text++)
        value = value * 10 + (*text - '0');
    return value;
}

static uint64_t usec(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static void report(int wait_status, char **paths)
{
    struct rusage used = {0};
    (void)px_sys(SYS_getrusage, RUSAGE_CHILDREN, &used);
    struct px_init_report r = {
        .wait_status = wait_status,
        .disk_full = px_command_full(paths),
        .user_usec = usec(&used.ru_utime),
        .sys_usec = usec(&used.ru_stime),
        .maxrss_kib = (uint64_t)used.ru_maxrss,
        .read_blocks = (uint64_t)used.ru_inblock,
        .write_blocks = (uint64_t)used.ru_oublock,
    };
    (void)px_sys(SYS_sendto, CONTROL, &r, sizeof r, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
}

static void kill_one(int pid)
{
    (void)px_sys(SYS_kill, pid, SIGKILL);
}

/* Without a pid namespace: every process that was orphaned in the box becomes our child, so killing our children until
 * there are none ends the tree. A forking process cannot outrun it for ever: each round kills all that are there. */
static void kill_children(void)
{
    for (int round = 0; round < 10000; round++) {
        if (px_tree_each_child(kill_one) < 0)
            return;
        long reaped;
        while ((reaped = px_sys(SYS_wait4, -1, 0, WNOHANG, 0)) > 0)
            ;
        if (reaped == -ECHILD)
            return;
        const struct timespec moment = {.tv_nsec = 500000};     /* the dead pass their children on to us */
        (void)px_sys(SYS_nanosleep, &moment, 0);
    }
}

static _Noreturn void finish(int wait_status, char **paths, int reaper)
{
    if (reaper)
        kill_children();
    report(wait_status, paths);
    leave(0);
}

/* Reaps whatever is there. Returns when nothing more is dead; ends the box when the payload is. */
static void reap(int payload, char **paths, int reaper)
{
    for (;;) {
        int status = 0;
        long pid = px_sys(SYS_wait4, -1, &status, WNOHANG, 0);
        if (pid == payload)
            finish(status, paths, reaper);
        if (pid == -ECHILD)
            leave(126);         /* the payload cannot vanish without us; never wait for ever */
        if (pid <= 0)
            return;
    }
}

static _Noreturn void serve(char **argv)
{
    int payload = number(argv[1]);
    int reaper = argv[2][0] == 'r';
    char **paths = argv + 3;
    const uint64_t child = 1ull << (SIGCHLD - 1);
    int events = (int)px_sys(SYS_signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);

    /* exec made us visible again to processes of our id, where the box has only one. */
    (void)px_sys(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 0, 0, 0, 0);
    if (reaper) {
        (void)px_sys(SYS_prctl, 36 /* PR_SET_CHILD_SUBREAPER */, 1, 0, 0, 0);
        (void)px_tree_open();
    }
    for (;;) {
        reap(payload, paths, reaper);
        struct pollfd fds[2] = {{.fd = events, .events = POLLIN}, {.fd = CONTROL, .events = POLLIN}};
        long n = px_sys(SYS_poll, fds, 2, -1);
        if (n <= 0)
            continue;
        if (fds[0].revents) {
            char drained[128 * 4];
            (void)px_sys(SYS_read, events, drained, sizeof drained);
        }
        if (fds[1].revents) {           /* nothing is ever sent to us: the supervisor is gone */
            if (reaper)
                kill_children();
            leave(125);
        }
    }
}

/* ---- a box that stays ---- */

/* Exec brought the two privileges that starting a command as somebody else takes; no program of the box inherits them. */
static void keep_to_ourselves(void)
{
    struct {
        uint32_t version;
        int32_t pid;
    } header = {.version = 0x20080522};
    struct {
        uint32_t effective, permitted, inheritable;
    } data[2] = {{0}};
    if (px_sys(SYS_capget, &header, data) < 0)
        leave(125);
    data[0].inheritable = data[1].inheritable = 0;
    if (px_sys(SYS_capset, &header, data) < 0)          /* unfiltered: no filter is loaded yet */
        leave(125);
}

/* The socket and the filter move out of the way: 0, 1 and 2 are nobody's, for the commands that have no stream. */
static int make_room(int *ret_filter)
{
    enum { ABOVE = 16 };
    int control = (int)px_sys(SYS_fcntl, CONTROL, F_DUPFD_CLOEXEC, ABOVE);
    *ret_filter = (int)px_sys(SYS_fcntl, 2, F_DUPFD_CLOEXEC, ABOVE);
    int null = (int)px_sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
    if (control < 0 || *ret_filter < 0 || null < 0)
        leave(125);
    for (int i = 0; i < 3; i++)
        if (null != i && px_sys(SYS_dup3, null, i, 0) < 0)
            leave(125);
    if (null > 2)
        (void)px_sys(SYS_close, null);
    else
        (void)px_sys(SYS_fcntl, null, F_SETFD, 0);
    return control;
}

static void reap_all(void)
{
    int status = 0;
    long pid;
    struct rusage used;
    if (px_tree_ends() && !px_tree_round()) {
        px_command_reap();
        return;
    }
    while ((pid = px_sys(SYS_wait4, -1, &status, WNOHANG, &used)) > 0)
        px_command_ended((int)pid, status, &used);
}

/* One turn: hang-ups first, while a number still means the command that it meant when we looked. */
static void turn(int events, int control)
{
    enum { FEW = 24, MOMENT_MSEC = 2 };
    static struct pollfd many[2 + PX_INIT_COMMANDS_MAX + PX_REFUSED_WATCH_MAX];         /* pages that few boxes ever touch */
    struct pollfd few[FEW], *fds = 2 + px_command_watch(NULL) + px_refused_watch(NULL) > FEW ? many : few;
    fds[0] = (struct pollfd){.fd = events, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = control, .events = POLLIN};
    int watched = px_command_watch(fds + 2);
    int listened = px_refused_watch(fds + 2 + watched);
    long n = px_sys(SYS_poll, fds, 2 + watched + listened, px_tree_ends() ? MOMENT_MSEC : -1);
    if (n < 0)
        return;
    px_refused_take(fds + 2 + watched, listened);       /* first: a request may bring other listeners under the same numbers */
    for (int i = 2; i < 2 + watched; i++)
        if (fds[i].revents)
            px_command_left(&fds[i]);
    if (fds[0].revents || px_tree_ends()) {
        char drained[128 * 4];
        (void)px_sys(SYS_read, events, drained, sizeof drained);
        reap_all();
    }
    if (fds[1].revents && px_command_take(control) < 0)
        leave(0);               /* whoever kept the box is gone */
}

static _Noreturn void stay(char **directories)
{
    const uint64_t child = 1ull << (SIGCHLD - 1);
    int filter = -1;
    (void)px_sys(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 0, 0, 0, 0);
    keep_to_ourselves();
    px_own.directories = directories;
    int control = make_room(&filter);
    int events = (int)px_sys(SYS_signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);
    struct px_init_started ready = {.err = events, .stage = PX_INIT_FILTER, .pid = px_tree_open()};
    if (events >= 0)
        ready.err = px_filter_init(filter, &ready);
    (void)px_sys(SYS_sendto, control, &ready, sizeof ready, MSG_NOSIGNAL, 0, 0);
    if (ready.err < 0)
        leave(125);
    for (;;)
        turn(events, control);
}

__attribute__((used)) static _Noreturn void start(long *stack)
{
    char **argv = (char **)(stack + 1);
    if (stack[0] < 3)
        leave(125);
    if (argv[2][0] == 's')
        stay(argv + 3);
    serve(argv);
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n\thlt\n");
