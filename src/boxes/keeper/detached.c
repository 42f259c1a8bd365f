/* Detached commands: the keeper supervises them, and their output goes to logs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/keeper_internal.h"

/* ---- starting ---- */

static int open_pipe(int *ret_read, int *ret_write)
{
    int ends[2];
    int r = px_pipe(ends);
    if (r < 0)
        return r;
    *ret_read = px_fd_above_stdio(ends[0]);
    *ret_write = px_fd_above_stdio(ends[1]);
    return *ret_read < 0 ? *ret_read : *ret_write < 0 ? *ret_write : 0;
}

/* Pipes of its own, as a flow cannot write to a log. */
static int open_streams(struct px_keeper_command *c, bool with_input, struct px_io *io)
{
    *io = (struct px_io){.use_out = true, .use_err = true, .out = -EBADF, .err = -EBADF, .in = -EBADF};
    int r = open_pipe(&c->pipe[0], &io->out);
    if (r >= 0)
        r = open_pipe(&c->pipe[1], &io->err);
    for (int i = 0; i < 2 && r >= 0; i++)
        r = (int)px_sys(SYS_fcntl, c->pipe[i], F_SETFL, O_NONBLOCK);
    if (r >= 0 && with_input) {
        r = open_pipe(&io->in, &c->input);
        io->use_in = true;
    }
    return r;
}

static void close_streams(struct px_io *io)
{
    (void)px_fd_close(io->in);
    (void)px_fd_close(io->out);
    (void)px_fd_close(io->err);
}

/* The log limits what is kept, so the policy's output limit applies only with --output-end. */
static int start(struct px_keeper *k, struct px_keeper_command *c, struct px_policy *policy, const char *const argv[],
                 struct px_err *e)
{
    struct px_io io;
    uint64_t kept = policy->output_bytes;
    int r = open_streams(c, policy->interactive, &io);
    if (!policy->output_end)
        policy->output_bytes = 0;
    policy->tty = policy->detach = false;
    r = r < 0 ? px_fail(e, PX_E_IO, r, "cannot open the streams of the command")
              : px_box_exec(k->home, policy, argv, &io, &c->box, e);
    close_streams(&io);
    if (r < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        px_named_log_init(&c->log[i], k->place.dir, c->number, i == 0 ? PX_STDOUT : PX_STDERR, kept);
    c->pid = c->box->inside_pid;
    return 0;
}

static struct px_keeper_command *new_command(const struct px_keeper *k, const char *text, size_t length)
{
    struct px_keeper_command *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *c = (struct px_keeper_command){.number = k->numbers + 1, .pipe = {-EBADF, -EBADF}, .input = -EBADF,
                                  .started_sec = now.tv_sec, .log = {{.fd = -EBADF}, {.fd = -EBADF}},
                                  .text = malloc(length + 1), .length = length};
    if (!c->text) {
        free(c);
        return NULL;
    }
    memcpy(c->text, text, length);
    c->text[length] = '\0';
    return c;
}

int px_keeper_command_run(struct px_keeper *k, const char *text, size_t length, unsigned *ret_number, struct px_err *e)
{
    struct px_policy *policy = NULL;
    size_t at = 0;
    if (px_keeper_command_running(k) >= PX_KEEPER_COMMANDS_MAX) {
        px_fail(e, PX_E_LIMIT, 0, "box '%s' runs %d detached commands already", k->place.name, PX_KEEPER_COMMANDS_MAX);
        px_why(e, "So many can run in one box at the same time.");
        return px_fix(e, "px box show %s lists them; px box signal %s TERM --command NUMBER ends one.\n"
                         "Or start another box for the rest: px box start.", k->place.name, k->place.name);
    }
    if (px_named_unpack(text, length, &policy, &at, e) < 0)
        return -1;
    px_auto_free const char **argv = px_named_words(text, length, at);
    struct px_keeper_command *c = argv ? new_command(k, text + at, length - at) : NULL;
    int r = c ? start(k, c, policy, argv, e) : px_no_memory(e);
    px_policy_free(policy);
    if (!c || r < 0) {
        px_keeper_command_free(c);
        return -1;
    }
    c->next = k->commands;
    k->commands = c;
    *ret_number = k->numbers = c->number;
    return 0;
}

/* ---- running ---- */

static void drain(struct px_keeper_command *c, int i)
{
    char chunk[4096];
    for (int round = 0; round < 64 && c->pipe[i] >= 0; round++) {      /* bounded, so that others are served */
        ssize_t n = px_read_some(c->pipe[i], chunk, sizeof chunk);
        if (n == -EAGAIN)
            return;
        if (n <= 0)
            c->pipe[i] = px_fd_close(c->pipe[i]);
        else
            px_named_log_write(&c->log[i], chunk, (size_t)n);
    }
}

/* Its flow has written everything and closed its ends, so one more read empties the pipes. */
static void end_command(struct px_keeper_command *c)
{
    for (int i = 0; i < 2; i++) {
        drain(c, i);
        c->pipe[i] = px_fd_close(c->pipe[i]);
        px_named_log_done(&c->log[i]);
    }
    if (c->failed.code == 0 && px_box_json(c->box, false, &c->result, &c->failed) == 0)
        c->exit_code = px_box_result(c->box)->exit_code;
    px_box_free(c->box);
    c->box = NULL;
    c->input = px_fd_close(c->input);
}

bool px_keeper_command_step(struct px_keeper_command *c)
{
    for (int i = 0; i < 2; i++)
        drain(c, i);
    if (!c->box || px_box_step(c->box, &c->failed) > 0)
        return false;
    end_command(c);
    return true;
}

/* ---- the list ---- */

struct px_keeper_command *px_keeper_command_find(struct px_keeper *k, unsigned number)
{
    for (struct px_keeper_command *c = k->commands; c; c = c->next)
        if (number == 0 || c->number == number)
            return c;
    return NULL;
}

size_t px_keeper_command_running(const struct px_keeper *k)
{
    size_t n = 0;
    for (const struct px_keeper_command *c = k->commands; c; c = c->next)
        n += c->box != NULL;
    return n;
}

/* The last few that have ended can still be queried. */
void px_keeper_command_forget_old(struct px_keeper *k)
{
    size_t ended = 0;
    for (struct px_keeper_command **at = &k->commands; *at;) {
        struct px_keeper_command *c = *at;
        if (c->box || ++ended <= PX_KEEPER_ENDED_MAX) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        px_keeper_command_free(c);
    }
}

void px_keeper_command_free(struct px_keeper_command *c)
{
    if (!c)
        return;
    px_box_free(c->box);
    for (int i = 0; i < 2; i++) {
        (void)px_fd_close(c->pipe[i]);
        px_named_log_remove(&c->log[i]);
    }
    (void)px_fd_close(c->input);
    free(c->text);
    free(c->result);
    free(c);
}
