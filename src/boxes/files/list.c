/* Files by their names, and lines by their text. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/files.h"
#include "files/stat.h"
#include "files/walk.h"

enum {
    SEARCH_FILE_MAX = 8 << 20,          /* larger files are skipped */
    SEARCH_BYTES = 256 << 20,           /* of all files together */
    SHOWN_LINE = 300,                   /* bytes */
    TEXT_LENGTH_MAX = 4096,
    BINARY_LOOK = 8192,
};

struct gather {
    struct px_files_entries out;
    size_t cap, max;
    const struct px_files_query *query;
    char *needle;               /* in lower case, if the case is ignored */
    size_t needle_len;
    uint64_t bytes;             /* still to be read */
};

void px_files_entries_done(struct px_files_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->items[i].path);
        free(entries->items[i].text);
    }
    free(entries->items);
    *entries = (struct px_files_entries){0};
}

static int by_path(const void *a, const void *b)
{
    const struct px_files_entry *x = a, *y = b;
    int r = strcmp(x->path, y->path);
    return r ? r : (x->line > y->line) - (x->line < y->line);
}

static char *join(const struct px_root *root, const char *rel)
{
    size_t n = strlen(rel) + 1;
    char *out = malloc(root->name_len + 1 + n);
    if (!out)
        return NULL;
    memcpy(out, root->name, root->name_len);
    out[root->name_len] = '/';
    memcpy(out + root->name_len + 1, rel, n);
    return out;
}

/* Times alone would not do: they can be set, and two changes may fall into one tick. */
static uint64_t version_of(const struct stat *st)
{
    const uint64_t parts[] = {st->st_dev, st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
                              (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};
    uint64_t h = 0x243f6a8885a308d3u;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        h = (h ^ parts[i]) * 0x9fb21c651e98df25u;
        h ^= h >> 32;
    }
    return h;
}

/* 0, or 1 when there is no room for one more; takes text. */
static int add(struct px_walk *w, const struct px_root *root, const char *rel, const struct stat *st, uint64_t line,
               char *text)
{
    struct gather *g = w->user;
    px_auto_free char *line_text = text;
    if (g->out.count == g->max) {
        w->truncated = "too many results";
        return 1;
    }
    if (g->out.count == g->cap) {
        size_t cap = g->cap ? g->cap * 2 : 64;
        struct px_files_entry *more = realloc(g->out.items, cap * sizeof *more);
        if (!more)
            return -ENOMEM;
        g->out.items = more;
        g->cap = cap;
    }
    char *path = join(root, rel);
    if (!path)
        return -ENOMEM;
    g->out.items[g->out.count++] = (struct px_files_entry){
        .path = path, .kind = px_stat_kind(st->st_mode), .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .modified = st->st_mtim.tv_sec, .version = st->st_ino ? version_of(st) : 0, .line = line, .text = px_take(&line_text)};
    return 0;
}

static int run(const struct px_files *f, struct px_walk *w, struct gather *g, struct px_files_entries *ret,
               struct px_err *e)
{
    uint64_t max = g->query->max_results ? g->query->max_results : PX_FILES_RESULTS;
    g->max = max < PX_FILES_RESULTS_MAX ? (size_t)max : PX_FILES_RESULTS_MAX;
    w->user = g;
    if (px_walk_run(w, f, g->query, e) < 0) {
        px_files_entries_done(&g->out);
        return -1;
    }
    if (g->out.count)
        qsort(g->out.items, g->out.count, sizeof *g->out.items, by_path);
    g->out.truncated = w->truncated;
    *ret = g->out;
    return 0;
}

/* A walk holds the patterns' tables, too much for a stack that may be a small thread's. */
static int run_with(const struct px_files *f, struct gather *g, struct px_files_entries *ret, struct px_err *e,
                    int (*visit)(struct px_walk *, const struct px_root *, const char *, const struct stat *))
{
    px_auto_free struct px_walk *w = calloc(1, sizeof *w);
    if (!w)
        return px_files_error_memory(e);
    w->visit = visit;
    w->directories = g->query->directories;
    w->kinds_only = g->query->names_only || g->needle;  /* a file that is searched is opened and asked itself */
    return run(f, w, g, ret, e);
}

/* ---- by name ---- */

static int list_one(struct px_walk *w, const struct px_root *root, const char *rel, const struct stat *st)
{
    return add(w, root, rel, st, 0, NULL);
}

int px_files_list(const struct px_files *files, const struct px_files_query *query,
                  struct px_files_entries *ret_entries, struct px_err *e)
{
    PX_ERR(e);
    struct gather g = {.query = query};
    return run_with(files, &g, ret_entries, e, list_one);
}

