/* px-init - pid 1 of a box: reaps processes, reports how the payload ended, and kills all processes at the end.
 *
 * Why:     pid 1 runs beside untrusted code. So it is a program of its own that has no memory of the caller: a few
 *          kilobytes without a C library, executed from a sealed image, with no file but the control socket.
 * Owns:    descriptor 0, the control socket: it sends one report, and a hang-up means that the supervisor has ended.
 * Mustn't: read anything that the payload can write, except exit statuses from the kernel.
 *
 *   px-init PAYLOAD-PID p|r|s [WRITABLE-DIRECTORY...]
 *
 * p: the box has its own pid namespace; r: px-init is a subreaper; s: there is no payload, commands come over the
 * socket. */
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

static int parse_number(const char *text)
{
    int value = 0;
    for (; *text >= '0' && *text <= '9' && value < 100000000; text++)
        value = value * 10 + (*text - '0');
    return value;
}

static uint64_t to_usec(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static void send_report(int wait_status, char **paths)
{
    struct rusage used = {0};
    (void)px_sys(SYS_getrusage, RUSAGE_CHILDREN, &used);
    struct px_init_report r = {
        .wait_status = wait_status,
        .disk_full = px_command_full(paths),
        .user_usec = to_usec(&used.ru_utime),
        .sys_usec = to_usec(&used.ru_stime),
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

/* Without a pid namespace every orphan of the box becomes our child. So killing our children until there are none
 * ends the tree. A process that forks cannot escape for ever: each round kills all that exist. */
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
        const struct timespec moment = {.tv_nsec = 500000};     /* the children of dead processes become ours */
        (void)px_sys(SYS_nanosleep, &moment, 0);
    }
}

static _Noreturn void end_box(int wait_status, char **paths, int reaper)
{
    if (reaper)
        kill_children();
    send_report(wait_status, paths);
    leave(0);
}

/* Reaps all dead processes; ends the box when the payload is among them. */
static void reap_dead(int payload, char **paths, int reaper)
{
    for (;;) {
        int status = 0;
        long pid = px_sys(SYS_wait4, -1, &status, WNOHANG, 0);
        if (pid == payload)
            end_box(status, paths, reaper);
        if (pid == -ECHILD)
            leave(126);         /* the payload is our child; without it there is nothing to wait for */
        if (pid <= 0)
            return;
    }
}

static _Noreturn void serve_payload(char **argv)
{
    int payload = parse_number(argv[1]);
    int reaper = argv[2][0] == 'r';
    char **paths = argv + 3;
    const uint64_t child = 1ull << (SIGCHLD - 1);
    int events = (int)px_sys(SYS_signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);

    /* exec made this process dumpable again, so that processes with our id could inspect it, where the box has only
     * one id. */
    (void)px_sys(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 0, 0, 0, 0);
    if (reaper) {
        (void)px_sys(SYS_prctl, 36 /* PR_SET_CHILD_SUBREAPER */, 1, 0, 0, 0);
        (void)px_tree_open();
    }
    for (;;) {
        reap_dead(payload, paths, reaper);
        struct pollfd fds[2] = {{.fd = events, .events = POLLIN}, {.fd = CONTROL, .events = POLLIN}};
        long n = px_sys(SYS_poll, fds, 2, -1);
        if (n <= 0)
            continue;
        if (fds[0].revents) {
            char drained[128 * 4];
            (void)px_sys(SYS_read, events, drained, sizeof drained);
        }
        if (fds[1].revents) {           /* the supervisor sends nothing, so this is its hang-up */
            if (reaper)
                kill_children();
            leave(125);
        }
    }
}

/* ---- a container ---- */

/* Exec gave px-init the two capabilities that starting a command with another id takes; no program of the box
 * inherits them. */
static void keep_capabilities(void)
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

/* Moves the socket and the filter file: 0, 1 and 2 become /dev/null, for commands without a stream. */
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

/* Handles one round of events. Hang-ups first, while a row still means the command that was polled. */
static void handle_round(int events, int control)
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
    /* first: a request may add other listeners under the same numbers */
    px_refused_take(fds + 2 + watched, listened);
    for (int i = 2; i < 2 + watched; i++)
        if (fds[i].revents)
            px_command_left(&fds[i]);
    if (fds[0].revents || px_tree_ends()) {
        char drained[128 * 4];
        (void)px_sys(SYS_read, events, drained, sizeof drained);
        reap_all();
    }
    if (fds[1].revents && px_command_take(control) < 0)
        leave(0);               /* the process that kept the box has ended */
}

static _Noreturn void serve_commands(char **directories)
{
    const uint64_t child = 1ull << (SIGCHLD - 1);
    int filter = -1;
    (void)px_sys(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 0, 0, 0, 0);
    keep_capabilities();
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
        handle_round(events, control);
}

__attribute__((used)) static _Noreturn void start(long *stack)
{
    char **argv = (char **)(stack + 1);
    if (stack[0] < 3)
        leave(125);
    if (argv[2][0] == 's')
        serve_commands(argv + 3);
    serve_payload(argv);
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n\thlt\n");
