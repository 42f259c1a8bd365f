/* Runs commands in one box: starts and watches them, stores their output, and ends them with the server. */
#include "mcp/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/stream.h"
#include "mcp/wire.h"

enum {
    JOBS_MAX = 64,
    CHUNK = 64 << 10,
    QUEUE_MAX = 256 << 20, /* unsent answers: as many as the server may have pending */
};

struct job {
    unsigned number; /* the process number; 0: free */
    uint32_t asked;  /* the request that waits for its end; 0: none */
    bool background, running;
    struct px_box *box;
    struct stream out, err;
    int exit_code;
    char status[24], reason[96];
};

struct runner {
    const struct runner_config *config;
    int socket;
    struct px_box *home;
    struct job jobs[JOBS_MAX];
    unsigned last;
    struct px_buf in;    /* of the server: a part of a record */
    struct px_buf queue; /* to the server */
};

/* ---- answers ---- */

static void send_answer(struct runner *r, uint32_t number, bool is_error, const char *text, size_t len,
                        const char *json)
{
    struct wire_answer head = {
        .number = number, .is_error = is_error, .text_len = (uint32_t)len, .json_len = (uint32_t)strlen(json)};
    px_buf_add(&r->queue, &head, sizeof head);
    px_buf_add(&r->queue, text, len);
    px_buf_add(&r->queue, json, head.json_len);
}

static void send_error(struct runner *r, uint32_t number, const struct px_err *e)
{
    px_auto_free char *words = NULL, *json = NULL;
    if (serve_error(r->config->files, e, &words, &json) == 0)
        send_answer(r, number, true, words, strlen(words), json);
}

static void send_question(struct runner *r, uint32_t number)
{
    struct wire_answer head = {.number = number, .needs_approval = true};
    px_buf_add(&r->queue, &head, sizeof head);
}

/* ---- jobs ---- */

static void job_done(struct job *j)
{
    px_box_free(j->box);
    stream_close(&j->out);
    stream_close(&j->err);
    free(j->out.data);
    free(j->err.data);
    *j = (struct job){.out = {-EBADF, -EBADF}, .err = {-EBADF, -EBADF}};
}

/* A free slot; else that of the background process that ended first, even if its output was not read. */
static struct job *job_new(struct runner *r)
{
    struct job *oldest = NULL;
    for (size_t i = 0; i < JOBS_MAX; i++) {
        struct job *j = &r->jobs[i];
        if (j->number == 0)
            return j;
        if (!j->running && (!oldest || j->number < oldest->number))
            oldest = j;
    }
    if (oldest)
        job_done(oldest);
    return oldest;
}

static struct job *job_find(struct runner *r, unsigned number)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (r->jobs[i].number == number && r->jobs[i].background)
            return &r->jobs[i];
    return NULL;
}

static int command_text(const struct px_box *box, const char *note, struct px_buf *text, struct px_err *e)
{
    const struct px_result *res = px_box_result(box);
    px_auto_free char *out = NULL, *err = NULL;
    size_t out_len, err_len;
    if (px_box_output(box, 1, &out, &out_len, e) < 0 || px_box_output(box, 2, &err, &err_len, e) < 0)
        return -1;
    px_buf_add(text, out, out_len);
    if (err_len) {
        px_buf_puts(text, text->len && text->data[text->len - 1] != '\n' ? "\n[stderr]\n" : "[stderr]\n");
        px_buf_add(text, err, err_len);
    }
    if (text->len && text->data[text->len - 1] != '\n')
        px_buf_putc(text, '\n');
    if (res->timed_out)
        px_buf_puts(text, "The command timed out and was ended.\n");
    px_buf_printf(text, "exit status: %d%s%s\n", res->exit_code, res->status == PX_STATUS_OK ? "" : ", ",
                  res->status == PX_STATUS_OK ? "" : res->reason);
    px_buf_puts(text, note ? note : "");
    return 0;
}

/* A foreground command has ended. A non-zero exit is a normal answer; a command that the sandbox stopped is an
 * error. */
