/* Parses a command line: words, redirections, pipes, && || ; and newlines. Other shell syntax is opaque. */
#include <ctype.h>
#include <px/worker.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "worker/shell_line.h"

static const char memory[] = "is too long";

struct parser {
    const char *at;
    bool plain;                 /* only quotes and backslashes are special */
    struct px_shell_line *line;
    const char *why;            /* what is wrong; NULL */
};

struct word {
    struct px_buf text, sh;
    bool quoting;               /* sh is within quotes */
    bool open;
    size_t bare;                /* length of the text before the first quote */
    bool was_quoted;
    int brace;                  /* 1: behind an opening one, 2: and a comma or .. */
};

/* ---- one word ---- */

static void put_open(struct word *w, char c)
{
    if (w->quoting)
        (void)px_buf_putc(&w->sh, '\'');
    w->quoting = false;
    w->open = true;
    (void)px_buf_putc(&w->sh, c);
    (void)px_buf_putc(&w->text, c);
}

static void put(struct word *w, char c)
{
    if (!w->quoting)
        (void)px_buf_putc(&w->sh, '\'');
    w->quoting = true;
    if (c == '\'')
        (void)px_buf_puts(&w->sh, "'\\''");
    else
        (void)px_buf_putc(&w->sh, c);
    (void)px_buf_putc(&w->text, c);
}

static void opaque(struct parser *p, const char *what)
{
    if (!p->line->opaque)
        p->line->opaque = what;
}

/* A literal dollar sign is not followed by anything that a shell would expand. */
static bool is_expansion(const char *dollar)
{
    return isalnum((unsigned char)dollar[1]) || (dollar[1] && strchr("_@*#?$!-({[", dollar[1]));
}

static void check_expansion(struct parser *p, bool quoted)
{
    if (p->plain)
        return;
    if (*p->at == '`')
        opaque(p, "a command in backquotes");
    else if (*p->at == '$' && p->at[1] == '(')
        opaque(p, "'$('");
    else if (*p->at == '$' && (is_expansion(p->at) || (!quoted && p->at[1] && strchr("'\"", p->at[1]))))
        opaque(p, "a variable ('$')");
}

/* [a-z] of plain letters. An unclosed bracket is literal; any other pattern in brackets is opaque. */
static size_t class_length(struct parser *p)
{
    size_t n = 1 + (p->at[1] == '!' || p->at[1] == '^'), from = n;
    while (isalnum((unsigned char)p->at[n]) || (p->at[n] && strchr("_.-", p->at[n])))
        n++;
    if (p->at[n] == ']' && n > from)
        return n + 1;
    if (memchr(p->at, ']', strcspn(p->at, " \t\r\n")))
        opaque(p, "a pattern in brackets");
    return 0;
}

static void watch_braces(struct parser *p, struct word *w)
{
    if (*p->at == '{')
        w->brace = 1;
    else if (w->brace && (*p->at == ',' || (*p->at == '.' && p->at[1] == '.')))
        w->brace = 2;
    else if (*p->at == '}' && w->brace == 2)
        opaque(p, "a list in braces");
}

/* Only ~ and ~/: a box has no other user's home. */
static bool take_tilde(struct parser *p, struct word *w)
{
    if (*p->at != '~' || w->text.len || w->was_quoted)
        return false;
    if (p->at[1] && !strchr("/ \t\r\n;|&<>()", p->at[1]))
        opaque(p, "'~' and a name");
    put_open(w, *p->at++);
    if (*p->at == '/')
        put_open(w, *p->at++);
    return true;
}

static void take_bare(struct parser *p, struct word *w)
{
    if (!p->plain && take_tilde(p, w))
        return;
    size_t n = p->plain                                  ? 0
               : *p->at == '*' || *p->at == '?'          ? 1
               : *p->at == '['                           ? class_length(p)
                                                         : 0;
    check_expansion(p, false);
    if (!p->plain)
        watch_braces(p, w);
    if (n == 0)
        put(w, *p->at++);
    for (; n; n--)
        put_open(w, *p->at++);
}

