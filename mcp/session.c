#include "mcp/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "changes/unified.h"

enum {
    FILES_MAX = PX_FILES_RESULTS_MAX, /* that are compared */
    KEPT_FILES = 20000,               /* whose text is kept */
    KEPT_BYTES = 32 << 20,            /* of all of them */
    KEPT_EACH = 256 << 10,
    KEPT_SEC = 4,                     /* limits the delay of the first change on a slow disk */
    DIFF_MAX = 1 << 20,               /* of the whole text */
    TOLD_MAX = 10000,                 /* files in one answer */
    FILE_MODE = 0100644,              /* modes are not compared */
};

void session_done(struct session *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->files[i].path);
        free(s->files[i].data);
    }
    free(s->files);
    *s = (struct session){0};
}

/* ---- what is there ---- */

static bool is_below(const char *path, const char *name)
{
    size_t n = strlen(name);
    return strncmp(path, name, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Whether a path found in a root belongs to that root and not to a root inside it. */
static bool is_of(const struct px_files *files, const char *path, const char *name)
{
    struct px_files_root root;
    for (size_t i = 0; px_files_root_at(files, i, &root) == 0; i++)
        if (strlen(root.name) > strlen(name) && is_below(path, root.name))
            return false;
    return true;
}

/* Takes ownership of the entries' paths. */
static int add_entries(struct session *s, const struct px_files *files, const char *name,
                       struct px_files_entries *found)
{
    struct session_file *more = realloc(s->files, (s->count + found->count + 1) * sizeof *more);
    if (!more)
        return -1;
    s->files = more;
    for (size_t i = 0; i < found->count; i++) {
        struct px_files_entry *entry = &found->items[i];
        if (s->count == FILES_MAX)
            s->cut = true;
        else if (is_of(files, entry->path, name))
            s->files[s->count++] =
                (struct session_file){.path = px_take(&entry->path), .version = entry->version, .size = entry->size};
    }
    s->cut = s->cut || found->truncated;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct session_file *)a)->path, ((const struct session_file *)b)->path);
}

static int look(struct session *s, const struct px_files *files, struct px_err *e)
{
    struct px_files_root root;
    for (size_t i = 0; px_files_root_at(files, i, &root) == 0; i++) {
        struct px_files_entries found = {0};
        const struct px_files_query query = {.path = root.name, .max_results = FILES_MAX};
        if (!root.writable)
            continue;
        if (px_files_list(files, &query, &found, e) < 0)
            return -1;
        int r = add_entries(s, files, root.name, &found);
        px_files_entries_done(&found);
        if (r < 0)
            return px_no_memory(e);
    }
    if (s->count)
        qsort(s->files, s->count, sizeof *s->files, by_path);
    return 0;
}

/* Reads a file of at most max bytes (`size` is only a hint); NULL if it is larger or unreadable. */
static char *read_bytes(const struct px_files *files, const struct session_file *f, size_t max, size_t *ret_len)
{
    struct px_err e = {0};
    px_auto_fd int fd = -EBADF;
    if (f->size > max || px_files_open(files, f->path, &fd, &e) < 0)
        return NULL;
    px_auto_free char *data = malloc((size_t)f->size + 1);
    ssize_t n = data ? px_read_full(fd, data, (size_t)f->size + 1) : -1;
    if (n < 0 || (size_t)n > f->size)
        return NULL;
    *ret_len = (size_t)n;
    return px_take(&data);
}

