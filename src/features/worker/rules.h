/* worker/rules.h - the verdict of a worker's rules on a single command.
 *
 * Why:     a command line is checked command by command; the line also knows where each runs, and how it is printed
 *          for a shell.
 * Owns:    nothing.
 * Mustn't: look at the line around a command. */
#pragma once

#include "worker/shell_line.h"
#include "worker/worker.h"

enum {
    PX_RULES_FREE = 1,          /* runs nothing: no rule is needed */
    PX_RULES_WRAPS = 2,         /* runs what its arguments say, or changes what later words mean */
    PX_RULES_BUILTIN = 4,       /* of the shell; there may be no program of that name */
    PX_RULES_SHELL = 8,         /* takes a line behind -c */
};

/* What kind of command the name is, independent of the rules. */
unsigned px_rules_flags(const struct px_shell_line_command *command);
enum px_approval px_rules_stricter(enum px_approval a, enum px_approval b);
/* The verdict on an unknown command: the strictest that any command can get. */
enum px_approval px_rules_unknown(const struct px_worker *worker);
/* cwd: where it runs, below the worker's roots; NULL: not known. */
enum px_approval px_rules_command(const struct px_worker *worker, const struct px_shell_line_command *command, const char *cwd, unsigned flags);
enum px_approval px_rules_redirect(const struct px_worker *worker, const struct px_shell_line_redirect *redirect, const char *cwd);
