/* cli/words.h - the words of a verb that has few of them. */
#pragma once

#include "cli.h"

struct word {
    const char *name;           /* "--command", or NULL past the end */
    char letter;                /* 'f' for -f, or 0 */
    bool *flag;                 /* set, or */
    const char **value;         /* takes a value */
};
/* Takes the options out of argv and returns how many words are left in front of it; -1: it was said what is wrong
 * (or the help of the command was printed), and *ret_status is the exit status. */
int take_words(struct cli *cli, const char *command, const char *usage, const struct word *words, int argc, char **argv,
               int *ret_status);
/* "Did you mean `px box list`?" before the list of what there is, for a verb that there is not; `near` has tried them all. */
const char *likely_verb(const struct px_near *near, const char *command, const char *list, char *out, size_t size);
/* A decimal number from 1 on; 0 if it is none. */
unsigned word_number(const char *text);