static void tell_end(struct runner *r, struct job *j)
{
    px_auto_buf struct px_buf text = PX_BUF(WIRE_ANSWER_MAX), out = PX_BUF(WIRE_ANSWER_MAX);
    px_auto_free char *note = NULL, *json = NULL;
    struct px_err e = {0};
    const struct px_result *res = px_box_result(j->box);
    if (px_shell_note(r->config->files, r->config->network, res, &note, &e) < 0 ||
        px_box_json(j->box, false, &json, &e) < 0 || command_text(j->box, note, &text, &e) < 0) {
        send_error(r, j->asked, &e);
        return;
    }
    bool is_error = note || (res->status != PX_STATUS_OK && res->status != PX_STATUS_NONZERO);
    struct px_json o = {.out = &out};
    px_json_object(&o, NULL);
    px_json_bool(&o, "ok", !is_error);
    px_json_text(&o, "note", note);
    px_json_value(&o, "result", json);
    px_json_end(&o);
    send_answer(r, j->asked, is_error, px_buf_text(&text), text.len, px_buf_text(&out));
}

static void job_ended(struct runner *r, struct job *j)
{
    const struct px_result *res = px_box_result(j->box);
    j->running = false;
    if (!j->background) {
        if (j->asked)
            tell_end(r, j);
        job_done(j);
        return;
    }
    stream_read(&j->out);
    stream_read(&j->err);
    stream_close(&j->out);
    stream_close(&j->err);
    j->exit_code = res->exit_code;
    (void)px_fmt(j->status, sizeof j->status, "%s", px_status_name(res->status));
    (void)px_fmt(j->reason, sizeof j->reason, "%.90s", res->reason ? res->reason : "");
    px_box_free(j->box);
    j->box = NULL;
}

/* Waits for a killed job and reads its output: the box does not end before its output is read. */
static void job_finish(struct runner *r, struct job *j)
{
    struct px_err e = {0};
    int alive;
    while ((alive = px_box_step(j->box, &e)) == 1) {
        struct pollfd fds[] = {{.fd = px_box_fd(j->box), .events = POLLIN},
                               {.fd = j->out.read, .events = POLLIN},
                               {.fd = j->err.read, .events = POLLIN}};
        (void)poll(fds, 3, -1);
        stream_read(&j->out);
        stream_read(&j->err);
    }
    if (alive == 0)
        job_ended(r, j);
    else
        job_done(j);
}

/* ---- the box ---- */

static bool home_alive(struct runner *r)
{
    struct px_err e = {0};
    return r->home && px_box_step(r->home, &e) == 1;
}

/* Frees the commands before their box. */
static void home_drop(struct runner *r)
{
    for (size_t i = 0; i < JOBS_MAX; i++) {
        struct job *j = &r->jobs[i];
        struct px_err e = {0};
        if (!j->box)
            continue;
        (void)px_box_kill(j->box, &e);
        job_finish(r, j);
    }
    px_box_free(r->home);
    r->home = NULL;
}

static int home_open(struct runner *r, struct px_err *e)
{
    struct px_policy *policy = NULL;
    if (home_alive(r))
        return 0;
    home_drop(r);
    if (r->config->policy(r->config->user, &policy, e) < 0)
        return -1;
    int done = px_policy_set(policy, "timeout", "unlimited", e);
    if (done >= 0)
        done = px_box_stay(policy, &r->home, e);
    px_policy_free(policy);
    return done;
}

static int start(struct runner *r, struct job *j, const struct wire_ask *ask, const char *const argv[],
                 struct px_err *e)
{
    struct px_policy *policy = NULL;
    struct px_io io = {.use_out = true, .use_err = true, .out = j->out.write, .err = j->err.write};
    char timeout[32];
    if (home_open(r, e) < 0 || r->config->policy(r->config->user, &policy, e) < 0)
        return -1;
    (void)px_fmt(timeout, sizeof timeout, "%ums", ask->timeout_msec);
    int done = px_policy_set(policy, "timeout", ask->timeout_msec ? timeout : "unlimited", e);
    if (done >= 0 && j->background) /* the stored output has its own limit */
        done = px_policy_set(policy, "output-limit", "unlimited", e);
    if (done >= 0)
        done = px_box_exec(r->home, policy, argv, j->background ? &io : NULL, &j->box, e);
    px_policy_free(policy);
    return done;
}

static void run_words(struct runner *r, const struct wire_ask *ask, const char *const argv[])
{
    struct px_err e = {0};
    struct job *j = job_new(r);
    char text[160], json[96];
    if (!j) {
        (void)px_fail(&e, PX_E_LIMIT, 0, "%d processes are running already", JOBS_MAX);
        (void)px_fix(&e, "End one with process_kill.");
        send_error(r, ask->number, &e);
        return;
    }
    j->background = ask->background;
    if ((j->background && (stream_open(&j->out) < 0 || stream_open(&j->err) < 0) &&
         px_fail(&e, PX_E_MEMORY, 0, "px ran out of memory or descriptors") < 0) ||
        start(r, j, ask, argv, &e) < 0) {
        send_error(r, ask->number, &e);
        job_done(j);
        return;
    }
    j->running = true;
    j->number = ++r->last;
    if (!j->background) {
        j->asked = ask->number;
        return;
    }
    (void)px_fmt(text, sizeof text,
                 "Running as process %u. Read it with process_output, end it with process_kill.\n",
                 j->number);
    (void)px_fmt(json, sizeof json, "{\"ok\":true,\"process\":%u,\"running\":true}", j->number);
    send_answer(r, ask->number, false, text, strlen(text), json);
}

