/* From a path's text to a place below a root: the text decides which root, the kernel whether it stays there. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "files/files.h"

enum { LINKS_MAX = 16, TRIES = 8 };

/* ---- by the text ---- */

/* Where a "name:" ends, if the path begins with one: the place of its colon, or 0. Not in names with a slash: "a/b:c"
 * is a file of root a, whether or not there is a root a/b. */
static size_t name_before_colon(const struct px_files *f, const char *path)
{
    size_t len = 0;
    while (path[len] && path[len] != ':' && path[len] != '/')
        len++;
    for (size_t i = 0; path[len] == ':' && i < f->count; i++)
        if (f->roots[i].name_len == len && memcmp(path, f->roots[i].name, len) == 0)
            return len;
    return 0;
}

/* ".." stays in the root it was in, or the path is outside: also when it would land in another root. */
static int go_up(const struct px_files *f, char *out, size_t *len)
{
    const struct px_root *before = px_roots_match(f, out, *len);
    while (*len > 0 && out[--*len] != '/')
        continue;
    return before && px_roots_match(f, out, *len) == before ? 0 : -EXDEV;
}

static int add_part(char *out, size_t *len, const char *part, size_t part_len)
{
    if (*len + part_len + 2 > PATH_MAX)
        return -ENAMETOOLONG;
    if (*len)
        out[(*len)++] = '/';
    memcpy(out + *len, part, part_len);
    *len += part_len;
    return 0;
}

bool px_files_resolve_goes_up(const char *path)
{
    for (const char *at = path; (at = strstr(at, "..")); at += 2)
        if ((at == path || at[-1] == '/' || at[-1] == ':') && (at[2] == '\0' || at[2] == '/'))
            return true;
    return false;
}

int px_files_resolve_normal(const struct px_files *f, const char *path, char out[PATH_MAX])
{
    size_t colon = name_before_colon(f, path), len = 0;
    if (path[0] == '/' || path[0] == '~' || path[0] == '\0')
        return -EXDEV;
    for (const char *at = path; *at;) {
        size_t n = colon && at < path + colon ? (size_t)(path + colon - at) : (size_t)(strchrnul(at, '/') - at);
        int r = 0;
        if (n == 2 && memcmp(at, "..", 2) == 0)
            r = go_up(f, out, &len);
        else if (n == 1 && at[0] == '.')
            r = 0;
        else if (n > 0)
            r = add_part(out, &len, at, n);
        if (r < 0)
            return r;
        at += n + (at[n] != '\0');
    }
    out[len] = '\0';
    return 0;
}

int px_files_resolve_split(const struct px_files *f, const char *path, struct px_place *ret)
{
    int r = px_files_resolve_normal(f, path, ret->rel);
    if (r < 0)
        return r;
    size_t len = strlen(ret->rel);
    ret->root = px_roots_match(f, ret->rel, len);
    if (!ret->root)
        return -EXDEV;
    size_t skip = ret->root->name_len + (len > ret->root->name_len);
    memmove(ret->rel, ret->rel + skip, len - skip + 1);
    ret->asked_git = px_git_named(ret->rel);
    return 0;
}

/* ---- by the kernel ---- */

/* What is still to be walked, at the end of a buffer of its own so that a link's text can go before it. */
struct walk {
    int root_fd;
    char todo[2 * PATH_MAX];
    size_t at;                  /* todo + at is the rest */
    char done[PATH_MAX];        /* without links */
    size_t len;
    int links;
    bool there;                 /* what is done exists, so the next part may be a link */
    bool directory;             /* it is one, as far as is known */
};

static int expand_link(struct walk *w, int fd)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(fd, "", target, sizeof target);
    if (n < 0)
        return -errno;
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    if (n == 0 || target[0] == '/')     /* no absolute link can be inside: the host's root is not ours */
        return -EXDEV;
    if ((size_t)n >= sizeof target || (size_t)n + 1 > w->at)
        return -ENAMETOOLONG;
    w->todo[--w->at] = '/';
    w->at -= (size_t)n;
    memcpy(w->todo + w->at, target, (size_t)n);
    return 0;
}

/* Of a link's text: what it goes up from must be there, as the kernel would have it. */
static int step_up(struct walk *w)
{
    if (!w->there || !w->directory)
        return w->there ? -ENOTDIR : -ENOENT;
    if (w->len == 0)
        return -EXDEV;
    while (w->len > 0 && w->done[--w->len] != '/')
        continue;
    w->done[w->len] = '\0';
    return 0;
}

/* One part: a link goes back into todo, anything else is done. O_PATH with O_NOFOLLOW opens a last link itself, and the
 * other parts are free of links by now, or somebody is at work in between and the kernel says so. */
