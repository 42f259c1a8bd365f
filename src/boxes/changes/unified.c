#include "changes/unified.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "changes/myers.h"

enum { CONTEXT = 3, KIND_MODE = 0170000, LINK_MODE = 0120000 };

/* ---- lines ---- */

struct line {
    const char *text;
    size_t len;                 /* with its newline, which the last line may lack */
};

struct side {
    struct line *lines;
    size_t count;
    uint32_t *ids;              /* the same for equal lines of either side */
    bool *changed;
};

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 0;
    for (const char *p = text, *end = text + len; p < end; n++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline ? newline + 1 : end;
    }
    return n;
}

static void done_side(struct side *s)
{
    free(s->lines);
    free(s->ids);
    free(s->changed);
}

static int init_side(struct side *s, const struct px_diff_side *from)
{
    size_t n = count_lines(from->data, from->len);
    *s = (struct side){.lines = calloc(n + 1, sizeof *s->lines), .ids = calloc(n + 1, sizeof *s->ids),
                       .changed = calloc(n + 1, sizeof *s->changed), .count = n};
    if (!s->lines || !s->ids || !s->changed)
        return -ENOMEM;
    const char *p = from->data, *end = p + from->len;
    for (size_t i = 0; i < n; i++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = newline ? (size_t)(newline + 1 - p) : (size_t)(end - p);
        s->lines[i] = (struct line){p, len};
        p += len;
    }
    return 0;
}

/* ---- equal lines get equal numbers ---- */

/* Keyed, so that nobody can write a file whose lines all fall into one place of the table. */
static uint64_t hash_line(const struct line *l, uint64_t key)
{
    uint64_t h = key ^ l->len;
    for (size_t i = 0; i < l->len; i++) {
        h = (h ^ (unsigned char)l->text[i]) * 0x9fb21c651e98df25u;
        h ^= h >> 29;
    }
    return h;
}

struct slot {
    const struct line *line;    /* NULL: free */
    uint32_t id;
};

static uint32_t number_of(struct slot *table, size_t mask, uint64_t hash, const struct line *l, uint32_t *next)
{
    size_t at = hash & mask;
    while (table[at].line && (table[at].line->len != l->len || memcmp(table[at].line->text, l->text, l->len) != 0))
        at = (at + 1) & mask;
    if (!table[at].line)
        table[at] = (struct slot){l, (*next)++};
    return table[at].id;
}

static int number_lines(struct side *a, struct side *b)
{
    uint64_t key = 0x243f6a8885a308d3u;
    size_t size = 16;
    uint32_t next = 0;
    while (size < 2 * (a->count + b->count))
        size *= 2;
    px_auto_free struct slot *table = calloc(size, sizeof *table);
    if (!table)
        return -ENOMEM;
    (void)px_sys(SYS_getrandom, &key, sizeof key, 0);
    struct side *const both[] = {a, b};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < both[s]->count; i++)
            both[s]->ids[i] = number_of(table, size - 1, hash_line(&both[s]->lines[i], key), &both[s]->lines[i], &next);
    return 0;
}

/* ---- which lines differ ---- */

/* The lines of one side that the other one has somewhere, and where they stand: the others differ in any case. */
struct common {
    uint32_t *ids;
    size_t *at;
    bool *changed;
    size_t count;
};

static void done_common(struct common *c)
{
    free(c->ids);
    free(c->at);
    free(c->changed);
}

static int init_common(struct common *c, struct side *s, const bool *known, size_t numbers)
{
    *c = (struct common){.ids = calloc(s->count + 1, sizeof *c->ids), .at = calloc(s->count + 1, sizeof *c->at),
                         .changed = calloc(s->count + 1, sizeof *c->changed)};
    if (!c->ids || !c->at || !c->changed)
        return -ENOMEM;
    for (size_t i = 0; i < s->count; i++) {
        if (s->ids[i] >= numbers || !known[s->ids[i]]) {
            s->changed[i] = true;
            continue;
        }
        c->ids[c->count] = s->ids[i];
        c->at[c->count++] = i;
    }
    return 0;
}

static int mark_known(const struct side *s, size_t numbers, bool **ret_known)
{
    bool *known = calloc(numbers + 1, sizeof *known);
    if (!known)
        return -ENOMEM;
    for (size_t i = 0; i < s->count; i++)
        known[s->ids[i]] = true;
    *ret_known = known;
    return 0;
}