/* With a worker: checks every command, even after an approval, and runs exactly the words that were checked. */
static void run_judged(struct runner *r, const struct wire_ask *ask, const char *command)
{
    struct px_err e = {0};
    char **words = NULL;
    enum px_approval found = px_worker_judge(r->config->worker, command, &words, &e);
    if (found == PX_BLOCKED)
        send_error(r, ask->number, &e);
    else if (found == PX_NEEDS_APPROVAL && !ask->approved)
        send_question(r, ask->number);
    else
        run_words(r, ask, (const char *const *)words);
    px_words_free(words);
}

static void do_execute(struct runner *r, const struct wire_ask *ask, const char *command)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    if (r->config->worker)
        run_judged(r, ask, command);
    else
        run_words(r, ask, argv);
}

static void add_state(const struct job *j, struct px_json *o, struct px_buf *text)
{
    px_json_bool(o, "ok", true);
    px_json_uint(o, "process", j->number);
    px_json_bool(o, "running", j->running);
    if (j->running)
        return;
    px_json_int(o, "exit_code", j->exit_code);
    px_json_text(o, "status", j->status);
    px_json_text(o, "reason", j->reason);
    px_buf_printf(text, "process %u has ended, exit status: %d, %s\n", j->number, j->exit_code, j->reason);
}

static struct job *known_job(struct runner *r, const struct wire_ask *ask)
{
    struct px_err e = {0};
    struct job *j = job_find(r, ask->process);
    if (j)
        return j;
    (void)px_fail(&e, PX_E_VALUE, 0, "there is no process %u", ask->process);
    (void)px_why(&e, "No command in the background has this number, or it ended long ago.");
    (void)px_fix(&e, "The number is what execute gave with background: true.");
    send_error(r, ask->number, &e);
    return NULL;
}

static void do_output(struct runner *r, const struct wire_ask *ask)
{
    px_auto_buf struct px_buf text = PX_BUF(WIRE_ANSWER_MAX), out = PX_BUF(WIRE_ANSWER_MAX);
    struct px_json o = {.out = &out};
    struct job *j = known_job(r, ask);
    if (!j)
        return;
    stream_read(&j->out);
    stream_read(&j->err);
    px_json_object(&o, NULL);
    stream_tell(&j->out, "stdout", "stdout_lost", &o, &text);
    if (j->err.total > j->err.told)
        px_buf_puts(&text, text.len && text.data[text.len - 1] != '\n' ? "\n[stderr]\n" : "[stderr]\n");
    stream_tell(&j->err, "stderr", "stderr_lost", &o, &text);
    if (text.len && text.data[text.len - 1] != '\n')
        px_buf_putc(&text, '\n');
    if (j->running)
        px_buf_printf(&text, "process %u is running\n", j->number);
    add_state(j, &o, &text);
    px_json_end(&o);
    send_answer(r, ask->number, false, px_buf_text(&text), text.len, px_buf_text(&out));
}

static void end_job(struct runner *r, struct job *j)
{
    struct px_err e = {0};
    if (!j->running || px_box_kill(j->box, &e) < 0)
        return;
    job_finish(r, j);
}

static void do_kill(struct runner *r, const struct wire_ask *ask)
{
    px_auto_buf struct px_buf text = PX_BUF(WIRE_ANSWER_MAX), out = PX_BUF(WIRE_ANSWER_MAX);
    struct px_json o = {.out = &out};
    struct job *j = known_job(r, ask);
    if (!j)
        return;
    end_job(r, j);
    px_json_object(&o, NULL);
    add_state(j, &o, &text);
    px_json_end(&o);
    send_answer(r, ask->number, false, px_buf_text(&text), text.len, px_buf_text(&out));
}

static void do_cancel(struct runner *r, const struct wire_ask *ask)
{
    for (size_t i = 0; i < JOBS_MAX; i++) {
        struct job *j = &r->jobs[i];
        if (j->number && j->asked == ask->number) {
            j->asked = 0;
            end_job(r, j);
        }
    }
}

