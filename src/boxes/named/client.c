/* The user's side of a named box. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "box/handover.h"
#include "box/supervise.h"
#include "named/client_internal.h"
#include "named/named_internal.h"
#include "relay/relay.h"

enum {
    CONNECT_MSEC_MAX = 5000,
    ANSWER_MSEC_MAX = 10 * 1000,
    RUN_MSEC_MAX = 70 * 1000,   /* the keeper itself waits for pid 1 */
    STOP_MSEC_MAX = 60 * 1000,
    BYE_MSEC_MAX = 5000,
};

/* ---- coming and going ---- */

static int no_such_box(const char *name, struct px_err *e)
{
    px_fail(e, PX_E_NAME, 0, "there is no box '%s'", name);
    px_why(e, "It was never started, or has ended: stopped, idle, at the end of its life, or with its keeper.");
    return px_fix(e, "px box list shows the boxes that run.\nStart it: px box start --name %s.", name);
}

/* The socket appears just after the directory, and its backlog may be full: retries until CONNECT_MSEC_MAX. */
static int connect_to(int dir)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    uint64_t end = px_now_nsec() + (uint64_t)CONNECT_MSEC_MAX * 1000000;
    int r = px_named_connect(dir);
    while ((r == -EAGAIN || r == -EINTR) && px_now_nsec() < end) {
        (void)nanosleep(&moment, NULL);
        r = px_named_connect(dir);
    }
    return r;
}

