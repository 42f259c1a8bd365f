/* A tree becomes a tar, in the order of the bytes of its paths. The tree may change while it is read, or be made to:
 * every step is by descriptor, nothing follows a link, and a file that is not the same afterwards is an error. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "helpers/layer/layer.h"
#include "helpers/layer/list.h"

enum { TELL_EVERY = 16 << 20 };

struct packer {
    const struct pack_job *job;
    struct squeeze *to;
    struct links links;
    char path[NAME_SIZE + 1];   /* of what is being packed, with the prefix; the names of directories end in a slash */
    size_t prefix;              /* how much of it is that */
    uint64_t entries, bytes, told;
    size_t found;               /* of the wanted files, so far */
};

static int cannot(const struct packer *p, int code, int sys, const char *why, struct px_err *e)
{
    const char *name = p->path + p->prefix;
    struct shown shown = show(*name ? name : ".", strlen(*name ? name : "."));
    return px_fail(e, code, sys, "cannot pack '%s'%s%s", shown.text, why ? ": " : "", why ? why : "");
}

static int changed(const struct packer *p, struct px_err *e)
{
    cannot(p, PX_E_IO, 0, "it changed while it was read", e);
    return px_why(e, "A layer is made of one state of a tree, and something writes in this one.");
}

static bool is_skipped(const struct packer *p, const char *path)
{
    for (size_t i = 0; i < p->job->skip_count; i++)
        if (px_equal(path, p->job->skip[i]))
            return true;
    return false;
}

/* What everybody's clone has: the owner's right to execute is all that git knows of modes. */
static uint32_t mode_of(const struct packer *p, const struct stat *st)
{
    bool directory = S_ISDIR(st->st_mode);
    if (p->job->wanted)
        return directory || (st->st_mode & 0100) ? 0755 : 0644;
    return (st->st_mode & 01777) | (directory ? 0700 : 0400);
}

/* ---- one entry ---- */

static int put(struct packer *p, char type, uint32_t mode, uint64_t size, const char *target, struct px_err *e)
{
    const struct entar_entry entry = {.name = p->path, .type = type, .mode = mode, .size = size, .target = target};
    if (++p->entries > px_unpack_limits_default.entries || size > px_unpack_limits_default.bytes ||
        (p->bytes += size) > px_unpack_limits_default.bytes)
        return cannot(p, PX_E_LIMIT, 0, "the tree is larger than a layer may be", e);
    return entar_header(p->to, &entry, e);
}

