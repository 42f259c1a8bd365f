/* The differences between two workspaces. Only names in layers that they do not share can differ. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "task/workspace.h"

enum { NAMES_MAX = PX_CHANGES_MAX, TOLD = 8, SHOWN = S_IFMT | 01777 };

struct names {
    char **items;
    size_t count, room;
};

struct walk {
    const struct px_space_view *side[2]; /* from, to */
    size_t own[2];                       /* how many of its layers the other one does not have */
    struct px_changes *out;
    struct names todo;
};

/* ---- names ---- */

static int add_name(struct names *n, const char *dir, const char *name, const char *end)
{
    px_auto_buf struct px_buf path = PX_BUF(PATH_MAX);
    if (n->count == n->room) {
        size_t more = n->room ? 2 * n->room : 64;
        char **bigger = n->count < NAMES_MAX ? realloc(n->items, more * sizeof *bigger) : NULL;
        if (!bigger)
            return -E2BIG;
        n->items = bigger;
        n->room = more;
    }
    px_buf_printf(&path, "%s%s%s", dir, name, end);
    char *text = px_buf_take(&path);
    if (!text)
        return -E2BIG;
    n->items[n->count++] = text;
    return 0;
}

static void done_names(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct names){0};
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int see_name(void *user, const char *name, const struct stat *st)
{
    (void)st;
    return add_name(user, "", name, "");
}

/* All names of one layer's part of a directory, whiteouts too. */
static int list_part(int layer, const char *dir, struct names *names)
{
    int fd = px_open_in_root(layer, *dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), r = 0;
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        r = fd < 0 ? fd : -errno;
        (void)px_fd_close(fd);
        return r;
    }
    for (struct dirent *entry; r >= 0 && (entry = readdir(list));)
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            r = add_name(names, "", entry->d_name, "");
    (void)closedir(list);
    return r;
}

/* ---- the walk ---- */

static int find(const struct walk *w, int side, const char *path, struct px_layers_at *ret, bool *ret_there)
{
    int r = px_layers_find(w->side[side]->tree, path, ret);
    *ret_there = r >= 0;
    return r == -ENOENT ? 0 : r;
}

/* The names of a directory that may differ. */
static int candidates(struct walk *w, const char *dir, struct names *names)
{
    struct px_layers_at at[2];
    bool there[2], both = true;
    int r = 0;
    for (int i = 0; i < 2 && r >= 0; i++) {
        r = find(w, i, dir, &at[i], &there[i]);
        there[i] = there[i] && r >= 0 && S_ISDIR(at[i].st.st_mode);
        both = both && there[i];
    }
    both = both && r >= 0 && at[0].parts >> w->own[0] == at[1].parts >> w->own[1];
    for (int i = 0; i < 2 && r >= 0; i++) {
        if (!both && there[i])
            r = px_layers_list(w->side[i]->tree, dir, see_name, names);
        for (size_t k = 0; both && k < w->own[i] && r >= 0; k++)
            if (at[i].parts >> k & 1)
                r = list_part(w->side[i]->tree->fds[k], dir, names);
    }
    return r;
}

static int say(struct walk *w, const char *path, enum px_change_kind kind, unsigned before, unsigned after, bool listed)
{
    px_auto_buf struct px_buf name = PX_BUF(PATH_MAX);
    px_buf_printf(&name, "%s%s", path, S_ISDIR(after ? after : before) ? "/" : "");
    if (name.err < 0)
        return name.err;
    return px_changes_add(w->out, px_buf_text(&name),
                          (struct px_changes_item){.kind = kind, .listed = listed, .before = before, .after = after});
}

static int say_gone(struct walk *w, const char *path, unsigned mode)
{
    int r = say(w, path, PX_CHANGE_DELETED, mode, 0, !S_ISDIR(mode));
    return r >= 0 && S_ISDIR(mode) ? add_name(&w->todo, path, "", "/") : r;
}

static int say_new(struct walk *w, const char *path, unsigned mode)
{
    if (S_ISDIR(mode)) {
        int r = say(w, path, PX_CHANGE_ADDED, 0, mode, false);
        return r < 0 ? r : add_name(&w->todo, path, "", "/");
    }
    return say(w, path, S_ISREG(mode) || S_ISLNK(mode) ? PX_CHANGE_ADDED : PX_CHANGE_SPECIAL, 0, mode, true);
}

static bool is_plain(unsigned mode)
{
    return S_ISREG(mode) || S_ISLNK(mode);
}

static int compare_both(struct walk *w, const char *path, const struct px_layers_at *from, const struct px_layers_at *to)
{
    unsigned a = from->st.st_mode, b = to->st.st_mode;
    bool modes = (a & SHOWN) != (b & SHOWN) && !S_ISLNK(b);
    if (S_ISDIR(a) && S_ISDIR(b)) {
        int r = modes ? say(w, path, PX_CHANGE_MODE, a, b, true) : 0;
        return r < 0 ? r : add_name(&w->todo, path, "", "/");
    }
    if (from->st.st_dev == to->st.st_dev && from->st.st_ino == to->st.st_ino)
        return 0;
    if (!is_plain(a) || !is_plain(b)) {
        if (!S_ISDIR(a) && !is_plain(a) && (a & S_IFMT) == (b & S_IFMT))
            return 0;
        int r = say_gone(w, path, a);
        return r < 0 ? r : say_new(w, path, b);
    }
    int same = px_changes_same(w->side[1]->tree, w->side[0]->tree, path, &to->st, &from->st);
    if (same < 0 || (same && !modes))
        return same < 0 ? same : 0;
    return say(w, path, same ? PX_CHANGE_MODE : PX_CHANGE_MODIFIED, a, b, true);
}

