/* What is alike at both ends is left out, and what lies between is one hunk: right for any two texts, short where they differ in
 * one place. */
#include "base/diff.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

enum { CONTEXT = 3 };

struct side {
    const char *text;
    size_t len;
    size_t begin, end;          /* what differs: bytes, at the edges of lines */
    size_t first, lines;        /* the same as lines, from 0 */
};

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 0;
    for (const char *at = text; len && (at = memchr(at, '\n', len - (size_t)(at - text))); at++)
        n++;
    return n + (len > 0 && text[len - 1] != '\n');
}

static size_t line_begin(const char *text, size_t at)
{
    while (at > 0 && text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const char *text, size_t len, size_t at)
{
    const char *end = at < len ? memchr(text + at, '\n', len - at) : NULL;
    return end ? (size_t)(end - text) + 1 : len;
}

static void find_difference(struct side *a, struct side *b)
{
    size_t shorter = a->len < b->len ? a->len : b->len, head = 0, tail = 0;
    while (head < shorter && a->text[head] == b->text[head])
        head++;
    if (head < a->len || head < b->len)
        head = line_begin(a->text, head);
    while (tail < shorter - head && a->text[a->len - 1 - tail] == b->text[b->len - 1 - tail])
        tail++;
    while (tail > 0) {          /* back to where a line begins in both */
        size_t i = a->len - tail, k = b->len - tail;
        if ((i == 0 || a->text[i - 1] == '\n') && (k == 0 || b->text[k - 1] == '\n'))
            break;
        tail--;
    }
    a->begin = b->begin = head;
    a->end = a->len - tail;
    b->end = b->len - tail;
    a->first = b->first = count_lines(a->text, head);
    a->lines = count_lines(a->text + head, a->end - head);
    b->lines = count_lines(b->text + head, b->end - head);
}

static void add_lines(struct px_buf *out, char mark, const struct side *s, size_t from, size_t to)
{
    while (from < to) {
        size_t end = line_end(s->text, s->len, from);
        px_buf_putc(out, mark);
        px_buf_add(out, s->text + from, end - from);
        if (s->text[end - 1] != '\n')
            px_buf_puts(out, "\n\\ No newline at end of file\n");
        from = end;
    }
}

static void add_range(struct px_buf *out, char mark, size_t first, size_t lines)
{
    px_buf_printf(out, lines == 1 ? " %c%zu" : " %c%zu,%zu", mark, first + (lines > 0), lines);
}

static void add_hunk(struct px_buf *out, const struct side *a, const struct side *b)
{
    size_t from = a->begin, to = a->end, before = 0, after = 0;
    for (; before < CONTEXT && from > 0; before++)
        from = line_begin(a->text, from - 1);
    for (; after < CONTEXT && to < a->len; after++)
        to = line_end(a->text, a->len, to);
    px_buf_puts(out, "@@");
    add_range(out, '-', a->first - before, before + a->lines + after);
    add_range(out, '+', b->first - before, before + b->lines + after);
    px_buf_puts(out, " @@\n");
    add_lines(out, ' ', a, from, a->begin);
    add_lines(out, '-', a, a->begin, a->end);
    add_lines(out, '+', b, b->begin, b->end);
    add_lines(out, ' ', a, a->end, to);
}

int px_diff_unified(const char *old_name, const void *old, size_t old_len, const char *new_name, const void *new, size_t new_len,
                    size_t max, struct px_buf *out)
{
    struct side a = {.text = old, .len = old_len}, b = {.text = new, .len = new_len};
    if (old_len == new_len && (old_len == 0 || memcmp(old, new, old_len) == 0))
        return out->err;
    px_buf_puts(out, "--- ");
    px_buf_quote(out, old_name, strlen(old_name));
    px_buf_puts(out, "\n+++ ");
    px_buf_quote(out, new_name, strlen(new_name));
    px_buf_putc(out, '\n');
    if (old_len > max || new_len > max) {
        px_buf_puts(out, "Files differ; they are too large to be shown.\n");
        return out->err;
    }
    find_difference(&a, &b);
    add_hunk(out, &a, &b);
    return out->err;
}
