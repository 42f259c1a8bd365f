#include "init/command.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include "base/pass.h"
#include "base/sys.h"
#include "init/denials.h"
#include "init/filter.h"
#include "init/own.h"
#include "init/payload.h"
#include "init/tree.h"
#include "init/wire.h"

enum { FDS_MAX = 5, FEW = PX_OWN_ROWS, SLICE_NSEC = 5000000, STOPS_MAX = 20, SLICES_MAX = 2000 /* 10 seconds */ };

struct px_init_own px_own __attribute__((aligned(PX_OWN_PAGE)));
static struct px_init_row many[PX_INIT_COMMANDS_MAX - FEW];

static struct px_init_row *row_at(int index)
{
    return index < FEW ? &px_own.few[index] : &many[index - FEW];
}

/* The words of a request lie right behind its text: the array that follows the texts has room for that. */
static char **words_after(const char *text, uint32_t length)
{
    const char *first = px_own.message.text;
    if (text != first)
        return px_own.words;
    uintptr_t end = (uintptr_t)first + length, step = sizeof(char *);
    return (char **)((end + step - 1) / step * step);
}

/* ---- the request, taken apart ---- */

struct command {
    const struct px_init_request *request;
    char *text;                 /* the directory, then the candidate paths of the program */
    char **argv, **envp;
    int reply, stream[3];       /* -1: none */
    struct px_init_started started;
};

/* The texts must hold exactly as many NULs as the request counts; then no pointer leads out of them. */
static int split_words(struct command *c, char *text, uint32_t length)
{
    const struct px_init_request *r = c->request;
    uint64_t want = 1 + (uint64_t)r->places + r->argc + r->envc, seen = 0;
    uint32_t at = 0, n = 0;
    char **words = words_after(text, length);
    if (want + 2 > PX_INIT_WORDS_MAX || r->places == 0 || r->argc == 0)
        return -E2BIG;
    for (uint32_t i = 0; i < length; i++)
        seen += text[i] == '\0';
    if (seen != want || length == 0 || text[length - 1] != '\0')
        return -EBADMSG;
    c->text = text;
    for (uint64_t i = 0; i < want; i++) {
        if (i == 1 + (uint64_t)r->places)
            c->argv = &words[n];
        if (i == 1 + (uint64_t)r->places + r->argc) {
            words[n++] = NULL;
            c->envp = &words[n];
        }
        if (i >= 1 + (uint64_t)r->places)
            words[n++] = text + at;
        while (text[at++])
            ;
    }
    if (r->envc == 0) {
        words[n++] = NULL;
        c->envp = &words[n];
    }
    words[n] = NULL;
    return 0;
}

/* ---- the child, which shares our memory until its exec ---- */

int px_command_send_fd(int socket, const void *data, size_t size, int fd)
{
    return px_pass_send(socket, data, size, &fd, fd >= 0, MSG_DONTWAIT);
}

static int take_terminal(const struct command *c)
{
    int master = -1;
    int r = px_payload_terminal("/dev/pts/ptmx", c->request->rows, c->request->cols, &master);
    return r < 0 ? r : px_command_send_fd(c->reply, "t", 1, master);
}

static int take_streams(const struct command *c)
{
    long r = 0;
    for (int i = 0; i < 3 && r >= 0; i++)
        if (c->stream[i] >= 0)
            r = px_sys(SYS_dup3, c->stream[i], i, 0);
    return (int)r;
}

static int take_ids(const struct px_init_request *request)
{
    if (request->flags & PX_INIT_KEEP_IDS)
        return 0;
    long r = px_sys(SYS_setresgid, request->gid, request->gid, request->gid);
    return r < 0 ? (int)r : (int)px_sys(SYS_setresuid, request->uid, request->uid, request->uid);
}

static int take_limits(const struct px_init_request *request)
{
    int r = 0;
    for (uint32_t i = 0; i < request->rlimits && i < PX_INIT_RLIMITS_MAX && r >= 0; i++)
        r = px_payload_lower(request->rlimit[i].resource, request->rlimit[i].soft, request->rlimit[i].hard);
    return r;
}

static int run_program(struct command *c, char *place)
{
    const uint64_t none = 0;
    int r = (int)px_sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
    if (r < 0)
        return r;
    return px_payload_exec(place, c->request->places, c->argv, c->envp, &c->started.found);
}