static int visit(struct walk *w, const char *dir, const char *name)
{
    px_auto_buf struct px_buf path = PX_BUF(PATH_MAX);
    struct px_layers_at from, to;
    bool was = false, is = false;
    px_buf_printf(&path, "%s%s", dir, name);
    int r = path.err < 0 ? path.err : find(w, 0, path.data, &from, &was);
    if (r >= 0)
        r = find(w, 1, path.data, &to, &is);
    if (r < 0 || (!was && !is))
        return r;
    if (was && is)
        return compare_both(w, path.data, &from, &to);
    return was ? say_gone(w, path.data, from.st.st_mode) : say_new(w, path.data, to.st.st_mode);
}

static int walk_directory(struct walk *w, const char *dir)
{
    struct names names = {0};
    int r = candidates(w, dir, &names);
    if (r >= 0 && names.count)
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    for (size_t i = 0; i < names.count && r >= 0; i++)
        if (i == 0 || strcmp(names.items[i], names.items[i - 1]) != 0)
            r = visit(w, dir, names.items[i]);
    done_names(&names);
    return r;
}

static void count_own(struct walk *w)
{
    const struct px_space_stack *a = w->side[0]->ids, *b = w->side[1]->ids;
    size_t n = w->side[0]->tree->count, m = w->side[1]->tree->count;
    while (a && b && n > 0 && m > 0 && px_equal(a->ids[n - 1], b->ids[m - 1])) {
        n--;
        m--;
    }
    w->own[0] = n;
    w->own[1] = m;
}

int px_workspace_compare(const struct px_space_view *from, const struct px_space_view *to, struct px_changes *ret)
{
    struct px_changes changes = {.upper = *to->tree, .lower = *from->tree};
    struct walk w = {.side = {from, to}, .out = &changes};
    count_own(&w);
    int r = walk_directory(&w, "");
    while (w.todo.count > 0) {
        px_auto_free char *dir = w.todo.items[--w.todo.count];
        if (r >= 0)
            r = walk_directory(&w, dir);
    }
    done_names(&w.todo);
    if (r < 0) {
        px_changes_done(&changes);
        return r;
    }
    px_changes_sort(&changes);
    *ret = changes;
    return 0;
}

/* ---- conflicts ---- */

/* Whether a path is the same in both: not there, or of one kind, mode and content. */
static int same_in(const struct px_layers *a, const struct px_layers *b, const char *path)
{
    struct px_layers_at x, y;
    int r = px_layers_find(a, path, &x), s = px_layers_find(b, path, &y);
    if ((r < 0 && r != -ENOENT) || (s < 0 && s != -ENOENT))
        return r < 0 && r != -ENOENT ? r : s;
    if (r < 0 || s < 0)
        return r == s;
    if ((x.st.st_mode & S_IFMT) != (y.st.st_mode & S_IFMT) ||
        (S_ISREG(x.st.st_mode) && (x.st.st_mode & SHOWN) != (y.st.st_mode & SHOWN)))
        return 0;
    return S_ISDIR(x.st.st_mode) ? 1 : px_changes_same(a, b, path, &x.st, &y.st);
}

/* A directory that is removed must not have got new files meanwhile. */
struct new_names {
    const struct px_changes *changes;
    const char *dir;
};

static int see_new(void *user, const char *name, const struct stat *st)
{
    const struct new_names *n = user;
    struct px_layers_at at;
    px_auto_buf struct px_buf path = PX_BUF(PATH_MAX);
    (void)st;
    px_buf_printf(&path, "%s%s", n->dir, name);
    return path.err < 0 ? path.err : px_layers_find(&n->changes->lower, path.data, &at) == -ENOENT ? -EEXIST : 0;
}

static int is_in_the_way(const struct px_changes *changes, const struct px_changes_item *item, const struct px_layers *other)
{
    int same = same_in(other, &changes->lower, item->path);
    if (same == 0)
        same = same_in(other, &changes->upper, item->path);
    if (same <= 0)
        return same < 0 ? same : 1;
    if (item->kind != PX_CHANGE_DELETED || !S_ISDIR(item->before))
        return 0;
    int r = px_layers_list(other, item->path, see_new, &(struct new_names){changes, item->path});
    return r == -EEXIST ? 1 : r == -ENOENT ? 0 : r;
}

int px_workspace_conflicts(const struct px_changes *changes, const struct px_layers *other, struct px_err *e)
{
    px_auto_buf struct px_buf names = PX_BUF(384);
    size_t count = 0;
    for (size_t i = 0; i < changes->count; i++) {
        int r = is_in_the_way(changes, &changes->items[i], other);
        if (r < 0)
            return px_fail(e, PX_E_TASK_STATE, r, "the two branches cannot be compared");
        if (r > 0 && ++count <= TOLD) {
            px_buf_puts(&names, count > 1 ? ", " : "");
            px_buf_quote(&names, changes->items[i].path, strlen(changes->items[i].path));
        }
    }
    if (count == 0)
        return 0;
    return px_fail(e, PX_E_TASK_CONFLICT, 0, "nothing was applied: %zu changed in both: %s%s", count, px_buf_text(&names),
                   count > TOLD || names.err < 0 ? ", ..." : "");
}