static int enter(struct px_living *l, struct px_err *e)
{
    int held = px_named_held(l->boxes, l->name);
    if (held <= 0) {
        px_named_sweep(l->boxes);
        return no_such_box(l->name, e);
    }
    l->dir = (int)px_sys(SYS_openat, l->boxes, l->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    l->socket = l->dir < 0 ? l->dir : connect_to(l->dir);
    if (l->socket == -ENOENT) {
        px_fail(e, PX_E_GONE, 0, "box '%s' is just being started, or ended", l->name);
        return px_fix(e, "Try again in a moment.");
    }
    if (l->socket < 0)
        return px_fail(e, PX_E_GONE, l->socket, "the keeper of box '%s' cannot be reached", l->name);
    int trusted = px_named_trusts(l->socket, true);
    if (trusted > 0)
        return 0;
    if (trusted == -ESRCH)
        return no_such_box(l->name, e);
    px_fail(e, PX_E_GONE, 0, "what answers for box '%s' is not its keeper", l->name);
    px_why(e, "It belongs to another user, or lives in a box itself.");
    return px_fix(e, "Look who has put a socket there: ls -l in run/boxes/%s of PX_HOME.", l->name);
}

PX_API int px_living_open(const char *home, const char *name, struct px_living **ret_living, struct px_err *e)
{
    PX_ERR(e);
    if (!px_policy_name_ok(name)) {
        (void)px_fail(e, PX_E_NAME, 0, "'%.80s' is not a name for a box", name);
        return px_fix(e, "Write a name of small letters, digits and '-', such as my-box.");
    }
    struct px_living *l = calloc(1, sizeof *l);
    if (!l)
        return px_no_memory(e);
    l->boxes = l->dir = l->socket = l->defaults = l->cancel = -EBADF;
    int r = px_fmt(l->name, sizeof l->name, "%s", name);
    if (r >= 0)
        r = px_named_boxes(home, false, &l->boxes, e);
    if (r >= 0)
        r = l->boxes < 0 ? no_such_box(name, e) : enter(l, e);
    if (r < 0) {
        px_living_close(l);
        return -1;
    }
    *ret_living = l;
    return 0;
}

PX_API void px_living_close(struct px_living *living)
{
    if (!living)
        return;
    px_box_free(living->home);
    (void)px_fd_close(living->socket);
    (void)px_fd_close(living->defaults);
    (void)px_fd_close(living->dir);
    (void)px_fd_close(living->boxes);
    free(living);
}

PX_API void px_living_cancel_on(struct px_living *living, int fd)
{
    living->cancel = fd;
}

/* ---- asking ---- */

static int no_answer(const struct px_living *l, int r, struct px_err *e)
{
    if (r == -ETIMEDOUT) {
        px_fail(e, PX_E_GONE, 0, "the keeper of box '%s' does not answer", l->name);
        px_why(e, "It is stopped, or busy with something that hangs.");
        return px_fix(e, "px box list shows its process; when that is killed the box dies, and px box list cleans up.");
    }
    px_fail(e, PX_E_GONE, r == -EPIPE || r == -ECONNRESET ? 0 : r, "box '%s' has ended, or its keeper refuses this process",
            l->name);
    px_why(e, "A keeper answers its owner only, and nobody inside a box.");
    return px_fix(e, "px box list shows the boxes that run.");
}

/* BYE is not an answer: it is stored, and the answer will not come. */
static int await_answer(struct px_living *l, int msec, struct px_named_message *m, int *ret_fd, struct px_err *e)
{
    *ret_fd = -EBADF;
    int r = px_named_await(l->socket, msec, m, ret_fd);
    if (r == 1 && m->kind == PX_KEEP_BYE) {
        (void)px_fmt(l->why, sizeof l->why, "%s", m->err.what);
        *ret_fd = px_fd_close(*ret_fd);
        r = 0;
    }
    if (r <= 0)
        return no_answer(l, r, e);
    if (m->err.code) {
        *ret_fd = px_fd_close(*ret_fd);
        *e = m->err;
        return -1;
    }
    return 0;
}

static int ask(struct px_living *l, const struct px_named_message *question, int fd, int msec, struct px_named_message *ret,
               int *ret_fd, struct px_err *e)
{
    int r = px_named_send(l->socket, question, fd);
    return r < 0 ? no_answer(l, r, e) : await_answer(l, msec, ret, ret_fd, e);
}

/* ---- commands of our own ---- */

static int take_home(struct px_living *l, struct px_err *e)
{
    const struct px_named_message question = {.kind = PX_KEEP_HOME};
    struct px_named_message m = {0};
    if (l->home)
        return 0;
    int r = px_named_send(l->socket, &question, -EBADF);
    if (r < 0)
        return no_answer(l, r, e);
    if (px_handover_receive(l->socket, ANSWER_MSEC_MAX, &l->home, e) < 0)
        return -1;
    if (l->home->record >= 0)   /* without it, results have no network part */
        l->home->carrier = px_relay_guest(&l->home->record);
    return await_answer(l, ANSWER_MSEC_MAX, &m, &l->defaults, e);
}

int px_named_client_init(struct px_living *living, struct px_err *e)
{
    return take_home(living, e) < 0 ? -1 : living->home->pidfd;
}

PX_API int px_living_policy(struct px_living *living, struct px_policy **ret_policy, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf text = PX_BUF(PX_KEEP_TEXT_MAX);
    size_t words;
    if (take_home(living, e) < 0)
        return -1;
    int r = px_named_text_read(living->defaults, &text);
    if (r < 0)
        return px_fail(e, PX_E_GONE, r, "box '%s' does not say what its commands start from", living->name);
    return px_named_unpack(text.data, text.len, ret_policy, &words, e);
}

static void tell_began(struct px_living *l, const struct px_box *box)
{
    struct px_named_message m = {.kind = PX_KEEP_BEGAN, .number = box->inside_pid};
    size_t at = 0;
    for (char **a = box->argv; *a && at + 1 < sizeof m.err.what; a++) {
        if (at > 0)
            m.err.what[at++] = '\n';
        for (const char *p = *a; *p && at + 1 < sizeof m.err.what; p++)
            m.err.what[at++] = *p == '\n' ? ' ' : *p;
    }
    (void)px_named_send(l->socket, &m, box->payload);
}

PX_API int px_living_exec(struct px_living *living, const struct px_policy *command, const char *const argv[],
                          const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    PX_ERR(e);
    if (take_home(living, e) < 0 || px_box_exec(living->home, command, argv, io, ret_box, e) < 0)
        return -1;
    tell_began(living, *ret_box);
    return 0;
}

PX_API const char *px_living_why(struct px_living *living)
{
    struct px_named_message m = {0};
    int fd = -EBADF;
    while (!living->why[0] && px_named_await(living->socket, BYE_MSEC_MAX, &m, &fd) == 1) {
        (void)px_fd_close(fd);
        if (m.kind == PX_KEEP_BYE)
            (void)px_fmt(living->why, sizeof living->why, "%s", m.err.what);
    }
    return living->why;
}

/* ---- questions ---- */

static int take_text(const struct px_living *l, int fd, char **ret_text, struct px_err *e)
{
    struct px_buf text = PX_BUF(PX_KEEP_TEXT_MAX);
    int r = px_named_text_read(fd, &text);
    *ret_text = r < 0 ? NULL : px_buf_take(&text);
    px_buf_done(&text);
    return *ret_text ? 0 : px_fail(e, PX_E_GONE, r, "the answer of the keeper of box '%s' cannot be read", l->name);
}

PX_API int px_living_info(struct px_living *living, bool all, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_INFO, .number = all};
    struct px_named_message m = {0};
    px_auto_fd int fd = -EBADF;
    if (ask(living, &question, -EBADF, ANSWER_MSEC_MAX, &m, &fd, e) < 0)
        return -1;
    return take_text(living, fd, ret_json, e);
}