static time_t now_sec(void)
{
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

static void keep_texts(struct session *s, const struct px_files *files)
{
    size_t bytes = 0, kept = 0;
    time_t end = now_sec() + KEPT_SEC;
    for (size_t i = 0; i < s->count && kept < KEPT_FILES && now_sec() <= end; i++) {
        struct session_file *f = &s->files[i];
        if (f->size > KEPT_BYTES - bytes)
            continue;
        f->data = read_bytes(files, f, KEPT_EACH, &f->len);
        bytes += f->len;
        kept += f->data != NULL;
    }
}

int session_begin(struct session *s, const struct px_files *files, struct px_err *e)
{
    if (s->begun)
        return 0;
    if (look(s, files, e) < 0) {
        session_done(s);
        return -1;
    }
    keep_texts(s, files);
    s->begun = true;
    return 0;
}

/* ---- what differs ---- */

struct telling {
    const struct px_files *files;
    const char *path;
    struct px_buf *text, diff;
    struct px_json json;
    size_t told;
    struct px_diff_budget budget;
    const char *cut; /* why the list is incomplete; NULL: it is complete */
    bool unknown;    /* completeness is unknown */
};

static void tell_file(struct telling *t, const char *path, const char *change, const struct px_diff_side *before,
                      const struct px_diff_side *after, bool known)
{
    px_auto_buf struct px_buf one = PX_BUF(DIFF_MAX);
    if (t->told++ == TOLD_MAX)
        t->cut = "too many files";
    if (t->told > TOLD_MAX)
        return;
    px_json_object(&t->json, NULL);
    px_json_text(&t->json, "path", path);
    px_json_text(&t->json, "change", change);
    px_json_end(&t->json);
    known = known && !px_unified_used(&t->budget);
    if (known && px_unified_write_within(path, before, after, PX_DIFF_GIT, &t->budget, &one) == 0) {
        if (px_unified_add(&t->diff, &one) < 0)
            t->cut = "the diff is too large";
        return;
    }
    px_buf_quote(t->text, path, strlen(path));
    px_buf_printf(t->text, " was %s; its text is not shown\n", change);
    t->cut = one.err == -E2BIG ? "the diff is too large" : px_unified_used(&t->budget) ? "diff left out: budget" : t->cut;
}

static void tell_removed(struct telling *t, const struct session_file *old)
{
    const struct px_diff_side before = {old->data, old->len, FILE_MODE}, none = {0};
    tell_file(t, old->path, "removed", &before, &none, old->data != NULL);
}

static void tell_added(struct telling *t, const struct session_file *new)
{
    struct px_diff_side none = {0}, after = {.mode = FILE_MODE};
    px_auto_free char *data = read_bytes(t->files, new, KEPT_EACH, &after.len);
    after.data = data;
    tell_file(t, new->path, "added", &none, &after, data != NULL);
}

/* A file replaced by one with the same content is not reported. */
static void tell_changed(struct telling *t, const struct session_file *old, const struct session_file *new)
{
    struct px_diff_side before = {old->data, old->len, FILE_MODE}, after = {.mode = FILE_MODE};
    px_auto_free char *data = old->data ? read_bytes(t->files, new, PX_DIFF_BYTES_MAX, &after.len) : NULL;
    after.data = data;
    if (data && after.len == before.len && memcmp(data, old->data, before.len) == 0)
        return;
    tell_file(t, new->path, "changed", &before, &after, data != NULL);
}

/* Both lists are sorted. Where one is truncated, missing entries mean nothing. */
static void compare(struct telling *t, const struct session *old, const struct session *new)
{
    for (size_t i = 0, k = 0; i < old->count || k < new->count;) {
        const struct session_file *a = i < old->count ? &old->files[i] : NULL,
                                  *b = k < new->count ? &new->files[k] : NULL;
        int order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);
        bool wanted = !t->path || is_below(order <= 0 ? a->path : b->path, t->path);
        if (wanted && order < 0 && !new->cut)
            tell_removed(t, a);
        else if (wanted && order > 0 && !old->cut)
            tell_added(t, b);
        else if (wanted && order == 0 && a->version != b->version)
            tell_changed(t, a, b);
        i += order <= 0;
        k += order >= 0;
    }
    t->unknown = old->cut || new->cut;
    if (t->unknown)
        t->cut = "there are too many files to see which were added or removed";
}

static void finish(struct telling *t)
{
    if (t->budget.left_out > 0 && !t->cut)
        t->cut = "diff left out: budget";
    px_json_end(&t->json);
    px_json_bool(&t->json, "same", t->told == 0 && !t->unknown);
    px_json_bytes(&t->json, "diff", px_buf_text(&t->diff), t->diff.len);
    px_json_bool(&t->json, "truncated", t->cut != NULL);
    px_json_text(&t->json, "truncated_because", t->cut);
    px_json_end(&t->json);
    px_buf_add(t->text, t->diff.data, t->diff.len);
    if (t->told == 0)
        px_buf_puts(t->text, t->unknown ? "It is not known whether anything was changed.\n" : "Nothing was changed.\n");
    if (t->cut)
        px_buf_printf(t->text, "... (%s)\n", t->cut);
}

/* The target of a path. Appends a slash, so that a root's name alone is a path, too. */
static int find_place(const struct px_files *files, const char *path, char **ret_place, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(2 * strlen(path) + 2);
    struct px_files_stat st;
    px_buf_printf(&text, "%s/", path);
    if (text.err < 0)
        return px_no_memory(e);
    if (px_files_resolve(files, px_buf_text(&text), ret_place, &st, e) < 0)
        return -1;
    size_t n = strlen(*ret_place);
    if (n > 0 && (*ret_place)[n - 1] == '/')
        (*ret_place)[n - 1] = '\0';
    return 0;
}

int session_diff(const struct session *s, const struct px_files *files, const char *path, struct px_buf *text,
                 struct px_buf *json, struct px_err *e)
{
    struct session now = {0};
    px_auto_free char *place = NULL;
    if (path && *path && strcmp(path, ".") != 0 && strcmp(path, "/") != 0 && find_place(files, path, &place, e) < 0)
        return -1;
    if (s->begun && look(&now, files, e) < 0) {
        session_done(&now);
        return -1;
    }
    struct telling t = {.files = files, .path = place, .text = text, .diff = PX_BUF(DIFF_MAX), .json = {.out = json},
                        .budget = PX_DIFF_BUDGET};
    px_json_object(&t.json, NULL);
    px_json_bool(&t.json, "ok", true);
    px_json_array(&t.json, "files");
    compare(&t, s, &now);
    finish(&t);
    px_buf_done(&t.diff);
    session_done(&now);
    return 0;
}