static int become_command(struct command *c)
{
    char *place = c->text;
    (void)px_sys(SYS_setsid);
    (void)px_sys(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);       /* tree.h */
    (void)px_sys(SYS_umask, 022);
    c->started.stage = PX_INIT_IDS;
    int r = take_ids(c->request);
    if (r < 0)
        return r;
    c->started.stage = PX_INIT_TERMINAL;
    if ((r = c->request->flags & PX_INIT_TTY ? take_terminal(c) : take_streams(c)) < 0)
        return r;
    c->started.stage = PX_INIT_CHDIR;
    if ((r = (int)px_sys(SYS_chdir, c->text)) < 0)
        return r;
    /* After the terminal: sending a descriptor may fail by the sender's RLIMIT_NOFILE, and by the descriptors that
     * another box of the same user has in flight. */
    c->started.stage = PX_INIT_IDS;
    if ((r = take_limits(c->request)) < 0)
        return r;
    c->started.stage = PX_INIT_APPARMOR;
    if ((r = px_filter_confine()) < 0)
        return r;
    c->started.stage = PX_INIT_FILTER;
    if ((r = px_filter_command()) < 0)
        return r;
    c->started.stage = PX_INIT_EXEC;
    while (*place++)
        ;
    return run_program(c, place);
}

static _Noreturn void child_main(struct command *c)
{
    c->started.err = become_command(c);
    for (;;)
        (void)px_sys(SYS_exit_group, 127);
}

/* clone(2), not clone3: the filter can see its flags. Until the kernel clears px_own.sharing, the child uses our
 * memory and `c`. */
static long clone_child(struct command *c, int *ret_pidfd)
{
    long ret;
    register long pidfd __asm__("rdx") = (long)ret_pidfd;
    register long tid __asm__("r10") = (long)&px_own.sharing;
    register long tls __asm__("r8") = 0;
    register void (*entry)(struct command *) __asm__("r12") = child_main;
    register struct command *pointer __asm__("r13") = c;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "0"((long)SYS_clone), "D"((long)(CLONE_VM | CLONE_PIDFD | CLONE_CHILD_CLEARTID | SIGCHLD)),
                       "S"(px_own.stack + sizeof px_own.stack - 16), "r"(pidfd), "r"(tid), "r"(tls), "r"(entry), "r"(pointer)
                     : "rcx", "r11", "memory");
    return ret;
}

int px_command_row(int pid)
{
    for (int i = 0; pid > 1 && i < PX_INIT_COMMANDS_MAX; i++)
        if (row_at(i)->pid == pid)
            return i;
    return -1;
}

bool px_command_ends(int pid)
{
    int row = px_command_row(pid);
    return row >= 0 && row_at(row)->ends;
}

static void end_tree(int row)
{
    row_at(row)->ends = true;
    px_tree_end(row_at(row)->pid);
}

/* Only for a running command of ours: before it is reaped, its number cannot name another group. */
static void signal_group(const struct px_init_request *request)
{
    int row = px_command_row(request->pid);
    if (row >= 0 && request->signal == SIGKILL)
        end_tree(row);
    else if (row >= 0)
        (void)px_sys(SYS_kill, -request->pid, request->signal);
}

static bool is_stopped(int pid)
{
    siginfo_t info = {0};
    return px_sys(SYS_waitid, P_PID, pid, &info, WSTOPPED | WNOHANG, 0) == 0 && info.si_pid == pid;
}

static bool hung_up(int fd)
{
    struct pollfd end = {.fd = fd};
    return px_sys(SYS_poll, &end, 1, 0) > 0;
}

/* Serves the other commands meanwhile: a requester has hung up, a signal is requested, a command has ended. A
 * request for a new command, and what lies behind it, stays in the socket. */
static void look_after_others(void)
{
    struct px_init_request head;
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++) {
        struct pollfd news = {.fd = row_at(i)->reply, .events = row_at(i)->ends ? 0 : POLLRDHUP};
        if (row_at(i)->pid && row_at(i)->reply >= 0 && px_sys(SYS_poll, &news, 1, 0) > 0)
            px_command_left(&news);
    }
    while (px_sys(SYS_recvfrom, px_own.owner, &head, sizeof head, MSG_PEEK | MSG_DONTWAIT, 0, 0) == sizeof head &&
           head.flags & PX_INIT_SIGNAL) {
        (void)px_sys(SYS_recvfrom, px_own.owner, &head, sizeof head, MSG_DONTWAIT, 0, 0);
        signal_group(&head);
    }
    if (px_tree_ends())
        (void)px_tree_round();
    px_command_reap();
}

/* Once the child has the ids of the box, programs of the box can stop it again and again. Its execve may also sleep
 * as long as another process has a lease on the file, or a file server does not answer. With CLONE_VFORK px-init
 * would sleep with it, and would not even see the hang-up of its owner. So a stopped child is continued a few times
 * and then killed (-EAGAIN). It is also killed when its requester has hung up, or when it has not executed after
 * SLICES_MAX (-ETIMEDOUT). Meanwhile refused calls are answered: its own filter may refuse the child's next call. */
