/* net - both ends of a connection.
 *
 *     net serve                     listens on a port of 127.0.0.1, says which, and serves until its standard input ends
 *     net connect ADDRESS PORT      requests as in bench.h: a connection, a line there and a byte back
 *     net bulk ADDRESS PORT         the same with BULK bytes back
 *     net up ADDRESS PORT           the same with BULK bytes there
 *
 * Plain calls and no threads, so that what is measured is what lies between the two. */
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, BULK = 64 << 20 };

static char room[CHUNK];

struct target {
    struct sockaddr_in to;
    char mode;                  /* the first byte of its line: c, b or u */
};

/* Whether that many bytes have come, or have gone. */
static bool receive(int s, size_t want)
{
    ssize_t n = 1;
    for (size_t have = 0; n > 0 && have < want; have += n > 0 ? (size_t)n : 0)
        n = read(s, room, want - have < CHUNK ? want - have : CHUNK);
    return n > 0;
}

static bool give(int s, size_t want)
{
    ssize_t n = 1;
    for (size_t have = 0; n > 0 && have < want; have += n > 0 ? (size_t)n : 0)
        n = write(s, room, want - have < CHUNK ? want - have : CHUNK);
    return n > 0;
}

static int once(void *arg)
{
    const struct target *t = arg;
    const char line[2] = {t->mode, '\n'};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = s >= 0 && connect(s, (const struct sockaddr *)&t->to, sizeof t->to) == 0 && write(s, line, sizeof line) == sizeof line;

    ok = ok && (t->mode != 'u' || give(s, BULK)) && receive(s, t->mode == 'b' ? BULK : 1);
    if (s >= 0)
        (void)close(s);
    return ok ? 0 : 1;
}

static void answer(int s)
{
    char line[2] = "";

    if (read(s, line, sizeof line) == sizeof line && (line[0] != 'u' || receive(s, BULK)))
        (void)give(s, line[0] == 'b' ? BULK : 1);
}

static int listen_until_end(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ready[2] = {{.fd = 0, .events = POLLIN}, {.fd = listener, .events = POLLIN}};

    if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 128) < 0 || getsockname(listener, (struct sockaddr *)&at, &len) < 0)
        return 1;
    printf("%d\n", ntohs(at.sin_port));
    (void)fflush(stdout);
    while (poll(ready, 2, -1) > 0 && !ready[0].revents) {
        int s = accept(listener, NULL, NULL);
        if (s < 0)
            continue;
        answer(s);
        (void)close(s);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct target t = {.to = {.sin_family = AF_INET}};

    (void)signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return listen_until_end();
    if (argc != 4 || inet_pton(AF_INET, argv[2], &t.to.sin_addr) != 1)
        return 2;
    t.mode = argv[1][0];
    t.to.sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10));
    return serve(once, &t);
}