/* An array of structs of px/living.h; a peer of another version was refused before. */
static int look(struct px_living *l, enum px_keeper_look which, size_t size, void **ret_list, size_t *ret_count, struct px_err *e)
{
    const struct px_named_message question = {.kind = PX_KEEP_LOOK, .number = which};
    struct px_named_message m = {0};
    px_auto_fd int fd = -EBADF;
    struct px_buf text = PX_BUF(PX_KEEP_TEXT_MAX);
    if (ask(l, &question, -EBADF, ANSWER_MSEC_MAX, &m, &fd, e) < 0)
        return -1;
    int r = px_named_text_read(fd, &text);
    size_t count = text.len / size;
    if (r < 0 || text.len % size) {
        px_buf_done(&text);
        return px_fail(e, PX_E_GONE, r, "the answer of the keeper of box '%s' cannot be read", l->name);
    }
    *ret_list = count ? px_buf_take(&text) : NULL;
    *ret_count = count;
    px_buf_done(&text);
    return 0;
}

PX_API int px_living_state(struct px_living *living, struct px_living_state *ret_state, struct px_err *e)
{
    PX_ERR(e);
    px_auto_free void *one = NULL;
    size_t count = 0;
    if (look(living, PX_KEEP_STATE, sizeof *ret_state, &one, &count, e) < 0)
        return -1;
    if (count != 1)
        return px_fail(e, PX_E_GONE, 0, "the keeper of box '%s' says nothing", living->name);
    memcpy(ret_state, one, sizeof *ret_state);
    return 0;
}

PX_API int px_living_commands(struct px_living *living, struct px_living_command **ret_list, size_t *ret_count,
                              struct px_err *e)
{
    PX_ERR(e);
    void *list = NULL;
    if (look(living, PX_KEEP_COMMANDS, sizeof **ret_list, &list, ret_count, e) < 0)
        return -1;
    *ret_list = list;
    return 0;
}

PX_API int px_living_processes(struct px_living *living, struct px_living_process **ret_list, size_t *ret_count,
                               struct px_err *e)
{
    PX_ERR(e);
    void *list = NULL;
    if (look(living, PX_KEEP_PROCESSES, sizeof **ret_list, &list, ret_count, e) < 0)
        return -1;
    *ret_list = list;
    return 0;
}

static int bad_signal(int signal, struct px_err *e)
{
    return signal >= 1 && signal <= 64 ? 0 : px_fail(e, PX_E_VALUE, 0, "there is no signal %d", signal);
}

PX_API int px_living_signal(struct px_living *living, int signal, unsigned command, unsigned *ret_count, struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_SIGNAL, .number = signal, .command = command};
    struct px_named_message m = {0};
    px_auto_fd int fd = -EBADF;
    if (bad_signal(signal, e) < 0 || ask(living, &question, -EBADF, ANSWER_MSEC_MAX, &m, &fd, e) < 0)
        return -1;
    if (ret_count)
        *ret_count = (unsigned)m.number;
    return 0;
}

PX_API int px_living_signal_process(struct px_living *living, int signal, int pid, struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_SIGNAL_PROCESS, .number = signal, .command = (unsigned)pid};
    struct px_named_message m = {0};
    px_auto_fd int fd = -EBADF;
    if (pid < 2) {
        px_fail(e, PX_E_VALUE, 0, "process %d of a box gets no signals", pid);
        return px_fix(e, "To end the box: px box stop %s.", living->name);
    }
    return bad_signal(signal, e) < 0 ? -1 : ask(living, &question, -EBADF, ANSWER_MSEC_MAX, &m, &fd, e);
}

