/* tests/faults/inject.c - `inject LOG [PROCESS CALL NTH ERRNO] -- COMMAND...`: run a command and make one system call of it fail.
 *
 * Why:     strace fails the n-th call of every process alike, so a failure in the payload hides behind the same one in pid 1.
 *          Here PROCESS says whose: processes are numbered in the order of their birth, 0 is the command itself.
 * Mustn't: be linked into the product.
 *
 * LOG gets one line for each call at its entry: `PROCESS CALL STATE ARG0 ARG1 ARG2 TEXT`, with ` INJECTED` at the end of the one that
 * failed. STATE is `set-up`, `inside` once the process has executed another program, and `running` for others once any has.
 * A helper of px's own, whose name begins with "px-", counts
 * as another program for itself and not for the others. TEXT is the first argument of the first two that is a text. The exit status is the command's, 99 if it could not be traced. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MAX = 256, CANNOT_TRACE = 99 };

struct process {
    pid_t pid;
    bool inside;                /* has executed another program */
    bool failing;               /* the result of the call it is in is ours */
    unsigned long calls;        /* of the one that is to fail */
};

struct job {
    FILE *log;
    long process, call, error;
    unsigned long nth;
    struct process all[PROCESSES_MAX];
    int count;
    bool running;               /* some process has executed another program */
};

static struct process *find(struct job *job, pid_t pid)
{
    for (int i = 0; i < job->count; i++)
        if (job->all[i].pid == pid)
            return &job->all[i];
    return NULL;
}

static struct process *add(struct job *job, pid_t pid)
{
    struct process *p = find(job, pid);
    if (p || job->count == PROCESSES_MAX)
        return p;
    p = &job->all[job->count++];
    *p = (struct process){.pid = pid};
    return p;
}

/* A text of the process, without what would break a line; empty if there is none. */
static void read_text(pid_t pid, uint64_t address, char out[80])
{
    struct iovec local = {.iov_base = out, .iov_len = 79}, remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = 79};
    out[0] = '\0';
    if (address < 4096)
        return;
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (n <= 0)                 /* a text may end before a page that is not there */
        remote.iov_len = 4096 - address % 4096, n = remote.iov_len < 79 ? process_vm_readv(pid, &local, 1, &remote, 1, 0) : 0;
    out[n > 0 ? n : 0] = '\0';
    for (char *c = out; *c; c++)
        if (*c < ' ' || *c > '~') {
            *c = c == out ? '\0' : '?';
            if (c == out)
                return;
        }
}

/* ---- one stop ---- */

static void set_registers(pid_t pid, bool at_entry, long value)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, pid, 0, &regs) < 0)
        return;
    if (at_entry)
        regs.orig_rax = (unsigned long long)-1;     /* no such call: the kernel does nothing */
    else
        regs.rax = (unsigned long long)value;
    (void)ptrace(PTRACE_SETREGS, pid, 0, &regs);
}

static void on_entry(struct job *job, struct process *p, const struct __ptrace_syscall_info *info)
{
    char text[80];
    long number = (long)info->entry.nr;
    int index = (int)(p - job->all);
    read_text(p->pid, info->entry.args[0], text);
    if (text[0] == '\0')
        read_text(p->pid, info->entry.args[1], text);
    bool mine = index == job->process && number == job->call && ++p->calls == job->nth;
    (void)fprintf(job->log, "%d %ld %s %" PRIx64 " %" PRIx64 " %" PRIx64 " %s%s\n", index, number,
                  p->inside ? "inside" : job->running ? "running" : "set-up", (uint64_t)info->entry.args[0],
                  (uint64_t)info->entry.args[1], (uint64_t)info->entry.args[2], text, mine ? " INJECTED" : "");
    p->failing = mine;
    if (mine)
        set_registers(p->pid, true, 0);
}

static void on_call(struct job *job, struct process *p)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, sizeof info, &info) < 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        on_entry(job, p, &info);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && p->failing) {
        set_registers(p->pid, false, -job->error);
        p->failing = false;
    }
}

static bool is_helper(pid_t pid)
{
    char link[32], path[512];
    (void)snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(path, '/');
    return slash && strncmp(slash, "/px-", 4) == 0;
}

static void on_event(struct job *job, struct process *p, int event)
{
    unsigned long message = 0;
    (void)ptrace(PTRACE_GETEVENTMSG, p->pid, 0, &message);
    if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
        (void)add(job, (pid_t)message);
    if (event == PTRACE_EVENT_EXEC && p != &job->all[0]) {
        p->inside = true;
        job->running = job->running || !is_helper(p->pid);
    }
}

/* ---- all of it ---- */

static int follow(struct job *job)
{
    int status, answer = CANNOT_TRACE;
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0)
            return errno == ECHILD ? answer : CANNOT_TRACE;
        struct process *p = add(job, pid);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (pid == job->all[0].pid)
                answer = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            if (p)
                p->pid = -p->pid;       /* the number may come again */
            continue;
        }
        int sig = WSTOPSIG(status), event = status >> 16;
        if (p && sig == (SIGTRAP | 0x80))
            on_call(job, p);
        else if (p && event)
            on_event(job, p, event);
        bool stop = event == PTRACE_EVENT_STOP && (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU);
        long deliver = sig == (SIGTRAP | 0x80) || event ? 0 : sig;
        (void)ptrace(stop ? PTRACE_LISTEN : PTRACE_SYSCALL, pid, 0, deliver);
    }
}

static pid_t start(char **command)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
                         PTRACE_O_EXITKILL;
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        (void)raise(SIGSTOP);   /* until we are attached */
        (void)execv(command[0], command);
        _exit(CANNOT_TRACE);
    }
    if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid || ptrace(PTRACE_SEIZE, pid, 0, options) < 0)
        return -1;
    (void)kill(pid, SIGCONT);
    return pid;
}

int main(int argc, char **argv)
{
    static struct job job = {.process = -1};
    char **command = NULL;
    for (int i = 1; i < argc && !command; i++)
        if (strcmp(argv[i], "--") == 0 && i + 1 < argc)
            command = argv + i + 1;
    bool inject = command && command - argv == 7;
    if (!command || (!inject && command - argv != 3)) {
        (void)fprintf(stderr, "inject LOG [PROCESS CALL NTH ERRNO] -- COMMAND...\n");
        return CANNOT_TRACE;
    }
    if (inject) {
        job.process = strtol(argv[2], NULL, 10);
        job.call = strtol(argv[3], NULL, 10);
        job.nth = strtoul(argv[4], NULL, 10);
        job.error = strtol(argv[5], NULL, 10);
    }
    job.log = fopen(argv[1], "we");
    if (job.log)
        (void)setvbuf(job.log, NULL, _IOLBF, 0);    /* whoever kills us for hanging wants to know where */
    pid_t pid = job.log ? start(command) : -1;
    if (pid < 0) {
        (void)fprintf(stderr, "inject: %s\n", strerror(errno));
        return CANNOT_TRACE;
    }
    (void)add(&job, pid);
    int answer = follow(&job);
    return fclose(job.log) == 0 ? answer : CANNOT_TRACE;
}
