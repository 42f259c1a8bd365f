/* Writes a directory in normal form, as bytes to hash. Every entry is opened by its path from the top without following
 * links, so two descriptors suffice at any depth. A directory's own line comes before what is in it, but "a-b" comes
 * between "a" and "a/b"; so each directory is sorted in twice, as "a" and as "a/"; its contents are listed at the
 * second. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "store/store_internal.h"

enum { NAMES_MAX = 4 << 20, LINE_MAX_BYTES = 64 << 10 };

/* One directory: its names in order. */
struct level {
    struct level *up;
    char **names;               /* a trailing '/' means: list its contents now */
    size_t count, room, at;
    size_t path_len;            /* of the path up to and with this directory's '/' */
};

/* The first name of a file that has several. */
struct first {
    dev_t dev;
    ino_t ino;
    char *path;
};

struct walk {
    int top;
    bool settle;
    struct level *level;
    char path[PATH_MAX];
    size_t names;
    struct first *firsts;       /* open addressing; room is a power of two */
    size_t first_count, first_room;
    struct px_hash hash;
    struct px_buf line, *out, *paths;
    bool any;
    struct px_listing listing;
    struct px_err *e;
};

static int failed(struct walk *w, int err, const char *what)
{
    px_auto_buf struct px_buf quoted = PX_BUF(4 * PATH_MAX);

    (void)px_buf_quote(&quoted, w->path, strlen(w->path));
    return px_fail(w->e, err == -ENOMEM ? PX_E_MEMORY : PX_E_OBJECT, err, "cannot %s '%.400s' of a tree", what,
                   px_buf_text(&quoted));
}

/* ---- names of a directory ---- */

static void pop(struct walk *w)
{
    struct level *level = w->level;

    for (size_t i = 0; i < level->count; i++)
        free(level->names[i]);
    w->names -= level->count;
    w->level = level->up;
    free(level->names);
    free(level);
}

static int add_name(struct walk *w, const char *name, bool contents)
{
    struct level *level = w->level;
    size_t len = strlen(name);

    if (w->names >= NAMES_MAX)
        return -E2BIG;
    if (level->count == level->room) {
        size_t room = level->room ? level->room * 2 : 16;
        char **names = realloc(level->names, room * sizeof *names);
        if (!names)
            return -ENOMEM;
        level->names = names;
        level->room = room;
    }
    char *copy = malloc(len + 2);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, name, len);
    memcpy(copy + len, contents ? "/" : "", contents ? 2 : 1);
    level->names[level->count++] = copy;
    w->names++;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

static int read_names(struct walk *w, DIR *dir)
{
    struct dirent *entry;
    int r = 0;

    while (r == 0 && (errno = 0, entry = readdir(dir))) {
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, ".."))
            continue;
        struct stat st;
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        r = add_name(w, entry->d_name, false);
        if (r == 0 && S_ISDIR(st.st_mode))
            r = add_name(w, entry->d_name, true);
    }
    return r < 0 ? r : -errno;
}

/* w->path is the directory, "" or with its '/'. */
static int push(struct walk *w)
{
    struct level *level = calloc(1, sizeof *level);

    if (!level)
        return failed(w, -ENOMEM, "read");
    level->up = w->level;
    level->path_len = strlen(w->path);
    w->level = level;
    int fd = px_open_in_root(w->top, level->path_len ? w->path : ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        (void)px_fd_close(fd);
        return failed(w, fd < 0 ? fd : -ENOMEM, "read");
    }
    int r = read_names(w, dir);
    (void)closedir(dir);
    if (r < 0)
        return failed(w, r, "read");
    if (level->count)
        qsort(level->names, level->count, sizeof *level->names, compare_names);
    return 0;
}

/* ---- files with several names ---- */

static struct first *find_first(struct walk *w, const struct stat *st)
{
    size_t at = (size_t)(st->st_ino * 0x9e3779b97f4a7c15u >> 20) & (w->first_room - 1);

    while (w->firsts[at].path && (w->firsts[at].ino != st->st_ino || w->firsts[at].dev != st->st_dev))
        at = (at + 1) & (w->first_room - 1);
    return &w->firsts[at];
}

static int grow_firsts(struct walk *w)
{
    size_t old_room = w->first_room, room = old_room ? old_room * 2 : 256;
    struct first *old = w->firsts, *firsts = calloc(room, sizeof *firsts);

    if (!firsts)
        return -ENOMEM;
    w->firsts = firsts;
    w->first_room = room;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].path) {
            struct stat key = {.st_ino = old[i].ino, .st_dev = old[i].dev};
            *find_first(w, &key) = old[i];
        }
    free(old);
    return 0;
}

