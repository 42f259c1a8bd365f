#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

void say_warnings(const struct cli *cli, const struct px_policy *policy)
{
    char *text = NULL;
    struct px_err ignored = {0};        /* a profile that cannot be read is an error of its own, a moment later */
    if (cli->verbose < 0 || px_policy_warnings(policy, &text, &ignored) < 0 || !text)
        return;
    for (char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        say("px: warning: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
    free(text);
}

int print_text(const char *text)
{
    return write_all(STDOUT_FILENO, text, strlen(text));
}

int print_document(const char *text)
{
    return fflush(stdout) != 0 || print_text(text) < 0 || print_text("\n") < 0 ? -1 : 0;
}

/* ---- words ---- */

static int write_words(FILE *to, const char *fmt, va_list args, const char *end)
{
    char *text = px_words(fmt, args);
    int r = text && fputs(text, to) >= 0 && fputs(end, to) >= 0 ? 0 : -1;
    free(text);
    return r;
}

int print(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int r = write_words(stdout, fmt, args, "");
    va_end(args);
    return r;
}

void print_own(const char *text)
{
    (void)fputs(text, stdout);
}

/* In one write, as others may write there, too. */
void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = px_words(fmt, args);
    va_end(args);
    size_t n = text ? strlen(text) : 0;
    if (text)
        text[n] = '\n';         /* for its NUL */
    (void)write_all(STDERR_FILENO, text ? text : "px: out of memory\n", text ? n + 1 : 18);
    free(text);
}

void say_lines(const char *text)
{
    size_t n = strcspn(text, "\n");
    for (; text[n]; n = strcspn(text, "\n")) {
        say("%.*s", (int)n, text);
        text += n + 1;
    }
    say("%s", text);
}

void say_part(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)write_words(stderr, fmt, args, "");
    va_end(args);
}

/* ---- errors ---- */

static void add(char *out, size_t size, size_t *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = *at < size ? vsnprintf(out + *at, size - *at, fmt, args) : 0;
    va_end(args);
    if (n > 0)
        *at += (size_t)n;
}

bool in_colour(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

/* Bullets, one per line of text. */
static void add_bullets(char *out, size_t size, size_t *at, const char *title, const char *text)
{
    bool bold = in_colour(STDERR_FILENO);
    if (*text == '\0')
        return;
    add(out, size, at, bold ? "\n\033[1m%s:\033[0m\n" : "\n%s:\n", title);
    while (*text) {
        size_t n = strcspn(text, "\n");
        add(out, size, at, "  - %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* The texts of a px_err are valid UTF-8 without control bytes, but for the newlines between the lines of `fix`. */
static void add_json_text(char *out, size_t size, size_t *at, const char *text, size_t len)
{
    add(out, size, at, "\"");
    for (size_t i = 0; i < len; i++)
        add(out, size, at, text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
    add(out, size, at, "\"");
}

static void add_json_lines(char *out, size_t size, size_t *at, const char *name, const char *text)
{
    add(out, size, at, ",\"%s\":[", name);
    for (bool first = true; *text; first = false) {
        size_t n = strcspn(text, "\n");
        add(out, size, at, first ? "" : ",");
        add_json_text(out, size, at, text, n);
        text += n + (text[n] == '\n');
    }
    add(out, size, at, "]");
}

static void error_json(const struct px_err *e)
{
    char out[8192];
    size_t at = 0;
    struct px_explain row = {0};
    (void)px_explain(e->code, &row);
    add(out, sizeof out, &at, "{\"status\":\"%s\",\"message\":", e->code == PX_E_INTERNAL ? "error" : "user-error");
    add_json_text(out, sizeof out, &at, e->what, strlen(e->what));
    add(out, sizeof out, &at, ",\"details\":{\"code\":\"PX%03d\"", e->code);
    if (!strstr(e->details, "\"reason\":"))
        add(out, sizeof out, &at, ",\"reason\":\"%s\"", row.name ? row.name : "");
    add(out, sizeof out, &at, "%s%s", *e->details ? "," : "", e->details);
    add_json_lines(out, sizeof out, &at, "why", e->why);
    add_json_lines(out, sizeof out, &at, "fix", e->fix);
    add(out, sizeof out, &at, "}}\n");
    (void)print_text(out);
}

int say_error(const struct cli *cli, const struct px_err *e, int status)
{
    char out[8192];
    size_t at = 0;
    if (cli->json) {
        error_json(e);
        return status;
    }
    add(out, sizeof out, &at, "PX%03d  %s\n", e->code, e->what);
    add_bullets(out, sizeof out, &at, "Why", e->why);
    add_bullets(out, sizeof out, &at, "Fix", e->fix);
    (void)write_all(STDERR_FILENO, out, at < sizeof out ? at : sizeof out - 1);
    return status;
}

int status_of_words(const struct px_err *e)
{
    return e->code <= 3 ? USAGE_STATUS : 1;
}

int flush(void)
{
    bool ok = fflush(stdout) == 0;
    return ok && !ferror(stdout) ? 0 : 1;
}

/* As much as there is room for, and no part of a character. */
static void fill(char *out, size_t size, const char *text)
{
    size_t n = strlen(text);
    if (n >= size)
        for (n = size - 1; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--;
    memcpy(out, text, n);
    out[n] = '\0';
}

static void make_error_from(struct px_err *e, int code, const char *fix, const char *fmt, va_list args)
{
    struct px_explain row = {0};
    *e = (struct px_err){.code = code};
    (void)px_explain(code, &row);
    char *what = px_words(fmt, args);
    fill(e->what, sizeof e->what, what ? what : "");
    free(what);
    (void)snprintf(e->why, sizeof e->why, "%s", row.why ? row.why : "");
    (void)snprintf(e->fix, sizeof e->fix, "%s", fix ? fix : row.fix ? row.fix : "");
}

int make_error(struct px_err *e, int code, const char *fix, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    make_error_from(e, code, fix, fmt, args);
    va_end(args);
    return -1;
}

int fail(const struct cli *cli, int code, int status, const char *fix, const char *fmt, ...)
{
    struct px_err e;
    va_list args;
    va_start(args, fmt);
    make_error_from(&e, code, fix, fmt, args);
    va_end(args);
    return say_error(cli, &e, status);
}
