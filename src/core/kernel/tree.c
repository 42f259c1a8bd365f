#include "kernel/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/node.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/mount.h"

/* Holds one descriptor at a time, at any depth: goes down by name and up by "..", which is compared with the
 * directory that it left. The names of directories still to be visited are kept in memory, up to a limit. */

enum { NAMES_MAX = 1 << 20 };

struct name {
    struct name *next;
    char text[];
};

struct level {
    struct level *up;
    dev_t dev;
    ino_t ino;
    uid_t uid;
    mode_t was;                 /* its mode, where the walk had to change it */
    bool opened;
    struct name *todo;          /* directories of this level that were not entered yet */
    char own[];                 /* its name in the level above */
};

enum purpose { STRIP, EMPTY, FIND, MEASURE, GIVE };

struct walk {
    enum purpose purpose;
    int fd;                     /* the present directory */
    struct level *level;
    size_t names;
    int64_t since_sec;
    int changed;                /* STRIP: how many files; FIND: the px_tree_found that came first */
    struct px_kernel_tree_search *search;      /* FIND */
    uid_t owner;                /* of the top */
    struct px_tree_size *size;  /* MEASURE */
    const struct px_tree_ids *from, *to;        /* GIVE */
    uint64_t mount;             /* GIVE: the mount that the walk stays on */
    int err;                    /* the first error */
};

static void note_error(struct walk *w, int err)
{
    w->err = w->err < 0 ? w->err : err;
    /* else the entry has just been removed */
    if (w->size && err != -ENOENT && err != -ENOTDIR && err != -ELOOP)
        w->size->unread = true;
}

/* ---- privileges of a file ---- */

static const char capability[] = "security.capability";

