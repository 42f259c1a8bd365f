/* Moving, copying, deleting, and making a directory. What is there is never replaced. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "files/files.h"
#include "kernel/copy.h"

enum { NOREPLACE = 1 };

/* ---- the two ends ---- */

struct target {
    struct px_place place;
    struct px_files_target spot;
};

/* A directory has no suffix to check and no size. */
static int check_target(const struct target *t, const char *to, const struct stat *what, struct px_err *e)
{
    uint64_t size = (uint64_t)what->st_size;
    if (S_ISDIR(what->st_mode))
        return 0;
    if (!px_roots_suffix_ok(t->place.root, t->place.rel))
        return px_files_error_suffix(t->place.root, to, e);
    if (S_ISREG(what->st_mode) && size > t->place.root->max_bytes)
        return px_files_error_too_large("write", to, size, t->place.root->max_bytes, e);
    return 0;
}

/* Everything that can be refused is refused before a directory is made for it: by allow_target. */
static int allow_target(const struct px_files *f, const char *to, const struct stat *what, struct target *t,
                        struct px_err *e)
{
    return px_files_target_allow(f, to, PX_RESOLVE_KEEP_LAST, &t->place, e) < 0 ? -1 : check_target(t, to, what, e);
}

static int open_target(const struct px_files *f, const char *to, struct target *t, struct px_err *e)
{
    px_auto_fd int there = px_open_in_root(t->place.root->fd, px_files_resolve_rel(&t->place), O_PATH | O_NOFOLLOW, 0);
    int r = there >= 0 ? -EEXIST : px_files_target_open(&t->place, true, &t->spot);
    if (r >= 0 && t->spot.exists)       /* it has come meanwhile */
        r = -EEXIST;
    if (r >= 0)
        return 0;
    px_files_target_done(&t->spot);
    return r == -ENOTDIR ? px_files_error_below_file(f, t->place.root, to, e) : px_files_error_sys(f, "write", to, r, e);
}

/* ---- copying ---- */

static int copy_bytes(int from, int to, uint64_t max)
{
    struct stat st;
    if (fstat(from, &st) < 0)
        return -errno;
    return (uint64_t)st.st_size > max ? -EFBIG : px_copy_part(from, 0, (uint64_t)st.st_size, to);
}

static int copy_to(int from, const struct stat *st, const struct target *t)
{
    struct px_files_temp temp;
    int r = px_files_temp_open(&t->spot, 0600, &temp);
    if (r < 0)
        return r;
    r = copy_bytes(from, temp.fd, t->place.root->max_bytes);
    if (r >= 0 && fchmod(temp.fd, st->st_mode & 0777) < 0)
        r = -errno;
    if (r < 0) {
        px_files_temp_drop(&temp, &t->spot);
        return r;
    }
    return px_files_temp_commit(&temp, &t->spot, false);
}

int px_files_copy(const struct px_files *files, const char *from, const char *to, struct px_err *e)
{
    PX_ERR(e);
    struct px_place source;
    struct target t = {.spot.dir = -EBADF};
    struct stat st;
    px_auto_fd int fd = px_files_resolve_open(files, from, &source, &st, e);
    if (fd < 0)
        return -1;
    int r = allow_target(files, to, &st, &t, e) < 0 ? -1 : open_target(files, to, &t, e);
    if (r >= 0) {
        r = copy_to(fd, &st, &t);
        if (r == -EFBIG)
            r = px_files_error_too_large("write", to, t.place.root->max_bytes + 1, t.place.root->max_bytes, e);
        else if (r < 0)
            r = px_files_error_sys(files, "copy", to, r, e);
    }
    px_files_target_done(&t.spot);
    return r;
}

/* ---- what is there ---- */

/* The name itself, which may be a link: it is moved or deleted, not what it leads to. */
static int open_source(const struct px_files *f, const char *path, bool directories, struct px_place *place,
                       struct px_files_target *spot, struct px_err *e)
{
    if (px_files_target_allow(f, path, PX_RESOLVE_KEEP_LAST, place, e) < 0)
        return -1;
    int r = px_files_target_open(place, false, spot);
    if (r >= 0 && !spot->exists)
        r = -ENOENT;
    if (r >= 0 && !S_ISREG(spot->st.st_mode) && !S_ISLNK(spot->st.st_mode) &&
        !(directories && S_ISDIR(spot->st.st_mode)))
        r = -EISDIR;
    if (r < 0)
        return px_files_error_sys(f, "access", path, r, e);
    if (!S_ISDIR(spot->st.st_mode) && !px_roots_suffix_ok(place->root, place->rel))
        return px_files_error_suffix(place->root, path, e);
    return 0;
}

