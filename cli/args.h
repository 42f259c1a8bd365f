/* cli/args.h - the options and names of every verb as rows: the parser, --help, completion and the man pages read them.
 *
 * Mustn't: know any particular verb. */
#pragma once

#include "cli.h"

#include <stdint.h>

enum option_kind {
    OPTION_FLAG,                /* bool */
    OPTION_TEXT,                /* const char *: a word of the command line */
    OPTION_LIST,                /* struct option_list; may be given several times */
    OPTION_NUMBER,              /* uint64_t, from 1 on */
};

enum option_flags {
    OPTION_ZERO = 1 << 0,       /* a number from 0 on */
    OPTION_MAYBE = 1 << 1,      /* the value may be left out before another option and at the end; it is "" then */
};

struct option_row {
    const char *name;           /* "dry-run" for --dry-run; a table ends with a NULL name */
    char letter;                /* 'n' for -n; 0: none */
    enum option_kind kind;
    size_t offset;              /* of the value in the verb's request */
    const char *arg, *help;     /* "FILE"; one line */
    unsigned flags;
    uint64_t most;              /* of a number; 0: any */
};

struct option_list {
    const char **items;         /* NULL-terminated */
    size_t count;
};

/* Which fields of a policy a verb takes as options, beside --command, --preset, --plan and --report. */
struct field_rules {
    bool command, project;      /* only fields that px_field_info marks so, and no --preset; neither: all */
    const char *else_is, *fix;  /* of others: "--base is the box's, not a command's" */
};

enum verb_command {
    COMMAND_NONE,               /* words behind `--` are names */
    COMMAND_NEXT,               /* begins with `--`, or with the first word behind the names */
    COMMAND_BEHIND,             /* begins with `--` */
};

struct args;
struct verb {
    const char *name;           /* "list", "base build"; "" if the command needs no verb; a table ends with a NULL name */
    const char *words;          /* "NAME SIGNAL [OPTIONS]", for help */
    const char *help;           /* one line */
    int (*run)(struct args *a); /* the exit status */
    const struct option_row *rows, *shared;     /* its own; those of every verb of the command. NULL: none */
    size_t size;                /* of the request that they fill */
    size_t least, most;         /* names */
    const char *needs;          /* "px box show needs " what, if there are fewer */
    enum verb_command command;
    const struct field_rules *policy;           /* NULL: it takes no options of a policy */
    int status;                 /* the exit status when the words are wrong; 0: USAGE_STATUS */
    bool alone;                 /* it starts without the descriptors that the caller left open, and with 0, 1 and 2 */
};
enum { NAMES_ANY = 4096 };

/* One command line. */
struct args {
    struct cli *cli;
    const struct command *command;
    const struct verb *verb;
    void *request;
    const char **names;         /* NULL-terminated */
    size_t count;
    bool commanded;             /* a command was given; it is in o.argv */
    struct options o;
    struct said_field {
        const char *name, *value;
    } *fields;                  /* of a policy, in their order */
    size_t field_count;
    uint64_t said;              /* a bit for each row of the verb's own */
    bool help, json, quiet, verbose;
    int argc, at;               /* while it is read */
    char **argv;
    char title[64];             /* "px box show" */
};

int args_parse(struct args *a, int argc, char **argv, struct px_err *e);
void args_done(struct args *a);
bool args_said(const struct args *a, const char *name);     /* whether this option of the verb's own was given */
/* The fields that were said, set in a policy: the caller's, which it takes also when it fails, or a new one of the preset. */
int args_policy(const struct args *a, struct px_policy *policy, struct px_policy **ret_policy, struct px_err *e);
/* cli/verb.c: the verb that the words begin with, with what follows them; the exit status. */
int args_run(struct cli *cli, const struct command *command, int argc, char **argv);

#define PX_COMMAND(where, name, ...) extern const struct verb name##_verbs[];
#include "commands.def"
#undef PX_COMMAND

int explain_error(struct args *a);      /* cli/explain.c: px explain PXnnn */

extern const struct field_rules args_every_field;
extern const struct option_row args_box_rows[];     /* of every verb that takes options of a policy; the last is --report */
enum { ARGS_BOX_REPORT = 3 };
/* Whether it takes some fields of a policy, and not all. */
bool args_takes_some(const struct verb *verb);
bool args_takes_field(const struct verb *verb, const struct px_field_info *field);
