/* Reading the two trees. Directories wait in a list by their paths, so that depth costs neither stack nor descriptors;
 * each is opened from the top again, where no link is followed on the way. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "changes/changes.h"
#include "kernel/copy.h"

enum { SHOWN = S_IFMT | 01777 };

struct walk {
    struct px_changes *out;
    char **todo; /* directories: of the upper tree with a leading '+', of the lower one that are gone with '-' */
    size_t todo_count, todo_room;
    const struct timespec *whole;
    int err;
};

/* ---- lists ---- */

static void *grown(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t more = *room ? 2 * *room : 64;
    void *bigger = realloc(items, more * size);
    if (bigger)
        *room = more;
    return bigger;
}

static char *join(const char *mark, const char *dir, const char *name, const char *end)
{
    size_t length = strlen(mark) + strlen(dir) + strlen(name) + strlen(end);
    px_auto_buf struct px_buf path = PX_BUF(length + 1);
    px_buf_printf(&path, "%s%s%s%s", mark, dir, name, end);
    return length < PATH_MAX ? px_buf_take(&path) : NULL;
}

static void failed(struct walk *w, int err)
{
    w->err = w->err < 0 ? w->err : err;
}

static void remember(struct walk *w, const char *mark, const char *dir, const char *name)
{
    char **more = w->todo_count < PX_CHANGES_MAX ? grown(w->todo, w->todo_count, &w->todo_room, sizeof *more) : NULL;
    char *path = more ? join(mark, dir, name, "/") : NULL;
    w->todo = more ? more : w->todo;
    if (path)
        w->todo[w->todo_count++] = path;
    else
        failed(w, -E2BIG);
}

int px_changes_add(struct px_changes *c, const char *path, struct px_changes_item item)
{
    struct px_changes_item *more = c->count < PX_CHANGES_MAX && c->bytes < PX_CHANGES_BYTES_MAX
                                       ? grown(c->items, c->count, &c->room, sizeof *more)
                                       : NULL;
    c->items = more ? more : c->items;
    item.path = more ? strdup(path) : NULL;
    if (!item.path)
        return -E2BIG;
    c->bytes += strlen(item.path);
    c->items[c->count++] = item;
    return 0;
}

static void add(struct walk *w, const char *dir, const char *name, struct px_changes_item item)
{
    bool directory = S_ISDIR(item.after ? item.after : item.before);
    px_auto_free char *path = join("", dir, name, directory ? "/" : "");
    int r = path ? px_changes_add(w->out, path, item) : -E2BIG;
    if (r < 0)
        failed(w, r);
}

/* ---- opening and reading ---- */

int px_changes_open(int dir, const char *path, bool ours)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW;
    const char *name = *path ? path : ".";
    int fd = px_open_in_root(dir, name, flags, 0);
    if (fd != -EACCES || !ours)
        return fd;
    px_auto_fd int held = px_open_in_root(dir, name, O_PATH | O_NOFOLLOW, 0);
    if (held < 0 || px_node_chmod(held, 0700) < 0)
        return -EACCES;
    return px_open_in_root(dir, name, flags, 0);
}

static int load_link(int dir, const char *path, char **ret_data, size_t *ret_len)
{
    px_auto_free char *data = malloc(PATH_MAX + 1);
    px_auto_fd int held = px_open_in_root(dir, path, O_PATH | O_NOFOLLOW, 0);
    ssize_t n = !data ? -ENOMEM : held < 0 ? held : (ssize_t)px_sys(SYS_readlinkat, held, "", data, PATH_MAX);
    if (n < 0)
        return (int)n;
    data[n] = '\0';
    *ret_len = (size_t)n;
    *ret_data = data;
    data = NULL;
    return 0;
}

static int load_file(int fd, char **ret_data, size_t *ret_len)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -ESTALE;
    size_t size = (size_t)st.st_size, at = 0;
    if (size > PX_DIFF_BYTES_MAX) {
        *ret_len = size;
        return 0;
    }
    px_auto_free char *data = malloc(size + 1);
    if (!data)
        return -ENOMEM;
    for (ssize_t n; at < size; at += (size_t)n) {
        n = px_read_some(fd, data + at, size - at);
        if (n <= 0)
            return n < 0 ? (int)n : -ESTALE;
    }
    data[at] = '\0';
    *ret_len = at;
    *ret_data = data;
    data = NULL;
    return 0;
}

int px_changes_load(int dir, const char *path, unsigned mode, bool ours, char **ret_data, size_t *ret_len)
{
    if (S_ISLNK(mode))
        return load_link(dir, path, ret_data, ret_len);
    px_auto_fd int fd = px_changes_open(dir, path, ours);
    return fd < 0 ? fd : load_file(fd, ret_data, ret_len);
}

int px_changes_holder(const struct px_layers *layers, const char *path)
{
    struct px_layers_at at;
    if (layers->count == 1)
        return layers->fds[0];
    int r = px_layers_find(layers, path, &at);
    return r < 0 ? r : layers->fds[at.layer];
}

