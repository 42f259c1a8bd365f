/* Entries become files, directories and links in normal form. An inode that is there is never opened for writing: it
 * goes, and a new one is made with O_EXCL, so that a name cannot lead anywhere but to what this entry made. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "helpers/layer/layer.h"

static const struct timespec epoch[2] = {{0, 0}, {0, 0}};

int extract_init(struct extract *x, int root, bool whiteouts, const struct px_unpack_limits *limits)
{
    memset(x, 0, sizeof *x);
    x->root = place_open(root, ".", O_RDONLY | O_DIRECTORY);
    x->whiteouts = whiteouts;
    x->limits = *limits;
    x->parent_fd = -EBADF;
    return x->root < 0 ? x->root : 0;
}

void extract_done(struct extract *x)
{
    x->root = px_fd_close(x->root);
    x->parent_fd = px_fd_close(x->parent_fd);
    free(x->seen.items);
    x->seen = (struct seen){0};
}

static int cannot(const struct entry *entry, int sys, struct px_err *e)
{
    struct shown name = show(entry->name, strlen(entry->name));
    return px_fail(e, PX_E_STORE_WRITE, sys, "cannot write the archive's entry '%s'", name.text);
}

static int refuse(const struct entry *entry, const char *why, struct px_err *e)
{
    struct shown name = show(entry->name, strlen(entry->name));
    return px_fail(e, PX_E_ARCHIVE, 0, "the archive's entry '%s' was refused: %s", name.text, why);
}

/* Remembers what was made, where whiteouts of the same layer may ask. */
static int note(struct extract *x, int dir, const char *leaf)
{
    struct stat st;
    if (!x->whiteouts)
        return 0;
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return seen_add(&x->seen, st.st_ino);
}

/* ---- one function for each kind: 0 or -errno, -EEXIST if something is in the way ---- */