static int compare(struct side *a, struct side *b, int64_t *steps)
{
    size_t numbers = a->count + b->count;
    px_auto_free bool *in_a = NULL, *in_b = NULL;
    struct common left = {0}, right = {0};
    int r = mark_known(a, numbers, &in_a);
    if (r >= 0)
        r = mark_known(b, numbers, &in_b);
    if (r >= 0)
        r = init_common(&left, a, in_b, numbers);
    if (r >= 0)
        r = init_common(&right, b, in_a, numbers);
    if (r >= 0)
        r = px_myers(&(struct px_sequence){left.ids, left.count, left.changed},
                     &(struct px_sequence){right.ids, right.count, right.changed}, steps);
    for (size_t i = 0; r >= 0 && i < left.count; i++)
        a->changed[left.at[i]] = left.changed[i];
    for (size_t i = 0; r >= 0 && i < right.count; i++)
        b->changed[right.at[i]] = right.changed[i];
    done_common(&left);
    done_common(&right);
    return r;
}

/* A run of changed lines whose first one is also the line behind it can as well begin one later: as late as it can, so that what
 * was added shows from its own first line to its last. */
static void slide(struct side *s)
{
    for (size_t from = 0, to; from < s->count; from = to) {
        to = from + 1;
        if (!s->changed[from])
            continue;
        while (to < s->count && s->changed[to])
            to++;
        while (to < s->count && s->ids[from] == s->ids[to]) {
            s->changed[from++] = false;
            s->changed[to++] = true;
            while (to < s->count && s->changed[to])
                to++;
        }
    }
}

/* ---- text ---- */

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* As git writes it: in quotes with escapes where a byte could be misread. */
static void put_name(struct px_buf *out, const char *prefix, const char *path)
{
    static const char letters[] = "abtnvfr";    /* from 7 on */
    bool quoted = false;
    for (const char *p = path; *p; p++)
        quoted = quoted || !is_plain((unsigned char)*p);
    px_buf_printf(out, "%s%s", quoted ? "\"" : "", prefix);
    for (const char *p = path; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (is_plain(c))
            px_buf_putc(out, (char)c);
        else if (c == '"' || c == '\\')
            px_buf_printf(out, "\\%c", c);
        else if (c >= 7 && c <= 13)
            px_buf_printf(out, "\\%c", letters[c - 7]);
        else
            px_buf_printf(out, "\\%03o", c);
    }
    if (quoted)
        px_buf_putc(out, '"');
}

static void put_header_name(struct px_buf *out, const char *mark, const char *prefix, const char *path, bool there)
{
    px_buf_printf(out, "%s ", mark);
    if (there)
        put_name(out, prefix, path);
    else
        px_buf_puts(out, "/dev/null");
    /* Without a tab behind it, a name with a blank would end there for `patch`. */
    px_buf_puts(out, there && strchr(path, ' ') ? "\t\n" : "\n");
}

static void put_line(struct px_buf *out, char mark, const struct line *l)
{
    px_buf_putc(out, mark);
    px_buf_add(out, l->text, l->len);
    if (l->len == 0 || l->text[l->len - 1] != '\n')
        px_buf_puts(out, "\n\\ No newline at end of file\n");
}

static void put_range(struct px_buf *out, char mark, size_t first, size_t count)
{
    px_buf_printf(out, "%c%zu", mark, count ? first + 1 : first);
    if (count != 1)
        px_buf_printf(out, ",%zu", count);
}

/* Where both sides stand. */
struct place {
    size_t a, b;
};

static bool at_change(const struct side *a, const struct side *b, struct place p)
{
    return (p.a < a->count && a->changed[p.a]) || (p.b < b->count && b->changed[p.b]);
}

static struct place after_changes(const struct side *a, const struct side *b, struct place p)
{
    while (p.a < a->count && a->changed[p.a])
        p.a++;
    while (p.b < b->count && b->changed[p.b])
        p.b++;
    return p;
}

