/* A name in a directory that is held open, and a file that takes its place when it is complete. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "files/files.h"

enum { NOREPLACE = 1 /* RENAME_NOREPLACE, which not every libc's header has */ };

void px_files_target_done(struct px_files_target *spot)
{
    spot->dir = px_fd_close(spot->dir);
}

/* The deepest directory of rel that is there; *ret_at is where the rest begins. */
static int open_existing(int root_fd, const char *rel, size_t dir_len, size_t *ret_at)
{
    char part[PATH_MAX];
    int fd = -ENOENT;
    for (size_t len = dir_len;; len--) {
        if (len > 0 && len < dir_len && rel[len] != '/')
            continue;
        memcpy(part, rel, len);
        part[len] = '\0';
        fd = px_open_in_root(root_fd, len ? part : ".", O_PATH | O_DIRECTORY, 0);
        *ret_at = len + (len > 0 && len < dir_len);
        if (fd != -ENOENT || len == 0)
            return fd;
    }
}

/* What root makes in a directory of another owner belongs to that one, as a command in a box with that directory would expect. */
static int take_owner(int dir, int fd)
{
    struct stat around, st;
    if (geteuid() != 0)
        return 0;
    if (fstat(dir, &around) < 0 || fstat(fd, &st) < 0)
        return -errno;
    bool kept = st.st_uid != 0 || around.st_uid == 0 || fchown(fd, around.st_uid, around.st_gid) == 0 || errno == EPERM;
    return kept ? 0 : -errno;
}

static bool is_empty(int dir)
{
    char room[1024] __attribute__((aligned(8)));
    long n = px_sys(SYS_getdents64, dir, room, sizeof room);
    for (long at = 0; at < n; at += ((struct dirent *)(room + at))->d_reclen) {
        const char *name = ((struct dirent *)(room + at))->d_name;
        if (!px_equal(name, ".") && !px_equal(name, ".."))
            return false;
    }
    return n >= 0;
}

/* Whoever owns the directory can put another in the place of the new one: only one with nothing in it is given away. */
int px_files_target_make_dir(int dir, const char *name)
{
    if (mkdirat(dir, name, 0777) < 0)
        return errno == EEXIST ? 0 : -errno;
    px_auto_fd int fd = geteuid() == 0 ? px_open_in_root(dir, name, O_RDONLY | O_DIRECTORY, 0) : -EBADF;
    return fd < 0 || !is_empty(fd) ? 0 : take_owner(dir, fd);
}

/* Each directory is made in the one that is held, and opened without following anything: a link that somebody puts
 * there is an error, not a way out. */
static int make_directories(int fd, const char *rel, size_t from, size_t to)
{
    char part[NAME_MAX + 1];
    while (fd >= 0 && from < to) {
        size_t n = strcspn(rel + from, "/");
        n = n < to - from ? n : to - from;
        int next = n > NAME_MAX ? -ENAMETOOLONG : 0;
        if (next == 0) {
            memcpy(part, rel + from, n);
            part[n] = '\0';
            next = px_files_target_make_dir(fd, part);
            next = next < 0 ? next : px_open_in_root(fd, part, O_PATH | O_DIRECTORY, 0);
        }
        (void)px_fd_close(fd);
        fd = next;
        from += n + 1;
    }
    return fd;
}

int px_files_target_open(const struct px_place *place, bool make, struct px_files_target *ret)
{
    const char *slash = strrchr(place->rel, '/');
    const char *name = slash ? slash + 1 : place->rel;
    size_t dir_len = slash ? (size_t)(slash - place->rel) : 0, at;
    struct px_files_target spot = {.dir = -EBADF};
    if (name[0] == '\0')
        return -EISDIR;
    if (px_fmt(spot.name, sizeof spot.name, "%s", name) < 0)
        return -ENAMETOOLONG;
    spot.dir = open_existing(place->root->fd, place->rel, dir_len, &at);
    if (spot.dir >= 0 && at < dir_len) {
        if (make) {
            spot.dir = make_directories(spot.dir, place->rel, at, dir_len);
        } else {
            px_files_target_done(&spot);
            return -ENOENT;
        }
    }
    if (spot.dir < 0)
        return spot.dir;
    spot.exists = fstatat(spot.dir, spot.name, &spot.st, AT_SYMLINK_NOFOLLOW) == 0;
    *ret = spot;
    return 0;
}

bool px_files_target_writable(const struct px_place *place)
{
    return place->root->writable && !(place->root->protect_git && px_git_protects(place));
}

int px_files_target_allow(const struct px_files *f, const char *path, unsigned flags, struct px_place *ret, struct px_err *e)
{
    int r = px_files_resolve_place(f, path, flags, ret);
    if (r == -ENOTDIR)
        return px_files_error_below_file(f, ret->root, path, e);
    if (r < 0)
        return px_files_error_sys(f, "write", path, r, e);
    if (!px_files_target_writable(ret))
        return px_files_error_not_writable(f, ret, path, e);
    if (ret->rel[0] == '\0')
        return px_files_error_sys(f, "write", path, -EISDIR, e);
    return 0;
}

/* ---- the file beside it ---- */

int px_files_temp_open(const struct px_files_target *spot, mode_t mode, struct px_files_temp *ret)
{
    unsigned long long random;
    struct px_files_temp temp;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    (void)px_fmt(temp.name, sizeof temp.name, ".px-%016llx.tmp", random);
    temp.fd = (int)px_sys(SYS_openat, spot->dir, temp.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (temp.fd < 0)
        return temp.fd;
    int r = take_owner(spot->dir, temp.fd);
    if (r < 0)
        px_files_temp_drop(&temp, spot);
    else
        *ret = temp;
    return r;
}

void px_files_temp_drop(struct px_files_temp *temp, const struct px_files_target *spot)
{
    temp->fd = px_fd_close(temp->fd);
    (void)unlinkat(spot->dir, temp->name, 0);
}

int px_files_temp_commit(struct px_files_temp *temp, const struct px_files_target *spot, bool replace)
{
    int r = fdatasync(temp->fd) < 0 && errno != EINVAL ? -errno : 0;    /* EINVAL: this file system has no such thing */
    if (r >= 0)
        r = (int)px_sys(SYS_renameat2, spot->dir, temp->name, spot->dir, spot->name, replace ? 0 : NOREPLACE);
    if (r < 0) {
        px_files_temp_drop(temp, spot);
        return r;
    }
    temp->fd = px_fd_close(temp->fd);
    return 0;
}
