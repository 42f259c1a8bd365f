/* The roots: made from a request, from words, or from a parent that had more. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "files/files.h"
#include "files/roots.h"

enum { NAME_LENGTH_MAX = 255, SUFFIX_MAX = 64, SUFFIX_LENGTH_MAX = 64, CLIMB_MAX = 4096 };

/* ---- one root ---- */

static void free_texts(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}

static void root_done(struct px_root *r)
{
    free(r->name);
    free_texts(r->suffixes);
    r->fd = px_fd_close(r->fd);
}

void px_files_free(struct px_files *files)
{
    if (!files)
        return;
    for (size_t i = 0; i < files->count; i++)
        root_done(&files->roots[i]);
    free(files->roots);
    free(files);
}

static char **copy_suffixes(const char *const *from)
{
    size_t n = 0;
    while (from[n])
        n++;
    char **to = calloc(n + 1, sizeof *to);
    for (size_t i = 0; to && i < n; i++) {
        to[i] = strdup(from[i]);
        if (!to[i]) {
            free_texts(to);
            return NULL;
        }
        for (char *c = to[i]; *c; c++)
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    }
    return to;
}

int px_roots_add(struct px_files *f, const char *name, int fd, const struct px_root *like, struct px_err *e)
{
    struct px_root *more = realloc(f->roots, (f->count + 1) * sizeof *more);
    if (!more) {
        (void)px_fd_close(fd);
        return px_files_error_memory(e);
    }
    f->roots = more;
    struct px_root *r = &more[f->count++];
    *r = (struct px_root){.fd = fd, .writable = like->writable, .protect_git = like->protect_git, .max_bytes = like->max_bytes};
    r->name = strdup(name);
    r->name_len = strlen(name);
    r->suffixes = like->suffixes ? copy_suffixes((const char *const *)like->suffixes) : NULL;
    if (!r->name || (like->suffixes && !r->suffixes))
        return px_files_error_memory(e);
    return 0;
}

/* ---- questions ---- */

const struct px_root *px_roots_match(const struct px_files *f, const char *text, size_t len)
{
    const struct px_root *best = NULL;
    for (size_t i = 0; i < f->count; i++) {
        const struct px_root *r = &f->roots[i];
        if (r->name_len <= len && memcmp(text, r->name, r->name_len) == 0 &&
            (r->name_len == len || text[r->name_len] == '/') && (!best || r->name_len > best->name_len))
            best = r;
    }
    return best;
}

/* The last suffix of the last part, as in "a.tar.GZ"; a name that only begins with a dot has none. */
bool px_roots_suffix_ok(const struct px_root *root, const char *path)
{
    if (!root->suffixes)
        return true;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot != name && root->suffixes[i]; i++)
        if (strcasecmp(root->suffixes[i], dot) == 0)
            return true;
    return false;
}

int px_files_root_at(const struct px_files *files, size_t index, struct px_files_root *ret_root)
{
    if (index >= files->count)
        return -1;
    const struct px_root *r = &files->roots[index];
    *ret_root = (struct px_files_root){.name = r->name, .writable = r->writable, .git_writable = !r->protect_git,
                                       .max_file_bytes = r->max_bytes, .suffixes = (const char *const *)r->suffixes, .use_fd = true, .fd = r->fd};
    return 0;
}

/* ---- making them ---- */

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Parts with slashes between them; a part begins with a letter, a digit or _ and goes on with those and . and -. */
static bool is_root_name(const char *name)
{
    bool first = true;
    if (strlen(name) > NAME_LENGTH_MAX)
        return false;
    for (; *name; name++) {
        if (*name == '/' ? first : !is_word_byte(*name) && (first || (*name != '.' && *name != '-')))
            return false;
        first = *name == '/';
    }
    return !first;
}

static bool are_suffixes(const char *const *suffixes)
{
    size_t n = 0;
    for (; suffixes[n]; n++)
        if (n >= SUFFIX_MAX || suffixes[n][0] != '.' || suffixes[n][1] == '\0' ||
            strlen(suffixes[n]) > SUFFIX_LENGTH_MAX || strpbrk(suffixes[n] + 1, "./"))
            return false;
    return n > 0;
}

