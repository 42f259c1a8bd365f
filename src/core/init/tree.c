#include "init/tree.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sys.h"
#include "init/command.h"
#include "init/own.h"

enum { PIDS_MAX = 1 << 22, BITS = 64, PATIENCE_SEC = 10, MANY = 32, MOMENT_NSEC = 1000000, MOMENTS = 200 };

/* The processes that are not part of the tree, by number: children that pid 1 had before, and all of their sessions.
 * No process can join a session. A process that leaves its session and loses its parent just while another command
 * is killed is counted as a part of that command. */
static uint64_t spared[PIDS_MAX / BITS] __attribute__((aligned(PX_OWN_PAGE)));
/* /proc list of our children; opened at the start, as the descriptor table may be full later */
static int list;
static struct {
    bool on;
    unsigned seen, living;      /* how many, and how many of them were alive */
    long since_sec;             /* when their number last grew */
} end;

int px_tree_open(void)
{
    list = (int)px_sys(SYS_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    return list;
}

int px_tree_each_child(void (*act)(int pid))
{
    char chunk[1024];
    long n, at = 0;
    int pid = 0;
    for (; (n = px_sys(SYS_pread64, list, chunk, sizeof chunk, at)) > 0; at += n)
        for (long i = 0; i < n; i++) {
            bool digit = chunk[i] >= '0' && chunk[i] <= '9';
            if (!digit && pid > 1)
                act(pid);
            pid = digit ? pid * 10 + (chunk[i] - '0') : 0;
        }
    return (int)n;
}

static long now_sec(void)
{
    struct timespec now = {0};
    (void)px_sys(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void mark_spared(long number, bool on)
{
    if (number <= 0 || number >= PIDS_MAX)
        return;
    uint64_t bit = 1ull << (number % BITS);
    spared[number / BITS] = on ? spared[number / BITS] | bit : spared[number / BITS] & ~bit;
}

static bool is_spared(long number)
{
    return number > 0 && number < PIDS_MAX && spared[number / BITS] >> (number % BITS) & 1;
}

static bool is_dead(int pid)
{
    siginfo_t info = {0};
    return px_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, 0) < 0 || info.si_pid == pid;
}

/* ---- starting to kill ---- */

static void spare_session(int pid)
{
    long session = px_sys(SYS_getsid, pid);
    if (px_command_ends((int)session))
        return;
    mark_spared(pid, true);
    mark_spared(session, true);
}

void px_tree_spare(int pid)
{
    if (end.on)
        mark_spared(pid, true);
}

void px_tree_end(int pid)
{
    if (!end.on) {
        (void)px_sys(SYS_madvise, spared, sizeof spared, MADV_DONTNEED);
        (void)px_tree_each_child(spare_session);
        end.on = true;
        end.living = 1;
        end.seen = 0;
    }
    end.since_sec = now_sec();
    mark_spared(pid, false);
    (void)px_sys(SYS_kill, -pid, SIGKILL);      /* kills most of the tree at once */
}

/* ---- rounds ---- */

/* All processes of a group are in one session. */
static void kill_group_of(int pid)
{
    long group = px_sys(SYS_getpgid, pid);
    (void)px_sys(SYS_kill, group > 1 ? -group : pid, SIGKILL);
}

static void end_one(int pid)
{
    if (!px_command_ends(pid)) {
        if (px_command_row(pid) >= 0 || is_spared(pid) || is_spared(px_sys(SYS_getsid, pid)))
            return;
        kill_group_of(pid);
        end.seen++;
    }
    end.living += !is_dead(pid);
}

/* Nothing is reaped meanwhile, so the list only grows. A dying process first passes its children on. So if all
 * processes in the list were dead, and it has not grown, none are left. */
static bool look_again(void)
{
    unsigned seen_before = end.seen, living_before = end.living;
    end.seen = end.living = 0;
    (void)px_tree_each_child(end_one);
    if (end.seen == seen_before)
        /* a process that hangs in the kernel has its signal already */
        return living_before == 0 || now_sec() - end.since_sec > PATIENCE_SEC;
    end.since_sec = now_sec();
    return false;
}

static bool is_over(void)
{
    bool over;
    do
        over = look_again();
    while (!over && end.living == 0);
    return over;
}

/* Hundreds of processes that fork as fast as we look leave us no time. kill(-1, SIGSTOP) stops the whole box in one
 * call, so that the killed ones get the processor to exit. Processes that were stopped before are continued too. */
static bool end_while_stopped(void)
{
    const struct timespec moment = {.tv_nsec = MOMENT_NSEC};
    bool over = false;
    for (int i = 0; i < MOMENTS && !over; i++) {
        (void)px_sys(SYS_kill, -1, SIGSTOP);
        (void)px_sys(SYS_nanosleep, &moment, 0);
        over = is_over();
    }
    (void)px_sys(SYS_kill, -1, SIGCONT);
    return over;
}

bool px_tree_round(void)
{
    end.on = !is_over();
    if (end.on && end.living >= MANY)
        end.on = !end_while_stopped();
    return !end.on;
}

bool px_tree_ends(void)
{
    return end.on;
}
