#include "files/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

struct todo {
    struct todo *next;
    uint64_t set;               /* where the pattern is */
    char rel[];
};

struct name {
    unsigned char type;         /* DT_UNKNOWN and so on */
    char text[];
};

struct names {
    struct name **items;
    size_t count, cap;
};

struct tree {
    struct px_walk *w;
    const struct px_root *root;
    size_t base_len;            /* of the path that patterns are relative to, in rel */
    bool shadowed;              /* another root lies inside this one, by name */
    struct todo *todo;
};

/* ---- the names of one directory ---- */

static void names_done(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
}

static int names_add(struct names *n, const struct dirent *entry)
{
    size_t len = strlen(entry->d_name) + 1;
    if (n->count == n->cap) {
        size_t cap = n->cap ? n->cap * 2 : 64;
        struct name **more = realloc(n->items, cap * sizeof *more);
        if (!more)
            return -ENOMEM;
        n->items = more;
        n->cap = cap;
    }
    struct name *name = malloc(sizeof *name + len);
    if (!name)
        return -ENOMEM;
    name->type = entry->d_type;
    memcpy(name->text, entry->d_name, len);
    n->items[n->count++] = name;
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp((*(struct name *const *)a)->text, (*(struct name *const *)b)->text);
}

/* Sorted, so that what a cut leaves over is the same every time. */
static int read_names(struct px_walk *w, DIR *dir, struct names *out)
{
    struct dirent *entry;
    int r = 0;
    while (r >= 0 && (entry = readdir(dir))) {
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, ".."))
            continue;
        if (w->entries == 0) {
            w->truncated = "too many entries";
            break;
        }
        w->entries--;
        r = names_add(out, entry);
    }
    if (r >= 0 && out->count)
        qsort(out->items, out->count, sizeof *out->items, by_bytes);
    return r;
}

/* ---- entries ---- */

static int push(struct tree *t, const char *rel, uint64_t set)
{
    size_t n = strlen(rel) + 1;
    struct todo *item = malloc(sizeof *item + n);
    if (!item)
        return -ENOMEM;
    memcpy(item->rel, rel, n);
    item->set = set;
    item->next = t->todo;
    t->todo = item;
    return 0;
}

static bool is_excluded(struct tree *t, const char *rel)
{
    const char *path = rel + t->base_len;
    path += *path == '/';
    for (size_t i = 0; i < t->w->exclude_count; i++)
        if (px_glob_match(&t->w->exclude[i], path, &t->w->fuel))
            return true;
    return false;
}

/* A name that belongs to another root leads there, whatever lies here. */
static bool is_shadowed(const struct tree *t, const char *rel)
{
    char full[PATH_MAX];
    if (!t->shadowed)
        return false;
    int n = px_fmt(full, sizeof full, "%s/%s", t->root->name, rel);
    return n < 0 || px_roots_match(t->w->files, full, strlen(full)) != t->root;
}

/* A link counts if it leads to a file inside, as it would for a read: then st is the file's. */
static bool follow(const struct tree *t, const char *rel, struct stat *st)
{
    struct px_place place;
    char full[PATH_MAX];
    if (px_fmt(full, sizeof full, "%s/%s", t->root->name, rel) < 0 || px_files_resolve_place(t->w->files, full, 0, &place) < 0)
        return false;
    px_auto_fd int fd = px_open_in_root(place.root->fd, px_files_resolve_rel(&place), O_PATH, 0);
    return fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode);
}

/* What the directory itself says of an entry is often all that is needed. */
static int look_at(const struct px_walk *w, int dir, const struct name *name, struct stat *st)
{
    if (name->type == DT_UNKNOWN || !(w->kinds_only || (name->type == DT_DIR && !w->directories)))
        return fstatat(dir, name->text, st, AT_SYMLINK_NOFOLLOW);
    *st = (struct stat){.st_mode = DTTOIF(name->type)};
    return 0;
}

static bool is_meant(const struct tree *t, const char *rel, struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return t->w->directories;
    return !t->w->glob.directories && (S_ISREG(st->st_mode) || (S_ISLNK(st->st_mode) && follow(t, rel, st)));
}