/* From the first change on: the end of the last one that is no more than twice the context away from the one before. */
static struct place hunk_end(const struct side *a, const struct side *b, struct place p)
{
    struct place end = after_changes(a, b, p);
    for (;;) {
        struct place next = end;
        while (next.a < a->count && next.b < b->count && next.a - end.a <= (size_t)2 * CONTEXT && !at_change(a, b, next)) {
            next.a++;
            next.b++;
        }
        if (next.a - end.a > (size_t)2 * CONTEXT || !at_change(a, b, next))
            return end;
        end = after_changes(a, b, next);
    }
}

static void put_body(struct px_buf *out, const struct side *a, const struct side *b, struct place p, struct place end)
{
    while (p.a < end.a || p.b < end.b) {
        for (; p.a < end.a && a->changed[p.a]; p.a++)
            put_line(out, '-', &a->lines[p.a]);
        for (; p.b < end.b && b->changed[p.b]; p.b++)
            put_line(out, '+', &b->lines[p.b]);
        for (; p.a < end.a && p.b < end.b && !at_change(a, b, p); p.a++, p.b++)
            put_line(out, ' ', &a->lines[p.a]);
    }
}

static void put_hunks(struct px_buf *out, const struct side *a, const struct side *b)
{
    struct place p = {0, 0};
    while (out->err == 0 && (p.a < a->count || p.b < b->count)) {
        if (!at_change(a, b, p)) {
            p.a++;
            p.b++;
            continue;
        }
        size_t before = p.a < CONTEXT ? p.a : CONTEXT;
        struct place from = {p.a - before, p.b - before}, last = hunk_end(a, b, p);
        size_t left = a->count - last.a, behind = left < CONTEXT ? left : CONTEXT;
        struct place end = {last.a + behind, last.b + behind};
        px_buf_puts(out, "@@ ");
        put_range(out, '-', from.a, end.a - from.a);
        px_buf_putc(out, ' ');
        put_range(out, '+', from.b, end.b - from.b);
        px_buf_puts(out, " @@\n");
        put_body(out, a, b, from, end);
        p = last;
    }
}

static bool is_link(unsigned mode)
{
    return (mode & KIND_MODE) == LINK_MODE;
}

/* A link whose target changes has its two equal modes told, or it would look like a file. */
static void put_modes(struct px_buf *out, const char *path, unsigned before, unsigned after)
{
    px_buf_puts(out, "diff --git ");
    put_name(out, "a/", path);
    px_buf_putc(out, ' ');
    put_name(out, "b/", path);
    px_buf_putc(out, '\n');
    if (!before)
        px_buf_printf(out, "new file mode %06o\n", after);
    else if (!after)
        px_buf_printf(out, "deleted file mode %06o\n", before);
    else if (before != after || is_link(after))
        px_buf_printf(out, "old mode %06o\nnew mode %06o\n", before, after);
}

bool px_unified_is_text(const struct px_diff_side *side)
{
    return side->len <= PX_DIFF_BYTES_MAX && (side->len == 0 || !memchr(side->data, 0, side->len));
}

static int put_text(const char *path, const struct px_diff_side *before, const struct px_diff_side *after, enum px_diff_style style,
                    int64_t *steps, struct px_buf *out)
{
    struct side a = {0}, b = {0};
    int r = init_side(&a, before);
    if (r >= 0)
        r = init_side(&b, after);
    if (r >= 0)
        r = number_lines(&a, &b);
    if (r >= 0)
        r = compare(&a, &b, steps);
    if (r >= 0) {
        slide(&a);
        slide(&b);
        put_header_name(out, "---", "a/", path, before->mode || style == PX_DIFF_PLAIN);
        put_header_name(out, "+++", "b/", path, after->mode || style == PX_DIFF_PLAIN);
        put_hunks(out, &a, &b);
    }
    done_side(&a);
    done_side(&b);
    return r;
}

/* One line for what has no lines of its own, and without a header, so that it stops nobody from applying the rest. */
static void put_note(const char *path, unsigned before, unsigned after, const char *what, const char *why,
                     struct px_buf *out)
{
    px_buf_printf(out, "%s ", what);
    put_name(out, before ? "a/" : "", before ? path : "/dev/null");
    px_buf_puts(out, " and ");
    put_name(out, after ? "b/" : "", after ? path : "/dev/null");
    px_buf_printf(out, " differ%s\n", why);
}

