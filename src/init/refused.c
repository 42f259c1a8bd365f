#include "init/refused.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "base/sys.h"
#include "init/command.h"
#include "kernel/init.h"
#include "kernel/notify.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { BOX = PX_INIT_COMMANDS_MAX, ANCESTORS_MAX = 16, AT_ONCE = 8, PIDFD_THREAD = 0200 };

/* The kernel's, as of Linux 6.13: the first version of what PIDFD_GET_INFO tells. */
struct pidfd_info {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ids[9];
};
#define PIDFD_GET_INFO _IOWR(0xff, 11, struct pidfd_info)

/* Rows that were never refused anything are pages that are never touched. */
static struct px_init_refused refused[PX_INIT_COMMANDS_MAX + 1][PX_INIT_REFUSED_MAX];
static uint8_t counts[PX_INIT_COMMANDS_MAX + 1];
static struct {
    int fd, row;                /* row: -1 if no running command's */
} listeners[PX_REFUSED_WATCH_MAX];
static int listeners_count, notes, alone;
static bool ours;

void px_refused_init(int fd)
{
    notes = fd;
    alone = -1;
    (void)px_sys(SYS_ftruncate, fd, 0);
}

static void drop(int at)
{
    (void)px_sys(SYS_close, listeners[at].fd);
    listeners[at] = listeners[--listeners_count];
}

/* With no room for one more, the oldest that belongs to no running command goes: what is left of that command meets ENOSYS. */
void px_refused_listen(int listener, int row)
{
    for (int i = 0; listeners_count == PX_REFUSED_WATCH_MAX && i < listeners_count; i++)
        if (listeners[i].row < 0)
            drop(i);
    if (listeners_count == PX_REFUSED_WATCH_MAX) {
        (void)px_sys(SYS_close, listener);
        return;
    }
    ours = row < 0;
    listeners[listeners_count].fd = listener;
    listeners[listeners_count++].row = row;
}

void px_refused_begin(int row, bool is_alone)
{
    counts[row] = 0;
    if (is_alone)
        alone = row;
}

void px_refused_end(int row, struct px_init_report *report)
{
    for (unsigned i = 0; report && i < counts[row]; i++)
        report->refused[report->refused_count++] = refused[row][i];
    for (int i = 0; i < listeners_count; i++)
        if (listeners[i].row == row)
            listeners[i].row = -1;
    alone = alone == row ? -1 : alone;
}

/* ---- whose it is ---- */

static int parent_of(int pid)
{
    struct pidfd_info info = {0};
    int fd = (int)px_sys(SYS_pidfd_open, pid, PIDFD_THREAD);
    if (fd < 0)
        return -1;
    long r = px_sys(SYS_ioctl, fd, PIDFD_GET_INFO, &info);
    (void)px_sys(SYS_close, fd);
    return r < 0 ? -1 : (int)info.ppid;
}

/* Every command has a session of its own. Who has left it is looked for among the children of those who have not, which takes
 * Linux 6.13; whose parents are dead belongs to the box. */
static int row_of(int pid)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        int row = px_command_row((int)px_sys(SYS_getsid, pid));
        if (row >= 0)
            return row;
        pid = parent_of(pid);
    }
    return alone >= 0 ? alone : BOX;
}

static void note(int row, int number)
{
    unsigned i = 0;
    while (i < counts[row] && refused[row][i].number != number)
        i++;
    if (i == PX_INIT_REFUSED_MAX)
        return;
    if (i == counts[row])
        refused[row][counts[row]++] = (struct px_init_refused){.number = number};
    refused[row][i].count++;
    if (row == BOX)
        (void)px_sys(SYS_pwrite64, notes, &refused[row][i], sizeof refused[row][i], i * sizeof refused[row][i]);
}

/* ---- taking ---- */

static bool take_one(int listener, int row)
{
    struct px_notify_call call = {0};
    if (px_notify_receive(listener, &call) < 0)
        return false;
    note(row >= 0 ? row : ours ? row_of(call.pid) : alone >= 0 ? alone : BOX, call.number);
    (void)px_notify_answer(listener, &call, ours);
    return true;
}

static bool is_ready(int listener)
{
    struct pollfd state = {.fd = listener, .events = POLLIN};
    return px_sys(SYS_poll, &state, 1, 0) > 0 && state.revents & POLLIN;
}

int px_refused_watch(struct pollfd *fds)
{
    for (int i = 0; i < listeners_count; i++)
        fds[i] = (struct pollfd){.fd = listeners[i].fd, .events = POLLIN};
    return listeners_count;
}

/* A few of the one listener of a box, one of each where the commands have theirs. */
static void take_some(int listener, short events)
{
    for (int i = listeners_count - 1; i >= 0; i--) {
        if (listeners[i].fd != listener)
            continue;
        if (!(events & POLLIN)) {       /* nobody is left under that filter */
            drop(i);
            return;
        }
        for (int n = 0; n < (ours ? AT_ONCE : 1) && (n == 0 || is_ready(listener)); n++)
            if (!take_one(listener, listeners[i].row))
                return;
        return;
    }
}

void px_refused_take(const struct pollfd *fds, int count)
{
    for (int i = 0; i < count; i++)
        if (fds[i].revents)
            take_some(fds[i].fd, fds[i].revents);
}

void px_refused_now(void)
{
    for (int i = listeners_count - 1; i >= 0; i--)
        if (is_ready(listeners[i].fd))
            take_some(listeners[i].fd, POLLIN);
}
