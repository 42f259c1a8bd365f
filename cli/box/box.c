/* px box: boxes that stay, and commands in them. */
#include "cli/box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <px/living.h>

/* ---- the keeper's process ---- */

/* What it tells its starter: that the box is there, or why it is not. */
struct ready {
    struct px_err err;
    char name[64], id[20];
};

/* Nothing of whoever started it stays with it: no terminal, no file, and (once the box is made) no directory. */
static int leave_caller(int talk)
{
    enum { TALK = 3 };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (setsid() < 0 || null < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        if (dup3(null, i, 0) < 0)
            return -1;
    if (talk != TALK && dup3(talk, TALK, O_CLOEXEC) < 0)
        return -1;
    return syscall(436 /* close_range */, TALK + 1, ~0u, 0) < 0 ? -1 : TALK;
}

/* Its command line held what the box was started with; now it says which box it is. */
static void rename_process(char **argv, const char *name)
{
    char *first = argv[0], *last = argv[0];
    if (!first)
        return;
    for (char **a = argv; *a; a++)
        last = *a + strlen(*a);
    size_t room = (size_t)(last - first);
    memset(first, 0, room);
    (void)snprintf(first, room, "px-box %s", name);
    (void)prctl(PR_SET_NAME, "px-box", 0, 0, 0);
}

int stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);     /* banned: a program may; the library's writes report EPIPE */
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static _Noreturn void keep(struct cli *cli, const struct px_policy *policy, int talk)
{
    struct ready ready = {0};
    struct px_keeper *keeper = NULL;
    talk = leave_caller(talk);
    if (talk < 0)
        _exit(1);
    int stop = stop_signals();
    int r = px_keeper_new(NULL, policy, &keeper, &ready.err);
    if (r >= 0) {
        (void)snprintf(ready.name, sizeof ready.name, "%s", px_keeper_name(keeper));
        (void)snprintf(ready.id, sizeof ready.id, "%s", px_keeper_id(keeper));
        allow_many_files();     /* now: the box itself goes by what its caller may have */
        wipe_environment();
        rename_process(cli->argv, ready.name);
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        if (chdir("/") < 0)     /* banned: a program may; it must not hold the caller's directory */
            r = make_error(&ready.err, PX_E_IO, NULL, "the keeper cannot enter '/'");
    }
    bool told = send(talk, &ready, sizeof ready, MSG_NOSIGNAL) == sizeof ready;
    if (r >= 0 && told) {
        struct px_err e = {0};
        release_stack();
        (void)malloc_trim(0);
        (void)px_keeper_run(keeper, stop, talk, &e);
    }
    px_keeper_free(keeper);
    _exit(0);
}

/* ---- starting one ---- */

struct started {
    pid_t pid;                  /* of the keeper, which is our child as long as we are here */
    int talk;                   /* closed without a word, the box ends */
    struct ready ready;
};

static int start_keeper(struct cli *cli, const struct px_policy *policy, struct started *ret, struct px_err *e)
{
    int ends[2];
    enum { START_MSEC_MAX = 150 * 1000 };
    if (px_policy_prepare(policy, e) < 0)       /* what takes long is done before anybody waits for the keeper */
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return make_error(e, PX_E_IO, NULL, "px cannot talk to a keeper");
    pid_t pid = fork();
    if (pid == 0)
        keep(cli, policy, ends[1]);
    (void)close(ends[1]);
    ret->talk = ends[0];
    ret->pid = pid;
    if (pid < 0)
        return make_error(e, PX_E_CLONE, NULL, "px cannot start a keeper");
    struct pollfd answer = {.fd = ends[0], .events = POLLIN};
    while (poll(&answer, 1, START_MSEC_MAX) < 0 && errno == EINTR)
        ;
    if (recv(ends[0], &ret->ready, sizeof ret->ready, MSG_DONTWAIT) != sizeof ret->ready)
        return make_error(e, PX_E_GONE, "Try again.", "the keeper of the box ended before the box was there");
    if (ret->ready.err.code) {
        *e = ret->ready.err;
        return -1;
    }
    return 0;
}

/* The name is out, so somebody knows of the box: it may live. */
static int let_live(struct cli *cli, const struct started *s)
{
    if (send(s->talk, "k", 1, MSG_NOSIGNAL) == 1)
        return 0;
    return fail(cli, PX_E_GONE, 1, NULL, "box '%s' ended just after its start", s->ready.name);
}