int px_changes_load_from(const struct px_layers *layers, const char *path, unsigned mode, bool ours, char **ret_data,
                         size_t *ret_len)
{
    int dir = px_changes_holder(layers, path);
    return dir < 0 ? dir : px_changes_load(dir, path, mode, ours, ret_data, ret_len);
}

/* A copy has the time of its original, and the kernel's own stamp says when it was touched last; the clock of stamps is a
 * coarse one, so that the last moments of the copying do not count. */
static bool is_untouched(const struct walk *w, const struct stat *upper, const struct stat *lower)
{
    enum { COARSE_NSEC = 20000000 };
    const struct timespec *t = &upper->st_ctim;
    int64_t nsec = (int64_t)(w->whole->tv_sec - t->tv_sec) * 1000000000 + (w->whole->tv_nsec - t->tv_nsec);
    return S_ISREG(upper->st_mode) && upper->st_size == lower->st_size && w->whole->tv_sec - t->tv_sec < INT32_MAX && nsec > COARSE_NSEC &&
           upper->st_mtim.tv_sec == lower->st_mtim.tv_sec && upper->st_mtim.tv_nsec == lower->st_mtim.tv_nsec;
}

static int same_links(const struct px_layers *a, const struct px_layers *b, const char *path)
{
    px_auto_free char *one = NULL, *other = NULL;
    size_t n = 0, m = 0;
    int r = px_changes_load_from(a, path, S_IFLNK, false, &one, &n);
    if (r >= 0)
        r = px_changes_load_from(b, path, S_IFLNK, false, &other, &m);
    return r < 0 ? r : n == m && memcmp(one, other, n) == 0;
}

int px_changes_same(const struct px_layers *a, const struct px_layers *b, const char *path, const struct stat *st_a,
                    const struct stat *st_b)
{
    if ((st_a->st_mode & S_IFMT) != (st_b->st_mode & S_IFMT))
        return 0;
    if (S_ISLNK(st_a->st_mode))
        return same_links(a, b, path);
    if (!S_ISREG(st_a->st_mode))
        return 1;
    if (st_a->st_size != st_b->st_size)
        return 0;
    if (st_a->st_dev == st_b->st_dev && st_a->st_ino == st_b->st_ino)
        return 1;
    px_auto_fd int one = px_changes_open(px_changes_holder(a, path), path, true);
    px_auto_fd int other = px_changes_open(px_changes_holder(b, path), path, false);
    return one < 0 ? one : other < 0 ? other : px_copy_same(one, other);
}

/* ---- entries ---- */

static bool is_plain(unsigned mode)
{
    return S_ISREG(mode) || S_ISLNK(mode);
}

/* Everything that a path of the lower tree was, is gone. */
static void gone(struct walk *w, const char *dir, const char *name, const struct stat *lower)
{
    if (S_ISDIR(lower->st_mode))
        remember(w, "-", dir, name);
    add(w, dir, name,
        (struct px_changes_item){
            .kind = PX_CHANGE_DELETED, .listed = !S_ISDIR(lower->st_mode), .before = lower->st_mode});
}

static void weigh(struct px_changes_item *item, const struct stat *st)
{
    enum { BLOCK = 512 }; /* the unit of st_blocks, whatever the file system's is */
    if (!S_ISREG(st->st_mode))
        return;
    item->size = (uint64_t)st->st_size;
    item->blocks = (uint64_t)st->st_blocks * BLOCK;
}

static void compare_files(struct walk *w, const char *dir, const char *name, const struct stat *upper,
                          const struct stat *lower)
{
    bool typed = (upper->st_mode & S_IFMT) == (lower->st_mode & S_IFMT);
    px_auto_free char *path = join("", dir, name, "");
    int same = !path                                            ? -E2BIG
               : w->whole && typed && is_untouched(w, upper, lower) ? 1
                                                                : px_changes_same(&w->out->upper, &w->out->lower, path, upper, lower);
    if (same < 0)
        failed(w, same);
    bool mode = S_ISREG(upper->st_mode) && (upper->st_mode & SHOWN) != (lower->st_mode & SHOWN);
    if (same > 0 && !mode)
        return; /* touched, and left as it was */
    struct px_changes_item item = {.kind = same > 0 ? PX_CHANGE_MODE : PX_CHANGE_MODIFIED,
                                   .listed = true,
                                   .before = lower->st_mode,
                                   .after = upper->st_mode};
    if (same <= 0)
        weigh(&item, upper);
    add(w, dir, name, item);
}

