#include "work/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fd.h"

const char *px_change_word(enum px_change_kind kind)
{
    static const char words[][9] = {"added", "modified", "deleted", "mode", "special"};
    return words[kind];
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
                     struct px_buf *out)
{
    px_auto_free char *old = NULL, *new = NULL;
    struct px_diff_side before, after;
    int r = load_side(c, item, false, &old, &before);
    if (r >= 0)
        r = load_side(c, item, true, &new, &after);
    if (r < 0)
        return r;
    if (item->kind == PX_CHANGE_MODE) /* the same bytes, which need not be looked at */
        before.len = after.len = 0;
    else if (before.len == after.len && before.len > PX_DIFF_BYTES_MAX)
        before.len++; /* they differ, and nobody looks at bytes of such files */
    return px_diff_write(item->path, &before, &after, style, out);
}

static bool has_diff(const struct px_changes_item *item)
{
    unsigned mode = item->after ? item->after : item->before;
    return item->listed && item->kind != PX_CHANGE_SPECIAL && (S_ISREG(mode) || S_ISLNK(mode));
}

int px_changes_diff(const struct px_changes *changes, enum px_diff_style style, struct px_buf *out, bool *ret_truncated)
{
    *ret_truncated = false;
    for (size_t i = 0; i < changes->count; i++) {
        if (!has_diff(&changes->items[i]))
            continue;
        px_auto_buf struct px_buf one = PX_BUF(out->max - out->len);
        int r = diff_item(changes, &changes->items[i], style, &one);
        if (r == -E2BIG) {
            *ret_truncated = true;
            continue;
        }
        if (r < 0)
            return r;
        px_buf_add(out, one.data, one.len);
    }
    return out->err;
}