int px_files_delete(const struct px_files *files, const char *path, struct px_err *e)
{
    PX_ERR(e);
    struct px_place place;
    px_auto_spot struct px_files_target spot = {.dir = -EBADF};
    if (open_source(files, path, false, &place, &spot, e) < 0)
        return -1;
    return unlinkat(spot.dir, spot.name, 0) < 0 ? px_files_error_sys(files, "delete", path, -errno, e) : 0;
}

/* ---- moving ---- */

/* Between file systems: a copy, then the name is taken away. A link has no content to copy. */
static int move_by_copy(const struct px_files_target *from, const struct target *t)
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(from->dir, from->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? fd : -errno;
    if (!S_ISREG(st.st_mode))
        return -EISDIR;
    int r = copy_to(fd, &st, t);
    if (r < 0)
        return r;
    return unlinkat(from->dir, from->name, 0) < 0 ? -errno : 0;
}

static int move_to(const struct px_files_target *from, const struct target *t)
{
    int r = (int)px_sys(SYS_renameat2, from->dir, from->name, t->spot.dir, t->spot.name, NOREPLACE);
    return r == -EXDEV ? move_by_copy(from, t) : r;
}

/* What a directory holds was checked against the rules of its own root only; a link is relative to where it lies. */
static int check_roots(const struct px_place *from, const struct target *t, const struct px_files_target *spot,
                       const char *path, struct px_err *e)
{
    char text[PX_WORDS_SHORT];
    if (S_ISREG(spot->st.st_mode) || from->root == t->place.root)
        return 0;
    (void)px_fail(e, PX_E_NOT_FILE, 0, "Not a file: %s", px_files_error_short(path, strlen(path), PX_WORDS_SHORT, text));
    return px_why(e, "Only files can be moved from one root to another.");
}

/* Before a directory is made for it, which would lie in the one that is moved. */
static int check_inside(const struct px_place *from, const struct target *t, const char *path, struct px_err *e)
{
    char text[PX_WORDS_SHORT];
    if (from->root != t->place.root || strcmp(t->place.rel, from->rel) == 0 || !px_git_within(t->place.rel, from->rel))
        return 0;
    (void)px_fail(e, PX_E_NOT_FILE, 0, "Cannot move '%s': a directory cannot be moved into itself.",
                  px_files_error_short(path, strlen(path), PX_WORDS_SHORT, text));
    return px_why(e, "The target lies below it.");
}

int px_files_move(const struct px_files *files, const char *from, const char *to, struct px_err *e)
{
    PX_ERR(e);
    struct px_place source;
    struct target t = {.spot.dir = -EBADF};
    px_auto_spot struct px_files_target spot = {.dir = -EBADF};
    if (open_source(files, from, true, &source, &spot, e) < 0)
        return -1;
    if (allow_target(files, to, &spot.st, &t, e) < 0 || check_roots(&source, &t, &spot, from, e) < 0 ||
        check_inside(&source, &t, from, e) < 0 || open_target(files, to, &t, e) < 0)
        return -1;
    int r = move_to(&spot, &t);
    px_files_target_done(&t.spot);
    return r < 0 ? px_files_error_sys(files, "move", to, r, e) : 0;
}

/* ---- a directory ---- */

int px_files_make_directory(const struct px_files *files, const char *path, struct px_err *e)
{
    PX_ERR(e);
    struct px_place place;
    int r = px_files_resolve_place(files, path, 0, &place);
    if (r == -ENOTDIR)
        return px_files_error_below_file(files, place.root, path, e);
    if (r < 0)
        return px_files_error_sys(files, "write", path, r, e);
    if (!px_files_target_writable(&place))
        return px_files_error_not_writable(files, &place, path, e);
    if (place.rel[0] == '\0')
        return 0;
    px_auto_spot struct px_files_target spot = {.dir = -EBADF};
    r = px_files_target_open(&place, true, &spot);
    if (r >= 0 && spot.exists)
        r = S_ISDIR(spot.st.st_mode) ? 0 : -EEXIST;
    else if (r >= 0)
        r = px_files_target_make_dir(spot.dir, spot.name);
    return r < 0 ? px_files_error_sys(files, "write", path, r == -ENOTDIR ? -EEXIST : r, e) : 0;
}