PX_API int px_living_ask_stop(struct px_living *living, struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_STOP};
    int r = living->stops ? 0 : px_named_send(living->socket, &question, -EBADF);
    living->stops = true;
    return r < 0 && px_named_held(living->boxes, living->name) == 1 ? no_answer(living, r, e) : 0;
}

PX_API int px_living_stop(struct px_living *living, struct px_err *e)
{
    PX_ERR(e);
    struct px_named_message m = {0};
    int fd = -EBADF;
    int r = px_living_ask_stop(living, e);
    if (r < 0)
        return -1;
    while (r >= 0) {            /* a BYE may come before the answer */
        r = px_named_await(living->socket, STOP_MSEC_MAX, &m, &fd);
        (void)px_fd_close(fd);
        fd = -EBADF;
        if (r == 1 && m.kind == PX_KEEP_ANSWER)
            break;
        r = r == 0 ? -EPIPE : r < 0 ? r : 0;
    }
    if (r == 1 && m.err.code) {
        *e = m.err;
        return -1;
    }
    /* Another user may have stopped it first. */
    if (r < 0 && px_named_held(living->boxes, living->name) != 1)
        return 0;
    return r < 0 ? no_answer(living, r, e) : 0;
}

/* ---- detached commands ---- */

PX_API int px_living_detach(struct px_living *living, const struct px_policy *command, const char *const argv[],
                            unsigned *ret_command, struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_RUN};
    struct px_named_message m = {0};
    px_auto_buf struct px_buf text = PX_BUF(PX_KEEP_TEXT_MAX);
    size_t count;
    if (px_plan_check(argv, &count, e) < 0)
        return -1;
    if (command->tty) {
        px_fail(e, PX_E_USAGE, 0, "a detached command has no terminal");
        return px_fix(e, "Leave -t out, or leave -d out and stay with it.");
    }
    px_named_pack(command, true, &text);
    px_named_pack_words(argv, &text);
    px_auto_fd int file = text.err < 0 ? text.err : px_named_text_file(text.data, text.len);
    px_auto_fd int fd = -EBADF;
    if (file < 0)
        return px_fail(e, PX_E_LIMIT, file, "the command is too large for a box");
    if (ask(living, &question, file, RUN_MSEC_MAX, &m, &fd, e) < 0)
        return -1;
    *ret_command = m.command;
    return 0;
}

PX_API int px_living_wait(struct px_living *living, unsigned command, int msec, int *ret_exit_code, char **ret_json,
                          struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_WAIT, .command = command};
    struct px_named_message m = {0};
    px_auto_fd int fd = -EBADF;
    int r = living->waits ? 0 : px_named_send(living->socket, &question, -EBADF);
    if (r < 0)
        return no_answer(living, r, e);
    living->waits = true;
    r = px_named_await(living->socket, msec, &m, &fd);
    if (r == -ETIMEDOUT)
        return 0;
    living->waits = false;
    if (r != 1 || m.kind != PX_KEEP_ANSWER)
        return no_answer(living, r == 1 ? 0 : r, e);
    if (m.err.code) {
        *e = m.err;
        return -1;
    }
    *ret_exit_code = m.number;
    return take_text(living, fd, ret_json, e) < 0 ? -1 : 1;
}

PX_API int px_living_input(struct px_living *living, unsigned command, struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_INPUT, .command = command};
    struct px_named_message m = {0};
    int fd = -EBADF;
    if (ask(living, &question, -EBADF, ANSWER_MSEC_MAX, &m, &fd, e) < 0)
        return -1;
    return fd < 0 ? px_fail(e, PX_E_GONE, 0, "the command has no standard input") : fd;
}

PX_API int px_living_end_input(struct px_living *living, unsigned command, struct px_err *e)
{
    PX_ERR(e);
    const struct px_named_message question = {.kind = PX_KEEP_END_INPUT, .command = command};
    struct px_named_message m = {0};
    px_auto_fd int fd = -EBADF;
    return ask(living, &question, -EBADF, ANSWER_MSEC_MAX, &m, &fd, e);
}

PX_API long px_living_log(struct px_living *living, unsigned command, enum px_stream stream, struct px_log_at *at, void *out,
                          size_t size, struct px_err *e)
{
    PX_ERR(e);
    long n = px_named_log_read(living->dir, command, stream, at, out, size);
    return n < 0 ? px_fail(e, PX_E_IO, (int)n, "the log of command %u cannot be read", command) : n;
}
