#include "changes/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

const char *px_changes_word(enum px_change_kind kind)
{
    static const char words[][9] = {"added", "modified", "deleted", "mode", "special"};
    return words[kind];
}

bool px_changes_is_link(const struct px_changes_item *item)
{
    return S_ISLNK(item->after ? item->after : item->before);
}

/* Git knows two modes of files, and so does everybody who reads its diffs. */
static unsigned shown_mode(unsigned mode)
{
    return mode == 0 ? 0 : S_ISLNK(mode) ? S_IFLNK : (unsigned)S_IFREG | (mode & 0100 ? 0755 : 0644);
}

static int load_side(const struct px_changes *c, const struct px_changes_item *item, bool upper, char **ret_data,
                     struct px_diff_side *ret)
{
    unsigned mode = upper ? item->after : item->before;
    *ret = (struct px_diff_side){"", 0, shown_mode(mode)};
    if (!mode)
        return 0;
    int r = px_changes_load_from(upper ? &c->upper : &c->lower, item->path, mode, upper, ret_data, &ret->len);
    if (r >= 0 && *ret_data)
        ret->data = *ret_data;
    return r;
}

static int diff_item(const struct px_changes *c, const struct px_changes_item *item, enum px_diff_style style,
                     struct px_diff_budget *budget, struct px_buf *out)
{
    px_auto_free char *old = NULL, *new = NULL;
    struct px_diff_side before, after;
    if (px_unified_used(budget))
        return px_unified_leave_out(item->path, item->before, item->after, budget, out);
    int r = load_side(c, item, false, &old, &before);
    if (r >= 0)
        r = load_side(c, item, true, &new, &after);
    if (r < 0)
        return r;
    if (item->kind == PX_CHANGE_MODE) /* the same bytes, which need not be looked at */
        before.len = after.len = 0;
    else if (before.len == after.len && before.len > PX_DIFF_BYTES_MAX)
        before.len++; /* they differ, and nobody looks at bytes of such files */
    return px_unified_write_within(item->path, &before, &after, style, budget, out);
}

static bool has_diff(const struct px_changes_item *item)
{
    unsigned mode = item->after ? item->after : item->before;
    return item->listed && item->kind != PX_CHANGE_SPECIAL && (S_ISREG(mode) || S_ISLNK(mode));
}

struct writer {
    const struct px_changes *changes;
    enum px_diff_style style;
    struct px_diff_budget budget;
    struct px_buf *out;
    bool *done;
    bool truncated;
};

static int write_item(struct writer *w, size_t index)
{
    const struct px_changes_item *item = &w->changes->items[index];
    if (w->done[index] || !has_diff(item))
        return 0;
    w->done[index] = true;
    px_auto_buf struct px_buf one = PX_BUF(w->out->max - w->out->len);
    int r = diff_item(w->changes, item, w->style, &w->budget, &one);
    if (r >= 0)
        r = px_unified_add(w->out, &one);
    if (r == -E2BIG)
        w->truncated = true;
    return r == -E2BIG ? 0 : r;
}

/* Where a directory became a file: what was in it goes first, or `patch` has no place for the file. */
static int write_cleared(struct writer *w, const char *path)
{
    const struct px_changes *c = w->changes;
    size_t low = 0, high = c->count, n = strlen(path);
    int r = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(c->items[middle].path, path, n);
        if (order < 0 || (order == 0 && (unsigned char)c->items[middle].path[n] < '/'))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < c->count && r >= 0 && strncmp(c->items[low].path, path, n) == 0 && c->items[low].path[n] == '/'; low++)
        if (c->items[low].kind == PX_CHANGE_DELETED)
            r = write_item(w, low);
    return r;
}

int px_changes_diff(const struct px_changes *changes, enum px_diff_style style, struct px_diff_budget budget,
                    struct px_buf *out, bool *ret_truncated)
{
    px_auto_free bool *done = calloc(changes->count + 1, sizeof *done);
    struct writer w = {.changes = changes, .style = style, .budget = budget, .out = out, .done = done};
    int r = done ? 0 : -ENOMEM;
    for (size_t i = 0; i < changes->count && r >= 0; i++) {
        const struct px_changes_item *item = &changes->items[i];
        if (item->kind == PX_CHANGE_ADDED && has_diff(item))
            r = write_cleared(&w, item->path);
        if (r >= 0)
            r = write_item(&w, i);
    }
    *ret_truncated = w.truncated || w.budget.left_out > 0;
    return r < 0 ? r : out->err;
}