/* What was started will not be told of, so it goes; and who asked for it learns that when it is gone. */
static void take_back(struct started *s)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    enum { TIMES = 3000 };
    if (s->talk < 0)
        return;
    (void)close(s->talk);
    s->talk = -1;
    for (int i = 0; s->pid > 0 && i < TIMES && waitpid(s->pid, NULL, WNOHANG) == 0; i++)
        (void)nanosleep(&moment, NULL);
}

static int say_started(const struct cli *cli, const struct started *s, unsigned command)
{
    if (!cli->json)
        print("%s\n", s->ready.name);
    else if (command)
        print("{\"name\":\"%s\",\"id\":\"%s\",\"command\":%u}\n", s->ready.name, s->ready.id, command);
    else
        print("{\"name\":\"%s\",\"id\":\"%s\"}\n", s->ready.name, s->ready.id);
    return flush();
}

static int box_start(struct args *a)
{
    struct options *o = &a->o;
    struct px_err e = {0};
    struct started s = {.talk = -1};
    if (o->argc || o->tty || o->interactive || o->detach || o->report || o->plan)
        return usage_error(a->cli, USAGE_STATUS,
                           "Start it, then run commands in it: px box exec NAME -- COMMAND.\n"
                           "Or start one with a command: px exec -d -- COMMAND.",
                           "px box start takes no command, and nothing that is a command's");
    if (args_policy(a, NULL, &o->policy, &e) < 0)
        return say_error(a->cli, &e, status_of_words(&e));
    int status = start_keeper(a->cli, o->policy, &s, &e) < 0 ? say_error(a->cli, &e, 1)
                 : say_started(a->cli, &s, 0)                ? 1
                                                             : let_live(a->cli, &s);
    if (status)
        take_back(&s);
    return status;
}

static int detach_in(const char *name, const char *const argv[], const struct options *o, unsigned *ret_command,
                     struct px_err *e)
{
    struct px_living *living = NULL;
    struct px_policy *policy = NULL;
    int r = px_living_open(NULL, name, &living, e);
    if (r >= 0)
        r = px_living_policy(living, &policy, e);
    if (r >= 0 && o->interactive)
        r = px_policy_set(policy, "interactive", "true", e);
    if (r >= 0)
        r = px_living_detach(living, policy, argv, ret_command, e);
    px_policy_free(policy);
    px_living_close(living);
    return r;
}

/* A box that was only started for one command does not stay for ever after it. */
int run_detached(struct cli *cli, struct options *o)
{
    struct px_err e = {0};
    struct started s = {.talk = -1};
    unsigned command = 0;
    int status;
    if (o->tty || o->report || o->timings)
        return usage_error(cli, START_STATUS, "Leave them out, or leave -d out and stay with the command.",
                           "a detached command has no terminal, report or timings");
    if ((!o->idle && px_policy_set(o->policy, "idle", "10m", &e) < 0) || start_keeper(cli, o->policy, &s, &e) < 0)
        status = say_error(cli, &e, START_STATUS);
    else if (detach_in(s.ready.name, o->argv, o, &command, &e) < 0)
        status = say_error(cli, &e, status_for(&e));
    else
        status = say_started(cli, &s, command) ? START_STATUS : let_live(cli, &s);
    if (status)
        take_back(&s);
    return status;
}

/* ---- commands in one ---- */

static const struct field_rules command_rules = {.command = true, .else_is = "is the box's, not a command's",
                                                 .fix = "Say it when the box is started: px box start."};

struct in_box {
    struct px_living *living;
    const struct options *o;
};

static int start_command(void *user, const struct px_io *io, struct px_box **ret_box, struct px_err *e)
{
    struct in_box *in = user;
    return px_living_exec(in->living, in->o->policy, in->o->argv, io, ret_box, e);
}

static void on_ended(void *user, const struct px_result *result)
{
    struct in_box *in = user;
    const char *why = result->status == PX_STATUS_INTERNAL ? px_living_why(in->living) : "";
    if (*why)
        say("px: the box has ended: %s", why);
}

static int exec_detached(struct cli *cli, const char *name, struct px_living *living, const struct options *o)
{
    struct px_err e = {0};
    unsigned command = 0;
    if (o->report)
        return usage_error(cli, START_STATUS, "px box attach tells how it ended.", "a detached command has no report");
    if (px_living_detach(living, o->policy, o->argv, &command, &e) < 0)
        return say_error(cli, &e, status_for(&e));
    if (cli->json)
        print("{\"name\":\"%s\",\"command\":%u}\n", name, command);
    else
        print("%u\n", command);
    return flush() ? START_STATUS : 0;
}

