/* px mcp: the command. Who reads the client's messages is confined before the first; who starts boxes was forked before. */
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

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli.h"
#include "mcp/mcp.h"
#include "mcp/runner.h"

enum {
    ROOTS_MAX = PX_FILES_ROOTS_MAX + 1,
    MEMORY_MAX = 2048, /* MiB of address space */
    APPROVAL_S = 300,  /* for a person to answer */
    APPROVAL_MAX_S = 3600,
};

struct words {
    const char *roots[ROOTS_MAX + 1];
    size_t roots_count;
    const char *preset, *worker_file, *approval_timeout;
    unsigned approval_s;
    bool read_only, no_execute, git_writable, help;
    char **rest; /* for the policy; its texts are the command line's, or `made` */
    int rest_count;
    char **made;
    int made_count;
    struct cli *cli;
    struct px_files *made_files;
    struct px_worker *worker;     /* or: */
    const struct px_files *files; /* its, or made_files */
};

/* ---- the command line ---- */

/* The value of an option that may stand behind it or after an equals sign; NULL: it is another option. */
static const char *value_of(const char *name, int argc, char **argv, int *at, struct px_err *e)
{
    size_t n = strlen(name);
    if (strncmp(argv[*at], name, n) != 0 || (argv[*at][n] != '\0' && argv[*at][n] != '='))
        return NULL;
    if (argv[*at][n] == '=')
        return argv[*at] + n + 1;
    if (*at + 1 < argc)
        return argv[++*at];
    (void)make_error(e, 1, NULL, "%s needs a value", name);
    return NULL;
}

/* The environment is wiped before commands run, so that `-e NAME` is filled in now. */
static int take_env(struct words *w, const char *word, struct px_err *e)
{
    const char *value = strchr(word, '=') ? NULL : getenv(word);
    size_t size = strlen(word) + (value ? strlen(value) : 0) + 16;
    char *text = malloc(size);
    if (!text)
        return make_error(e, 4, NULL, "px ran out of memory");
    (void)snprintf(text, size, "--env=%s%s%s", word, value ? "=" : "", value ? value : "");
    w->made[w->made_count++] = text;
    w->rest[w->rest_count++] = text;
    return 0;
}

static int take_word(struct words *w, int argc, char **argv, int *at, struct px_err *e)
{
    const char *value, *word = argv[*at];
    if (strcmp(word, "--read-only") == 0)
        w->read_only = true;
    else if (strcmp(word, "--no-execute") == 0)
        w->no_execute = true;
    else if (strcmp(word, "--git-writable") == 0)
        w->git_writable = true;
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        w->help = true;
    else if ((value = value_of("--root", argc, argv, at, e)) && w->roots_count < ROOTS_MAX)
        w->roots[w->roots_count++] = value;
    else if ((value = value_of("--worker", argc, argv, at, e)))
        w->worker_file = value;
    else if ((value = value_of("--approval-timeout", argc, argv, at, e)))
        w->approval_timeout = value;
    else if ((value = value_of("--preset", argc, argv, at, e)))
        w->preset = value;
    else if ((value = value_of("--env", argc, argv, at, e)) || (value = value_of("-e", argc, argv, at, e)))
        return take_env(w, value, e);
    else
        w->rest[w->rest_count++] = argv[*at];
    return e->code ? -1 : 0;
}

static int parse(struct words *w, int argc, char **argv, struct px_err *e)
{
    w->rest = calloc((size_t)argc + 1, sizeof *w->rest);
    w->made = calloc((size_t)argc + 1, sizeof *w->made);
    if (!w->rest || !w->made)
        return make_error(e, 4, NULL, "px ran out of memory");
    for (int i = 0; i < argc; i++)
        if (take_word(w, argc, argv, &i, e) < 0)
            return -1;
    return 0;
}

static void words_done(struct words *w)
{
    for (int i = 0; i < w->made_count; i++)
        free(w->made[i]);
    free(w->made);
    free(w->rest);
    px_files_free(w->made_files);
    px_worker_free(w->worker);
}

/* Every command's, and the box's that they run in. Same paths as the file tools have, below one directory. The limit of output
 * holds for its beginning and again for its end. */
