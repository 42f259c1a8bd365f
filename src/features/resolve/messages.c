#include "resolve/messages.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

enum { LINE_MAX_BYTES = 240 };

struct line {
    const char *at;
    size_t length;
};

struct picking {
    struct px_buf *out;
    bool index;                 /* includes the address of the index */
    bool block;                 /* the lines belong to the one before, until an empty one */
    bool stderr_part;           /* uv quotes the output of a build: its last line has the cause */
    struct line last, before;   /* the last two that were not empty */
};

/* ---- pieces of lines ---- */

static bool next(const char **text, struct line *ret_line)
{
    if (!**text)
        return false;
    *ret_line = (struct line){*text, strcspn(*text, "\n")};
    *text += ret_line->length + ((*text)[ret_line->length] == '\n');
    return true;
}

/* Skips the decoration that uv and pip print before it. */
static struct line bare(struct line l)
{
    static const char *const drawn[] = {" ", "\t", "\r", "×", "│", "├", "╰", "─", "▶", ">"};
    for (size_t i = 0; i < PX_COUNT_OF(drawn);) {
        size_t n = strlen(drawn[i]);
        bool found = l.length >= n && memcmp(l.at, drawn[i], n) == 0;
        l = found ? (struct line){l.at + n, l.length - n} : l;
        i = found ? 0 : i + 1;
    }
    return l;
}

static const char *find(struct line l, const char *word)
{
    return memmem(l.at, l.length, word, strlen(word));
}

static bool begins(struct line l, const char *word)
{
    return l.length >= strlen(word) && memcmp(l.at, word, strlen(word)) == 0;
}

static struct line from(struct line l, const char *at)
{
    return (struct line){at, l.length - (size_t)(at - l.at)};
}

/* ---- adding them ---- */

static void quote_cut(struct px_buf *out, struct line l)
{
    size_t n = l.length < LINE_MAX_BYTES ? l.length : LINE_MAX_BYTES;
    while (n && n < l.length && ((unsigned char)l.at[n] & 0xc0) == 0x80)
        n--;
    (void)px_buf_quote(out, l.at, n);
    px_buf_puts(out, n < l.length ? "..." : "");
}

static bool has_line(const struct px_buf *out, const char *line)
{
    size_t n = strlen(line);
    const char *text = px_buf_text(out);
    for (const char *at = strstr(text, line); at; at = strstr(at + 1, line))
        if ((at == text || at[-1] == '\n') && (at[n] == '\n' || !at[n]))
            return true;
    return false;
}

static void add(struct px_buf *out, const char *between, const char *prefix, struct line l)
{
    px_auto_buf struct px_buf words = PX_BUF(8 * LINE_MAX_BYTES);
    px_buf_puts(&words, prefix);
    quote_cut(&words, l);
    if (words.err < 0 || words.len == 0 || has_line(out, px_buf_text(&words)) ||
        out->len + strlen(between) + words.len > PX_RESOLVE_WORDS_MAX)
        return;
    px_buf_puts(out, out->len ? between : "");
    px_buf_puts(out, px_buf_text(&words));
}

/* "WARNING: Retrying (...) after connection broken by 'NewConnectionError('<... object at 0x7f>: CAUSE')': /idna/". */
static void add_broken(struct px_buf *out, struct line l)
{
    static const char mark[] = "connection broken by ";
    l = from(l, find(l, mark) + strlen(mark));
    const char *cause = find(l, ">: "), *end = find(l, "')'");
    if (end)
        l.length = (size_t)(end - l.at);
    if (cause && cause < l.at + l.length)
        l = from(l, cause + strlen(">: "));
    add(out, "\n", "The connection was broken: ", l);
}

/* ---- choosing them ---- */

static bool tells(struct line l)
{
    static const char *const none[] = {"ERROR: ResolutionImpossible", "error: subprocess-exited-with-error"};
    static const char *const marks[] = {"ERROR: ", "error: ", "Caused by: ", "cause: ", "Could not fetch URL "};
    for (size_t i = 0; i < PX_COUNT_OF(none); i++)
        if (begins(l, none[i]))
            return false;
    for (size_t i = 0; i < PX_COUNT_OF(marks); i++)
        if (begins(l, marks[i]))
            return true;
    return find(l, "No space left on device") != NULL;
}

static void take(struct picking *p, struct line whole)
{
    struct line l = bare(whole);
    bool cause = find(whole, "─▶") != NULL || begins(l, "cause: ");     /* as uv wrote it before 0.13, and since */
    if (l.length == 0 || begins(l, "hint: ")) {
        p->block = false;
        return;
    }
    if (find(l, "connection broken by "))
        add_broken(p->out, l);
    else if (cause || find(whole, "× ") || tells(l) || (p->index && begins(l, "Looking in indexes: ")))
        add(p->out, "\n", "", l);
    else if (p->block)
        add(p->out, begins(whole, "      ") ? " " : "\n", "", l);
    else if (begins(l, "[end of output]")) {
        add(p->out, "\n", "", p->before);
        add(p->out, "\n", "", p->last);
    }
    p->block = p->block || cause || begins(l, "The conflict is caused by:");
    p->stderr_part = p->stderr_part || begins(l, "[stderr]");
    p->before = p->last;
    p->last = l;
}

void px_resolve_words(const char *text, struct px_buf *out)
{
    bool broken = strstr(text, "connection broken by ") != NULL;
    struct picking p = {.out = out, .index = broken, .last = {"", 0}, .before = {"", 0}};
    struct line l;
    while (next(&text, &l))
        take(&p, l);
    if (p.stderr_part)
        add(out, "\n", "", p.last);
}

/* ---- all of it ---- */

void px_resolve_quote(const char *text, size_t length, struct px_buf *out)
{
    size_t room = (out->max - 16) / 4;                 /* a byte becomes four at most */
    const char *end = text + length, *at = length > room ? end - room : text;
    if (at > text)
        px_buf_puts(out, "[...]");
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = stop ? (size_t)(stop - at) : (size_t)(end - at);
        (void)px_buf_quote(out, at, n);
        px_buf_putc(out, '\n');
        at += n + (stop != NULL);
    }
}