static int put_content(struct packer *p, int fd, uint64_t size, struct px_err *e)
{
    for (uint64_t left = size; left > 0;) {
        size_t room;
        uint8_t *to = squeeze_room(p->to, &room);
        ssize_t n = px_read_some(fd, to, room < left ? room : (size_t)left);
        if (n < 0)
            return cannot(p, PX_E_IO, (int)n, NULL, e);
        if (n == 0)
            return changed(p, e);
        left -= (uint64_t)n;
        if (squeeze_took(p->to, (size_t)n, e) < 0)
            return -1;
    }
    if (p->job->told.tell && p->bytes - p->told > TELL_EVERY) {
        p->told = p->bytes;
        p->job->told.tell(p->job->told.user, p->bytes, 0);
    }
    return entar_pad(p->to, size, e);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Content that lies elsewhere: such an upper directory is not whole. */
static bool has_mark(int fd, const char *mark)
{
    static const char *const spaces[] = {"trusted.overlay.", "user.overlay."};
    for (size_t i = 0; i < PX_COUNT_OF(spaces); i++) {
        char name[64];
        if (px_fmt(name, sizeof name, "%s%s", spaces[i], mark) >= 0 && fgetxattr(fd, name, NULL, 0) >= 0)
            return true;
    }
    return false;
}

static int put_file(struct packer *p, int dir, const char *name, const struct stat *seen, struct px_err *e)
{
    struct stat before, after;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return cannot(p, PX_E_IO, fd, NULL, e);
    if (fstat(fd, &before) < 0)
        return cannot(p, PX_E_IO, errno, NULL, e);
    if (!same_file(seen, &before))
        return changed(p, e);
    if (p->job->upper && has_mark(fd, "metacopy"))
        return cannot(p, PX_E_LIMIT, 0, "its content lies in a lower layer (an overlay with metacopy)", e);
    if (put(p, '0', mode_of(p, &before), (uint64_t)before.st_size, "", e) < 0 ||
        put_content(p, fd, (uint64_t)before.st_size, e) < 0)
        return -1;
    return fstat(fd, &after) < 0 || !same_file(&before, &after) ? changed(p, e) : 0;
}

static int put_link(struct packer *p, int dir, const char *name, struct px_err *e)
{
    char target[NAME_SIZE];
    ssize_t n = readlinkat(dir, name, target, sizeof target);
    if (n < 0)
        return errno == EINVAL ? changed(p, e) : cannot(p, PX_E_IO, errno, NULL, e);
    if (n == 0 || (size_t)n >= sizeof target)
        return cannot(p, PX_E_LIMIT, 0, "its target is too long", e);
    target[n] = '\0';
    return put(p, '2', 0777, 0, target, e);
}

static int put_entry(struct packer *p, int dir, const char *name, struct px_err *e)
{
    struct stat st;
    if (px_starts_with(name, ".wh."))
        return cannot(p, PX_E_LIMIT, 0, "in a layer a name that begins with '.wh.' hides something", e);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? changed(p, e) : cannot(p, PX_E_IO, errno, NULL, e);
    if (S_ISLNK(st.st_mode))
        return put_link(p, dir, name, e);
    if (S_ISDIR(st.st_mode)) {
        size_t n = strlen(p->path);
        memcpy(p->path + n, "/", 2);
        return put(p, '5', mode_of(p, &st), 0, "", e);
    }
    if (!S_ISREG(st.st_mode))
        return cannot(p, PX_E_LIMIT, 0, "it is neither a file nor a directory nor a link", e);
    const char *first = NULL;
    int r = st.st_nlink > 1 && !p->job->wanted ? links_find(&p->links, &st, p->path, &first) : 0;
    if (r < 0)
        return cannot(p, PX_E_MEMORY, r, NULL, e);
    return first ? put(p, '1', mode_of(p, &st), 0, first, e) : put_file(p, dir, name, &st, e);
}

/* Wanted files come in the order of the list; what was passed over is gone. */
static int not_there(const struct packer *p, size_t at, struct px_err *e)
{
    const char *name = p->job->wanted->items[at];
    px_fail(e, PX_E_IO, 0, "cannot pack '%s': it is gone", show(name, strlen(name)).text);
    return px_why(e, "A layer is made of one state of a tree, and something writes in this one.");
}

/* 1: it is to be packed. */
static int choose(struct packer *p, int dir, const struct item *item, const char *plain, struct px_err *e)
{
    size_t at = 0;
    struct stat st;
    if (is_skipped(p, plain))
        return 0;
    if (!p->job->wanted)
        return 1;
    enum want want = wanted_find(p->job->wanted, plain, &at);
    if (want == WANT_NOT || item->what != ITEM_ENTRY)
        return want == WANT_DIRECTORY;
    if (fstatat(dir, item->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode) != (want == WANT_DIRECTORY))
        return changed(p, e);
    if (want == WANT_FILE && at != p->found++)
        return not_there(p, p->found - 1, e);
    return 1;
}

/* ---- directories ---- */

static int walk(struct packer *p, int fd, unsigned depth, struct px_err *e);

static int descend(struct packer *p, int dir, const char *name, unsigned depth, struct px_err *e)
{
    char part[PART_MAX + 2];
    size_t n = strlen(name) - 1;        /* without its slash */
    memcpy(part, name, n);
    part[n] = '\0';
    if (depth >= DEPTH_MAX)
        return cannot(p, PX_E_LIMIT, 0, "it lies more than 128 directories deep", e);
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
        return changed(p, e);
    return fd < 0 ? cannot(p, PX_E_IO, fd, NULL, e) : walk(p, fd, depth + 1, e);
}

static int put_item(struct packer *p, int dir, const struct item *item, unsigned depth, struct px_err *e)
{
    switch (item->what) {
    case ITEM_HIDES:
        return put(p, '0', 0644, 0, "", e);
    case ITEM_BELOW:
        return descend(p, dir, item->name, depth, e);
    case ITEM_ENTRY:
        break;
    }
    return put_entry(p, dir, item->name, e);
}

static int put_items(struct packer *p, int dir, const struct list *list, unsigned depth, struct px_err *e)
{
    size_t at = strlen(p->path);
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const struct item *item = &list->items[i];
        size_t n = strlen(item->name);
        char plain[NAME_SIZE + 1];
        if (at + n + 2 >= NAME_SIZE)
            return cannot(p, PX_E_LIMIT, 0, "the names in it are too long for a layer", e);
        memcpy(p->path + at, item->name, n + 1);
        memcpy(plain, p->path + p->prefix, at + n + 1 - p->prefix);
        if (item->what == ITEM_BELOW)
            plain[at + n - 1 - p->prefix] = '\0';
        r = choose(p, dir, item, plain, e);
        if (r > 0)
            r = put_item(p, dir, item, depth, e);
        if (r == 0)
            p->path[at] = '\0';
    }
    return r;
}

