/* px mcp: the command. The process that reads the client's messages is confined before the first one; the runner, which
 * starts boxes, is forked before that. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"
#include "base/err.h"
#include "base/fd.h"
#include "mcp/mcp.h"
#include "mcp/runner.h"

enum {
    MEMORY_MAX = 2048, /* MiB of address space */
    APPROVAL_S = 300,  /* for a person to answer */
    APPROVAL_MAX_S = 3600,
};

struct words {
    struct option_list roots;
    const char *worker_file;
    uint64_t approval_s;
    bool read_only, no_execute, git_writable;
    const struct args *args;
    char **made;                  /* values of --env, as many as there are fields */
    struct px_files *made_files;
    struct px_worker *worker;     /* or: */
    const struct px_files *files; /* its, or made_files */
};

/* ---- the command line ---- */

/* The environment is cleared before commands run, so the value of `-e NAME` is read now. */
static int fill_env(struct words *w, struct args *a, struct px_err *e)
{
    w->made = calloc(a->field_count + 1, sizeof *w->made);
    for (size_t i = 0; w->made && i < a->field_count; i++) {
        const char *name = a->fields[i].value, *value = NULL;
        if (strcmp(a->fields[i].name, "env") == 0 && !strchr(name, '='))
            value = getenv(name);
        if (!value)
            continue;
        if (asprintf(&w->made[i], "%s=%s", name, value) < 0)
            return make_error(e, PX_E_MEMORY, NULL, "px ran out of memory");
        a->fields[i].value = w->made[i];
    }
    return w->made ? 0 : make_error(e, PX_E_MEMORY, NULL, "px ran out of memory");
}

static void words_done(struct words *w)
{
    for (size_t i = 0; w->made && i < w->args->field_count; i++)
        free(w->made[i]);
    free(w->made);
    px_files_free(w->made_files);
    px_worker_free(w->worker);
}

/* The policy of the box and of every command. Paths are those of the file tools, below one directory. The output limit
 * applies to the beginning and again to the end. */
static int make_policy(void *user, struct px_policy **ret_policy, struct px_err *e)
{
    const struct words *w = user;
    const struct options *o = &w->args->o;
    struct px_policy *policy = NULL;
    if (w->worker)
        return px_worker_policy(w->worker, ret_policy, e);
    if (o->argc || o->shell_text || o->plan || o->report || o->tty || o->interactive || o->detach || o->keeps)
        return make_error(e, PX_E_USAGE, "Commands come from the client. Run `px mcp --help` for what can be said here.",
                          "px mcp takes no command, and nothing that goes with one");
    if (px_policy_new(o->preset ? o->preset : "worker", &policy, e) < 0)
        return -1;
    if (!o->preset && px_policy_set(policy, "output-limit", "25k", e) < 0) {
        px_policy_free(policy);
        return -1;
    }
    if (args_policy(w->args, policy, &policy, e) < 0)
        return -1;
    if ((!w->no_execute && px_files_bind(w->files, "/workspace", policy, e) < 0) ||
        px_policy_set(policy, "workdir", "/workspace", e) < 0) {
        px_policy_free(policy);
        return -1;
    }
    *ret_policy = policy;
    return 0;
}

/* The file has all settings: the command line must not override them. A worker without the shell tool has no runner. */
static int open_worker(struct words *w, struct px_err *e)
{
    if (w->roots.count || w->read_only || w->git_writable || w->args->o.preset || w->args->field_count || w->args->o.argc)
        return make_error(e, PX_E_USAGE, "Say it in the worker's file, see px-worker(1), or leave --worker out.",
                          "--worker goes with --no-execute and --approval-timeout alone");
    if (px_worker_load(w->worker_file, NULL, &w->worker, e) < 0)
        return -1;
    w->files = px_worker_files(w->worker);
    w->no_execute = w->no_execute || px_worker_tool(w->worker, "shell", NULL) == PX_BLOCKED;
    return 0;
}