/* The path under which this inode was listed; NULL if this is the first, or after an error. */
static const char *seen_as(struct walk *w, const struct stat *st, int *ret_err)
{
    if (st->st_nlink < 2)
        return NULL;
    if (w->first_count * 2 >= w->first_room && grow_firsts(w) < 0) {
        *ret_err = -ENOMEM;
        return NULL;
    }
    struct first *slot = find_first(w, st);
    if (slot->path)
        return slot->path;
    slot->path = strdup(w->path);
    if (!slot->path)
        *ret_err = -ENOMEM;
    slot->ino = st->st_ino;
    slot->dev = st->st_dev;
    w->first_count += slot->path != NULL;
    return NULL;
}

/* ---- lines ---- */

static bool is_utf8(const char *text)
{
    size_t len = strlen(text), n = 1;

    for (size_t i = 0; i < len && n > 0; i += n)
        n = px_utf8_length(text + i, len - i);
    return n > 0;
}

/* JSON has no byte strings: a name that is not UTF-8 is written in hexadecimal in another member, so that different
 * trees give different listings. */
static void add_text(struct px_json *j, const char *name, const char *hex_name, const char *text)
{
    px_auto_buf struct px_buf hex = PX_BUF(2 * PATH_MAX + 1);

    if (is_utf8(text)) {
        px_json_text(j, name, text);
        return;
    }
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        (void)px_buf_printf(&hex, "%02x", *c);
    px_json_text(j, hex_name, px_buf_text(&hex));
}

static mode_t normal_mode(const struct stat *st)
{
    mode_t least = S_ISDIR(st->st_mode) ? 0700 : 0400;

    return S_ISLNK(st->st_mode) ? 0777 : (st->st_mode & 01777) | least;
}

struct entry {
    const char *type;           /* "file", "dir", "link", "hardlink" */
    const char *target;         /* or NULL */
    struct px_oid sha256;       /* "": none */
    uint64_t size;
};

/* Members in the order of their names, as canonical JSON has them. */
static int add_entry(struct walk *w, const struct stat *st, const struct entry *entry)
{
    struct px_json j = {.out = &w->line};

    w->line.len = 0;
    (void)px_buf_puts(&w->line, w->any ? "," : "");
    px_json_object(&j, NULL);
    px_json_int(&j, "gid", 0);
    px_json_uint(&j, "mode", normal_mode(st));
    add_text(&j, "path", "path_hex", w->path);
    if (entry->sha256.hex[0]) {
        px_json_text(&j, "sha256", entry->sha256.hex);
        px_json_uint(&j, "size", entry->size);
    }
    if (entry->target)
        add_text(&j, "target", "target_hex", entry->target);
    px_json_text(&j, "type", entry->type);
    px_json_int(&j, "uid", 0);
    px_json_end(&j);
    if (w->line.err < 0)
        return failed(w, w->line.err, "list");
    w->any = true;
    px_hash_add(&w->hash, w->line.data, w->line.len);
    if (w->out && px_buf_add(w->out, w->line.data, w->line.len) < 0)
        return failed(w, w->out->err, "list");
    w->listing.files++;
    return 0;
}

static int settle(struct walk *w, int fd, const struct stat *st)
{
    if (!w->settle || S_ISLNK(st->st_mode) || (st->st_mode & 07777) == normal_mode(st))
        return 0;
    return fchmod(fd, normal_mode(st)) < 0 ? failed(w, -errno, "change the mode of") : 0;
}