static int wait_until_gone(const struct command *c, int pid, int row)
{
    const struct timespec slice = {.tv_nsec = SLICE_NSEC};
    int stops = 0, slices = 0;
    bool late = false;
    uint32_t now;
    while ((now = __atomic_load_n(&px_own.sharing, __ATOMIC_ACQUIRE)) != 0) {
        if (px_sys(SYS_futex, &px_own.sharing, FUTEX_WAIT, now, &slice, 0, 0) != -ETIMEDOUT)
            continue;
        if (hung_up(px_own.owner))
            for (;;)
                (void)px_sys(SYS_exit_group, 0);
        px_filter_listener(row);
        px_refused_now();
        if (is_stopped(pid))
            (void)px_sys(SYS_kill, pid, stops++ < STOPS_MAX ? SIGCONT : SIGKILL);
        late = late || ++slices > SLICES_MAX || hung_up(c->reply);
        if (late)
            (void)px_sys(SYS_kill, pid, SIGKILL);
        look_after_others();
    }
    return late ? -ETIMEDOUT : stops > STOPS_MAX ? -EAGAIN : 0;
}

static long start_child(struct command *c, int row, int *ret_pidfd)
{
    px_own.sharing = 1;
    px_refused_begin(row, c->request->flags & PX_INIT_ALONE);
    long pid = clone_child(c, ret_pidfd);
    if (pid > 0)
        px_tree_spare((int)pid);
    int r = pid < 0 ? 0 : wait_until_gone(c, (int)pid, row);
    px_filter_listener(row);
    if (r < 0) {
        c->started.stage = r == -ETIMEDOUT ? PX_INIT_EXEC : PX_INIT_PREPARE;
        c->started.err = r;
    }
    return pid;
}

/* ---- full directories ---- */

uint32_t px_command_full(char **directories)
{
    uint32_t bits = 0;
    for (int i = 0; i < 32 && directories[i]; i++) {
        struct statfs fs;
        if (px_sys(SYS_statfs, directories[i], &fs) == 0 && fs.f_blocks && (fs.f_bavail == 0 || (fs.f_files && fs.f_ffree == 0)))
            bits |= 1u << i;
    }
    return bits;
}

/* ---- from request to running ---- */

static int free_row(void)
{
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++)
        if (row_at(i)->pid == 0)
            return i;
    return -1;
}

/* The command will not run: sends the error to its requester. */
static bool refuse_command(struct command *c, int err)
{
    c->started.err = err;
    (void)px_command_send_fd(c->reply, &c->started, sizeof c->started, -1);
    return false;
}

static void begin_row(int row, int pid, int reply, uint16_t full)
{
    struct px_init_row begun = {.pid = pid, .reply = reply, .full = full};
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++)
        if (row_at(i)->pid)
            row_at(i)->shared = begun.shared = true;
    *row_at(row) = begun;
}

/* The reply socket stays open if the command runs. */
static bool start_command(struct command *c, char *text, uint32_t length)
{
    int row = free_row(), pidfd = -1;
    int r = row < 0 ? -EAGAIN : split_words(c, text, length);
    c->started.stage = row < 0 ? PX_INIT_FULL : PX_INIT_PREPARE;
    if (r < 0)
        return refuse_command(c, r);
    uint16_t full = (uint16_t)px_command_full(px_own.directories);
    long pid = start_child(c, row, &pidfd);
    c->started.pid = (int32_t)pid;
    if (pid < 0)
        c->started.err = (int32_t)pid;
    else if (c->started.err < 0)
        (void)px_sys(SYS_wait4, pid, 0, 0, 0);          /* the exec failed */
    bool runs = c->started.err == 0;
    if (runs) {
        begin_row(row, c->started.pid, c->reply, full);
    } else {
        px_refused_end(row, NULL);
    }
    (void)px_command_send_fd(c->reply, &c->started, sizeof c->started, runs ? pidfd : -1);
    if (pidfd >= 0)
        (void)px_sys(SYS_close, pidfd);
    return runs;
}

