/* cli/cli.h - what the commands of px share: how it was asked, how it answers.
 *
 * Mustn't: include anything of the engine but px/px.h and base. Payload goes to stdout, words for a person to stderr. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <px/px.h>

struct cli {
    bool json;
    int verbose;                /* -1 quiet, 0, 1 */
    char **argv;                /* the whole command line, for handing it over */
};

struct verb;
struct command {
    const char *name;
    const char *summary;        /* NULL: not for people */
    const char *details;        /* the body of --help below the options */
    const struct verb *verbs;   /* cli/args.h. Ends with a NULL name; NULL: px-main has them */
};

extern const struct command commands[];         /* commands_launcher.c or commands_main.c; ends with a NULL name */
const struct command *find_command(const char *name);
const char *habit_of(const char *word);        /* "box list" for ps: what others call so; NULL: nothing */

/* Whether this program is the small one and the policy needs the other; then hand_over, which returns only if it failed. */
bool must_hand_over(const struct px_policy *policy);
int hand_over(const struct cli *cli);

/* cli/engine.c: as many as there may be. A box, or a command in one, takes a few descriptors, and there may be thousands. */
void allow_many_files(void);

/* What the options of px exec say beside the policy; cli/args.c fills it. */
struct options {
    struct px_policy *policy;
    const char *shell_text;     /* -c */
    const char *report, *preset;
    bool plan, timings, tty, interactive;
    bool detach;                /* leave it running */
    bool keeps, idle;           /* something was said that only counts for a box that stays; --idle was */
    const char *said;           /* the first field of the policy that was said; NULL: none */
    const char **argv;          /* the command; NULL-terminated, to be freed */
    size_t argc;
};
/* cli/run.c: a command on the caller's streams, from its start to its answer. */
struct run {
    int (*start)(void *user, const struct px_io *io, struct px_box **ret_box, struct px_err *e);
    void (*ended)(void *user, const struct px_result *result);  /* after the answer; may be NULL */
    void *user;
    /* Its own answer, instead of the words and the JSON of a box; the exit status. NULL: none. */
    int (*answer)(void *user, struct px_box *box);
    bool keep;                  /* also keep what it writes */
    bool again;                 /* there may be one more run: the environment stays, and run_again_ready() comes before it */
};
void run_again_ready(void);
int run_on_streams(struct cli *cli, const struct options *o, const struct run *how);    /* the exit status */
int status_for(const struct px_err *e);         /* of a command that could not be started */
int open_passed_signals(void);                  /* those that are passed on to a command, blocked; a signalfd */
void close_inherited(void);
void open_missing_stdio(void);
void wipe_environment(void);
void release_stack(void);

/* cli/box/box.c, and in the launcher nothing but the way there: px exec -d. */
int run_detached(struct cli *cli, struct options *o);

/* cli/run.c: a file that is whole or not there. Its directory is opened before boxes run, which may move things about in what
 * they can write; it is written beside and renamed. */
struct report {
    int dir;
    const char *name;           /* NULL: no report */
};
int open_report(const char *path, struct report *ret);
int write_report(const struct report *report, const char *text);

/* cli/render.c: words for people and for programs. */
enum { USAGE_STATUS = 2, START_STATUS = 125 };
int say_error(const struct cli *cli, const struct px_err *e, int status);      /* returns status */
int status_of_words(const struct px_err *e);    /* USAGE_STATUS if the words were wrong, PX001 to PX003; else 1 */
/* An error of the front end's own, made (-1) or also said (status); fix NULL takes the table's. */
int make_error(struct px_err *e, int code, const char *fix, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int fail(const struct cli *cli, int code, int status, const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
#define usage_error(cli, status, fix, ...) fail(cli, PX_E_USAGE, status, fix, __VA_ARGS__)
bool in_colour(int fd);                         /* a terminal that shows colours, and NO_COLOR is not set */
int flush(void);                                /* 0 if all of stdout was written, else 1 */
/* Words for a person, on stdout (0 or -1), as a line on stderr, as a part of one there. What comes in by %s or %c is
 * quoted (px_words): a terminal does not obey a name that a box, a repository or an image chose, nor does it look like a
 * line of px. */
int print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_part(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_lines(const char *text);               /* what px itself has divided into lines */
void print_own(const char *text);               /* a constant of px, as it is: colours, shell scripts; on stdout */
int print_text(const char *text);               /* JSON, or what is made of quoted parts: to stdout, all of it or -1 */
int print_document(const char *text);           /* the same with a newline behind it */
void say_warnings(const struct cli *cli, const struct px_policy *policy);
/* cli/help.c */
int print_help(const struct command *command);  /* the exit status */
void help_verbs_of(const struct command *command, const char *between);    /* "start|exec|list" */