static bool is_set_id(const struct stat *st)
{
    return (st->st_mode & S_ISUID) || (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
}

/* Of dirfd/name without following it, or of dirfd itself. 1, 0 or -errno. Uses a path in /proc, as the call takes
 * neither a directory (before Linux 6.13) nor O_PATH. */
static int has_capability(int dirfd, const char *name)
{
    char path[32 + NAME_MAX];
    if (px_fmt(path, sizeof path, "/proc/self/fd/%d%s%s", dirfd, name ? "/" : "", name ? name : "") < 0)
        return -ENAMETOOLONG;
    long r = px_sys(name ? SYS_lgetxattr : SYS_getxattr, path, capability, NULL, 0);
    if (r >= 0 || r == -EOVERFLOW)      /* also a capability whose owner has no number here */
        return 1;
    if (r == -ENOENT && name && faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;               /* the file is gone; otherwise there is no /proc, and the answer is unknown */
    return r == -ENODATA || r == -EOPNOTSUPP ? 0 : (int)r;
}

/* Which privileges a regular file gives to the process that executes it: a px_tree_found or -errno. */
static int privileges_of(int dirfd, const char *name, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return PX_TREE_NOTHING;
    if (is_set_id(st))
        return PX_TREE_SET_ID;
    int r = has_capability(dirfd, name);
    return r > 0 ? PX_TREE_CAPABILITY : r;
}

int px_kernel_tree_search_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 ? -errno : privileges_of(fd, NULL, &st);
}

/* Only the administrator may remove the attribute. But every chown removes it, and the owner may make one that
 * changes nothing. */
static int strip_capability(int fd)
{
    long r = px_sys(SYS_fchownat, fd, "", -1, -1, AT_EMPTY_PATH);
    int left = r < 0 ? (int)r : has_capability(fd, NULL);
    return left > 0 ? -EPERM : left;
}

int px_kernel_tree_strip_file(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return 0;
    int capable = has_capability(fd, NULL);
    int r = is_set_id(&st) ? px_node_chmod(fd, st.st_mode & 07777 & ~(mode_t)(S_ISUID | S_ISGID)) : 0;
    if (r >= 0 && capable > 0)
        r = strip_capability(fd);
    return r < 0 ? r : capable < 0 ? capable : capable > 0 || is_set_id(&st);
}

/* ---- what is done to an entry ---- */

static void note_found(struct walk *w, enum px_tree_found what, const char *name)
{
    if (w->changed)
        return;
    w->changed = (int)what;
    if (px_fmt(w->search->name, sizeof w->search->name, "%s", name) < 0)
        w->search->name[0] = '\0';
}

/* Something in a directory of that owner could not be inspected, nor the directory be opened. The box of FIND has
 * the permissions of the caller, and of the owner of the bind: it could open such a directory, but no other. */
static void note_refused(struct walk *w, int err, uid_t owner, const char *name)
{
    if (w->purpose != FIND || err != -EACCES) {
        if (err != -ENOENT)
            note_error(w, err);
    } else if (owner == geteuid() || owner == w->owner) {
        note_found(w, PX_TREE_CLOSED, name);
    }
}

/* Whether the present directory contains the mark, and another process has locked it. */
static bool in_use(const struct walk *w, const char *name)
{
    if (!w->search->mark || !px_equal(name, w->search->mark))
        return false;
    long r = px_sys(SYS_flock, w->fd, LOCK_SH | LOCK_NB);
    if (r >= 0)
        (void)px_sys(SYS_flock, w->fd, LOCK_UN);
    return r == -EWOULDBLOCK;
}

static void find_entry(struct walk *w, const char *name, const struct stat *st)
{
    if (in_use(w, name)) {
        note_found(w, PX_TREE_IN_USE, w->level->own);
        return;
    }
    int r = privileges_of(w->fd, name, st);
    if (r < 0)
        note_refused(w, r, w->level->uid, w->level->own);
    else if (r > 0)
        note_found(w, (enum px_tree_found)r, name);
}

static void strip_entry(struct walk *w, const char *name, const struct stat *st)
{
    int r = st->st_ctim.tv_sec < w->since_sec ? 0 : privileges_of(w->fd, name, st);
    if (r == 0)
        return;
    px_auto_fd int fd = r < 0 ? r : (int)px_sys(SYS_openat, w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 ? fd : px_kernel_tree_strip_file(fd);
    if (r < 0)
        note_refused(w, r, w->level->uid, name);
    else
        w->changed += r;
}

static uint32_t new_owner(uint32_t id, uint32_t first, uint32_t second, uint32_t to)
{
    return id != to && (id == first || id == second) ? to : (uint32_t)-1;       /* -1: unchanged */
}

int px_kernel_tree_give_one(int fd, const struct px_tree_ids from[2], const struct px_tree_ids *to)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    uint32_t uid = new_owner(st.st_uid, from[0].uid, from[1].uid, to->uid), gid = new_owner(st.st_gid, from[0].gid, from[1].gid, to->gid);
    bool same = uid == (uint32_t)-1 && gid == (uint32_t)-1;
    bool elsewhere = S_ISREG(st.st_mode) && st.st_nlink > 1 && st.st_uid == geteuid(); /* may have a name outside of the tree */
    return same || elsewhere ? 0 : (int)px_sys(SYS_fchownat, fd, "", uid, gid, AT_EMPTY_PATH);
}

/* A file with several names is counted once for each: never too little. */
static void add_size(struct px_tree_size *size, const struct stat *st)
{
    size->bytes += (uint64_t)st->st_blocks * 512;
    size->files++;
}

static void remember_name(struct walk *w, const char *name)
{
    size_t n = strlen(name) + 1;
    struct name *item = w->names < NAMES_MAX ? malloc(sizeof *item + n) : NULL;
    if (!item) {
        note_error(w, -E2BIG);
        return;
    }
    w->names++;
    memcpy(item->text, name, n);
    item->next = w->level->todo;
    w->level->todo = item;
}

static void give_entry(struct walk *w, const char *name)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    uint64_t mount;
    int r = fd < 0 ? fd : px_mount_of(fd, &mount);
    if (r == 0 && mount != w->mount)
        return;
    if (r == 0)
        r = px_kernel_tree_give_one(fd, w->from, w->to);
    if (r == 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        remember_name(w, name);
    if (r < 0 && r != -ENOENT)
        note_error(w, r);
}

static void visit_entry(struct walk *w, const char *name)
{
    struct stat st;
    if (w->purpose == GIVE) {
        give_entry(w, name);
        return;
    }
    if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        note_refused(w, -errno, w->level->uid, w->level->own);
        return;
    }
    if (w->purpose == MEASURE)
        add_size(w->size, &st);
    if (S_ISDIR(st.st_mode)) {
        remember_name(w, name);
    } else if (w->purpose == EMPTY) {
        long r = px_sys(SYS_unlinkat, w->fd, name, 0);
        if (r < 0)
            note_error(w, (int)r);
    } else if (w->purpose == STRIP) {
        strip_entry(w, name, &st);
    } else if (w->purpose == FIND) {
        find_entry(w, name, &st);
    }
}