static int visit(struct tree *t, int dir, const char *rel, const struct name *name, uint64_t set)
{
    struct px_walk *w = t->w;
    struct stat st;
    uint64_t next = px_glob_step(&w->glob, set, name->text, &w->fuel);
    if (!next || is_shadowed(t, rel) || is_excluded(t, rel) || look_at(w, dir, name, &st) < 0)
        return 0;               /* not asked for, gone meanwhile, or not ours to look at */
    bool wanted = px_glob_accepts(&w->glob, next);
    int r = 0;
    if (wanted && is_meant(t, rel, &st))
        r = w->visit(w, t->root, rel, &st);
    if (r == 0 && S_ISDIR(st.st_mode) && px_glob_goes_on(&w->glob, next))
        r = push(t, rel, next);
    return r;
}

static int visit_all(struct tree *t, int dir, const char *rel, const struct names *names, uint64_t set)
{
    char below[PATH_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && i < names->count; i++) {
        if (t->w->fuel == 0) {
            t->w->truncated = "the pattern takes too long";
            return 1;
        }
        if (px_fmt(below, sizeof below, rel[0] ? "%s/%s" : "%s%s", rel, names->items[i]->text) < 0)
            t->w->truncated = "too deep";
        else
            r = visit(t, dir, below, names->items[i], set);
    }
    return r;
}

/* Opened from the root each time, without links: a directory that was swapped for one meanwhile is not entered. */
static int walk_directory(struct tree *t, const char *rel, uint64_t set)
{
    struct names names = {0};
    int fd = px_open_in_root(t->root->fd, rel[0] ? rel : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        (void)px_fd_close(fd);
        if (fd == -EACCES || fd == -EMFILE || fd == -ENFILE)    /* others: it is gone, or is something else by now */
            t->w->truncated = "a directory cannot be read";
        return fd < 0 ? 0 : -ENOMEM;
    }
    int r = read_names(t->w, dir, &names);
    if (r >= 0)
        r = visit_all(t, dirfd(dir), rel, &names, set);
    (void)closedir(dir);
    names_done(&names);
    return r < 0 ? r : t->w->truncated && t->w->entries == 0 ? 1 : r;
}

/* New directories are put on top in order, so the last comes first; the results are sorted in the end. */
static int walk_tree(struct tree *t, const char *rel, uint64_t set)
{
    int r = push(t, rel, set);
    while (t->todo) {
        struct todo *item = t->todo;
        t->todo = item->next;
        if (r == 0)
            r = walk_directory(t, item->rel, item->set);
        free(item);
    }
    return r;
}

/* ---- where it begins ---- */

static bool has_root_inside(const struct px_files *f, const struct px_root *root)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->roots[i].name_len > root->name_len && memcmp(f->roots[i].name, root->name, root->name_len) == 0 &&
            f->roots[i].name[root->name_len] == '/')
            return true;
    return false;
}

static int walk_root(struct px_walk *w, const struct px_root *root, const char *rel, uint64_t set)
{
    struct tree t = {.w = w, .root = root, .base_len = strlen(rel), .shadowed = has_root_inside(w->files, root)};
    return walk_tree(&t, rel, set);
}

static bool is_inside(const struct px_root *root, const char *path, size_t len)
{
    return len == 0 || (root->name_len > len && memcmp(root->name, path, len) == 0 && root->name[len] == '/');
}

/* Where the pattern is once it has met the parts of a root's name behind the path. */
static uint64_t step_through(struct px_walk *w, const char *name)
{
    char part[NAME_MAX + 1];
    uint64_t set = px_glob_start(&w->glob);
    while (*name && set) {
        size_t n = strcspn(name, "/");
        if (n > NAME_MAX)
            return 0;
        memcpy(part, name, n);
        part[n] = '\0';
        set = px_glob_step(&w->glob, set, part, &w->fuel);
        name += n + (name[n] == '/');
    }
    return set;
}

