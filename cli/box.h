/* cli/box.h - the verbs of px box, one function each. They get the words behind the verb and return the exit status. */
#pragma once

#include "cli.h"

/* cli/box.c: SIGTERM, SIGINT and SIGHUP as a descriptor. */
int stop_signals(void);

/* cli/box_look.c */
int box_list(struct cli *cli, int argc, char **argv);
int box_show(struct cli *cli, int argc, char **argv);
int box_signal(struct cli *cli, int argc, char **argv);
int box_stop(struct cli *cli, int argc, char **argv);

/* cli/box_logs.c */
int box_logs(struct cli *cli, int argc, char **argv);
int box_attach(struct cli *cli, int argc, char **argv);

/* cli/box_copy.c */
int box_copy(struct cli *cli, int argc, char **argv);

/* cli/box_words.c: the words of a verb that has few of them. */
struct box_word {
    const char *name;           /* "--command", or NULL past the end */
    char letter;                /* 'f' for -f, or 0 */
    bool *flag;                 /* set, or */
    const char **value;         /* takes a value */
};
/* Takes the options out of argv and returns how many words are left in front of it; -1: it was said what is wrong (or --help
 * was printed), and *ret_status is the exit status. */
int box_words(struct cli *cli, const char *usage, const struct box_word *words, int argc, char **argv, int *ret_status);
/* A decimal number from 1 on; 0 if it is none. */
unsigned box_number(const char *text);
