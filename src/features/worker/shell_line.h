/* worker/shell_line.h - a command line as a shell parses it, as far as the text alone determines what it runs.
 *
 * Why:     rules apply to each command of a line, so the line is parsed; what is run is printed from the parsed
 *          parts, so that a shell cannot interpret it differently.
 * Owns:    the texts of its words.
 * Mustn't: expand anything, look at a file, or grow beyond its bounds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { PX_LINE_BYTES = 96 << 10, PX_LINE_WORDS = 1024, PX_LINE_COMMANDS = 128, PX_LINE_REDIRECTS = 128 };

/* The operator after a command. */
enum px_line_join { PX_LINE_END, PX_LINE_PIPE, PX_LINE_AND, PX_LINE_OR, PX_LINE_THEN };

struct px_shell_line_word {
    char *text;                 /* without its quotes */
    char *sh;                   /* the same for a shell: quoted except for patterns and ~ */
    bool open;                  /* has a pattern or begins with ~: the shell makes other words of it */
};

enum px_line_way { PX_LINE_READ, PX_LINE_WRITE, PX_LINE_APPEND, PX_LINE_SAME };

struct px_shell_line_redirect {
    enum px_line_way way;
    char fd, from;              /* digits; `from` of PX_LINE_SAME, which has no target */
    bool both;                  /* standard error goes the same way: &> */
    struct px_shell_line_word target;
};

struct px_shell_line_command {
    struct px_shell_line_word *words; /* none: redirections alone */
    size_t count;
    struct px_shell_line_redirect *redirects;
    size_t redirects_count;
    enum px_line_join join;
};

struct px_shell_line {
    struct px_shell_line_command commands[PX_LINE_COMMANDS];
    size_t count;
    const char *opaque;         /* the syntax that makes it opaque, for a message; NULL: none */
    struct px_shell_line_word words[PX_LINE_WORDS];
    size_t words_count;
    struct px_shell_line_redirect redirects[PX_LINE_REDIRECTS];
    size_t redirects_count;
};

/* NULL and a line, or why it is invalid. If it is opaque, only the part before was parsed. */
const char *px_shell_line_parse(const char *text, struct px_shell_line **ret_line);
void px_shell_line_free(struct px_shell_line *line);
/* Splits words by quotes and backslashes only: every other character is literal. NULL and the words, or why not. */
const char *px_shell_line_split(const char *text, char ***ret_words);

/* Prints a command, its redirections and an operator as unambiguous shell text. */
void px_shell_line_print(const struct px_shell_line_command *command, struct px_buf *out);
void px_shell_line_print_redirects(const struct px_shell_line_command *command, struct px_buf *out);
void px_shell_line_print_join(enum px_line_join join, struct px_buf *out);
