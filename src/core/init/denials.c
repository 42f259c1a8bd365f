#include "init/denials.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "base/sys.h"
#include "init/command.h"
#include "init/own.h"
#include "init/wire.h"
#include "kernel/notify.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { BOX = PX_INIT_COMMANDS_MAX, ROOM = PX_REFUSED_WATCH_MAX - 1, ANCESTORS_MAX = 16, AT_ONCE = 8, PIDFD_THREAD = 0200 };

/* The kernel's struct as of Linux 6.13: the first version of PIDFD_GET_INFO. */
struct pidfd_info {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ids[9];
};
#define PIDFD_GET_INFO _IOWR(0xff, 11, struct pidfd_info)

/* These pages are touched only once a call was refused, or a command has a listener of its own. */
static struct px_init_refused refused[PX_INIT_COMMANDS_MAX + 1][PX_INIT_REFUSED_MAX];
static uint8_t counts[PX_INIT_COMMANDS_MAX + 1];
static struct {
    int fd, row;                /* row: -1 if it belongs to no running command */
} listeners[ROOM];

void px_refused_init(int fd)
{
    px_own.refused.notes = fd;
    px_own.refused.alone = -1;
    (void)px_sys(SYS_ftruncate, fd, 0);
}

static void drop_listener(int at)
{
    (void)px_sys(SYS_close, listeners[at].fd);
    listeners[at] = listeners[--px_own.refused.listeners_count];
}

/* If the table is full, drops the oldest listener that belongs to no running command: what is left of that command
 * gets ENOSYS. */
void px_refused_listen(int listener, int row)
{
    if (row < 0) {
        px_own.refused.box_listener = listener;
        px_own.refused.ours = true;
        return;
    }
    for (int i = 0; px_own.refused.listeners_count == ROOM && i < px_own.refused.listeners_count; i++)
        if (listeners[i].row < 0)
            drop_listener(i);
    if (px_own.refused.listeners_count == ROOM) {
        (void)px_sys(SYS_close, listener);
        return;
    }
    listeners[px_own.refused.listeners_count].fd = listener;
    listeners[px_own.refused.listeners_count++].row = row;
}

void px_refused_begin(int row, bool is_alone)
{
    if (counts[row])
        counts[row] = 0;
    if (is_alone)
        px_own.refused.alone = row;
}

void px_refused_end(int row, struct px_init_report *report)
{
    for (unsigned i = 0; report && i < counts[row]; i++)
        report->refused[report->refused_count++] = refused[row][i];
    for (int i = 0; i < px_own.refused.listeners_count; i++)
        if (listeners[i].row == row)
            listeners[i].row = -1;
    px_own.refused.alone = px_own.refused.alone == row ? -1 : px_own.refused.alone;
}

/* ---- which command made the call ---- */

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

/* Every command has a session of its own. For a process that has left its session, the sessions of its ancestors
 * decide, which needs PIDFD_GET_INFO (Linux 6.13). A process whose ancestors are dead belongs to the box. */
static int row_of(int pid)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        int row = px_command_row((int)px_sys(SYS_getsid, pid));
        if (row >= 0)
            return row;
        pid = parent_of(pid);
    }
    return px_own.refused.alone >= 0 ? px_own.refused.alone : BOX;
}

static void count_refused(int row, int number)
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
        (void)px_sys(SYS_pwrite64, px_own.refused.notes, &refused[row][i], sizeof refused[row][i], i * sizeof refused[row][i]);
}

/* ---- receiving ---- */

static bool is_ready(int listener)
{
    struct pollfd state = {.fd = listener, .events = POLLIN};
    return px_sys(SYS_poll, &state, 1, 0) > 0 && state.revents & POLLIN;
}

/* Takes a few notifications from the one listener of the box. */
static void take_ours(void)
{
    for (int i = 0; i < AT_ONCE && (i == 0 || is_ready(px_own.refused.box_listener)); i++) {
        struct px_notify_call call = {0};
        if (px_notify_receive(px_own.refused.box_listener, &call) < 0)
            return;
        count_refused(row_of(call.pid), call.number);
        (void)px_notify_answer(px_own.refused.box_listener, &call, true);
    }
}

/* Takes one notification from each listener, where the commands have their own filters. */
static void take_theirs(int at)
{
    struct px_notify_call call = {0};
    if (px_notify_receive(listeners[at].fd, &call) < 0)
        return;
    count_refused(listeners[at].row >= 0 ? listeners[at].row : px_own.refused.alone >= 0 ? px_own.refused.alone : BOX, call.number);
    (void)px_notify_answer(listeners[at].fd, &call, false);
}

int px_refused_watch(struct pollfd *fds)
{
    int n = px_own.refused.ours;
    if (fds && n)
        fds[0] = (struct pollfd){.fd = px_own.refused.box_listener, .events = POLLIN};
    for (int i = 0; fds && i < px_own.refused.listeners_count; i++)
        fds[n + i] = (struct pollfd){.fd = listeners[i].fd, .events = POLLIN};
    return n + px_own.refused.listeners_count;
}

static void take_one(int listener, short events)
{
    int at = 0;
    while (at < px_own.refused.listeners_count && listeners[at].fd != listener)
        at++;
    if (px_own.refused.ours && listener == px_own.refused.box_listener)
        take_ours();
    else if (at < px_own.refused.listeners_count && events & POLLIN)
        take_theirs(at);
    else if (at < px_own.refused.listeners_count)
        drop_listener(at);               /* no process is left under that filter */
}

void px_refused_take(const struct pollfd *fds, int count)
{
    for (int i = 0; i < count; i++)
        if (fds[i].revents)
            take_one(fds[i].fd, fds[i].revents);
}

void px_refused_now(void)
{
    if (px_own.refused.ours && is_ready(px_own.refused.box_listener))
        take_ours();
    for (int i = 0; i < px_own.refused.listeners_count; i++)
        if (is_ready(listeners[i].fd))
            take_theirs(i);
}