static int open_files(struct words *w, struct px_err *e)
{
    struct px_files *all = NULL;
    const struct px_files_narrow narrow = {.inherit = true, .read_only = w->read_only};
    if (w->worker_file)
        return open_worker(w, e);
    if (w->approval_s)
        return make_error(e, PX_E_USAGE, "Name a worker's file by --worker.",
                          "--approval-timeout is for the rules of a worker");
    if (w->roots.count == 0)
        return make_error(e, PX_E_USAGE, "Write px mcp --root NAME=DIR[:rw], or px mcp --worker FILE.",
                          "px mcp needs a directory to serve");
    if (px_files_parse(w->roots.items, w->roots.count, w->git_writable, &all, e) < 0)
        return -1;
    int r = px_files_derive(all, &narrow, &w->made_files, e);
    w->files = w->made_files;
    px_files_free(all);
    return r;
}

/* Whether programs in the box have a network; also checks the options before the first request. */
static int look_at_policy(struct words *w, bool *ret_network, struct px_err *e)
{
    struct px_policy *policy = NULL;
    px_auto_free char *net = NULL;
    int r = make_policy(w, &policy, e) < 0 ? -1 : px_policy_get(policy, "net", &net, e);
    *ret_network = r >= 0 && strcmp(net, "\"none\"") != 0 && strcmp(net, "\"loopback\"") != 0;
    px_policy_free(policy);
    return r;
}

/* ---- two processes ---- */

struct server {
    int runner; /* a socket; -EBADF: none */
    struct mcp *mcp;
    char *in; /* of the runner: a part of an answer */
    size_t in_len, in_size;
};

static int to_client(void *user, const char *data, size_t len)
{
    (void)user;
    return px_write_full(STDOUT_FILENO, data, len) < 0 ? -1 : 0;
}

static int to_runner(void *user, const struct wire_ask *ask, const char *text)
{
    const struct server *s = user;
    if (s->runner < 0 || px_write_full(s->runner, ask, sizeof *ask) < 0)
        return -1;
    return ask->len && px_write_full(s->runner, text, ask->len) < 0 ? -1 : 0;
}

/* Closes the client's streams in the runner: their end of file must not depend on it. */
static int start_runner(const struct runner_config *config, int *ret_socket, pid_t *ret_pid, struct px_err *e)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return px_fail(e, PX_E_CLONE, -errno, "px cannot start the process that runs commands");
    pid_t pid = fork();
    if (pid < 0) {
        int err = -errno;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return px_fail(e, PX_E_CLONE, err, "px cannot start the process that runs commands");
    }
    if (pid == 0) {
        (void)close(ends[0]);
        (void)close(STDIN_FILENO);
        (void)close(STDOUT_FILENO);
        open_missing_stdio();
        runner_serve(ends[1], config);
        _exit(0);
    }
    (void)close(ends[1]);
    *ret_socket = ends[0];
    *ret_pid = pid;
    return 0;
}

/* Handles the complete answers that the runner has sent so far. */
static int take_answers(struct server *s)
{
    struct wire_answer head;
    while (s->in_len >= sizeof head) {
        memcpy(&head, s->in, sizeof head);
        size_t len = sizeof head + head.text_len + head.json_len;
        if (head.text_len > WIRE_ANSWER_MAX || head.json_len > WIRE_ANSWER_MAX)
            return -1;
        if (s->in_len < len)
            return 0;
        px_auto_free char *json = strndup(s->in + sizeof head + head.text_len, head.json_len);
        if (!json || mcp_answer(s->mcp, &head, s->in + sizeof head, json) < 0)
            return -1;
        s->in_len -= len;
        memmove(s->in, s->in + len, s->in_len);
    }
    return 0;
}

static int hear_runner(struct server *s)
{
    enum { STEP = 256 << 10 };
    if (s->in_size - s->in_len < STEP) {
        char *more = realloc(s->in, s->in_size + STEP);
        if (!more)
            return -1;
        s->in = more;
        s->in_size += STEP;
    }
    ssize_t n = px_read_some(s->runner, s->in + s->in_len, s->in_size - s->in_len);
    if (n <= 0) {
        s->runner = px_fd_close(s->runner);
        return mcp_runner_gone(s->mcp);
    }
    s->in_len += (size_t)n;
    return take_answers(s);
}

static int hear_client(struct server *s)
{
    static const size_t size = 64 << 10;
    px_auto_free char *chunk = malloc(size);
    ssize_t n = chunk ? px_read_some(STDIN_FILENO, chunk, size) : -ENOMEM;
    return n <= 0 ? -1 : mcp_feed(s->mcp, chunk, (size_t)n);
}

