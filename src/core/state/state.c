#include "state/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "state/identity.h"
#include "state/key.h"

enum { DIRECTORY = O_RDONLY | O_DIRECTORY, OTHERS = 022, LOCK_TRIES = 10000, TRIES = 100 };

static const char mark_name[] = PX_STATE_MARK, mark_new[] = ".new-" PX_STATE_MARK;

/* ---- parts ---- */

static int check_part(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_uid == geteuid() && (st.st_mode & OTHERS) == 0 ? 0 : -EPERM;
}

/* chmod: the caller's umask may have removed even the owner's permissions. */
static int make_directory(int dir, const char *name)
{
    struct stat st;
    if (mkdirat(dir, name, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    px_auto_fd int fd = px_open_in_root(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 0777) == 0700 || st.st_uid != geteuid())
        return 0;               /* the next open reports what is wrong */
    return px_node_chmod(fd, 0700);
}

/* Without O_NOFOLLOW: with it, openat2 fails with ENOTDIR instead of ELOOP for a link at the end. */
int px_state_part(int dir, const char *path, bool make)
{
    px_auto_fd int fd = px_open_in_root(dir, path, DIRECTORY, 0);
    if (fd == -ENOENT && make) {
        if (strchr(path, '/'))
            return -EINVAL;     /* mkdirat would follow a link in the path */
        int made = make_directory(dir, path);
        if (made < 0)
            return made;
        fd = px_open_in_root(dir, path, DIRECTORY, 0);
    }
    int r = fd < 0 ? fd : check_part(fd);
    return r < 0 ? r : px_fd_take(&fd);
}

ssize_t px_state_read(int dir, const char *name, char *out, size_t size)
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    ssize_t n = px_read_full(fd, out, size);
    if (n == (ssize_t)size)
        n = -EFBIG;
    out[n < 0 ? 0 : n] = '\0';
    return n;
}

int px_state_write(int dir, const char *name, const void *data, size_t len)
{
    char temporary[NAME_MAX + 1];
    int r = px_fmt(temporary, sizeof temporary, ".new-%s", name);
    if (r < 0)
        return r;
    if (unlinkat(dir, temporary, 0) < 0 && errno != ENOENT)
        return -errno;
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, temporary, flags, 0600);
    r = fd < 0 ? fd : px_write_full(fd, data, len);
    if (r >= 0 && renameat(dir, temporary, dir, name) < 0)
        r = -errno;
    return r;
}

/* ---- a path that the user named ---- */