static int check_root(const struct px_files *f, const struct px_files_root *root, struct px_err *e)
{
    if (!root->name || !is_root_name(root->name)) {
        (void)px_fail(e, PX_E_ROOT, 0, "'%s' is no name for a root", root->name ? root->name : "");
        return px_why(e, "A name has letters, digits, _ . and -, and begins with a letter or digit, also behind a slash.");
    }
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->roots[i].name, root->name) == 0) {
            (void)px_fail(e, PX_E_ROOT, 0, "there are two roots with the name '%s'", root->name);
            return px_why(e, "Each root has a name of its own.");
        }
    if (root->suffixes && !are_suffixes(root->suffixes)) {
        (void)px_fail(e, PX_E_ROOT, 0, "the suffixes of root '%s' are no suffixes", root->name);
        return px_why(e, "A suffix is a dot and what follows it, without a second one: .md");
    }
    return 0;
}

/* The directory is the operator's: it is opened by its name, links and all, once. */
static int open_root(const struct px_files_root *root, struct px_err *e)
{
    int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    long fd;
    if (root->use_fd) {
        fd = px_sys(SYS_openat, root->fd, ".", flags);
    } else {
        if (root->create && root->dir && mkdir(root->dir, 0777) < 0 && errno != EEXIST)
            return px_fail(e, PX_E_ROOT, errno, "the directory of root '%s' cannot be made", root->name);
        fd = root->dir ? px_sys(SYS_openat, AT_FDCWD, root->dir, flags) : -ENOENT;
    }
    if (fd >= 0)
        return (int)fd;
    (void)px_fail(e, PX_E_ROOT, (int)fd, "the directory of root '%s' cannot be opened", root->name);
    return fd == -ENOENT ? px_fix(e, "Make the directory, or correct its name.") : -1;
}

/* Whether the directory is, or lies somewhere below, the other. Up by "..", which no name can mislead. */
static bool is_within(int fd, int other)
{
    struct stat at, want, up;
    int here = (int)px_sys(SYS_openat, fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    if (here < 0 || fstat(here, &at) < 0 || fstat(other, &want) < 0) {
        (void)px_fd_close(here);
        return false;
    }
    for (int i = 0; i < CLIMB_MAX; i++) {
        found = at.st_dev == want.st_dev && at.st_ino == want.st_ino;
        int next = found ? -ENOENT : (int)px_sys(SYS_openat, here, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (next < 0 || fstat(next, &up) < 0 || (up.st_dev == at.st_dev && up.st_ino == at.st_ino)) {
            (void)px_fd_close(next);
            break;
        }
        (void)px_fd_close(here);
        here = next;
        at = up;
    }
    (void)px_fd_close(here);
    return found;
}

static int overlap(const struct px_root *a, const struct px_root *b, const char *why, struct px_err *e)
{
    (void)px_fail(e, PX_E_ROOT, 0, "the directories of the roots '%s' and '%s' overlap", a->name, b->name);
    return px_why(e, "%s", why);
}

static int check_overlaps(const struct px_files *f, struct px_err *e)
{
    for (size_t i = 0; i < f->count; i++)
        for (size_t k = 0; k < i; k++)
            if (is_within(f->roots[i].fd, f->roots[k].fd) || is_within(f->roots[k].fd, f->roots[i].fd))
                return overlap(&f->roots[k], &f->roots[i], "A file would then have two sets of rules.", e);
    return 0;
}

static int add_requested(struct px_files *f, const struct px_files_root *root, struct px_err *e)
{
    if (check_root(f, root, e) < 0)
        return -1;
    int fd = open_root(root, e);
    if (fd < 0)
        return -1;
    uint64_t max = root->max_file_bytes ? root->max_file_bytes : PX_FILES_BYTES_MAX;
    struct px_root like = {.writable = root->writable, .protect_git = !root->git_writable,
                           .suffixes = (char **)root->suffixes, .max_bytes = max < INT64_MAX ? max : INT64_MAX};
    return px_roots_add(f, root->name, fd, &like, e);
}

int px_files_new(const struct px_files_root *roots, size_t count, struct px_files **ret_files, struct px_err *e)
{
    PX_ERR(e);
    if (count == 0 || count > PX_FILES_ROOTS_MAX) {
        (void)px_fail(e, PX_E_ROOT, 0, "there are %s roots", count ? "too many" : "no");
        return px_why(e, "A file sandbox has from 1 to %d roots.", PX_FILES_ROOTS_MAX);
    }
    px_auto(px_files) struct px_files *f = calloc(1, sizeof *f);
    if (!f)
        return px_files_error_memory(e);
    for (size_t i = 0; i < count; i++)
        if (add_requested(f, &roots[i], e) < 0)
            return -1;
    if (check_overlaps(f, e) < 0)
        return -1;
    *ret_files = px_take(&f);
    return 0;
}

/* ---- less than a parent ---- */

/* A directory that shall be written may be one that is still to be made: it is made now, so that it can be held open. */
static int grant(const struct px_files *parent, struct px_files *f, const char *path, bool write, bool make, struct px_err *e)
{
    struct px_place place;
    int r = px_files_resolve_goes_up(path) ? -EXDEV : px_files_resolve_place(parent, path, 0, &place);
    if (r < 0)
        return px_files_error_sys(parent, "access", path, r, e);
    if (write && !px_files_target_writable(&place))
        return px_files_error_not_writable(parent, &place, path, e);
    int fd = px_open_in_root(place.root->fd, px_files_resolve_rel(&place), O_PATH | O_DIRECTORY, 0);
    if (fd == -ENOENT && make) {
        if (px_files_make_directory(parent, path, e) < 0)
            return -1;
        fd = px_open_in_root(place.root->fd, px_files_resolve_rel(&place), O_PATH | O_DIRECTORY, 0);
    }
    if (fd == -ENOTDIR) {
        (void)px_fail(e, PX_E_ROOT, 0, "'%s' is not a directory", path);
        return px_why(e, "What a child may use is named by directories.");
    }
    if (fd < 0)
        return px_files_error_sys(parent, "access", path, fd, e);
    px_auto_free char *name = px_files_resolve_name(&place);
    if (!name) {
        (void)px_fd_close(fd);
        return px_files_error_memory(e);
    }
    if (place.rel[0] == '\0')
        name[place.root->name_len] = '\0';      /* without the slash of "name/" */
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->roots[i].name, name) == 0) {
            f->roots[i].writable |= write;
            (void)px_fd_close(fd);
            return 0;
        }
    struct px_root like = *place.root;
    like.writable = write;
    return px_roots_add(f, name, fd, &like, e);
}

