/* Adds, changes or removes one item of an array of strings, in the style of the array. The new text goes through
 * px_toml_set, which checks that nothing else changed. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "config/toml.h"

struct list {
    const struct px_toml *t;
    const struct px_toml_node *array;
    struct px_buf out;          /* its new text */
};

static void copy(struct list *l, uint32_t from, uint32_t to)
{
    px_buf_add(&l->out, l->t->source + from, to - from);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static uint32_t skip_blanks(const struct list *l, uint32_t at)
{
    while (at < l->array->to && is_blank(l->t->source[at]))
        at++;
    return at;
}

/* Skips blanks, line ends and comments. */
static uint32_t skip_space(const struct list *l, uint32_t at)
{
    const char *text = l->t->source;
    for (bool comment = false; at < l->array->to; at++) {
        comment = text[at] == '\n' ? false : comment || text[at] == '#';
        if (!comment && !is_blank(text[at]) && text[at] != '\r' && text[at] != '\n')
            break;
    }
    return at;
}

/* Where the line of an item begins, if nothing of the array stands before the item on it; else 0. */
static uint32_t own_line(const struct list *l, const struct px_toml_node *item)
{
    uint32_t at = item->from;
    while (at > l->array->from && is_blank(l->t->source[at - 1]))
        at--;
    return at > l->array->from && l->t->source[at - 1] == '\n' ? at : 0;
}

/* Just behind the line that `at` is on, if nothing but a comment follows there; else 0. */
static uint32_t rest_of_line(const struct list *l, uint32_t at)
{
    const char *text = l->t->source;
    at = skip_blanks(l, at);
    if (at < l->array->to && text[at] == '#')
        while (at < l->array->to && text[at] != '\n')
            at++;
    at += at < l->array->to && text[at] == '\r';
    return at < l->array->to && text[at] == '\n' ? at + 1 : 0;
}

/* The offset after the comma that follows the item, or the end of the item if there is no comma. */
static uint32_t behind_comma(const struct list *l, const struct px_toml_node *item)
{
    uint32_t at = skip_space(l, item->to);
    return at < l->array->to && l->t->source[at] == ',' ? at + 1 : item->to;
}

/* ---- the three changes ---- */

static void append(struct list *l, const char *text)
{
    const struct px_toml_node *a = l->array, *last = a->first ? px_toml_at(l->t, a->last) : NULL;
    uint32_t comma = last ? behind_comma(l, last) : 0, line = last ? own_line(l, last) : 0;
    uint32_t next = line ? rest_of_line(l, comma) : 0;
    uint32_t at = last ? last->to : a->from + 1;
    copy(l, a->from, at);
    if (next) {
        px_buf_puts(&l->out, comma == last->to ? "," : "");
        copy(l, at, next);
        copy(l, line, last->from);
    } else if (last) {
        px_buf_puts(&l->out, ", ");
    }
    px_toml_put_string(&l->out, text);
    if (next) {
        px_buf_puts(&l->out, comma == last->to ? "" : ",");
        px_buf_puts(&l->out, next > 1 && l->t->source[next - 2] == '\r' ? "\r\n" : "\n");
    }
    copy(l, next ? next : at, a->to);
}

static void change(struct list *l, const struct px_toml_node *item, const char *text)
{
    copy(l, l->array->from, item->from);
    px_toml_put_string(&l->out, text);
    copy(l, item->to, l->array->to);
}

/* Removes the item's line if no other item is on it; otherwise the item and one comma. */
static void cut(struct list *l, const struct px_toml_node *item, const struct px_toml_node *before)
{
    uint32_t comma = behind_comma(l, item), line = own_line(l, item), next = line ? rest_of_line(l, comma) : 0;
    uint32_t from = next ? line : item->from, to = next ? next : comma == item->to ? comma : skip_blanks(l, comma);
    if (!next && comma == item->to && before)
        from = before->to;
    copy(l, l->array->from, from);
    copy(l, to, l->array->to);
}

static int count_of(const struct px_buf *text, const char *const *path, size_t length, uint32_t *ret_count)
{
    struct px_toml *t = NULL;
    struct px_toml_fault fault;
    int r = px_toml_parse(px_buf_text(text), text->len, &t, &fault);
    if (r == 0)
        *ret_count = px_toml_at(t, px_toml_find(t, path, length))->count;
    px_toml_free(t);
    return r;
}

int px_toml_item(const struct px_toml *t, const char *const *path, size_t length, uint32_t index, const char *text,
                 struct px_buf *out)
{
    uint32_t array = px_toml_find(t, path, length), count = 0, at = 0;
    struct list l = {.t = t, .out = PX_BUF(PX_TOML_BYTES_MAX)};
    const struct px_toml_node *item = NULL, *before = NULL;
    if (array && (px_toml_at(t, array)->type != PX_TOML_ARRAY || px_toml_at(t, array)->made != PX_TOML_BY_VALUE))
        return -EEXIST;
    if (array) {
        l.array = px_toml_at(t, array);
        for (uint32_t c = l.array->first; c && at <= index; c = px_toml_at(t, c)->next, at++) {
            before = item;
            item = px_toml_at(t, c);
        }
    }
    bool there = at == index + 1;
    if (!array && text) {
        px_buf_putc(&l.out, '[');
        px_toml_put_string(&l.out, text);
        px_buf_putc(&l.out, ']');
    } else if (there && text) {
        change(&l, item, text);
    } else if (there) {
        cut(&l, item, before);
    } else if (text) {
        append(&l, text);
    }
    int r = l.out.len == 0 ? 1 : l.out.err < 0 ? l.out.err : px_toml_set(t, path, length, px_buf_text(&l.out), out);
    if (r == 0)
        r = count_of(out, path, length, &count);
    uint32_t expected = (array ? l.array->count : 0) + (there ? (text ? 0 : -1u) : 1);
    px_buf_done(&l.out);
    return r != 0 ? r : count == expected ? 0 : -EIO;
}