/* The descriptors of a request, in the order of the flags. -1 if there are fewer than they name. */
static int sort_fds(struct command *c, const int *fds, int count, int *ret_file)
{
    static const uint32_t flag[3] = {PX_INIT_IN, PX_INIT_OUT, PX_INIT_ERR};
    int at = 0;
    c->reply = count > at ? fds[at++] : -1;
    *ret_file = c->request->flags & PX_INIT_FILE ? count > at ? fds[at++] : -2 : -1;
    for (int i = 0; i < 3; i++)
        c->stream[i] = c->request->flags & flag[i] ? count > at ? fds[at++] : -2 : -1;
    return c->reply < 0 || *ret_file == -2 || c->stream[0] == -2 || c->stream[1] == -2 || c->stream[2] == -2 ? -1 : 0;
}

static bool start_from_file(struct command *c, int file)
{
    uint32_t length = c->request->length;
    struct stat st;
    long at = px_sys(SYS_fstat, file, &st);
    if (at >= 0)                /* reading past the end of the mapped file would raise SIGBUS */
        at = st.st_size < (long)length ? -EBADMSG : px_sys(SYS_mmap, 0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (at < 0 && at >= -4095)
        return refuse_command(c, (int)at);
    bool runs = start_command(c, (char *)at, length);
    (void)px_sys(SYS_munmap, at, length);
    return runs;
}

static void handle_request(long n, const int *fds, int count)
{
    struct command c = {.request = &px_own.message.request, .reply = -1};
    const long head = (long)sizeof px_own.message.request;
    int file = -1;
    bool runs = false;
    if (n >= head && c.request->flags & PX_INIT_SIGNAL)
        signal_group(c.request);
    else if (n >= head && sort_fds(&c, fds, count, &file) < 0)
        runs = refuse_command(&c, -EMFILE);     /* fewer descriptors came than were sent: our table is full */
    else if (n >= head)
        runs = file >= 0                             ? start_from_file(&c, file)
               : n == head + (long)c.request->length ? start_command(&c, px_own.message.text, c.request->length)
                                                     : refuse_command(&c, -EBADMSG);
    for (int i = 0; i < count; i++)
        if (!runs || fds[i] != c.reply)
            (void)px_sys(SYS_close, fds[i]);
}

int px_command_take(int control)
{
    int fds[FDS_MAX];
    struct px_passed passed;
    px_own.owner = control;
    long n = px_pass_receive(control, &px_own.message, sizeof px_own.message, MSG_DONTWAIT, fds, FDS_MAX, &passed);
    if (n == -EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    handle_request(n, fds, passed.count < FDS_MAX ? (int)passed.count : FDS_MAX);
    return 0;
}

/* ---- its end ---- */

int px_command_watch(struct pollfd *fds)
{
    int n = 0;
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++) {
        if (!row_at(i)->pid || row_at(i)->reply < 0)
            continue;
        if (fds)
            fds[n] = (struct pollfd){.fd = row_at(i)->reply, .events = row_at(i)->ends ? 0 : POLLRDHUP};
        n++;
    }
    return n;
}

void px_command_left(const struct pollfd *news)
{
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++) {
        if (!row_at(i)->pid || row_at(i)->reply != news->fd)
            continue;
        end_tree(i);
        if (!(news->revents & ~POLLRDHUP))      /* POLLRDHUP alone: the requester still waits for the report */
            return;
        (void)px_sys(SYS_close, news->fd);
        row_at(i)->reply = -1;
        return;
    }
}

static uint64_t to_usec(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

void px_command_ended(int pid, int wait_status, const struct rusage *used)
{
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++) {
        if (row_at(i)->pid != pid)
            continue;
        struct px_init_report r = {
            .wait_status = wait_status,
            .disk_full = (uint16_t)(px_command_full(px_own.directories) & ~(uint32_t)row_at(i)->full),
            .user_usec = to_usec(&used->ru_utime),
            .sys_usec = to_usec(&used->ru_stime),
            .maxrss_kib = (uint64_t)used->ru_maxrss,
            .read_blocks = (uint64_t)used->ru_inblock,
            .write_blocks = (uint64_t)used->ru_oublock,
            .shared = row_at(i)->shared,
        };
        px_refused_end(i, &r);
        if (row_at(i)->reply >= 0) {
            (void)px_sys(SYS_sendto, row_at(i)->reply, &r, sizeof r, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
            (void)px_sys(SYS_close, row_at(i)->reply);
        }
        row_at(i)->pid = 0;
        return;
    }
}

void px_command_reap(void)
{
    int status = 0;
    struct rusage used;
    for (int i = 0; i < PX_INIT_COMMANDS_MAX; i++)
        if (row_at(i)->pid && !(row_at(i)->ends && px_tree_ends()) &&
            px_sys(SYS_wait4, row_at(i)->pid, &status, WNOHANG, &used) > 0)
            px_command_ended(row_at(i)->pid, status, &used);
}