static void put_why_not(const char *path, const struct px_diff_side *before, const struct px_diff_side *after,
                        struct px_buf *out)
{
    bool large = before->len > PX_DIFF_BYTES_MAX || after->len > PX_DIFF_BYTES_MAX;
    put_note(path, before->mode, after->mode, large ? "Files" : "Binary files",
             large ? ", and are too large to show" : "", out);
}

/* `git apply` takes a note right behind a header without lines for a part of that entry, and refuses it. */
static bool would_swallow(const struct px_buf *out, const struct px_buf *one)
{
    size_t at = out->len ? out->len - 1 : 0; /* of the newline that ends the last line */
    while (at > 0 && out->data[at - 1] != '\n')
        at--;
    bool header = out->len > 0 && (out->data[at] == 'n' || out->data[at] == 'd'); /* new mode, deleted file mode */
    return header && one->len > 0 && (one->data[0] == 'B' || one->data[0] == 'F');
}

int px_unified_add(struct px_buf *out, const struct px_buf *one)
{
    bool blank = would_swallow(out, one);
    if (out->err < 0 || one->len + blank > out->max - out->len)
        return out->err < 0 ? out->err : -E2BIG;
    if (blank)
        px_buf_putc(out, '\n');
    px_buf_add(out, one->data, one->len);
    return out->err;
}

/* ---- budgets ---- */

bool px_unified_used(const struct px_diff_budget *budget)
{
    return budget->bytes == 0 || budget->steps <= 0;
}

int px_unified_leave_out(const char *path, unsigned before, unsigned after, struct px_diff_budget *budget,
                      struct px_buf *out)
{
    budget->left_out++;
    put_note(path, before, after, "Files", "; diff left out: budget", out);
    return out->err;
}

/* What is too little for one file is left to none: the next ones would have to be read to see whether it is enough. */
static bool take_bytes(struct px_diff_budget *budget, size_t before, size_t after)
{
    bool enough = !px_unified_used(budget) && before <= budget->bytes && after <= budget->bytes - before;
    budget->bytes = enough ? budget->bytes - before - after : 0;
    return enough;
}

int px_unified_write(const char *path, const struct px_diff_side *before, const struct px_diff_side *after, enum px_diff_style style,
                  struct px_buf *out)
{
    struct px_diff_budget own = PX_DIFF_BUDGET;
    return px_unified_write_within(path, before, after, style, &own, out);
}

/* One goes and the other comes; if the first cannot be shown, the other would have no place. */
static int write_both(const char *path, const struct px_diff_side *before, const struct px_diff_side *after,
                      struct px_diff_budget *budget, struct px_buf *out)
{
    static const struct px_diff_side none = {"", 0, 0};
    size_t left_out = budget->left_out;
    if (!px_unified_is_text(before) || !px_unified_is_text(after)) {
        put_why_not(path, before, after, out);
        return out->err;
    }
    int r = px_unified_write_within(path, before, &none, PX_DIFF_GIT, budget, out);
    if (r < 0 || budget->left_out > left_out)
        return r;
    return px_unified_write_within(path, &none, after, PX_DIFF_GIT, budget, out);
}

int px_unified_write_within(const char *path, const struct px_diff_side *before, const struct px_diff_side *after,
                         enum px_diff_style style, struct px_diff_budget *budget, struct px_buf *out)
{
    bool same = before->len == after->len && (before->len == 0 || memcmp(before->data, after->data, before->len) == 0);
    bool kinds_differ = before->mode && after->mode && (before->mode & KIND_MODE) != (after->mode & KIND_MODE);
    if (kinds_differ)
        return write_both(path, before, after, budget, out);
    if (same && before->mode == after->mode)
        return out->err;
    if (!same && (!px_unified_is_text(before) || !px_unified_is_text(after))) {
        put_why_not(path, before, after, out);
        return out->err;
    }
    if (!same && !take_bytes(budget, before->len, after->len))
        return px_unified_leave_out(path, before->mode, after->mode, budget, out);
    if (is_link(before->mode) || is_link(after->mode)) /* the plain style has no words for them */
        style = PX_DIFF_GIT;
    if (style == PX_DIFF_GIT)
        put_modes(out, path, before->mode, after->mode);
    int r = same ? 0 : put_text(path, before, after, style, &budget->steps, out);
    return r < 0 ? r : out->err;
}