/* Less inside more would not hold: a link in the outer one leads to the inner one past its rules. */
static int check_nesting(const struct px_files *f, struct px_err *e)
{
    for (size_t i = 0; i < f->count; i++)
        for (size_t k = 0; k < f->count; k++)
            if (f->roots[i].writable && !f->roots[k].writable && is_within(f->roots[k].fd, f->roots[i].fd))
                return overlap(&f->roots[i], &f->roots[k],
                               "A read-only directory inside a writable one would be writable through it.", e);
    return 0;
}

static int grant_all(const struct px_files *parent, struct px_files *f, const char *const *paths, bool write, bool make,
                     struct px_err *e)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        if (f->count >= PX_FILES_ROOTS_MAX)
            return px_fail(e, PX_E_LIMIT, 0, "a file sandbox has at most %d roots", PX_FILES_ROOTS_MAX);
        if (grant(parent, f, paths[i], write, make, e) < 0)
            return -1;
    }
    return 0;
}

static int inherit(const struct px_files *parent, struct px_files *f, struct px_err *e)
{
    for (size_t i = 0; i < parent->count; i++) {
        int fd = (int)px_sys(SYS_openat, parent->roots[i].fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return px_fail(e, PX_E_ROOT, fd, "the directory of root '%s' cannot be opened", parent->roots[i].name);
        if (px_roots_add(f, parent->roots[i].name, fd, &parent->roots[i], e) < 0)
            return -1;
    }
    return 0;
}

int px_files_derive(const struct px_files *parent, const struct px_files_narrow *narrow, struct px_files **ret_files,
                    struct px_err *e)
{
    PX_ERR(e);
    px_auto(px_files) struct px_files *f = calloc(1, sizeof *f);
    if (!f)
        return px_files_error_memory(e);
    if ((narrow->inherit && inherit(parent, f, e) < 0) || grant_all(parent, f, narrow->read, false, false, e) < 0 ||
        grant_all(parent, f, narrow->write, true, !narrow->read_only, e) < 0)
        return -1;
    for (size_t i = 0; i < f->count; i++) {
        f->roots[i].writable = f->roots[i].writable && !narrow->read_only;
        f->roots[i].protect_git = f->roots[i].protect_git || narrow->protect_git;
    }
    if (check_nesting(f, e) < 0)
        return -1;
    *ret_files = px_take(&f);
    return 0;
}
