/* The requests of a box's users to its keeper, and its answers. It never waits for a user. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/time.h"
#include "box/handover.h"
#include "keeper/keeper_internal.h"

enum { MESSAGES_AT_ONCE = 16 };

/* ---- answers ---- */

void px_keeper_answer(struct px_keeper_user *u, const struct px_named_message *m, int fd)
{
    struct px_named_message copy = *m;
    copy.kind = PX_KEEP_ANSWER;
    if (px_named_send(u->socket, &copy, fd) < 0)
        u->gone = true;         /* it does not read, or has ended */
}

static void answer_text(struct px_keeper_user *u, struct px_named_message *m, const char *text, size_t length)
{
    px_auto_fd int fd = px_named_text_file(text, length);
    if (fd < 0)
        px_fail(&m->err, PX_E_IO, fd, "the keeper cannot write its answer");
    px_keeper_answer(u, m, fd);
}

void px_keeper_answer_end(struct px_keeper_user *u, const struct px_keeper_command *c)
{
    struct px_named_message m = {.command = c->number, .number = c->exit_code, .err = c->failed};
    u->waits_for = 0;
    if (c->result)
        answer_text(u, &m, c->result, strlen(c->result));
    else
        px_keeper_answer(u, &m, -EBADF);
}

/* ---- requests ---- */

static void on_home(struct px_keeper *k, struct px_keeper_user *u)
{
    struct px_named_message m = {0};
    if (px_handover_send(u->socket, k->home) < 0) {
        u->gone = true;
        return;
    }
    u->took_home = true;
    if (k->idle_since_nsec)
        k->idle_since_nsec = px_now_nsec();
    px_keeper_answer(u, &m, k->defaults);
}

static void on_began(struct px_keeper *k, const struct px_named_message *m, int *fd)
{
    struct px_keeper_client *g = k->guests_count < PX_KEEPER_GUESTS_MAX ? calloc(1, sizeof *g) : NULL;
    struct timespec now;
    if (!g || *fd < 0) {
        free(g);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *g = (struct px_keeper_client){.next = k->guests, .number = ++k->numbers, .pid = m->number, .pidfd = px_fd_take(fd),
                                .started_sec = now.tv_sec};
    /* A few words are enough to recognise it; the message has room for them where an answer has its error. */
    g->length = strnlen(m->err.what, sizeof m->err.what);
    g->text = malloc(g->length + 1);
    if (g->text)
        memcpy(g->text, m->err.what, g->length + 1);
    else
        g->length = 0;
    for (size_t i = 0; i < g->length; i++)
        g->text[i] = g->text[i] == '\n' ? '\0' : g->text[i];
    k->guests = g;
    k->guests_count++;
}

static void on_info(const struct px_keeper *k, struct px_keeper_user *u, const struct px_named_message *m)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_KEEP_TEXT_MAX);
    struct px_named_message a = {0};
    if ((m->kind == PX_KEEP_LOOK ? px_keeper_look(k, m->number, &text) : px_keeper_info(k, m->number, &text)) < 0)
        px_fail(&a.err, PX_E_LIMIT, text.err, "box '%s' has too much to tell", k->place.name);
    answer_text(u, &a, text.data, text.err < 0 ? 0 : text.len);
}

/* By way of pid 1, which knows whether the number still is the command's. */
int px_keeper_signal_commands(const struct px_keeper *k, unsigned number, int signal)
{
    int got = 0;
    for (const struct px_keeper_client *g = k->guests; g; g = g->next)
        if (number == 0 || g->number == number)
            got += px_command_signal_pid(k->home, g->pid, signal) >= 0;
    for (const struct px_keeper_command *c = k->commands; c; c = c->next)
        if (c->box && (number == 0 || c->number == number))
            got += px_command_signal_pid(k->home, c->pid, signal) >= 0;
    return got;
}

static void on_signal(const struct px_keeper *k, struct px_keeper_user *u, const struct px_named_message *m, bool one)
{
    struct px_named_message a = {0};
    a.number = one ? px_keeper_signal_inside(k->home->pid, k->home->pidfd, (int)m->command, m->number)
                   : px_keeper_signal_commands(k, m->command, m->number);
    if (a.number == 0 && m->command)
        px_fail(&a.err, PX_E_GONE, 0, one ? "box '%s' has no process %u" : "box '%s' has no running command %u", k->place.name,
                m->command);
    if (a.err.code)
        px_fix(&a.err, "px box show %s lists what runs.", k->place.name);
    px_keeper_answer(u, &a, -EBADF);
}