/* A backslash and a newline are removed. */
static void take_escaped(struct parser *p, struct word *w, bool within)
{
    p->at++;
    if (*p->at == '\0' && !within)
        p->why = "ends with a backslash";
    else if (*p->at == '\n')
        p->at++;
    else if (*p->at == '\0' || (within && !strchr("\"\\$`", *p->at)))
        put(w, '\\');
    else
        put(w, *p->at++);
}

static void take_quoted(struct parser *p, struct word *w, char quote)
{
    for (p->at++; *p->at && *p->at != quote;) {
        if (quote == '"')
            check_expansion(p, true);
        if (quote == '"' && *p->at == '\\')
            take_escaped(p, w, true);
        else
            put(w, *p->at++);
    }
    if (*p->at == '\0')
        p->why = "has a quote that is not closed";
    else
        p->at++;
}

static bool ends_word(const struct parser *p)
{
    return *p->at == '\0' || strchr(p->plain ? " \t\r\n" : " \t\r\n|&;<>()", *p->at);
}

static void read_word(struct parser *p, struct word *w)
{
    while (!p->why && !ends_word(p) && !(p->line && p->line->opaque)) {
        bool quotes = *p->at == '\'' || *p->at == '"';
        if (quotes || (*p->at == '\\' && p->at[1] != '\n'))
            w->was_quoted = true;
        if (quotes)
            take_quoted(p, w, *p->at);
        else if (*p->at == '\\')
            take_escaped(p, w, false);
        else
            take_bare(p, w);
        if (!w->was_quoted)
            w->bare = w->text.len;
    }
}

static void finish_word(struct parser *p, struct word *w, struct px_shell_line_word *ret)
{
    if (w->quoting)
        (void)px_buf_putc(&w->sh, '\'');
    if (w->sh.len == 0)
        (void)px_buf_puts(&w->sh, "''");
    (void)px_buf_add(&w->text, "", 0);
    ret->open = w->open;
    ret->sh = px_buf_take(&w->sh);
    ret->text = w->text.data ? px_buf_take(&w->text) : strdup("");
    if (!ret->sh || !ret->text)
        p->why = memory;
}

/* Its text without quotes before `ret_bare`. */
static void take_word(struct parser *p, struct px_shell_line_word *ret, size_t *ret_bare)
{
    struct word w = {.text = PX_BUF(PX_LINE_BYTES), .sh = PX_BUF(4 * PX_LINE_BYTES)};
    read_word(p, &w);
    *ret_bare = w.bare;
    finish_word(p, &w, ret);
    px_buf_done(&w.text);
    px_buf_done(&w.sh);
}

/* ---- a command ---- */

/* NAME=VALUE before the command changes what a word of it means, PATH for one. */
static bool is_assignment(const char *text, size_t bare)
{
    size_t n = 0;
    while (isalpha((unsigned char)text[n]) || text[n] == '_' || (n && isdigit((unsigned char)text[n])))
        n++;
    bool adds = text[n] == '+';
    return n > 0 && text[n + adds] == '=' && n + adds < bare;
}