static int make_file(int dir, const char *leaf, const struct entry *entry, int *ret_fd)
{
    mode_t mode = (entry->mode & 01777) | 0400;
    int fd = (int)px_sys(SYS_openat, dir, leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    *ret_fd = fd;
    return fd < 0 ? fd : 0;
}

static int make_directory(int dir, const char *leaf, const struct entry *entry)
{
    mode_t mode = (entry->mode & 01777) | 0700;
    struct stat st;
    long r = px_sys(SYS_mkdirat, dir, leaf, mode);
    if (r != -EEXIST)
        return (int)r;
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -EEXIST;
    if ((st.st_mode & 07777) == mode)
        return 0;
    px_auto_fd int fd = place_open(dir, leaf, O_RDONLY | O_DIRECTORY);
    return fd < 0 ? fd : fchmod(fd, mode) < 0 ? -errno : 0;
}

static int make_symlink(int dir, const char *leaf, const struct entry *entry)
{
    long r = px_sys(SYS_symlinkat, entry->target, dir, leaf);
    if (r < 0)
        return (int)r;
    return utimensat(dir, leaf, epoch, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Nobody but this process writes in the tree, so that what was looked at is what is linked; and no part of the way is a
 * link. (By descriptor, with AT_EMPTY_PATH, it would take a privilege that the helper does not have.) */
static int make_hardlink(struct extract *x, int dir, const char *leaf, const struct entry *entry)
{
    char way[NAME_SIZE];
    const char *slash = strrchr(entry->target, '/'), *last = slash ? slash + 1 : entry->target;
    size_t n = slash ? (size_t)(slash - entry->target) : 0;
    struct stat st, old;
    memcpy(way, entry->target, n);
    way[n] = '\0';
    px_auto_fd int from = place_open(x->root, n ? way : ".", O_PATH | O_DIRECTORY);
    if (from < 0)
        return -ENOLINK;
    if (*last == '\0' || fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return -ENOLINK;
    if (fstatat(dir, leaf, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_ino == st.st_ino && old.st_dev == st.st_dev)
        return 0;               /* it is that file already */
    return (int)px_sys(SYS_linkat, from, last, dir, leaf, 0);
}

/* ---- */

static int make(struct extract *x, int dir, const char *leaf, const struct entry *entry, int *ret_fd)
{
    switch (entry->kind) {
    case KIND_FILE:
        return make_file(dir, leaf, entry, ret_fd);
    case KIND_DIRECTORY:
        return make_directory(dir, leaf, entry);
    case KIND_SYMLINK:
        return make_symlink(dir, leaf, entry);
    case KIND_HARDLINK:
        return make_hardlink(x, dir, leaf, entry);
    case KIND_DROPPED:
        break;
    }
    x->dropped++;               /* a device or a pipe is never made; what it would have replaced goes all the same */
    return place_clear(x, dir, leaf);
}

static int write_data(struct tar *t, const struct entry *entry, int fd, struct px_err *e)
{
    const uint8_t *data;
    long n;
    while ((n = tar_data(t, &data, e)) > 0) {
        int r = px_write_full(fd, data, (size_t)n);
        if (r < 0)
            return cannot(entry, r, e);
    }
    if (n < 0)
        return -1;
    return futimens(fd, epoch) < 0 ? cannot(entry, errno, e) : 0;
}

static int count(struct extract *x, const struct entry *entry, struct px_err *e)
{
    if (++x->entries > x->limits.entries)
        return refuse(entry, "the archive has more entries than px unpacks", e);
    if (entry->size > x->limits.bytes || x->bytes > x->limits.bytes - entry->size)
        return refuse(entry, "the archive's files are larger than px unpacks", e);
    x->bytes += entry->size;
    return 0;
}

/* Makes it, and opens it if it is a file. What is in the way goes, or refuses the entry. */
int extract_open(struct extract *x, const struct entry *entry, bool replace, int *ret_fd, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    const char *leaf;
    int dir, r;

    if (count(x, entry, e) < 0)
        return -1;
    if (entry->name[0] == '\0')
        return 0;               /* the root itself: it is there, and its mode is ours */
    if (x->whiteouts && (r = hide_entry(x, entry, e)) != 0)
        return r < 0 ? -1 : 0;
    if (place_parent(x, entry->name, true, &dir, &leaf, e) < 0)
        return -1;
    r = make(x, dir, leaf, entry, &fd);
    if (r == -EEXIST && !replace)
        return refuse(entry, "something else of the archive has the same name", e);
    if (r == -EEXIST && (r = place_clear(x, dir, leaf)) == 0)
        r = make(x, dir, leaf, entry, &fd);
    if (r == -ENOLINK)
        return refuse(entry, "it is a hard link to something that is not a file of the archive", e);
    if (r == 0 && entry->kind != KIND_DROPPED)
        r = note(x, dir, leaf);
    if (r < 0)
        return cannot(entry, r, e);
    *ret_fd = px_fd_take(&fd);
    return 0;
}

int extract_entry(struct extract *x, struct tar *t, const struct entry *entry, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;

    if (extract_open(x, entry, true, &fd, e) < 0)
        return -1;
    return fd >= 0 ? write_data(t, entry, fd, e) : 0;
}

/* ---- times of directories ---- */

static int settle(int fd, unsigned depth)
{
    DIR *list = fdopendir(fd);
    struct dirent *entry;
    int r = 0;
    if (!list) {
        (void)px_fd_close(fd);
        return -ENOMEM;
    }
    while (r == 0 && (entry = readdir(list))) {
        if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
            continue;
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, ".."))
            continue;
        int below = depth < DEPTH_MAX ? place_open(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY) : -ELOOP;
        bool other = below == -ENOTDIR || (below == -ELOOP && entry->d_type == DT_UNKNOWN);
        r = other ? 0 : below < 0 ? below : settle(below, depth + 1);
    }
    if (r == 0 && futimens(dirfd(list), epoch) < 0)
        r = -errno;
    (void)closedir(list);
    return r;
}

int extract_finish(struct extract *x, struct px_err *e)
{
    int r = fchmod(x->root, 0755) < 0 ? -errno : 0;     /* one that only its maker may enter is of no use to a box */
    int fd = r < 0 ? r : place_open(x->root, ".", O_RDONLY | O_DIRECTORY);
    r = fd < 0 ? fd : settle(fd, 0);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot finish the tree") : 0;
}
