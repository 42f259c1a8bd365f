/* px-pasta PASTA ARGUMENT... - pasta for one box. Descriptors 3 and 4 are the engine's and the box's (net/wire.h).
 *
 * The box sends its network namespace. pasta runs as pid 1 of a process namespace within the box's user namespace, with privileges over
 * the box's namespaces only; what it does not need it gives up by itself. Its descriptors 0, 1 and 2, which no version of it closes, are
 * the namespace, a pipe in which it says that it is ready (its process id), and a pipe for its words.
 *
 * (1) pasta ends with px-pasta, whatever ends that: the kernel kills it, and a process namespace goes with its pid 1.
 * (2) px-pasta ends with the engine's socket, so with the box or px, however those end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pass.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "helpers/pasta/enter.h"
#include "kernel/pidfd.h"
#include "net/wire.h"

enum { ARGS_MAX = 256, READY_MSEC = 10000, LOOK_MSEC = 20, LINES_MAX = 64 << 10, LISTENS = 10 };

struct driver {
    int network;
    int ready, words;           /* our ends of pasta's pipes */
    int pidfd;
};

static bool engine_is_gone(void)
{
    struct pollfd p = {.fd = PX_NET_FD_ENGINE, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

static int receive_network(void)
{
    char kind = 0;
    int fd = -EBADF;
    struct pollfd either[] = {{.fd = PX_NET_FD_BOX, .events = POLLIN}, {.fd = PX_NET_FD_ENGINE, .events = POLLIN}};
    while (poll(either, 2, -1) < 0)
        if (errno != EINTR)
            return -errno;
    if (either[1].revents || px_pass_receive(PX_NET_FD_BOX, &kind, 1, 0, &fd, 1, NULL) != 1 || kind != PX_NET_NAMESPACE)
        return -EPIPE;
    return fd;
}

static _Noreturn void run_pasta(const struct driver *d, int ready, int words, char **argv)
{
    static char *const environment[] = {(char *)"PATH=/usr/bin:/bin", (char *)"LC_ALL=C", NULL};
    int r = keep_privileges();
    (void)signal(SIGPIPE, SIG_DFL);     /* banned: pasta takes the one it finds ignored for a failure */
    if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0 && engine_is_gone())     /* whom we would have had to hear dying may be gone already */
        r = -EPIPE;
    if (r == 0 && dup2(d->network, 0) == 0 && dup2(ready, 1) == 1 && dup2(words, 2) == 2) { /* banned: for pasta */
        (void)px_sys(436 /* close_range */, 3, ~0u, 0);
        (void)execve(argv[0], argv, environment);
        r = -errno;
    }
    (void)dprintf(2, "it could not be started: %s", strerror(-r));  /* banned: a program of its own */
    _exit(127);
}

static int start_pasta(struct driver *d, char **argv)
{
    int ready[2], words[2];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(words, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        run_pasta(d, ready[1], words[1], argv);
    (void)close(ready[1]);
    (void)close(words[1]);
    d->ready = ready[0];
    d->words = words[0];
    d->pidfd = pid < 0 ? -errno : px_pidfd_open(pid);
    return d->pidfd < 0 ? d->pidfd : 0;
}

static int wait_until_ready(const struct driver *d)
{
    struct pollfd events[] = {{.fd = d->ready, .events = POLLIN}, {.fd = PX_NET_FD_ENGINE, .events = POLLIN}};
    char number[32];
    int n = poll(events, 2, READY_MSEC);
    if (n <= 0)
        return n == 0 ? -ETIMEDOUT : -errno;
    return events[0].revents & POLLIN && px_read_some(d->ready, number, sizeof number) > 0 ? 0 : -EPROTO;
}

/* The last line is the reason; the lines before it are progress. */
static void tell_words(const struct driver *d, int r)
{
    char text[PX_NET_WORDS_MAX];
    ssize_t n = d->words >= 0 ? px_read_some(d->words, text, sizeof text - 1) : 0;
    if (n <= 0)
        n = snprintf(text, sizeof text, "px-pasta: %s", strerror(-r));  /* banned: a program of its own */
    while (n > 0 && text[n - 1] == '\n')
        n--;
    const char *line = memrchr(text, '\n', (size_t)n);
    line = line ? line + 1 : text;
    line += strspn(line, "0123456789.: ");      /* the time */
    (void)send(PX_NET_FD_ENGINE, line, (size_t)(text + n - line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int make_ready(struct driver *d, char **argv)
{
    int r = enter_box(d->network);
    if (r == 0)
        r = start_pasta(d, argv);
    if (r == 0)
        r = allow_echo(d->network);
    return r == 0 ? wait_until_ready(d) : r;
}

/* Waits until one of the two has ended. pasta's messages are read, so that it never blocks on them. */
static void attend(const struct driver *d)
{
    struct pollfd events[] = {{.fd = PX_NET_FD_ENGINE, .events = POLLIN}, {.fd = d->pidfd, .events = POLLIN}, {.fd = d->words, .events = POLLIN}};
    char text[1024];
    while (events[0].revents == 0 && events[1].revents == 0) {
        if (poll(events, 3, -1) < 0 && errno != EINTR)
            return;
        if (events[2].revents && px_read_some(d->words, text, sizeof text) <= 0)
            events[2].fd = -1;
    }
}

/* Whether the namespace has a connection with bytes on their way: lines of `number: from to state unsent:unread ...`. */
static bool is_sending(const char *path)
{
    char text[LINES_MAX];
    ssize_t size = px_read_file(AT_FDCWD, path, text, sizeof text);
    for (char *p = text; size > 0 && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        unsigned state, unsent;
        if (sscanf(p, " %*u: %*s %*s %x %x:", &state, &unsent) == 2 && unsent > 0 && state != LISTENS)
            return true;
    }
    return false;
}

/* What the box has sent is delivered after its end. */
static void linger(const struct driver *d)
{
    uint64_t end = px_now_nsec() + (uint64_t)PX_NET_LINGER_MSEC * 1000000;
    struct pollfd gone = {.fd = d->pidfd, .events = POLLIN};
    while ((is_sending("/proc/self/net/tcp") || is_sending("/proc/self/net/tcp6")) && px_now_nsec() < end)
        if (poll(&gone, 1, LOOK_MSEC) != 0)
            return;
}

int main(int argc, char **argv)
{
    struct driver d = {.network = -EBADF, .ready = -EBADF, .words = -EBADF, .pidfd = -EBADF};
    /* The thread that started px-pasta may end before the box does: a hang-up of px's socket means the end. */
    (void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    if (argc < 2 || argc > ARGS_MAX)
        return 2;
    char *words[ARGS_MAX + 5];
    size_t count = (size_t)argc - 1;
    memcpy(words, argv + 1, count * sizeof *words);
    static char *const where[] = {(char *)"--netns", (char *)"/proc/self/fd/0", (char *)"--pid", (char *)"/proc/self/fd/1", NULL};
    memcpy(words + count, where, sizeof where);
    d.network = receive_network();
    if (d.network < 0)
        return 1;
    int32_t answer = make_ready(&d, words);
    if (answer < 0)
        tell_words(&d, answer);
    (void)send(PX_NET_FD_BOX, &answer, sizeof answer, MSG_NOSIGNAL);
    (void)close(PX_NET_FD_BOX);
    (void)close(d.network);
    if (answer == 0) {
        attend(&d);
        linger(&d);
    }
    int status;
    if (d.pidfd >= 0 && px_pidfd_signal(d.pidfd, SIGKILL) == 0)
        (void)px_pidfd_wait(d.pidfd, false, &status, NULL);
    return answer < 0;
}