/* Makes each missing part, and enters it without following a link. */
static int walk_path(const char *path)
{
    char part[NAME_MAX + 1];
    px_auto_fd int at = (int)px_sys(SYS_openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (path += strspn(path, "/"); at >= 0 && *path; path += strspn(path, "/")) {
        size_t n = strcspn(path, "/");
        if (n > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(part, path, n);
        part[n] = '\0';
        path += n;
        if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
            return -errno;
        int next = (int)px_sys(SYS_openat, at, part, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
        struct stat st;
        if (next == -ENOTDIR && fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
            next = -ELOOP;
        (void)px_fd_close(at);
        at = next;
    }
    return at < 0 ? at : (int)px_sys(SYS_openat, at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes every missing directory of the path. */
static int make_path(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (char *p = part + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char was = *p;
        *p = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return -errno;
        *p = was;
        if (!was)
            return 0;
    }
}

int px_state_path(const char *path)
{
    if (*path == '\0')
        return -ENOENT;
    if (*path != '/')
        return walk_path(path);
    int r = make_path(path);
    return r < 0 ? r : (int)px_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- the mark ---- */

static void derive_mac(const uint8_t key[PX_MAC_SIZE], const char *purpose, const char *kind, const uint64_t identity[3],
                   uint8_t ret[PX_MAC_SIZE])
{
    struct px_mac mac;
    px_mac_begin(&mac, key);
    px_mac_add(&mac, purpose, strlen(purpose) + 1);
    px_mac_add(&mac, kind, strlen(kind) + 1);
    px_mac_add(&mac, identity, 3 * sizeof *identity);
    px_mac_end(&mac, ret);
}

/* 1: the mark is right; 0: it is missing or wrong. */
static bool has_mark(int fd, const char *mark)
{
    char text[PX_MAC_HEX + 1];
    ssize_t n = px_state_read(fd, mark_name, text, sizeof text);
    return n == PX_MAC_HEX - 1 && px_mac_equal(text, mark, PX_MAC_HEX - 1);
}

/* -EBUSY: another process has held it for too long. */
static int lock_wait(int fd)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    long r = -EWOULDBLOCK;
    for (int i = 0; i < LOCK_TRIES && (r == -EWOULDBLOCK || r == -EINTR); i++) {
        r = px_sys(SYS_flock, fd, LOCK_EX | LOCK_NB);
        if (r < 0)
            (void)nanosleep(&moment, NULL);
    }
    return r == -EWOULDBLOCK ? -EBUSY : (int)r;
}

/* Whether the directory is empty, or has only this one file. */
static bool is_empty_but(int fd, const char *file)
{
    int copy = (int)px_sys(SYS_openat, fd, ".", DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    bool empty = list != NULL;
    if (!list)
        (void)px_fd_close(copy);
    for (struct dirent *entry; empty && (entry = readdir(list));)
        empty = px_equal(entry->d_name, ".") || px_equal(entry->d_name, "..") || px_equal(entry->d_name, file);
    if (list)
        (void)closedir(list);
    return empty;
}

/* Under the lock: two processes that begin at the same time agree. A process that was killed here has left mark_new. */
static int write_mark(int fd, const char *mark)
{
    int r = lock_wait(fd);
    if (r < 0)
        return r;
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_nlink == 0)
        r = -ESTALE;            /* removed meanwhile */
    else if (!has_mark(fd, mark))
        r = is_empty_but(fd, mark_new) ? px_state_write(fd, mark_name, mark, PX_MAC_HEX - 1) : -EKEYREJECTED;
    (void)px_sys(SYS_flock, fd, LOCK_UN);
    return r;
}

static int open_marked(const struct px_state_place *place, const uint8_t key[PX_MAC_SIZE], bool make, struct px_state *ret)
{
    uint64_t identity[3];
    uint8_t mark[PX_MAC_SIZE];
    char text[PX_MAC_HEX];
    px_auto_fd int fd = px_state_part(place->parent, place->name, make);
    int r = fd < 0 ? fd : px_state_identity(fd, identity);
    if (r < 0)
        return r;
    derive_mac(key, "px-mark 1", place->kind, identity, mark);
    px_mac_hex(mark, text);
    if (!has_mark(fd, text) && (r = write_mark(fd, text)) < 0)
        return r;
    derive_mac(key, "px-seal 1", place->kind, identity, ret->seal);
    ret->fd = px_fd_take(&fd);
    return 0;
}

/* ---- opening ---- */

int px_state_refuse(const char *shown, int err, struct px_err *e)
{
    static const struct {
        int err;
        const char *why;
    } rows[] = {
        {-ELOOP, "It is a link, or there is one on the way."},
        {-ENOTDIR, "It is not a directory."},
        {-EPERM, "It belongs to another user, or others can write to it."},
        {-EKEYREJECTED, "It was not made by px on this machine: it came with a repository or a copy, or PX_HOME was "
                        "another one."},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        if (rows[i].err == err) {
            (void)px_fail(e, PX_E_STATE, 0, "px does not use '%s'", shown);
            return px_why(e, "%s", rows[i].why);
        }
    return px_fail(e, PX_E_STATE, err, "px cannot use '%s'", shown);
}

int px_state_open(const struct px_state_place *place, bool make, struct px_state *ret, struct px_err *e)
{
    uint8_t key[PX_MAC_SIZE];
    struct stat st;
    if (!make && fstatat(place->parent, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 1;
    if (px_state_key(place->home, key, e) < 0)
        return -1;
    int r = -ESTALE;
    /* Another process may just have removed it. */
    for (int i = 0; i < TRIES && (r == -ESTALE || (make && r == -ENOENT)); i++)
        r = open_marked(place, key, make, ret);
    return r < 0 ? px_state_refuse(place->shown, r, e) : 0;
}

/* Waits for the lock: of two processes that leave at the same time, the second must see that it is the last one. */
void px_state_remove(int parent, const char *name)
{
    px_auto_fd int fd = px_state_part(parent, name, false);
    if (fd < 0 || lock_wait(fd) < 0)
        return;
    if (is_empty_but(fd, mark_name) && unlinkat(fd, mark_name, 0) == 0)
        (void)unlinkat(parent, name, AT_REMOVEDIR);
}
