#include "init/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pass.h"
#include "base/sys.h"
#include "init/command.h"
#include "init/denials.h"
#include "init/own.h"
#include "init/payload.h"
#include "init/wire.h"
#include "kernel/notify.h"

enum { INSTRUCTION = 8, PROGRAM_MAX = 4096 };

static char program[PROGRAM_MAX * INSTRUCTION] __attribute__((aligned(PX_OWN_PAGE)));
static char profile[256];               /* AppArmor profile of each command; "": none */

/* ---- of a command: in the child, which shares our memory ---- */

static int load_silently(void)
{
    const struct {
        uint16_t length;
        const void *code;
    } request = {px_own.filter.program_length, program};
    return px_own.filter.program_length ? (int)px_sys(SYS_seccomp, 1 /* SET_MODE_FILTER */, 0, &request) : 0;
}

/* The kernel counts a user's descriptors in flight against RLIMIT_NOFILE of the sender, which may be low. They are
 * soon received; the filter permits only this call to wait with. If other boxes of this user keep them in flight for
 * longer, refused calls get ENOSYS, and are not counted. */
static void hand_over(int listener)
{
    enum { TRIES = 100000 };
    for (int i = 0; i < TRIES && px_command_send_fd(px_own.filter.inbox[1], "l", 1, listener) == -ETOOMANYREFS; i++)
        ;
}

/* In the child: px-init gets the listener while it waits for the child. The listener's number must be below
 * RLIMIT_NOFILE, which is set by now; a limit of 3 leaves no room for it. -EBUSY: a filter around the box already
 * has a listener, and the kernel allows only one. */
int px_filter_command(void)
{
    enum { FIRST = 3 };
    if (px_own.filter.listens != PX_INIT_LISTEN_COMMAND)
        return load_silently();
    (void)px_sys(SYS_close, FIRST);
    int listener = px_notify_load((const void *)program, px_own.filter.program_length);
    if (listener >= 0)
        hand_over(listener);
    if (listener != -EBUSY && listener != -EMFILE)
        return listener < 0 ? listener : 0;
    px_notify_restore((void *)program, px_own.filter.program_length);
    int r = load_silently();
    if (listener == -EBUSY)
        px_own.filter.listens = PX_INIT_LISTEN_NONE;
    else
        px_notify_patch((void *)program, px_own.filter.program_length, false);
    return r;
}

int px_filter_confine(void)
{
    return profile[0] ? px_payload_apparmor(profile) : 0;
}

void px_filter_listener(int row)
{
    char byte;
    int listener;
    if (px_own.filter.listens != PX_INIT_LISTEN_COMMAND ||
        px_pass_receive(px_own.filter.inbox[0], &byte, 1, MSG_DONTWAIT, &listener, 1, NULL) <= 0)
        return;
    if (listener >= 0)
        px_refused_listen(listener, row);
}

/* ---- of px-init, loaded once ---- */

static long read_at(int fd, long at, void *to, size_t size)
{
    for (size_t have = 0; have < size;) {
        long n = px_sys(SYS_pread64, fd, (char *)to + have, size - have, at + (long)have);
        if (n <= 0)
            return n < 0 ? n : -EBADMSG;
        have += (size_t)n;
    }
    return 0;
}

static int read_program(int fd, long at, uint16_t length)
{
    px_own.filter.program_length = length;
    return length > PROGRAM_MAX ? -E2BIG : (int)read_at(fd, at, program, (size_t)length * INSTRUCTION);
}

static int load_from(int fd, long at, uint16_t length)
{
    int r = read_program(fd, at, length);
    return r < 0 ? r : load_silently();
}

/* Loads the filter that px-init itself runs under. If a filter around the box already has a listener, the kernel
 * allows no second one: then it is loaded without. */
static int load_first(int fd, long at, uint16_t length)
{
    if (px_own.filter.listens != PX_INIT_LISTEN_OWN)
        return load_from(fd, at, length);
    int r = read_program(fd, at, length);
    if (r < 0)
        return r;
    px_notify_patch((void *)program, length, true);
    r = px_notify_load((const void *)program, length);
    if (r >= 0)
        px_refused_listen(r, -1);
    if (r != -EBUSY)
        return r < 0 ? r : 0;
    px_own.filter.listens = PX_INIT_LISTEN_NONE;
    return load_from(fd, at, length);
}

static int listen_to_commands(void)
{
    enum { ABOVE = 16 };
    int ends[2];
    px_notify_patch((void *)program, px_own.filter.program_length, false);
    long r = px_sys(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    for (int i = 0; i < 2 && r >= 0; i++) {
        r = px_own.filter.inbox[i] = (int)px_sys(SYS_fcntl, ends[i], F_DUPFD_CLOEXEC, ABOVE);
        (void)px_sys(SYS_close, ends[i]);
    }
    return r < 0 ? (int)r : 0;
}

/* Sets the profile once for px-init, which never executes anything, to learn whether the kernel knows it: otherwise
 * the box does not start. Each command sets it again. */
static int read_profile(int fd, uint32_t at)
{
    if (at == 0)
        return 0;
    long r = px_sys(SYS_pread64, fd, profile, sizeof profile - 1, at);
    return r < 0 ? (int)r : r == 0 ? -EBADMSG : px_payload_apparmor(profile);
}

int px_filter_init(int fd, struct px_init_started *ready)
{
    struct px_init_filters f;
    long r = read_at(fd, 0, &f, sizeof f);
    if (r < 0)
        return (int)r;
    long own = (long)sizeof f, command = own + f.own * INSTRUCTION, spare = command + f.command * INSTRUCTION;
    px_own.filter.listens = f.listen;
    ready->stage = PX_INIT_APPARMOR;
    if ((r = read_profile(fd, f.apparmor)) < 0)
        return (int)r;
    ready->stage = PX_INIT_FILTER;
    if ((r = load_from(fd, spare, f.spare)) < 0 ||
        (r = load_first(fd, own, f.own)) < 0 || (r = read_program(fd, command, f.command)) < 0)
        return (int)r;
    if (px_own.filter.listens == PX_INIT_LISTEN_COMMAND && (r = listen_to_commands()) < 0)
        return (int)r;
    if (f.command == 0)         /* the kernel has its copy: the page is freed */
        (void)px_sys(SYS_madvise, program, sizeof program, MADV_DONTNEED);
    px_refused_init(fd);
    ready->found = px_own.filter.listens != PX_INIT_LISTEN_NONE;
    return 0;
}