/* ---- moving through the tree ---- */

/* A second descriptor of a directory, for reading it. It needs search permission, as ".." does. */
static int open_again(int fd)
{
    return (int)px_sys(SYS_openat, fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Takes the descriptor, which is of the present directory. */
static void read_directory(struct walk *w, int copy)
{
    DIR *dir = fdopendir(copy);
    if (!dir) {
        (void)px_fd_close(copy);
        note_error(w, -ENOMEM);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            visit_entry(w, entry->d_name);
    (void)closedir(dir);
}

/* Whether its mode denies the caller, who owns it, to read it; EMPTY must also write it. */
static bool is_closed(const struct walk *w, const struct stat *st)
{
    const mode_t need = w->purpose == EMPTY ? 0700 : 0500;
    bool applies = w->purpose == EMPTY || geteuid() != 0;
    return applies && st->st_uid == geteuid() && (st->st_mode & need) != need;
}

/* Opens a directory; one that is closed gets another mode for the walk. */
static int open_directory(struct walk *w, const char *name, struct stat *ret_st, bool *ret_opened)
{
    mode_t was = 0;
    int fd = (int)px_sys(SYS_openat, w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, ret_st) < 0)
        return px_fd_close(fd);
    bool closed = fd == -EACCES || (fd >= 0 && is_closed(w, ret_st));
    if (!closed || w->purpose == MEASURE)
        return fd;
    (void)px_fd_close(fd);
    fd = px_node_open_dir(w->fd, name, &was);
    if (fd >= 0 && fstat(fd, ret_st) < 0)
        return px_fd_close(fd);
    ret_st->st_mode = was;
    *ret_opened = true;
    return fd;
}

static struct level *new_level(struct walk *w, const struct stat *st, bool opened, const char *name)
{
    size_t n = strlen(name) + 1;
    struct level *level = calloc(1, sizeof *level + n);
    if (!level)
        return NULL;
    level->dev = st->st_dev;
    level->ino = st->st_ino;
    level->uid = st->st_uid;
    level->was = st->st_mode & 07777;
    level->opened = opened;
    level->up = w->level;
    memcpy(level->own, name, n);
    return level;
}

/* Enters `name` of the present directory, whose descriptor is closed. */
static void enter_directory(struct walk *w, const char *name)
{
    struct stat st;
    bool opened = false;
    px_auto_fd int fd = open_directory(w, name, &st, &opened);
    px_auto_fd int copy = fd < 0 ? fd : open_again(fd);
    if (copy < 0) {
        if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            note_refused(w, copy, st.st_uid, name);
        else if (w->purpose == STRIP)   /* it was moved, and is not searched */
            note_error(w, copy);
        return;
    }
    struct level *level = new_level(w, &st, opened, name);
    if (!level) {
        note_error(w, -ENOMEM);
        return;
    }
    w->level = level;
    (void)px_fd_close(w->fd);
    w->fd = px_fd_take(&fd);
    read_directory(w, px_fd_take(&copy));
}

/* A directory whose mode was changed for the walk gets its mode back when the walk leaves it, unless it is removed. */
static void close_again(const struct walk *w, const struct level *level)
{
    struct stat st;
    if (!level->opened || w->purpose == EMPTY || fstat(w->fd, &st) < 0)
        return;
    if (st.st_dev == level->dev && st.st_ino == level->ino)
        (void)fchmod(w->fd, level->was);
}

/* Returns to the level above; if the directory was moved meanwhile, the walk ends. */
static void leave_directory(struct walk *w)
{
    struct level *done = w->level;
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close_again(w, done);
    bool same = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == done->up->dev && st.st_ino == done->up->ino;
    w->level = done->up;
    if (!same) {
        note_error(w, fd < 0 ? fd : -ESTALE);
        while (w->level->todo) {        /* nothing more can be reached from here */
            struct name *item = w->level->todo;
            w->level->todo = item->next;
            free(item);
        }
    } else {
        (void)px_fd_close(w->fd);
        w->fd = px_fd_take(&fd);
        long r = w->purpose == EMPTY ? px_sys(SYS_unlinkat, w->fd, done->own, AT_REMOVEDIR) : 0;
        if (r < 0)
            note_error(w, (int)r);
    }
    free(done);
}

/* Opens the top by the caller's descriptor: its mode may have been closed since. */
static int open_top(struct walk *w, int top_fd, struct stat *ret_st, bool *ret_opened)
{
    int fd = open_again(top_fd);
    if (fstat(top_fd, ret_st) < 0)
        return fd < 0 ? fd : px_fd_close(fd);
    if (fd != -EACCES || w->purpose == MEASURE)
        return fd;
    *ret_opened = px_node_chmod(top_fd, (ret_st->st_mode & 07777) | 0700) >= 0;
    return open_again(top_fd);
}

static int run_walk(struct walk *w, int top_fd)
{
    struct stat st;
    bool opened = false;
    w->fd = open_top(w, top_fd, &st, &opened);
    int copy = w->fd < 0 ? w->fd : open_again(w->fd);
    w->level = copy < 0 ? NULL : new_level(w, &st, opened, "");
    if (!w->level) {
        (void)px_fd_close(w->fd);
        (void)px_fd_close(copy);
        return copy < 0 ? copy : -ENOMEM;
    }
    w->owner = st.st_uid;
    read_directory(w, copy);
    while (w->level->todo || w->level->up) {
        struct name *item = w->level->todo;
        if (w->purpose == FIND && w->changed && item) {         /* found: only return to the top */
            w->level->todo = item->next;
            free(item);
            continue;
        }
        if (!item) {
            leave_directory(w);
            continue;
        }
        w->level->todo = item->next;
        enter_directory(w, item->text);
        free(item);
    }
    close_again(w, w->level);
    free(w->level);
    (void)px_fd_close(w->fd);
    return w->err;
}

int px_kernel_tree_strip(int dirfd, int64_t since_sec)
{
    struct walk w = {.purpose = STRIP, .since_sec = since_sec};
    int r = run_walk(&w, dirfd);
    return r < 0 ? r : w.changed;
}

int px_kernel_tree_give(int dirfd, const struct px_tree_ids from[2], const struct px_tree_ids *to)
{
    struct walk w = {.purpose = GIVE, .from = from, .to = to};
    int r = px_mount_of(dirfd, &w.mount);
    return r < 0 ? r : run_walk(&w, dirfd);
}

int px_kernel_tree_empty(int dirfd)
{
    struct walk w = {.purpose = EMPTY};
    return run_walk(&w, dirfd);
}

int px_kernel_tree_search(int dirfd, struct px_kernel_tree_search *search)
{
    struct walk w = {.purpose = FIND, .search = search};
    search->name[0] = '\0';
    int r = run_walk(&w, dirfd);
    return w.changed ? w.changed : r == -EACCES ? PX_TREE_CLOSED : r;
}

void px_kernel_tree_measure(int fd, struct px_tree_size *size)
{
    struct walk w = {.purpose = MEASURE, .size = size};
    struct stat st;
    if (fstat(fd, &st) < 0)
        return;
    add_size(size, &st);
    if (S_ISDIR(st.st_mode))
        (void)run_walk(&w, fd);
}