static void serve(struct server *s)
{
    enum { READY = POLLIN | POLLHUP | POLLERR };
    for (int on = 0; on == 0;) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = s->runner, .events = POLLIN}};
        if (poll(fds, 2, mcp_wait_msec(s->mcp)) < 0 && errno != EINTR)
            return;
        if (s->runner >= 0 && fds[1].revents & READY)
            on = hear_runner(s);
        if (on == 0 && fds[0].revents & (READY | POLLNVAL))
            on = hear_client(s);
        on = on == 0 ? mcp_tick(s->mcp) : on;
    }
}

/* From here on this process can only access its files and two descriptors. */
static int give_up_rights(const struct cli *cli, const struct words *w, struct px_err *e)
{
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer reserves terabytes */
    struct rlimit limit = {(rlim_t)MEMORY_MAX << 20, (rlim_t)MEMORY_MAX << 20};
    (void)setrlimit(RLIMIT_AS, &limit);
#endif
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* a closed client gives EPIPE from write */
    int r = px_files_seal(w->files, e);
    if (r == 0 && cli->verbose >= 0)
        say("px: warning: this kernel has no Landlock; the system call filter and the roots' descriptors hold alone");
    return r;
}

static int run_server(const struct cli *cli, struct words *w, bool network, struct px_err *e)
{
    const struct runner_config runner = {
        .files = w->files, .worker = w->worker, .network = network, .user = w, .policy = make_policy};
    struct server s = {.runner = -EBADF};
    pid_t pid = 0;
    if (!w->no_execute && start_runner(&runner, &s.runner, &pid, e) < 0)
        return -1;
    int r = give_up_rights(cli, w, e);
    if (r >= 0) {
        const struct mcp_config config = {.files = w->files,
                                          .read_only = w->read_only,
                                          .shell = !w->no_execute,
                                          .worker = w->worker,
                                          .approval_s = w->approval_s ? (unsigned)w->approval_s : APPROVAL_S,
                                          .user = &s,
                                          .send = to_client,
                                          .ask = to_runner};
        s.mcp = mcp_new(&config);
        if (s.mcp)
            serve(&s);
        else
            r = px_no_memory(e);
    }
    mcp_free(s.mcp);
    free(s.in);
    s.runner = px_fd_close(s.runner); /* the runner sees the end of file, ends everything and exits */
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? -1 : 0;
}

static int run_mcp(struct args *a)
{
    struct words *w = a->request;
    struct px_err e = {0};
    bool network = false;
    int status = 0;
    w->args = a;
    if (fill_env(w, a, &e) < 0 || open_files(w, &e) < 0 || look_at_policy(w, &network, &e) < 0) {
        status = say_error(a->cli, &e, status_of_words(&e));
    } else {
        wipe_environment();
        status = run_server(a->cli, w, network, &e) < 0 ? say_error(a->cli, &e, 1) : 0;
    }
    words_done(w);
    return status;
}

static const struct option_row rows[] = {
    {"root", 0, OPTION_LIST, offsetof(struct words, roots), "NAME=DIR[:ro|rw][:create][:suffixes=.md,.pdf][:max=10m]",
     "a directory and its rules, as in px file"},
    {"read-only", 0, OPTION_FLAG, offsetof(struct words, read_only), NULL, "no tool that writes, and commands cannot write either"},
    {"no-execute", 0, OPTION_FLAG, offsetof(struct words, no_execute), NULL, "no commands"},
    {"git-writable", 0, OPTION_FLAG, offsetof(struct words, git_writable), NULL,
     "git directories can be written; the host's git obeys what lies there"},
    {"worker", 0, OPTION_TEXT, offsetof(struct words, worker_file), "FILE",
     "the roots, the box and the rules of a worker's file instead"},
    {"approval-timeout", 0, OPTION_NUMBER, offsetof(struct words, approval_s), "SECONDS",
     "how long to wait for a person to approve, 1 to 3600 (300)", .most = APPROVAL_MAX_S},
    {0},
};
const struct verb mcp_verbs[] = {
    {"", "--root NAME=DIR[:rw]... [OPTIONS] | --worker FILE [--no-execute]", NULL, run_mcp, rows, .size = sizeof(struct words),
     .command = COMMAND_NEXT, .policy = &args_every_field, .alone = true},
    {0},
};
