/* Edits a TOML file by splicing bytes. Each result is parsed and compared: only the wanted key may differ. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "config/toml.h"

/* ---- bytes ---- */

static const char *line_end_of(const struct px_toml *t)
{
    const char *first = memchr(t->source, '\n', t->length);
    return first && first > t->source && first[-1] == '\r' ? "\r\n" : "\n";
}

/* Just behind the line that `at` is on. */
static uint32_t next_line(const struct px_toml *t, uint32_t at)
{
    const char *end = memchr(t->source + at, '\n', t->length - at);
    return end ? (uint32_t)(end - t->source) + 1 : (uint32_t)t->length;
}

static uint32_t skip_blanks(const struct px_toml *t, uint32_t at)
{
    while (at < t->length && (t->source[at] == ' ' || t->source[at] == '\t'))
        at++;
    return at;
}

static void copy(const struct px_toml *t, uint32_t from, uint32_t to, struct px_buf *out)
{
    px_buf_add(out, t->source + from, to - from);
}

/* Copies the text up to `at`, and adds a line end if the last line has none. */
static void copy_lines(const struct px_toml *t, uint32_t at, struct px_buf *out)
{
    copy(t, 0, at, out);
    if (at > 0 && t->source[at - 1] != '\n')
        px_buf_puts(out, line_end_of(t));
}