static int make_policy(void *user, struct px_policy **ret_policy, struct px_err *e)
{
    const struct words *w = user;
    struct px_policy *policy = NULL;
    struct options o;
    if (w->worker)
        return px_worker_policy(w->worker, ret_policy, e);
    if (px_policy_new(w->preset ? w->preset : "worker", &policy, e) < 0 ||
        (!w->preset && px_policy_set(policy, "output-limit", "25k", e) < 0) ||
        parse_options_onto(w->cli, w->rest_count, w->rest, policy, NULL, &o, e) < 0)
        return -1;
    int r = 0;
    if (o.argc || o.shell_text || o.plan || o.report || o.tty || o.interactive || o.detach || o.keeps)
        r = make_error(e, 1, "Commands come from the client. Run `px mcp --help` for what can be said here.",
                       "px mcp takes no command, and nothing that goes with one");
    if (r >= 0 && !w->no_execute)
        r = px_files_bind(w->files, "/workspace", o.policy, e);
    r = r < 0 ? r : px_policy_set(o.policy, "workdir", "/workspace", e);
    if (r >= 0) {
        *ret_policy = o.policy;
        o.policy = NULL;
    }
    free_options(&o);
    return r;
}

static int approval_seconds(struct words *w, struct px_err *e)
{
    const char *text = w->approval_timeout;
    uint64_t value = APPROVAL_S;
    if (text && (px_parse_u64(text, APPROVAL_MAX_S, &value) < 0 || value == 0))
        return make_error(e, 2, "Write a number of seconds from 1 to 3600.", "'%.32s' is no approval timeout",
                          text);
    w->approval_s = (unsigned)value;
    return 0;
}

/* Everything is in the file: nothing on the command line may say otherwise. A worker without the shell tool has no second
 * process. */
static int open_worker(struct words *w, struct px_err *e)
{
    if (w->roots_count || w->read_only || w->git_writable || w->preset || w->rest_count)
        return make_error(e, 1, "Say it in the worker's file, see px-worker(1), or leave --worker out.",
                          "--worker goes with --no-execute and --approval-timeout alone");
    if (approval_seconds(w, e) < 0 || px_worker_load(w->worker_file, NULL, &w->worker, e) < 0)
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
    if (w->approval_timeout)
        return make_error(e, 1, "Name a worker's file by --worker.",
                          "--approval-timeout is for the rules of a worker");
    if (w->roots_count == 0)
        return make_error(e, 1, "Write px mcp --root NAME=DIR[:rw], or px mcp --worker FILE.",
                          "px mcp needs a directory to serve");
    if (px_files_parse(w->roots, w->roots_count, w->git_writable, &all, e) < 0)
        return -1;
    int r = px_files_derive(all, &narrow, &w->made_files, e);
    w->files = w->made_files;
    px_files_free(all);
    return r;
}

/* Whether programs in the box can reach anything; also finds what is wrong with the options before anybody is served. */
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

/* The client's streams are not the runner's: who waits for their end must not wait for it. */
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

/* Whole answers of what the runner sent so far. */
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

/* From here on this process can work on its files and talk to two descriptors, and that is all. */
static int give_up_rights(const struct cli *cli, const struct words *w, struct px_err *e)
{
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes */
    struct rlimit limit = {(rlim_t)MEMORY_MAX << 20, (rlim_t)MEMORY_MAX << 20};
    (void)setrlimit(RLIMIT_AS, &limit);
#endif
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* a client that is gone is an error of write */
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
                                          .approval_s = w->approval_s,
                                          .user = &s,
                                          .send = to_client,
                                          .ask = to_runner};
        s.mcp = mcp_new(&config);
        if (s.mcp)
            serve(&s);
        else
            r = px_fail(e, PX_E_MEMORY, 0, "px ran out of memory");
    }
    mcp_free(s.mcp);
    free(s.in);
    s.runner = px_fd_close(s.runner); /* the runner sees it, ends everything and goes */
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? -1 : 0;
}

int cmd_mcp(struct cli *cli, int argc, char **argv)
{
    struct words w = {.cli = cli};
    struct px_err e = {0};
    bool network = false;
    int status = 0;
    close_inherited();
    open_missing_stdio();
    if (parse(&w, argc, argv, &e) < 0) {
        status = say_error(cli, &e, USAGE_STATUS);
    } else if (w.help) {
        status = print_help(find_command("mcp"));
    } else if (open_files(&w, &e) < 0 || look_at_policy(&w, &network, &e) < 0) {
        status = say_error(cli, &e, status_of_words(&e));
    } else {
        wipe_environment();
        status = run_server(cli, &w, network, &e) < 0 ? say_error(cli, &e, 1) : 0;
    }
    words_done(&w);
    return status;
}