static void visit(struct walk *w, const char *dir, const char *name, const struct stat *upper, const struct stat *lower)
{
    bool was_directory = lower && S_ISDIR(lower->st_mode);
    if (px_layers_is_whiteout(upper)) {
        if (lower)
            gone(w, dir, name, lower);
        return;
    }
    struct px_changes_item item = {.kind = PX_CHANGE_ADDED, .listed = true, .after = upper->st_mode};
    if (S_ISDIR(upper->st_mode)) {
        if (lower && !was_directory)
            gone(w, dir, name, lower);
        item.before = was_directory ? lower->st_mode : 0;
        item.kind = was_directory ? PX_CHANGE_MODE : PX_CHANGE_ADDED;
        item.listed = was_directory;
        if (!was_directory || (lower->st_mode & SHOWN) != (upper->st_mode & SHOWN))
            add(w, dir, name, item);
        remember(w, "+", dir, name);
    } else if (!is_plain(upper->st_mode)) {
        item.kind = PX_CHANGE_SPECIAL;
        add(w, dir, name, item);
    } else if (lower && is_plain(lower->st_mode)) {
        compare_files(w, dir, name, upper, lower);
    } else {
        if (lower)
            gone(w, dir, name, lower);
        weigh(&item, upper);
        add(w, dir, name, item);
    }
}

/* ---- directories ---- */

static DIR *open_list(int dir, const char *path, bool ours, int *ret_err)
{
    int fd = px_changes_open(dir, path, ours);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        *ret_err = fd < 0 ? fd : -errno;
        (void)px_fd_close(fd);
    }
    return list;
}

static struct dirent *next_entry(DIR *list)
{
    struct dirent *entry;
    while ((entry = readdir(list)) && (px_equal(entry->d_name, ".") || px_equal(entry->d_name, "..")))
        ;
    return entry;
}

/* All of a directory of the lower tree that is gone, or (upper >= 0) what a new one of its name does not have. */
struct gone {
    struct walk *w;
    const char *dir;
    int upper;
};

static int see_gone(void *user, const char *name, const struct stat *st)
{
    const struct gone *g = user;
    struct stat there;
    if (g->upper < 0 || fstatat(g->upper, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
        gone(g->w, g->dir, name, st);
    return g->w->err;
}

static void read_gone(struct walk *w, const char *dir, int upper)
{
    int r = px_layers_list(&w->out->lower, dir, see_gone, &(struct gone){w, dir, upper});
    if (r < 0 && r != -ENOENT)
        failed(w, r);
}

/* What lies below a name of `dir`; a single directory is opened once for all its names. */
static bool find_below(struct walk *w, int single, const char *dir, const char *name, struct stat *ret_st)
{
    if (w->out->lower.count == 1)
        return single >= 0 && fstatat(single, name, ret_st, AT_SYMLINK_NOFOLLOW) == 0;
    struct px_layers_at at;
    px_auto_free char *path = join("", dir, name, "");
    int r = path ? px_layers_find(&w->out->lower, path, &at) : -E2BIG;
    if (r < 0 && r != -ENOENT)
        failed(w, r);
    if (r >= 0)
        *ret_st = at.st;
    return r >= 0;
}

static void read_upper(struct walk *w, const char *dir)
{
    int err = 0;
    DIR *list = open_list(w->out->upper.fds[0], dir, true, &err);
    if (!list) {
        failed(w, err);
        return;
    }
    px_auto_fd int lower = px_open_in_root(w->out->lower.fds[0], *dir ? dir : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (w->whole || px_layers_is_opaque(dirfd(list)))
        read_gone(w, dir, dirfd(list));
    for (struct dirent *entry; w->err == 0 && (entry = next_entry(list));) {
        struct stat st, below;
        if (fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        bool known = find_below(w, lower, dir, entry->d_name, &below);
        visit(w, dir, entry->d_name, &st, known ? &below : NULL);
    }
    (void)closedir(list);
}

static int compare_paths(const void *a, const void *b)
{
    const struct px_changes_item *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (int)(x->kind == PX_CHANGE_DELETED) - (int)(y->kind == PX_CHANGE_DELETED);
}

/* A directory that came or went is worth telling only if nothing in it is. */
void px_changes_sort(struct px_changes *c)
{
    if (c->count)
        qsort(c->items, c->count, sizeof *c->items, compare_paths);
    for (size_t i = 0; i < c->count; i++)
        c->items[i].listed =
            c->items[i].listed || i + 1 == c->count || !px_starts_with(c->items[i + 1].path, c->items[i].path);
}

int px_changes_compare(int upper, const struct px_layers *lower, const struct timespec *whole, struct px_changes *ret_changes)
{
    struct px_changes changes = {.upper = {.fds = {upper}, .count = 1}, .lower = *lower};
    struct walk w = {.out = &changes, .whole = whole};
    read_upper(&w, "");
    while (w.todo_count > 0) {
        px_auto_free char *path = w.todo[--w.todo_count];
        if (w.err < 0)
            continue;
        if (*path == '-')
            read_gone(&w, path + 1, -EBADF);
        else
            read_upper(&w, path + 1);
    }
    free(w.todo);
    if (w.err < 0) {
        px_changes_done(&changes);
        return w.err;
    }
    px_changes_sort(&changes);
    *ret_changes = changes;
    return 0;
}

int px_changes_read(int upper, int lower, struct px_changes *ret_changes)
{
    const struct px_layers one = {.fds = {lower}, .count = 1};
    return px_changes_compare(upper, &one, NULL, ret_changes);
}

void px_changes_done(struct px_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        free(changes->items[i].path);
    free(changes->items);
    *changes = (struct px_changes){0};
}
