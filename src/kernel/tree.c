#include "kernel/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

/* One descriptor at a time, whatever the depth: down by name, up by "..", checked against what was left. The names of
 * directories still to be visited wait in memory, up to a bound. */

enum { NAMES_MAX = 1 << 20 };

struct name {
    struct name *next;
    char text[];
};

struct level {
    struct level *up;
    dev_t dev;
    ino_t ino;
    struct name *todo;          /* directories of this level that were not entered yet */
    char own[];                 /* its name in the level above */
};

enum purpose { STRIP, EMPTY, FIND, MEASURE };

struct walk {
    enum purpose purpose;
    int fd;                     /* the directory we are in */
    struct level *level;
    size_t names;
    int64_t since_sec;
    int changed;                /* FIND: 1 once something was found */
    char *found;
    size_t found_size;
    struct px_tree_size *size;  /* MEASURE */
    int err;                    /* the first thing that went wrong */
};

static void failed(struct walk *w, int err)
{
    w->err = w->err < 0 ? w->err : err;
    if (w->size && err != -ENOENT && err != -ENOTDIR && err != -ELOOP)          /* else it has just gone */
        w->size->unread = true;
}

/* ---- what is done to an entry ---- */

static bool is_set_id(const struct stat *st)
{
    return S_ISREG(st->st_mode) &&
           ((st->st_mode & S_ISUID) || (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP));
}

int px_tree_strip_file(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!is_set_id(&st))
        return 0;
    return fchmod(fd, st.st_mode & 07777 & ~(mode_t)(S_ISUID | S_ISGID)) < 0 ? -errno : 1;
}

static void strip_entry(struct walk *w, const char *name, const struct stat *st)
{
    if (!is_set_id(st) || st->st_ctim.tv_sec < w->since_sec)
        return;
    if (w->purpose == FIND) {
        w->changed = 1;
        if (px_fmt(w->found, w->found_size, "%s", name) < 0)
            w->found[0] = '\0';
        return;
    }
    px_auto_fd int fd = (int)px_sys(SYS_openat, w->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int r = fd < 0 ? fd : px_tree_strip_file(fd);
    if (r < 0)
        failed(w, r);
    else
        w->changed += r;
}

/* A file with several names is counted once for each, as if it were as many: never too little. */
static void add_size(struct px_tree_size *size, const struct stat *st)
{
    size->bytes += (uint64_t)st->st_blocks * 512;
    size->files++;
}

static void remember(struct walk *w, const char *name)
{
    size_t n = strlen(name) + 1;
    struct name *item = w->names < NAMES_MAX ? malloc(sizeof *item + n) : NULL;
    if (!item) {
        failed(w, -E2BIG);
        return;
    }
    w->names++;
    memcpy(item->text, name, n);
    item->next = w->level->todo;
    w->level->todo = item;
}

static void visit_entry(struct walk *w, const char *name)
{
    struct stat st;
    if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (w->purpose == MEASURE)
        add_size(w->size, &st);
    if (S_ISDIR(st.st_mode)) {
        remember(w, name);
    } else if (w->purpose == EMPTY) {
        long r = px_sys(SYS_unlinkat, w->fd, name, 0);
        if (r < 0)
            failed(w, (int)r);
    } else if (w->purpose != MEASURE) {
        strip_entry(w, name, &st);
    }
}

/* ---- moving about ---- */

static void read_directory(struct walk *w)
{
    int copy = (int)px_sys(SYS_openat, w->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        (void)px_fd_close(copy);
        failed(w, copy < 0 ? copy : -ENOMEM);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            visit_entry(w, entry->d_name);
    (void)closedir(dir);
}

/* Enters `name` of the present directory; the descriptor of that is given up. */
static void descend(struct walk *w, const char *name)
{
    struct stat st;
    size_t n = strlen(name) + 1;
    if (w->purpose == EMPTY)    /* a directory without permissions must not stop its own removal */
        (void)px_sys(SYS_fchmodat, w->fd, name, 0700);
    px_auto_fd int fd = (int)px_sys(SYS_openat, w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct level *level = fd < 0 || fstat(fd, &st) < 0 ? NULL : calloc(1, sizeof *level + n);
    if (!level) {
        failed(w, fd < 0 ? fd : -ENOMEM);
        return;
    }
    level->dev = st.st_dev;
    level->ino = st.st_ino;
    level->up = w->level;
    memcpy(level->own, name, n);
    w->level = level;
    (void)px_fd_close(w->fd);
    w->fd = px_fd_take(&fd);
    read_directory(w);
}

/* Back to the level above; if somebody moved us meanwhile, the walk is over. */
static void ascend(struct walk *w)
{
    struct level *done = w->level;
    struct stat st;
    px_auto_fd int fd = (int)px_sys(SYS_openat, w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool same = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == done->up->dev && st.st_ino == done->up->ino;
    w->level = done->up;
    if (!same) {
        failed(w, fd < 0 ? fd : -ESTALE);
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
            failed(w, (int)r);
    }
    free(done);
}

static int run_walk(struct walk *w, int top_fd)
{
    struct stat st;
    w->fd = (int)px_sys(SYS_openat, top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->level = w->fd < 0 || fstat(w->fd, &st) < 0 ? NULL : calloc(1, sizeof *w->level + 1);
    if (!w->level) {
        int r = w->fd < 0 ? w->fd : -ENOMEM;
        (void)px_fd_close(w->fd);
        return r;
    }
    w->level->dev = st.st_dev;
    w->level->ino = st.st_ino;
    read_directory(w);
    while (w->level->todo || w->level->up) {
        struct name *item = w->level->todo;
        if (w->purpose == FIND && w->changed && item) {         /* enough: only climb back */
            w->level->todo = item->next;
            free(item);
            continue;
        }
        if (!item) {
            ascend(w);
            continue;
        }
        w->level->todo = item->next;
        descend(w, item->text);
        free(item);
    }
    free(w->level);
    (void)px_fd_close(w->fd);
    return w->err;
}

int px_tree_strip(int dirfd, int64_t since_sec)
{
    struct walk w = {.purpose = STRIP, .since_sec = since_sec};
    int r = run_walk(&w, dirfd);
    return r < 0 ? r : w.changed;
}

int px_tree_empty(int dirfd)
{
    struct walk w = {.purpose = EMPTY};
    return run_walk(&w, dirfd);
}

int px_tree_find_set_id(int dirfd, char *ret_name, size_t size)
{
    struct walk w = {.purpose = FIND, .since_sec = INT64_MIN, .found = ret_name, .found_size = size};
    ret_name[0] = '\0';
    int r = run_walk(&w, dirfd);
    return w.changed ? 1 : r == -EACCES ? 0 : r;        /* what the caller cannot read, the box cannot either */
}

void px_tree_measure(int fd, struct px_tree_size *size)
{
    struct walk w = {.purpose = MEASURE, .size = size};
    struct stat st;
    if (fstat(fd, &st) < 0)
        return;
    add_size(size, &st);
    if (S_ISDIR(st.st_mode))
        (void)run_walk(&w, fd);
}
