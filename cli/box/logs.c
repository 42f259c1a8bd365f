/* px box logs and attach: what a detached command wrote, and how it ends. */
#include "cli/box/box.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <px/living.h>

enum { SLICE_MSEC = 50 };

struct follow {
    struct px_living *living, *other;   /* the second speaks while the first waits */
    unsigned command;
    bool stream[3];             /* which are shown, by enum px_stream */
    int to[3];
    struct px_log_at at[3];
    bool said_gap;
    int input;                  /* the command's standard input, or -1 */
};

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

/* What there is now: 1 if there was something, 0 if not, -1. */
static int show_new(struct follow *f, struct px_err *e)
{
    char chunk[16384];
    int moved = 0;
    for (int i = PX_STDOUT; i <= PX_STDERR; i++) {
        enum px_stream stream = (enum px_stream)i;
        long n = 0;
        while (f->stream[i] && (n = px_living_log(f->living, f->command, stream, &f->at[i], chunk, sizeof chunk, e)) > 0) {
            if (f->at[i].gap && !f->said_gap) {
                say("px: the oldest output is not there any more");
                f->said_gap = true;
            }
            moved = 1;
            if (write_all(f->to[i], chunk, (size_t)n) < 0)
                return make_error(e, PX_E_IO, NULL, "the output cannot be written");
        }
        if (n < 0)
            return -1;
    }
    return moved;
}

/* ---- standard input ---- */

static void end_input(struct follow *f)
{
    (void)close(f->input);
    f->input = -1;
    (void)px_living_end_input(f->other, f->command, NULL);
}

/* At most a pipe's worth, when there is room for it: never waits for the command. */
static void pass_input(struct follow *f, int msec)
{
    char chunk[4096];
    struct pollfd fds[2] = {{.fd = f->input, .events = POLLOUT}, {.fd = -1, .events = POLLIN}};
    if (poll(fds, 1, 0) > 0 && fds[0].revents & POLLOUT)
        fds[1].fd = STDIN_FILENO;
    if (poll(fds + 1, 1, msec) <= 0 || fds[1].fd < 0)
        return;
    ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0 || write_all(f->input, chunk, (size_t)n) < 0)
        end_input(f);
}

/* Until the command has ended: its exit status, or -1. */
static int follow(struct follow *f, char **ret_json, struct px_err *e)
{
    for (;;) {
        int status = 0;
        int moved = show_new(f, e);
        if (moved < 0)
            return -1;
        if (f->input >= 0)
            pass_input(f, moved ? 0 : SLICE_MSEC / 2);
        int msec = moved ? 0 : f->input >= 0 ? SLICE_MSEC / 2 : SLICE_MSEC;
        int r = px_living_wait(f->living, f->command, msec, &status, ret_json, e);
        if (r < 0)
            return -1;
        if (r > 0)
            return show_new(f, e) < 0 ? -1 : status;
    }
}

/* ---- which ---- */

static int find_command_of(struct px_living *living, const char *name, unsigned wanted, unsigned *ret, struct px_err *e)
{
    struct px_living_command *list = NULL;
    size_t count = 0;
    unsigned found = 0;
    if (px_living_commands(living, &list, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (list[i].detached && (wanted ? list[i].number == wanted : list[i].number > found))
            found = list[i].number;
    free(list);
    if (found) {
        *ret = found;
        return 0;
    }
    (void)make_error(e, PX_E_GONE, "px box show NAME lists them. Start one: px box exec NAME -d -- COMMAND.",
                     wanted ? "box '%s' has no detached command %u" : "box '%s' has no detached command", name, wanted);
    (void)snprintf(e->why, sizeof e->why, "Only commands that were started with -d have a log.");
    return -1;
}

static int open_follow(struct follow *f, const char *name, uint64_t wanted, struct px_err *e)
{
    *f = (struct follow){.stream = {false, true, true}, .to = {-1, STDOUT_FILENO, STDERR_FILENO}, .input = -1};
    (void)signal(SIGPIPE, SIG_IGN);     /* banned: a program may; a write reports EPIPE */
    if (px_living_open(NULL, name, &f->living, e) < 0)
        return -1;
    return find_command_of(f->living, name, (unsigned)wanted, &f->command, e);
}

static void close_follow(struct follow *f)
{
    if (f->input >= 0)
        (void)close(f->input);
    px_living_close(f->other);
    px_living_close(f->living);
}

/* ---- the verbs ---- */

int box_logs(struct args *a)
{
    const struct box_words *w = a->request;
    struct px_err e = {0};
    struct follow f;
    char *json = NULL;
    if (w->only_out && w->only_err)
        return usage_error(a->cli, USAGE_STATUS, NULL, "--stdout and --stderr exclude each other");
    int r = open_follow(&f, a->names[0], w->command, &e);
    if (w->only_err)
        f.to[PX_STDERR] = STDOUT_FILENO;
    f.stream[PX_STDOUT] = !w->only_err;
    f.stream[PX_STDERR] = !w->only_out;
    if (r >= 0)
        r = w->follow ? follow(&f, &json, &e) : show_new(&f, &e);
    close_follow(&f);
    free(json);
    return r < 0 ? say_error(a->cli, &e, 1) : 0;
}

int box_attach(struct args *a)
{
    const struct box_words *w = a->request;
    const struct cli *cli = a->cli;
    struct px_err e = {0};
    struct follow f;
    char *json = NULL;
    int r = open_follow(&f, a->names[0], w->command, &e);
    f.stream[PX_STDOUT] = f.stream[PX_STDERR] = !cli->json;
    if (r >= 0 && w->interactive) {
        r = px_living_open(NULL, a->names[0], &f.other, &e);
        if (r >= 0)
            r = f.input = px_living_input(f.other, f.command, &e);
    }
    if (r >= 0)
        r = follow(&f, &json, &e);
    if (r >= 0 && cli->json && print_text(json) < 0)
        r = START_STATUS;
    close_follow(&f);
    free(json);
    return r < 0 ? say_error(cli, &e, START_STATUS) : r;
}