static void on_run(struct px_keeper *k, struct px_keeper_user *u, int fd)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_KEEP_TEXT_MAX);
    struct px_named_message a = {0};
    int r = px_named_text_read(fd, &text);
    if (r < 0)
        px_fail(&a.err, PX_E_LIMIT, r, "the command could not be read");
    else
        (void)px_keeper_command_run(k, text.data, text.len, &a.command, &a.err);
    px_keeper_answer(u, &a, -EBADF);
}

/* The requested command; otherwise answers that there is none. */
static struct px_keeper_command *wanted(struct px_keeper *k, struct px_keeper_user *u, const struct px_named_message *m)
{
    struct px_keeper_command *c = px_keeper_command_find(k, m->command);
    struct px_named_message a = {0};
    if (c)
        return c;
    if (m->command)
        px_fail(&a.err, PX_E_GONE, 0, "box '%s' has no detached command %u", k->place.name, m->command);
    else
        px_fail(&a.err, PX_E_GONE, 0, "box '%s' has no detached command", k->place.name);
    px_why(&a.err, "Only commands that were started with -d have a log, and only the latest %d that ended.",
           PX_KEEPER_ENDED_MAX);
    px_fix(&a.err, "px box show %s lists them. px box exec -d starts one.", k->place.name);
    px_keeper_answer(u, &a, -EBADF);
    return NULL;
}

static void on_wait(struct px_keeper_user *u, const struct px_keeper_command *c)
{
    if (c->box)
        u->waits_for = c->number;
    else
        px_keeper_answer_end(u, c);
}

static void on_input(struct px_keeper_user *u, struct px_keeper_command *c, bool end)
{
    struct px_named_message a = {.command = c->number};
    if (end)
        c->input = px_fd_close(c->input);
    else if (c->input < 0) {
        px_fail(&a.err, PX_E_GONE, 0, "command %u has no standard input", c->number);
        px_why(&a.err, "It has ended, its input was closed, or it was started without -i.");
        px_fix(&a.err, "Start it with -d -i, or leave -i out to see its output.");
    }
    px_keeper_answer(u, &a, end ? -EBADF : c->input);
}

/* A box that is ending takes no more commands. */
static bool too_late(const struct px_keeper *k, struct px_keeper_user *u, const struct px_named_message *m)
{
    struct px_err e = {0};
    if (!k->why[0] || (m->kind != PX_KEEP_HOME && m->kind != PX_KEEP_RUN))
        return false;
    px_fail(&e, PX_E_GONE, 0, "box '%s' is being ended", k->place.name);
    const struct px_named_message a = {.err = e};
    if (m->kind == PX_KEEP_RUN)
        px_keeper_answer(u, &a, -EBADF);
    else if (px_handover_refuse(u->socket, &e) < 0)
        u->gone = true;
    return true;
}

static void on_message(struct px_keeper *k, struct px_keeper_user *u, const struct px_named_message *m, int *fd)
{
    struct px_keeper_command *c;
    if (too_late(k, u, m))
        return;
    switch ((enum px_keep_kind)m->kind) {
    case PX_KEEP_HOME:
        on_home(k, u);
        break;
    case PX_KEEP_BEGAN:
        on_began(k, m, fd);
        break;
    case PX_KEEP_INFO:
    case PX_KEEP_LOOK:
        on_info(k, u, m);
        break;
    case PX_KEEP_SIGNAL:
    case PX_KEEP_SIGNAL_PROCESS:
        on_signal(k, u, m, m->kind == PX_KEEP_SIGNAL_PROCESS);
        break;
    case PX_KEEP_RUN:
        on_run(k, u, *fd);
        break;
    case PX_KEEP_WAIT:
        if ((c = wanted(k, u, m)))
            on_wait(u, c);
        break;
    case PX_KEEP_INPUT:
    case PX_KEEP_END_INPUT:
        if ((c = wanted(k, u, m)))
            on_input(u, c, m->kind == PX_KEEP_END_INPUT);
        break;
    case PX_KEEP_STOP:
        u->wants_stop = true;
        px_keeper_begin_end(k, "stopped by its owner");
        break;
    default:
        u->gone = true;         /* another version, or not px */
        break;
    }
}

void px_keeper_serve(struct px_keeper *k, struct px_keeper_user *u)
{
    for (int i = 0; i < MESSAGES_AT_ONCE && !u->gone; i++) {
        struct px_named_message m;
        px_auto_fd int fd = -EBADF;
        int r = px_named_receive(u->socket, &m, &fd);
        if (r == -EAGAIN)
            return;
        if (r <= 0)
            u->gone = true;
        else
            on_message(k, u, &m, &fd);
    }
}
