/* Writing text: beside the file, then in its place in one step. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/files.h"

void px_files_done_free(struct px_files_done *done)
{
    free(done->path);
    free(done->diff);
    *done = (struct px_files_done){0};
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The mode and the owner of the file whose place it takes, without set-id bits. An ordinary user cannot give a file
 * away: it is his own then, as after any editor that writes this way. */
static int take_over(int fd, const struct stat *old)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) < 0 &&
        errno != EPERM)
        return -errno;
    return fchmod(fd, old->st_mode & 0777) < 0 ? -errno : 0;
}

static int fill(const struct px_files_target *spot, const char *data, size_t len)
{
    struct px_files_temp temp;
    int r = px_files_temp_open(spot, spot->exists ? 0600 : 0666, &temp);
    if (r < 0)
        return r;
    r = px_write_full(temp.fd, data, len);
    if (r >= 0 && spot->exists)
        r = take_over(temp.fd, &spot->st);
    if (r < 0) {
        px_files_temp_drop(&temp, spot);
        return r;
    }
    return px_files_temp_commit(&temp, spot, true);
}

/* A link or a pipe at the name was not there when the path was resolved, or is no file: never replaced. A file that its
 * owner has made read-only stays, too, although a new one in its place would need no right to it. */
static int check_spot(const struct px_files_target *spot)
{
    if (!spot->exists)
        return 0;
    if (!S_ISREG(spot->st.st_mode))
        return S_ISLNK(spot->st.st_mode) ? -EXDEV : -EISDIR;
    return faccessat(spot->dir, spot->name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int px_files_write_place(const struct px_files *f, const char *path, const struct px_place *place, const struct stat *was,
                   const char *data, size_t len, struct px_err *e)
{
    px_auto_spot struct px_files_target spot = {.dir = -EBADF};
    int r = px_files_target_open(place, true, &spot);
    if (r >= 0)
        r = check_spot(&spot);
    if (r == -ENOTDIR)
        r = -EISDIR;
    if (r >= 0 && was && (!spot.exists || !is_same(&spot.st, was))) {
        char text[PX_WORDS_SHORT];
        (void)px_fail(e, PX_E_EDIT, 0, "Cannot edit '%s': the file changed meanwhile.",
                      px_files_error_short(path, strlen(path), PX_WORDS_SHORT, text));
        return px_fix(e, "Read the file again, then edit it.");
    }
    if (r >= 0)
        r = fill(&spot, data, len);
    return r < 0 ? px_files_error_sys(f, "write", path, r, e) : 0;
}

int px_files_write(const struct px_files *files, const char *path, const char *data, size_t len,
                   struct px_files_done *ret_done, struct px_err *e)
{
    PX_ERR(e);
    struct px_place place;
    struct px_window window;
    if (px_files_target_allow(files, path, 0, &place, e) < 0)
        return -1;
    if (!px_roots_suffix_ok(place.root, place.rel))
        return px_files_error_suffix(place.root, path, e);
    if (len > place.root->max_bytes)
        return px_files_error_too_large("write", path, len, place.root->max_bytes, e);
    if (px_files_window_find(data, len, 0, 0, &window) < 0)
        return px_files_error_not_text("write", path, e);
    px_auto_free char *name = px_files_resolve_name(&place);
    if (!name)
        return px_files_error_memory(e);
    if (px_files_write_place(files, path, &place, NULL, data, len, e) < 0)
        return -1;
    if (ret_done)
        *ret_done = (struct px_files_done){.path = px_take(&name), .chars = window.total};
    return 0;
}