static bool is_reserved(const char *text, size_t bare)
{
    static const char *const words[] = {"if",   "then", "else", "elif",   "fi",       "for",  "while",  "until", "do", "done", "case",
                                        "esac", "in",   "!",    "select", "function", "time", "coproc", "[[",    "]]", "{",    "}"};
    for (size_t i = 0; bare && text[bare] == '\0' && i < PX_COUNT_OF(words); i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static void add_word(struct parser *p, struct px_shell_line_command *command)
{
    struct px_shell_line *l = p->line;
    size_t bare = 0;
    if (l->words_count == PX_LINE_WORDS) {
        p->why = "has too many words";
        return;
    }
    struct px_shell_line_word *word = &l->words[l->words_count++];
    take_word(p, word, &bare);
    if (p->why || l->opaque)
        return;
    if (!command->count++)
        command->words = word;
    if (command->count == 1 && is_assignment(word->text, bare))
        opaque(p, "a variable that is set");
    else if (command->count == 1 && is_reserved(word->text, bare))
        opaque(p, "a word of the shell's own language");
}

/* Behind < or >: the rest of the operator. */
static void take_way(struct parser *p, struct px_shell_line_redirect *r)
{
    static const char *const beyond[] = {"<<", "<>", "<(", ">(", NULL};
    for (const char *const *op = beyond; *op; op++)
        if (strncmp(p->at, *op, 2) == 0) {
            opaque(p, "a redirection that is more than a file's name");
            return;
        }
    r->way = *p->at == '<' ? PX_LINE_READ : p->at[1] == '>' ? PX_LINE_APPEND : PX_LINE_WRITE;
    p->at += r->way == PX_LINE_APPEND ? 2 : 1;
    if (r->way == PX_LINE_WRITE && *p->at == '|')
        p->at++;
    if (*p->at == '&' && r->way != PX_LINE_APPEND) {
        p->at++;
        r->fd = r->fd ? r->fd : r->way == PX_LINE_READ ? '0' : '1';
        r->from = *p->at;
        r->way = PX_LINE_SAME;
        if (!isdigit((unsigned char)*p->at) || !(p->at[1] == '\0' || strchr(" \t\r\n|&;<>()", p->at[1])))
            opaque(p, "a redirection that is more than a file's name");
        else
            p->at++;
    }
}

/* 2> and the like: digits are a descriptor only directly before the operator. */
static bool begins_redirect(struct parser *p)
{
    size_t n = strspn(p->at, "0123456789");
    if (p->at[n] != '<' && p->at[n] != '>')
        return p->at[0] == '&' && p->at[1] == '>';
    if (n > 1)
        opaque(p, "a redirection that is more than a file's name");
    return true;
}

static void add_redirect(struct parser *p, struct px_shell_line_command *command)
{
    struct px_shell_line *l = p->line;
    size_t bare = 0;
    if (l->redirects_count == PX_LINE_REDIRECTS) {
        p->why = "has too many redirections";
        return;
    }
    struct px_shell_line_redirect *r = &l->redirects[l->redirects_count++];
    if (!command->redirects_count++)
        command->redirects = r;
    r->both = *p->at == '&';
    if (r->both || isdigit((unsigned char)*p->at))
        r->fd = *p->at++ == '&' ? '1' : p->at[-1];
    take_way(p, r);
    if (l->opaque || r->way == PX_LINE_SAME)
        return;
    p->at += strspn(p->at, " \t\r");
    if (ends_word(p) || *p->at == '#' || begins_redirect(p)) {
        p->why = "has a redirection without a file";
        return;
    }
    r->fd = r->fd ? r->fd : r->way == PX_LINE_READ ? '0' : '1';
    take_word(p, &r->target, &bare);
}

static void skip_blanks(struct parser *p, const char *blanks)
{
    for (;;) {
        p->at += strspn(p->at, blanks);
        if (p->at[0] == '\\' && p->at[1] == '\n')
            p->at += 2;
        else if (*p->at == '#')
            p->at += strcspn(p->at, "\n");
        else
            return;
    }
}

static void take_command(struct parser *p, struct px_shell_line_command *command)
{
    for (skip_blanks(p, " \t\r"); !p->why && !p->line->opaque; skip_blanks(p, " \t\r")) {
        if (*p->at == '(' || *p->at == ')')
            opaque(p, "a parenthesis");
        else if (begins_redirect(p) && !p->line->opaque)
            add_redirect(p, command);
        else if (ends_word(p))
            return;
        else if (!p->line->opaque)
            add_word(p, command);
    }
}

/* ---- a line ---- */

static enum px_line_join take_join(struct parser *p)
{
    char c = *p->at, next = c ? p->at[1] : '\0';
    if (c == '&' && next != '&')
        opaque(p, "'&', which leaves a command in the background");
    else if (c == '|' && next == '&')
        opaque(p, "'|&'");
    if (c == '\0' || p->line->opaque)
        return PX_LINE_END;
    p->at += 1 + ((c == '&' || c == '|') && next == c);
    return c == '&' ? PX_LINE_AND : c == '|' ? (next == c ? PX_LINE_OR : PX_LINE_PIPE) : PX_LINE_THEN;
}

/* One command and the operator after it. */
static void take_part(struct parser *p)
{
    struct px_shell_line *l = p->line;
    if (l->count == PX_LINE_COMMANDS) {
        p->why = "has too many commands";
        return;
    }
    struct px_shell_line_command *command = &l->commands[l->count++];
    take_command(p, command);
    if (p->why || l->opaque)
        return;
    if (command->count == 0 && command->redirects_count == 0) {
        p->why = "has an operator without a command";
        return;
    }
    command->join = take_join(p);
    skip_blanks(p, " \t\r\n");
    if (*p->at == '\0' && command->join == PX_LINE_THEN)
        command->join = PX_LINE_END;
    else if (*p->at == '\0' && command->join != PX_LINE_END)
        p->why = "has an operator without a command";
}

const char *px_shell_line_parse(const char *text, struct px_shell_line **ret_line)
{
    struct parser p = {.at = text, .line = calloc(1, sizeof *p.line)};
    if (!p.line)
        return memory;
    if (strlen(text) > PX_LINE_BYTES)
        p.why = memory;
    else
        skip_blanks(&p, " \t\r\n");
    while (!p.why && !p.line->opaque && *p.at)
        take_part(&p);
    if (p.why)
        px_shell_line_free(p.line);
    else
        *ret_line = p.line;
    return p.why;
}

void px_shell_line_free(struct px_shell_line *line)
{
    for (size_t i = 0; line && i < line->words_count; i++) {
        free(line->words[i].text);
        free(line->words[i].sh);
    }
    for (size_t i = 0; line && i < line->redirects_count; i++) {
        free(line->redirects[i].target.text);
        free(line->redirects[i].target.sh);
    }
    free(line);
}

const char *px_shell_line_split(const char *text, char ***ret_words)
{
    struct parser p = {.at = text, .plain = true};
    char **words = calloc(PX_LINE_WORDS + 1, sizeof *words);
    if (!words)
        return memory;
    for (size_t n = 0; !p.why && *(p.at += strspn(p.at, " \t\r\n"));) {
        struct px_shell_line_word word = {0};
        size_t bare;
        if (n == PX_LINE_WORDS) {
            p.why = "has too many words";
            break;
        }
        take_word(&p, &word, &bare);
        free(word.sh);
        words[n++] = word.text;
    }
    if (p.why)
        px_words_free(words);
    else
        *ret_words = words;
    return p.why;
}

/* ---- as text ---- */

void px_shell_line_print_redirects(const struct px_shell_line_command *command, struct px_buf *out)
{
    static const char *const ops[] = {
        [PX_LINE_READ] = "<", [PX_LINE_WRITE] = ">", [PX_LINE_APPEND] = ">>", [PX_LINE_SAME] = ">&"};
    for (size_t i = 0; i < command->redirects_count; i++) {
        const struct px_shell_line_redirect *r = &command->redirects[i];
        px_buf_printf(out, " %c%s", r->fd, ops[r->way]);
        if (r->way == PX_LINE_SAME)
            (void)px_buf_putc(out, r->from);
        else
            (void)px_buf_puts(out, r->target.sh);
        if (r->both)
            (void)px_buf_puts(out, " 2>&1");
    }
}

void px_shell_line_print(const struct px_shell_line_command *command, struct px_buf *out)
{
    for (size_t i = 0; i < command->count; i++) {
        if (i)
            (void)px_buf_putc(out, ' ');
        (void)px_buf_puts(out, command->words[i].sh);
    }
    px_shell_line_print_redirects(command, out);
}

void px_shell_line_print_join(enum px_line_join join, struct px_buf *out)
{
    static const char *const texts[] = {
        [PX_LINE_END] = "", [PX_LINE_PIPE] = " | ", [PX_LINE_AND] = " && ", [PX_LINE_OR] = " || ", [PX_LINE_THEN] = "; "};
    (void)px_buf_puts(out, texts[join]);
}