static int add_file(struct walk *w, const struct stat *st)
{
    struct entry entry = {.type = "file"};
    int r = 0;
    const char *first = seen_as(w, st, &r);

    if (r < 0)
        return failed(w, r, "list");
    if (first)
        return add_entry(w, st, &(struct entry){.type = "hardlink", .target = first});
    px_auto_fd int fd = px_open_in_root(w->top, w->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return failed(w, fd, "open");
    r = px_hash_fd(fd, UINT64_MAX - 1, &entry.sha256, &entry.size);
    if (r < 0)
        return failed(w, r, "read");
    w->listing.bytes += entry.size;
    return settle(w, fd, st) < 0 ? -1 : add_entry(w, st, &entry);
}

static int add_link(struct walk *w, int fd, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(fd, "", target, sizeof target - 1);

    if (n < 0 || (size_t)n >= sizeof target - 1)
        return failed(w, n < 0 ? -errno : -ENAMETOOLONG, "read the link");
    target[n] = '\0';
    int r = 0;
    const char *first = seen_as(w, st, &r);
    if (r < 0)
        return failed(w, r, "list");
    return add_entry(w, st,
                     first ? &(struct entry){.type = "hardlink", .target = first}
                           : &(struct entry){.type = "link", .target = target});
}

static int add_dir(struct walk *w, const struct stat *st)
{
    px_auto_fd int fd = !w->settle ? -EBADF : px_open_in_root(w->top, w->path, O_RDONLY | O_DIRECTORY, 0);

    if (w->settle && fd < 0)
        return failed(w, fd, "open");
    return settle(w, fd, st) < 0 ? -1 : add_entry(w, st, &(struct entry){.type = "dir"});
}

/* Adds the owner's permissions that normal form requires, where the owner could not open the entry. */
static int make_readable(struct walk *w, int fd, const struct stat *st)
{
    if (!w->settle || S_ISLNK(st->st_mode) || (st->st_mode & 0700) >= (S_ISDIR(st->st_mode) ? 0700u : 0400u))
        return 0;
    int r = px_node_chmod(fd, normal_mode(st));
    return r < 0 ? failed(w, r, "change the mode of") : 0;
}

static int visit(struct walk *w)
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(w->top, w->path, O_PATH | O_NOFOLLOW, 0);

    if (fd < 0 || fstat(fd, &st) < 0)
        return failed(w, fd < 0 ? fd : -errno, "look at");
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode)) {
        (void)failed(w, -EINVAL, "list");
        return px_why(w->e, "It is a device, fifo or socket; a tree has files, directories and links only.");
    }
    if (make_readable(w, fd, &st) < 0)
        return -1;
    if (w->paths && !S_ISLNK(st.st_mode))
        (void)px_buf_add(w->paths, w->path, strlen(w->path) + 1);
    return S_ISREG(st.st_mode) ? add_file(w, &st) : S_ISLNK(st.st_mode) ? add_link(w, fd, &st) : add_dir(w, &st);
}

/* ---- all of it ---- */

static int step(struct walk *w)
{
    struct level *level = w->level;

    w->path[level->path_len] = '\0';
    if (level->at == level->count) {
        pop(w);
        return 0;
    }
    const char *name = level->names[level->at++];
    size_t len = strlen(name);
    if (len >= sizeof w->path - level->path_len)
        return failed(w, -ENAMETOOLONG, "list what is below");
    memcpy(w->path + level->path_len, name, len + 1);
    return name[len - 1] == '/' ? push(w) : visit(w);
}

static void add_bracket(struct walk *w, const char *bracket)
{
    px_hash_add(&w->hash, bracket, 1);
    if (w->out)
        (void)px_buf_add(w->out, bracket, 1);
}

static void done(struct walk *w)
{
    while (w->level)
        pop(w);
    for (size_t i = 0; i < w->first_room; i++)
        free(w->firsts[i].path);
    free(w->firsts);
    px_hash_drop(&w->hash);
    px_buf_done(&w->line);
}

int px_listing_make(int dirfd, bool settle_modes, struct px_buf *out, struct px_buf *paths,
                    struct px_listing *ret_listing, struct px_err *e)
{
    struct walk *w = calloc(1, sizeof *w);
    int r = 0;

    if (!w)
        return px_no_memory(e);
    w->top = dirfd;
    w->settle = settle_modes;
    w->line.max = LINE_MAX_BYTES;
    w->out = out;
    w->paths = paths;
    w->e = e;
    px_hash_begin(&w->hash);
    add_bracket(w, "[");
    if (paths)
        (void)px_buf_add(paths, ".", sizeof ".");
    r = push(w);
    while (r == 0 && w->level)
        r = step(w);
    add_bracket(w, "]");
    if (r == 0 && (out ? out->err : 0) < 0)
        r = failed(w, out->err, "list");
    if (r == 0 && px_hash_end(&w->hash, &w->listing.oid) < 0)
        r = failed(w, -ENOMEM, "hash");
    if (r == 0)
        *ret_listing = w->listing;
    done(w);
    free(w);
    return r;
}

int px_listing_tree(int dirfd, struct px_buf *out, struct px_listing *ret_listing, struct px_err *e)
{
    return px_listing_make(dirfd, false, out, NULL, ret_listing, e);
}