static bool is_bare(const char *key)
{
    return *key && key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

static void put_string(const char *text, struct px_buf *out)
{
    px_buf_putc(out, '"');
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            px_buf_printf(out, "\\u%04X", (unsigned)*text);
        else
            px_buf_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    px_buf_putc(out, '"');
}

static void put_keys(const char *const *path, size_t from, size_t to, struct px_buf *out)
{
    for (size_t i = from; i < to; i++) {
        if (i > from)
            px_buf_putc(out, '.');
        if (is_bare(path[i]))
            px_buf_puts(out, path[i]);
        else
            put_string(path[i], out);
    }
}

/* ---- places ---- */

/* The end of the last byte used by any descendant of the node. */
static uint32_t reach(const struct px_toml *t, uint32_t node)
{
    uint32_t at = node, to = 0;
    for (;;) {                  /* pre-order without recursion: child, next sibling, parent */
        const struct px_toml_node *n = px_toml_at(t, at);
        uint32_t end = n->made == PX_TOML_BY_HEADER ? n->body_to : n->to;
        if (end > to)
            to = end;
        if (n->first && n->made != PX_TOML_BY_VALUE) {
            at = n->first;
            continue;
        }
        while (at != node && !px_toml_at(t, at)->next)
            at = px_toml_at(t, at)->parent;
        if (at == node)
            return to;
        at = px_toml_at(t, at)->next;
    }
}

static uint32_t last_value_end(const struct px_toml *t, uint32_t table)
{
    uint32_t to = px_toml_at(t, table)->from + 1;       /* behind the brace */
    for (uint32_t c = px_toml_at(t, table)->first; c; c = px_toml_at(t, c)->next) {
        uint32_t end = reach(t, c);
        if (end > to)
            to = end;
    }
    return to;
}

/* ---- the proof ---- */

static bool same_value(const struct px_toml *a, uint32_t na, const struct px_toml *b, uint32_t nb)
{
    const struct px_toml_node *x = px_toml_at(a, na), *y = px_toml_at(b, nb);
    return x->type == y->type && x->number == y->number && x->truth == y->truth && x->text_length == y->text_length &&
           memcmp(a->strings.data + x->text, b->strings.data + y->text, x->text_length) == 0;
}

/* Whether every key of a's table but `except` is in b's with the same value; depth is bounded by the parser. */
static bool same_table(const struct px_toml *a, uint32_t na, const struct px_toml *b, uint32_t nb, const char *const *path,
                       size_t length);

static bool same_node(const struct px_toml *a, uint32_t na, const struct px_toml *b, uint32_t nb, const char *const *path, size_t length)
{
    if (px_toml_at(a, na)->type == PX_TOML_TABLE && px_toml_at(b, nb)->type == PX_TOML_TABLE)
        return same_table(a, na, b, nb, path, length);
    if (px_toml_at(a, na)->type != PX_TOML_ARRAY)
        return same_value(a, na, b, nb);
    uint32_t x = px_toml_at(a, na)->first, y = px_toml_at(b, nb)->first;
    for (; x && y; x = px_toml_at(a, x)->next, y = px_toml_at(b, y)->next)
        if (!same_node(a, x, b, y, NULL, 0))
            return false;
    return !x && !y && px_toml_at(b, nb)->type == PX_TOML_ARRAY;
}

static bool same_table(const struct px_toml *a, uint32_t na, const struct px_toml *b, uint32_t nb, const char *const *path,
                       size_t length)
{
    for (uint32_t c = px_toml_at(a, na)->first; c; c = px_toml_at(a, c)->next) {
        const char *key = px_toml_key(a, c);
        bool on_path = length > 0 && px_equal(key, path[0]);
        if (on_path && length == 1)
            continue;
        uint32_t other = px_toml_get(b, nb, key);
        if (!other && on_path)
            continue;           /* a table that holds nothing but the wanted key */
        if (!other || !same_node(a, c, b, other, on_path ? path + 1 : NULL, on_path ? length - 1 : 0))
            return false;
    }
    return true;
}

/* 0 if the text parses as the old document with only the path's value changed. `there`: whether the key must exist. */
static int prove(const struct px_toml *t, const struct px_buf *out, const char *const *path, size_t length, bool there)
{
    struct px_toml *now = NULL;
    struct px_toml_fault fault;
    if (out->err < 0)
        return out->err;
    int r = px_toml_parse(px_buf_text(out), out->len, &now, &fault);
    if (r < 0)
        return r;
    bool proved = (px_toml_find(now, path, length) != PX_TOML_NONE) == there && same_table(t, 0, now, 0, path, length) &&
                  same_table(now, 0, t, 0, path, length);
    px_toml_free(now);
    return proved ? 0 : -EIO;
}

/* ---- set ---- */

struct edit {
    const struct px_toml *t;
    const char *const *path;
    size_t length, known;       /* known: how many parts of the path exist */
    uint32_t node;              /* the last of those */
    const char *value;
    struct px_buf *out;
};

static void put_pair(const struct edit *d, size_t from)
{
    put_keys(d->path, from, d->length, d->out);
    px_buf_printf(d->out, " = %s", d->value);
}

static void set_in_braces(const struct edit *d, uint32_t table)
{
    uint32_t at = last_value_end(d->t, table), close = px_toml_at(d->t, table)->to - 1;
    bool empty = px_toml_at(d->t, table)->first == PX_TOML_NONE;
    copy(d->t, 0, at, d->out);
    px_buf_puts(d->out, empty ? " " : ", ");
    put_pair(d, d->known);
    px_buf_puts(d->out, empty ? " " : "");
    copy(d->t, empty ? close : at, (uint32_t)d->t->length, d->out);
}

/* Adds a line after a.b = 1, a.c = 2, with the same text before the last part of the key. */
static void set_beside_dotted(const struct edit *d)
{
    const struct px_toml_node *table = px_toml_at(d->t, d->node), *last = px_toml_at(d->t, table->last);
    uint32_t at = next_line(d->t, reach(d->t, d->node) - 1);
    copy_lines(d->t, at, d->out);
    copy(d->t, last->line_at, last->key_at, d->out);
    put_pair(d, d->known);
    px_buf_puts(d->out, line_end_of(d->t));
    copy(d->t, at, (uint32_t)d->t->length, d->out);
}

static void set_in_section(const struct edit *d)
{
    const struct px_toml_node *table = px_toml_at(d->t, d->node);
    uint32_t at = d->node ? table->body_to : d->t->root_to, last = PX_TOML_NONE;
    for (uint32_t c = table->first; c; c = px_toml_at(d->t, c)->next)
        if (px_toml_at(d->t, c)->made == PX_TOML_BY_VALUE)
            last = c;
    copy_lines(d->t, at, d->out);
    if (last) {
        uint32_t line = px_toml_at(d->t, last)->line_at;
        copy(d->t, line, skip_blanks(d->t, line), d->out);
    }
    put_pair(d, d->known);
    px_buf_puts(d->out, line_end_of(d->t));
    copy(d->t, at, (uint32_t)d->t->length, d->out);
}

static void put_header(const struct edit *d)
{
    px_buf_putc(d->out, '[');
    put_keys(d->path, 0, d->length - 1, d->out);
    px_buf_printf(d->out, "]%s", line_end_of(d->t));
    put_pair(d, d->length - 1);
    px_buf_puts(d->out, line_end_of(d->t));
}

/* [a.b.c] exists and [a.b] is wanted: inserts it before [a.b.c]. */
static void set_before(const struct edit *d)
{
    uint32_t at = (uint32_t)d->t->length;
    for (uint32_t c = px_toml_at(d->t, d->node)->first; c; c = px_toml_at(d->t, c)->next) {
        uint32_t item = px_toml_at(d->t, c)->made == PX_TOML_BY_ITEMS ? px_toml_at(d->t, c)->first : c;
        if (px_toml_at(d->t, item)->line_at < at)
            at = px_toml_at(d->t, item)->line_at;
    }
    copy(d->t, 0, at, d->out);
    put_header(d);
    px_buf_puts(d->out, line_end_of(d->t));
    copy(d->t, at, (uint32_t)d->t->length, d->out);
}

/* Adds a section after the last line of its nearest related section, or at the end of the file. */
static void set_new_section(const struct edit *d)
{
    uint32_t at = d->node ? reach(d->t, d->node) : (uint32_t)d->t->length;
    copy_lines(d->t, at, d->out);
    if (at > 0)
        px_buf_puts(d->out, line_end_of(d->t));
    put_header(d);
    copy(d->t, at, (uint32_t)d->t->length, d->out);
}

/* The inline table that is or contains the node; none if there is no such table. */
static uint32_t braces_around(const struct px_toml *t, uint32_t node)
{
    for (; node; node = px_toml_at(t, node)->parent)
        if (px_toml_at(t, node)->made == PX_TOML_BY_VALUE)
            return node;
    return PX_TOML_NONE;
}

static int set_missing(struct edit *d)
{
    const struct px_toml_node *n = px_toml_at(d->t, d->node);
    uint32_t braces = braces_around(d->t, d->node);
    if (n->type != PX_TOML_TABLE)
        return -EEXIST;
    if (braces) {
        for (uint32_t at = d->node; at != braces; at = px_toml_at(d->t, at)->parent)
            d->known--;
        set_in_braces(d, braces);
    } else if (n->made == PX_TOML_BY_KEY) {
        set_beside_dotted(d);
    } else if (d->known + 1 < d->length) {
        set_new_section(d);
    } else if (n->made == PX_TOML_ON_THE_WAY) {
        set_before(d);
    } else {
        set_in_section(d);
    }
    return 0;
}

static int set_again(const struct edit *d)
{
    const struct px_toml_node *n = px_toml_at(d->t, d->node);
    if (n->made != PX_TOML_BY_VALUE)
        return -EEXIST;
    if (n->to - n->from == strlen(d->value) && memcmp(d->t->source + n->from, d->value, n->to - n->from) == 0)
        return 1;
    copy(d->t, 0, n->from, d->out);
    px_buf_puts(d->out, d->value);
    copy(d->t, n->to, (uint32_t)d->t->length, d->out);
    return 0;
}

int px_toml_set(const struct px_toml *t, const char *const *path, size_t length, const char *value, struct px_buf *out)
{
    struct edit d = {.t = t, .path = path, .length = length, .value = value, .out = out};
    for (; d.known < length; d.known++) {
        uint32_t next = px_toml_get(t, d.node, path[d.known]);
        if (next == PX_TOML_NONE)
            break;
        d.node = next;
    }
    int r = d.known == length ? set_again(&d) : set_missing(&d);
    return r != 0 ? r : prove(t, out, path, length, true);
}

/* ---- remove ---- */

/* Removes an item of {...} or [...] and one of its commas. */
static void cut_item(const struct px_toml *t, uint32_t node, uint32_t from, struct px_buf *out)
{
    const struct px_toml_node *n = px_toml_at(t, node), *parent = px_toml_at(t, n->parent);
    uint32_t to = skip_blanks(t, n->to);
    if (to < t->length && t->source[to] == ',') {
        to = skip_blanks(t, to + 1);
    } else if (parent->first != node) {
        uint32_t before = parent->first;
        while (px_toml_at(t, before)->next != node)
            before = px_toml_at(t, before)->next;
        from = reach(t, before);
        to = n->to;
    }
    copy(t, 0, from, out);
    copy(t, to, (uint32_t)t->length, out);
}

int px_toml_remove(const struct px_toml *t, const char *const *path, size_t length, struct px_buf *out)
{
    uint32_t node = px_toml_find(t, path, length);
    if (node == PX_TOML_NONE)
        return 1;
    const struct px_toml_node *n = px_toml_at(t, node);
    if (n->made != PX_TOML_BY_VALUE || n->parent == node)
        return -EEXIST;
    if (px_toml_at(t, n->parent)->made == PX_TOML_BY_VALUE) {
        cut_item(t, node, n->key_at, out);
    } else if (braces_around(t, n->parent)) {
        return -EEXIST;
    } else {
        copy(t, 0, n->line_at, out);
        copy(t, next_line(t, n->to - 1), (uint32_t)t->length, out);
    }
    return prove(t, out, path, length, false);
}

void px_toml_put_string(struct px_buf *out, const char *text)
{
    px_buf_putc(out, '"');
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            px_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else if (*text == '"' || *text == '\\')
            px_buf_printf(out, "\\%c", *text);
        else
            px_buf_putc(out, *text);
    }
    px_buf_putc(out, '"');
}