static int step_into(struct walk *w, const char *part, size_t n, bool follow)
{
    size_t before = w->len;
    struct stat st;
    int r = add_part(w->done, &w->len, part, n);
    if (r < 0)
        return r;
    w->done[w->len] = '\0';
    if (!w->there || !follow)
        return 0;
    px_auto_fd int fd = px_open_in_root(w->root_fd, w->done, O_PATH | O_NOFOLLOW, 0);
    if (fd == -ENOENT) {
        w->there = false;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? fd : -errno;
    w->directory = S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode);  /* a link goes, the directory that it lies in stays */
    if (!S_ISLNK(st.st_mode))
        return 0;
    w->len = before;
    w->done[before] = '\0';
    return expand_link(w, fd);
}

static int walk_links(struct walk *w, bool keep_last)
{
    int r = 0;
    while (r >= 0 && w->todo[w->at]) {
        const char *part = w->todo + w->at;
        size_t n = strcspn(part, "/");
        w->at += n;
        w->at += strspn(w->todo + w->at, "/");
        if (n == 0 || (n == 1 && part[0] == '.'))
            continue;
        if (n == 2 && memcmp(part, "..", 2) == 0)
            r = step_up(w);
        else
            r = step_into(w, part, n, !keep_last || w->todo[w->at]);
    }
    return r;
}

int px_files_resolve_links(struct px_place *place, bool keep_last)
{
    struct walk *w = malloc(sizeof *w);
    if (!w)
        return -ENOMEM;
    size_t len = strlen(place->rel) + 1;
    w->root_fd = place->root->fd;
    w->at = sizeof w->todo - len;
    w->len = 0;
    w->done[0] = '\0';
    w->links = 0;
    w->there = w->directory = true;
    memcpy(w->todo + w->at, place->rel, len);
    int r = walk_links(w, keep_last);
    if (r >= 0)
        memcpy(place->rel, w->done, w->len + 1);
    free(w);
    return r;
}

const char *px_files_resolve_rel(const struct px_place *place)
{
    return place->rel[0] ? place->rel : ".";
}

int px_files_resolve_place(const struct px_files *f, const char *path, unsigned flags, struct px_place *ret)
{
    bool keep_last = flags & PX_RESOLVE_KEEP_LAST;
    int r = px_files_resolve_split(f, path, ret);
    if (r < 0)
        return r;
    px_auto_fd int fd = px_open_in_root(ret->root->fd, px_files_resolve_rel(ret), O_PATH | (keep_last ? O_NOFOLLOW : 0), 0);
    return fd >= 0 ? 0 : px_files_resolve_links(ret, keep_last);
}

char *px_files_resolve_name(const struct px_place *place)
{
    size_t name = place->root->name_len, rel = strlen(place->rel);
    char *out = malloc(name + rel + 2);
    if (!out)
        return NULL;
    memcpy(out, place->root->name, name);
    out[name] = '/';
    memcpy(out + name + 1, place->rel, rel + 1);
    return out;
}

/* ---- a file to be read ---- */

/* Without a link this is one call. With one the path is resolved and tried again; somebody who keeps putting links
 * there meanwhile is told that it is outside, which is what he wants it to be. O_NONBLOCK: a pipe must not hold us. */
static int open_file(const struct px_files *f, const char *path, struct px_place *ret)
{
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY, fd = -ELOOP;
    int r = px_files_resolve_split(f, path, ret);
    if (r < 0)
        return r;
    for (int i = 0; i < TRIES; i++) {
        fd = px_open_in_root(ret->root->fd, px_files_resolve_rel(ret), flags, 0);
        if (fd != -ELOOP && fd != -EAGAIN)
            return fd;
        r = px_files_resolve_place(f, path, 0, ret);
        if (r < 0)
            return r;
    }
    return fd;
}

int px_files_resolve_open(const struct px_files *f, const char *path, struct px_place *ret, struct stat *ret_st,
                    struct px_err *e)
{
    px_auto_fd int fd = open_file(f, path, ret);
    if (fd < 0)                 /* ENXIO: a socket, or a device that nobody serves */
        return px_files_error_sys(f, "read", path, fd == -ENXIO ? -EISDIR : fd, e);
    *ret_st = (struct stat){0};
    int r = (int)px_sys(SYS_fstat, fd, ret_st); /* the C library asks by an empty path, which costs more */
    if (r < 0)
        return px_files_error_sys(f, "read", path, r, e);
    if (!S_ISREG(ret_st->st_mode))
        return px_files_error_sys(f, "read", path, -EISDIR, e);
    if (!px_roots_suffix_ok(ret->root, ret->rel))
        return px_files_error_suffix(ret->root, path, e);
    if ((uint64_t)ret_st->st_size > ret->root->max_bytes)
        return px_files_error_too_large("read", path, (uint64_t)ret_st->st_size, ret->root->max_bytes, e);
    return px_fd_take(&fd);
}

int px_files_open(const struct px_files *files, const char *path, int *ret_fd, struct px_err *e)
{
    PX_ERR(e);
    struct px_place place;
    struct stat st;
    int fd = px_files_resolve_open(files, path, &place, &st, e);
    if (fd < 0)
        return -1;
    *ret_fd = fd;
    return 0;
}