/* ---- the loop ---- */

/* Handles one complete record of r->in: returns its size; -1: invalid. */
static ssize_t take_record(struct runner *r)
{
    struct wire_ask ask;
    char command[WIRE_TEXT_MAX + 1];
    if (r->in.len < sizeof ask)
        return 0;
    memcpy(&ask, r->in.data, sizeof ask);
    if (ask.len > WIRE_TEXT_MAX)
        return -1;
    if (r->in.len < sizeof ask + ask.len)
        return 0;
    memcpy(command, r->in.data + sizeof ask, ask.len);
    command[ask.len] = '\0';
    switch (ask.op) {
    case WIRE_EXECUTE:
        do_execute(r, &ask, command);
        break;
    case WIRE_OUTPUT:
        do_output(r, &ask);
        break;
    case WIRE_KILL:
        do_kill(r, &ask);
        break;
    case WIRE_CANCEL:
        do_cancel(r, &ask);
        break;
    default:
        return -1;
    }
    return (ssize_t)(sizeof ask + ask.len);
}

static int hear(struct runner *r)
{
    char chunk[CHUNK];
    ssize_t n = px_read_some(r->socket, chunk, sizeof chunk);
    if (n == -EAGAIN)
        return 0;
    if (n <= 0 || px_buf_add(&r->in, chunk, (size_t)n) < 0)
        return -1;
    for (ssize_t used; (used = take_record(r)) != 0;) {
        if (used < 0)
            return -1;
        r->in.len -= (size_t)used;
        memmove(r->in.data, r->in.data + used, r->in.len);
    }
    return 0;
}

static int tell(struct runner *r)
{
    if (r->queue.err < 0)
        return -1;
    if (r->queue.len == 0)
        return 0;
    ssize_t n = send(r->socket, r->queue.data, r->queue.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    r->queue.len -= (size_t)n;
    memmove(r->queue.data, r->queue.data + n, r->queue.len);
    return 0;
}

static nfds_t watch(struct runner *r, struct pollfd *fds)
{
    nfds_t n = 0;
    fds[n++] = (struct pollfd){.fd = r->socket, .events = (short)(POLLIN | (r->queue.len ? POLLOUT : 0))};
    if (r->home)
        fds[n++] = (struct pollfd){.fd = px_box_fd(r->home), .events = POLLIN};
    for (size_t i = 0; i < JOBS_MAX; i++) {
        struct job *j = &r->jobs[i];
        if (!j->running)
            continue;
        fds[n++] = (struct pollfd){.fd = px_box_fd(j->box), .events = POLLIN};
        if (j->background) {
            fds[n++] = (struct pollfd){.fd = j->out.read, .events = POLLIN};
            fds[n++] = (struct pollfd){.fd = j->err.read, .events = POLLIN};
        }
    }
    return n;
}

/* Steps all: stepping a box that is not ready does nothing. */
static void step(struct runner *r)
{
    struct px_err e = {0};
    if (r->home && !home_alive(r))
        home_drop(r);
    for (size_t i = 0; i < JOBS_MAX; i++) {
        struct job *j = &r->jobs[i];
        if (!j->running)
            continue;
        stream_read(&j->out);
        stream_read(&j->err);
        int alive = px_box_step(j->box, &e);
        if (alive == 0)
            job_ended(r, j);
        else if (alive < 0 && j->asked)
            send_error(r, j->asked, &e);
        if (alive < 0)
            job_done(j);
    }
}

void runner_serve(int socket, const struct runner_config *config)
{
    struct pollfd fds[3 * JOBS_MAX + 2];
    struct runner r = {.config = config,
                       .socket = socket,
                       .in = PX_BUF(sizeof(struct wire_ask) + WIRE_TEXT_MAX + CHUNK),
                       .queue = PX_BUF(QUEUE_MAX)};
    for (size_t i = 0; i < JOBS_MAX; i++)
        job_done(&r.jobs[i]);
    for (bool on = true; on;) {
        nfds_t n = watch(&r, fds);
        if (poll(fds, n, -1) < 0 && errno != EINTR)
            break;
        step(&r);
        if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
            on = hear(&r) == 0;
        on = on && tell(&r) == 0;
    }
    home_drop(&r);
    for (size_t i = 0; i < JOBS_MAX; i++)
        job_done(&r.jobs[i]);
    px_buf_done(&r.in);
    px_buf_done(&r.queue);
}