/* The roots whose names lie below a path; all of them if it is "", and then the pattern begins anew in each. */
static int walk_inside(struct px_walk *w, const char *path, size_t *ret_found)
{
    size_t len = strlen(path);
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->files->count; i++) {
        const struct px_root *root = &w->files->roots[i];
        if (!is_inside(root, path, len))
            continue;
        ++*ret_found;
        uint64_t set = len ? step_through(w, root->name + len + 1) : px_glob_start(&w->glob);
        r = set ? walk_root(w, root, "", set) : 0;
    }
    return r;
}

static int walk_place(struct px_walk *w, const struct px_place *place)
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(place->root->fd, px_files_resolve_rel(place), O_PATH, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? fd : -errno;
    return S_ISDIR(st.st_mode) ? walk_root(w, place->root, place->rel, px_glob_start(&w->glob)) : -ENOTDIR;
}

static int walk_path(struct px_walk *w, const char *path, struct px_err *e)
{
    char normal[PATH_MAX], text[PX_WORDS_SHORT];
    struct px_place place;
    size_t found = 0;
    if (!path || strcmp(path, ".") == 0 || strcmp(path, "/") == 0 || path[0] == '\0')
        return walk_inside(w, "", &found);
    int r = px_files_resolve_place(w->files, path, 0, &place);
    if (r >= 0)
        r = walk_place(w, &place);
    if (r == 0 || r == -EXDEV) {        /* a path that is only the beginning of roots' names has those in it */
        int inside = px_files_resolve_normal(w->files, path, normal) == 0 ? walk_inside(w, normal, &found) : 0;
        r = r == 0 || found ? inside : r;
    }
    if (r == -ENOTDIR)
        return px_fail(e, PX_E_NOT_FILE, 0, "Not a directory: %s",
                       px_files_error_short(path, strlen(path), PX_WORDS_SHORT, text));
    return r < 0 ? px_files_error_sys(w->files, "list", path, r, e) : r;
}

/* ---- the query ---- */

static int bad_pattern(const char *pattern, int r, struct px_err *e)
{
    char text[PX_WORDS_SHORT];
    (void)px_fail(e, PX_E_PATTERN, 0, "Cannot use pattern '%s': %s.",
                  px_files_error_short(pattern, strlen(pattern), PX_WORDS_SHORT, text),
                  r == -E2BIG ? "it is too long" : "it must be relative and stay inside");
    return px_fix(e, "Patterns are relative, such as *.md or **/*.md, without '..' and without a leading '/' or '~'");
}

static int read_patterns(struct px_walk *w, const struct px_files_query *query, struct px_err *e)
{
    const char *pattern = query->pattern ? query->pattern : "**/*";
    int r = px_glob_init(&w->glob, pattern);
    if (r < 0)
        return bad_pattern(pattern, r, e);
    w->exclude_count = 0;
    for (; query->exclude && query->exclude[w->exclude_count]; w->exclude_count++) {
        if (w->exclude_count == PX_FILES_EXCLUDE_MAX)
            return px_fail(e, PX_E_PATTERN, 0, "There are more than %d patterns to exclude.", PX_FILES_EXCLUDE_MAX);
        pattern = query->exclude[w->exclude_count];
        r = px_glob_init(&w->exclude[w->exclude_count], pattern);
        if (r < 0)
            return bad_pattern(pattern, r, e);
    }
    return 0;
}

int px_walk_run(struct px_walk *w, const struct px_files *f, const struct px_files_query *query, struct px_err *e)
{
    w->files = f;
    w->entries = PX_WALK_ENTRIES;
    w->fuel = PX_WALK_FUEL;
    w->truncated = NULL;
    if (read_patterns(w, query, e) < 0)
        return -1;
    w->directories = w->directories || w->glob.directories;
    struct px_err inner = {0};
    int r = walk_path(w, query->path, &inner);
    if (r < 0 && inner.code == 0)
        return px_files_error_memory(e);
    if (r < 0 && e)
        *e = inner;
    return r < 0 ? -1 : 0;
}