static int box_exec(struct args *a)
{
    struct options *o = &a->o;
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    struct in_box in = {.o = o};
    if (o->plan || o->argc == 0)
        return usage_error(a->cli, START_STATUS, o->plan ? NULL : "Write px box exec NAME [OPTIONS] [--] COMMAND.",
                           o->plan ? "--plan is for px exec" : "there is no command to run");
    int r = px_living_open(NULL, a->names[0], &in.living, &e);
    if (r >= 0)
        r = px_living_policy(in.living, &policy, &e);
    if (r >= 0)
        r = args_policy(a, policy, &o->policy, &e);
    int status = r < 0       ? say_error(a->cli, &e, START_STATUS)
                 : o->detach ? exec_detached(a->cli, a->names[0], in.living, o)
                             : run_on_streams(a->cli, o, &(struct run){.start = start_command, .ended = on_ended, .user = &in});
    px_living_close(in.living);
    return status;
}

/* ---- the command ---- */

#define ROW(name, letter, kind, member, arg, help) {name, letter, kind, offsetof(struct box_words, member), arg, help}
#define COMMAND_ROW ROW("command", 0, OPTION_NUMBER, command, "NUMBER", "this one, not the latest")

static const struct option_row list_rows[] = {ROW("names", 0, OPTION_FLAG, names, NULL, "their names alone"), {0}};
static const struct option_row logs_rows[] = {
    ROW("follow", 'f', OPTION_FLAG, follow, NULL, "until the command ends"),
    ROW("stdout", 0, OPTION_FLAG, only_out, NULL, "this stream alone"),
    ROW("stderr", 0, OPTION_FLAG, only_err, NULL, "this stream alone"),
    COMMAND_ROW,
    {0},
};
static const struct option_row attach_rows[] = {
    ROW("interactive", 'i', OPTION_FLAG, interactive, NULL, "pass standard input on"),
    COMMAND_ROW,
    {0},
};
static const struct option_row copy_rows[] = {ROW("max-size", 0, OPTION_TEXT, max_size, "SIZE", "of what comes out of the box (4g)"), {0}};
static const struct option_row signal_rows[] = {
    ROW("command", 0, OPTION_NUMBER, command, "NUMBER", "to this command, not to all"),
    ROW("process", 0, OPTION_NUMBER, process, "PID", "to this process of the box"),
    {0},
};
static const struct option_row stop_rows[] = {ROW("all", 'a', OPTION_FLAG, all, NULL, "every box of yours"), {0}};

#define WORDS .size = sizeof(struct box_words), .alone = true
#define ONE_BOX .least = 1, .most = 1, .needs = "the name of one box"

const struct verb box_verbs[] = {
    {"start", "[OPTIONS]", "a box with everything px exec has options for; prints its name", box_start, WORDS, .command = COMMAND_NEXT,
     .policy = &args_every_field},
    {"exec", "NAME [OPTIONS] [--] COMMAND [ARG...] | -c TEXT", "one more command in it; -d leaves it running and prints its number",
     box_exec, WORDS, ONE_BOX, .command = COMMAND_NEXT, .policy = &command_rules, .status = START_STATUS},
    {"list", "[OPTIONS]", "all of yours", box_list, list_rows, WORDS},
    {"show", "NAME", "one of them, its commands and its processes", box_show, WORDS, ONE_BOX},
    {"logs", "NAME [OPTIONS]", "what the latest detached command wrote", box_logs, logs_rows, WORDS, ONE_BOX},
    {"attach", "NAME [OPTIONS]", "follow it to its end, and take its exit status", box_attach, attach_rows, WORDS, ONE_BOX,
     .status = START_STATUS},
    {"copy", "SOURCE NAME:PATH | NAME:PATH TARGET", "a file or a directory, into the box or out of it", box_copy, copy_rows, WORDS,
     .least = 2, .most = 2, .needs = "two places, one of them in a box"},
    {"signal", "NAME SIGNAL [OPTIONS]", "to the commands that run in it", box_signal, signal_rows, WORDS, .least = 2, .most = 2,
     .needs = "the name of a box and a signal"},
    {"stop", "NAME... | --all", "SIGTERM, 2 s later SIGKILL, and nothing is left", box_stop, stop_rows, WORDS, .most = NAMES_ANY},
    {0},
};
