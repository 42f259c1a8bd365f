/* Reading the two trees. Directories wait in a list by their paths, so that depth costs neither stack nor descriptors;
 * each is opened from the top again, where no link is followed on the way. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "work/changes.h"

enum { CHUNK = 64 << 10, SHOWN = S_IFMT | 01777 };

struct walk {
    struct px_changes *out;
    char **todo; /* directories: of the upper tree with a leading '+', of the lower one that are gone with '-' */
    size_t todo_count, todo_room;
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

static void add(struct walk *w, const char *dir, const char *name, struct px_changes_item item)
{
    struct px_changes *c = w->out;
    struct px_changes_item *more = c->count < PX_CHANGES_MAX && c->bytes < PX_CHANGES_BYTES_MAX
                                       ? grown(c->items, c->count, &c->room, sizeof *more)
                                       : NULL;
    bool directory = S_ISDIR(item.after ? item.after : item.before);
    item.path = more ? join("", dir, name, directory ? "/" : "") : NULL;
    c->items = more ? more : c->items;
    if (!item.path) {
        failed(w, -E2BIG);
        return;
    }
    c->bytes += strlen(item.path);
    c->items[c->count++] = item;
}

/* ---- opening and reading ---- */

int px_changes_open(int dir, const char *path, bool ours)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW;
    const char *name = *path ? path : ".";
    int fd = px_open_in_root(dir, name, flags, 0);
    if (fd != -EACCES || !ours)
        return fd;
    char link[32];
    px_auto_fd int held = px_open_in_root(dir, name, O_PATH | O_NOFOLLOW, 0);
    if (held < 0 || px_fmt(link, sizeof link, "/proc/self/fd/%d", held) < 0 || chmod(link, 0700) < 0)
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

int px_changes_load(int dir, const char *path, unsigned mode, bool ours, char **ret_data, size_t *ret_len)
{
    struct stat st;
    if (S_ISLNK(mode))
        return load_link(dir, path, ret_data, ret_len);
    px_auto_fd int fd = px_changes_open(dir, path, ours);
    if (fd < 0)
        return fd;
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

/* 1 if the bytes of two regular files are the same, 0, or -errno. */
static int same_bytes(int a, int b)
{
    px_auto_free char *room = malloc((size_t)2 * CHUNK);
    if (!room)
        return -ENOMEM;
    for (off_t at = 0;; at += CHUNK) {
        ssize_t n = pread(a, room, CHUNK, at), m = pread(b, room + CHUNK, CHUNK, at);
        if (n < 0 || m < 0)
            return -errno;
        if (n != m || memcmp(room, room + CHUNK, (size_t)n) != 0)
            return 0;
        if (n < CHUNK)
            return 1;
    }
}

static int same_file(struct walk *w, const char *path, const struct stat *upper, const struct stat *lower)
{
    if (S_ISLNK(upper->st_mode)) {
        px_auto_free char *a = NULL, *b = NULL;
        size_t n = 0, m = 0;
        int r = load_link(w->out->upper, path, &a, &n);
        if (r >= 0)
            r = load_link(w->out->lower, path, &b, &m);
        return r < 0 ? r : n == m && memcmp(a, b, n) == 0;
    }
    if (upper->st_size != lower->st_size)
        return 0;
    px_auto_fd int a = px_changes_open(w->out->upper, path, true);
    px_auto_fd int b = px_changes_open(w->out->lower, path, false);
    return a < 0 ? a : b < 0 ? b : same_bytes(a, b);
}

/* ---- entries ---- */

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

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

static void compare_files(struct walk *w, const char *dir, const char *name, const struct stat *upper,
                          const struct stat *lower)
{
    bool typed = (upper->st_mode & S_IFMT) == (lower->st_mode & S_IFMT);
    px_auto_free char *path = join("", dir, name, "");
    int same = !path ? -E2BIG : typed ? same_file(w, path, upper, lower) : 0;
    if (same < 0)
        failed(w, same);
    bool mode = S_ISREG(upper->st_mode) && (upper->st_mode & SHOWN) != (lower->st_mode & SHOWN);
    if (same > 0 && !mode)
        return; /* touched, and left as it was */
    add(w, dir, name,
        (struct px_changes_item){.kind = same > 0 ? PX_CHANGE_MODE : PX_CHANGE_MODIFIED,
                                 .listed = true,
                                 .before = lower->st_mode,
                                 .after = upper->st_mode});
}

static void visit(struct walk *w, const char *dir, const char *name, const struct stat *upper, const struct stat *lower)
{
    bool was_directory = lower && S_ISDIR(lower->st_mode);
    if (is_whiteout(upper)) {
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
static void read_gone(struct walk *w, const char *dir, int upper)
{
    int err = 0;
    DIR *list = open_list(w->out->lower, dir, false, &err);
    if (!list) {
        if (err != -ENOENT && err != -ENOTDIR && err != -ELOOP)
            failed(w, err);
        return;
    }
    for (struct dirent *entry; w->err == 0 && (entry = next_entry(list));) {
        struct stat st, there;
        if (fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (upper < 0 || fstatat(upper, entry->d_name, &there, AT_SYMLINK_NOFOLLOW) < 0))
            gone(w, dir, entry->d_name, &st);
    }
    (void)closedir(list);
}

static bool is_opaque(int fd)
{
    char value = 0;
    return fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

static void read_upper(struct walk *w, const char *dir)
{
    int err = 0;
    DIR *list = open_list(w->out->upper, dir, true, &err);
    if (!list) {
        failed(w, err);
        return;
    }
    px_auto_fd int lower = px_open_in_root(w->out->lower, *dir ? dir : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (is_opaque(dirfd(list)))
        read_gone(w, dir, dirfd(list));
    for (struct dirent *entry; w->err == 0 && (entry = next_entry(list));) {
        struct stat st, below;
        if (fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        bool known = lower >= 0 && fstatat(lower, entry->d_name, &below, AT_SYMLINK_NOFOLLOW) == 0;
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
static void list_empty(struct px_changes *c)
{
    for (size_t i = 0; i < c->count; i++)
        c->items[i].listed =
            c->items[i].listed || i + 1 == c->count || !px_starts_with(c->items[i + 1].path, c->items[i].path);
}

int px_changes_read(int upper, int lower, struct px_changes *ret_changes)
{
    struct px_changes changes = {.upper = upper, .lower = lower};
    struct walk w = {.out = &changes};
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
    if (changes.count)
        qsort(changes.items, changes.count, sizeof *changes.items, compare_paths);
    list_empty(&changes);
    *ret_changes = changes;
    return 0;
}

void px_changes_done(struct px_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        free(changes->items[i].path);
    free(changes->items);
    *changes = (struct px_changes){0};
}