static int walk(struct packer *p, int fd, unsigned depth, struct px_err *e)
{
    struct list list = {0};
    if (p->job->upper && has_mark(fd, "redirect"))
        return cannot(p, PX_E_LIMIT, 0, "its content lies in a lower layer (an overlay with redirect_dir)", e);
    int r = list_read(&list, fd, p->job->upper);
    r = r < 0 ? cannot(p, r == -E2BIG ? PX_E_LIMIT : PX_E_IO, r, NULL, e) : put_items(p, fd, &list, depth, e);
    list_free(&list);
    return r;
}

/* ---- all ---- */

/* "a/b/" is made of "a/" and "a/b/". */
static int put_prefix(struct packer *p, struct px_err *e)
{
    const char *prefix = p->job->prefix;
    char clean[NAME_SIZE];
    const char *reason = "";
    size_t n = strlen(prefix);
    if (n == 0)
        return 0;
    if (prefix[n - 1] != '/' || name_clean(prefix, n, true, clean, &reason) < 0 || strlen(clean) + 1 != n)
        return px_fail(e, PX_E_VALUE, 0, "'%s' cannot be the prefix of a layer", show(prefix, n).text);
    for (size_t i = 0; i < n; i++) {
        if (prefix[i] != '/')
            continue;
        memcpy(p->path, prefix, i + 1);
        p->path[i + 1] = '\0';
        if (put(p, '5', 0755, 0, "", e) < 0)
            return -1;
    }
    p->prefix = n;
    return 0;
}

static int pack_all(struct packer *p, struct px_layer *ret_layer, struct px_err *e)
{
    px_auto_fd int root = place_open(p->job->dir, ".", O_RDONLY | O_DIRECTORY);
    if (root < 0)
        return px_fail(e, PX_E_IO, root, "cannot read the directory to pack");
    if (put_prefix(p, e) < 0 || walk(p, root, 0, e) < 0)
        return -1;
    if (p->job->wanted && p->found < p->job->wanted->count)
        return not_there(p, p->found, e);
    if (entar_end(p->to, e) < 0 ||
        squeeze_finish(p->to, ret_layer, e) < 0)
        return -1;
    ret_layer->entries = p->entries;
    return 0;
}

int pack(const struct pack_job *job, struct px_layer *ret_layer, struct px_err *e)
{
    struct packer *p = calloc(1, sizeof *p);
    if (!p)
        return px_no_memory(e);
    p->job = job;
    int r = squeeze_open(job->out, job->compression, job->threads, &p->to, e);
    if (r == 0)
        r = pack_all(p, ret_layer, e);
    squeeze_free(p->to);
    links_free(&p->links);
    free(p);
    return r;
}