/* ---- by text ---- */

static void lower(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] + 32);
}

/* The line around a match, cut between characters: the whole is valid UTF-8 when it comes here. */
static char *line_text(const char *data, size_t begin, size_t end)
{
    px_auto_buf struct px_buf out = PX_BUF(SHOWN_LINE + 16);
    size_t len = end - begin;
    bool cut = len > SHOWN_LINE;
    for (len = cut ? SHOWN_LINE : len; cut && len > 0 && ((unsigned char)data[begin + len] & 0xc0) == 0x80;)
        len--;
    px_buf_add(&out, data + begin, len);
    px_buf_puts(&out, cut ? "..." : "");
    return px_buf_take(&out);
}

/* The first match of each line. `seen` is what is compared: the data, or a copy in lower case. */
static int search_data(struct px_walk *w, const struct px_root *root, const char *rel, const struct stat *st,
                       const char *data, const char *seen, size_t len)
{
    struct gather *g = w->user;
    uint64_t line = 1;
    size_t counted = 0;
    int r = 0;
    for (const char *hit = seen; r == 0 && (hit = memmem(hit, len - (size_t)(hit - seen), g->needle, g->needle_len));) {
        size_t at = (size_t)(hit - seen), begin = at;
        for (; counted < at; counted++)
            line += data[counted] == '\n';
        while (begin > 0 && data[begin - 1] != '\n')
            begin--;
        const char *newline = memchr(data + at, '\n', len - at);
        size_t end = newline ? (size_t)(newline - data) : len;
        char *text = line_text(data, begin, end);
        r = text ? add(w, root, rel, st, line, text) : -ENOMEM;
        hit = seen + end + (end < len);
        if (end >= len)
            break;
    }
    return r;
}

static int search_open(struct px_walk *w, int fd, const struct px_root *root, const char *rel, const struct stat *st)
{
    struct gather *g = w->user;
    px_auto_free char *data = NULL, *copy = NULL;
    struct px_window window;
    size_t len;
    int r = px_read_whole(fd, (uint64_t)st->st_size, SEARCH_FILE_MAX, &data, &len);
    if (r == -ENOMEM)
        return r;
    g->bytes -= len < g->bytes ? len : g->bytes;
    if (r < 0 || memchr(data, '\0', len < BINARY_LOOK ? len : BINARY_LOOK) ||
        px_files_window_find(data, len, 0, 0, &window) < 0) {
        g->out.files_skipped++;
        return 0;
    }
    g->out.files_searched++;
    if (g->query->ignore_case) {
        copy = malloc(len + 1);
        if (!copy)
            return -ENOMEM;
        memcpy(copy, data, len + 1);
        lower(copy, len);
    }
    return search_data(w, root, rel, st, data, copy ? copy : data, len);
}

/* Opened again by the door for reading: what the walk saw may be something else by now. */
static int search_one(struct px_walk *w, const struct px_root *root, const char *rel, const struct stat *st)
{
    struct gather *g = w->user;
    struct stat now;
    if (g->bytes == 0) {
        w->truncated = "too many bytes to search";
        return 1;
    }
    if (!S_ISREG(st->st_mode))
        return 0;
    px_auto_fd int fd = -EACCES;
    px_auto_free char *path = join(root, rel);
    struct px_place place;
    if (!path)
        return -ENOMEM;
    fd = px_files_resolve_open(w->files, path, &place, &now, NULL);
    if (fd < 0 || now.st_size > SEARCH_FILE_MAX) {
        g->out.files_skipped++;
        return 0;
    }
    return search_open(w, fd, root, rel, &now);
}

int px_files_search(const struct px_files *files, const struct px_files_query *query,
                    struct px_files_entries *ret_entries, struct px_err *e)
{
    PX_ERR(e);
    size_t len = query->text ? strlen(query->text) : 0;
    struct gather g = {.query = query, .bytes = SEARCH_BYTES, .needle_len = len};
    if (len == 0 || len > TEXT_LENGTH_MAX || strchr(query->text, '\n')) {
        (void)px_fail(e, PX_E_PATTERN, 0, "Cannot search: the text must be a part of one line, at most %d bytes.",
                      TEXT_LENGTH_MAX);
        return px_fix(e, "Search for a word or a phrase of the line");
    }
    px_auto_free char *needle = strdup(query->text);
    if (!needle)
        return px_files_error_memory(e);
    if (query->ignore_case)
        lower(needle, len);
    g.needle = needle;
    return run_with(files, &g, ret_entries, e, search_one);
}
