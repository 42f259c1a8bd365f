#include "kernel/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

enum { DEPTH_MAX = 64 };

struct walk {
    int top_fd;
    int64_t since_sec;
    bool removing;
    int changed;
    int err;
    unsigned moved;             /* directories hoisted to the top because they lay too deep */
};

static DIR *open_directory(int dirfd, const char *name)
{
    int fd = (int)px_sys(SYS_openat, dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    DIR *dir = fdopendir(fd);
    if (!dir)
        (void)px_fd_close(fd);
    return dir;
}

static void strip_file(struct walk *w, int dirfd, const char *name, const struct stat *st)
{
    bool set_id = (st->st_mode & S_ISUID) || (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
    if (!S_ISREG(st->st_mode) || !set_id || st->st_ctim.tv_sec < w->since_sec)
        return;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat now;
    if (fd < 0 || fstat(fd, &now) < 0 || !S_ISREG(now.st_mode) ||
        fchmod(fd, now.st_mode & 07777 & ~(mode_t)(S_ISUID | S_ISGID)) < 0)
        w->err = w->err < 0 ? w->err : -EPERM;
    else
        w->changed++;
}

/* A directory below the depth bound moves to the top and is met again there, so depth never costs stack or descriptors. */
static void hoist(struct walk *w, int dirfd, const char *name)
{
    char new_name[48];
    (void)px_fmt(new_name, sizeof new_name, ".px-hoisted-%u", w->moved++);
    long r = px_sys(SYS_renameat2, dirfd, name, w->top_fd, new_name, 1 /* RENAME_NOREPLACE */);
    if (r < 0)
        w->err = w->err < 0 ? w->err : (int)r;
}

static void walk_directory(struct walk *w, DIR *dir, int depth);

static void walk_entry(struct walk *w, DIR *dir, const char *name, int depth)
{
    int fd = dirfd(dir);
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISDIR(st.st_mode)) {
        if (depth >= DEPTH_MAX) {
            if (w->removing)
                hoist(w, fd, name);
            else
                w->err = w->err < 0 ? w->err : -ELOOP;
            return;
        }
        if (w->removing)        /* a directory without permissions must not stop its own removal */
            (void)px_sys(SYS_fchmodat, fd, name, 0700);
        DIR *sub = open_directory(fd, name);
        if (sub)
            walk_directory(w, sub, depth + 1);
    } else if (!w->removing) {
        strip_file(w, fd, name, &st);
    }
    if (w->removing) {
        long r = px_sys(SYS_unlinkat, fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
        if (r < 0 && r != -ENOTEMPTY && w->err == 0)
            w->err = (int)r;
    }
}

static void walk_directory(struct walk *w, DIR *dir, int depth)
{
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            walk_entry(w, dir, entry->d_name, depth);
    (void)closedir(dir);
}

static int run_walk(struct walk *w)
{
    DIR *dir = open_directory(w->top_fd, ".");
    if (!dir)
        return -errno;
    walk_directory(w, dir, 0);
    return w->err;
}

int px_tree_strip(int dirfd, int64_t since_sec)
{
    struct walk w = {.top_fd = dirfd, .since_sec = since_sec};
    int r = run_walk(&w);
    return r < 0 ? r : w.changed;
}

int px_tree_empty(int dirfd)
{
    unsigned before = 1, moved = 0;
    int r = 0;
    for (int round = 0; round < 4096 && before != moved; round++) {     /* each round that hoists needs one more */
        struct walk w = {.top_fd = dirfd, .removing = true, .moved = moved};
        before = moved;
        r = run_walk(&w);
        moved = w.moved;
    }
    return r;
}
