/* Where the repository of a directory is: the next .git at or above it. A .git that is a file names a git directory
 * elsewhere; it is read only if it refers back to this directory, so that a project cannot make px read another
 * repository. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "transfer/worktree.h"

static int refuse(const struct px_git_place *place, const char *why, struct px_err *e)
{
    px_fail(e, PX_E_BUILD, 0, "cannot use '%.300s/.git'", place->top);
    (void)px_detail(e, "reason", "git_unreadable");
    (void)px_why(e, "%s", why);
    return px_fix(e, "See what `git status` says there, and mend or remove it.");
}

/* The first line of a small file in a directory. */
static int read_line(const char *dir, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    int r = px_fmt(path, sizeof path, "%s/%s", dir, name);
    ssize_t n = r < 0 ? r : px_read_file(AT_FDCWD, path, out, size);
    if (n < 0)
        return (int)n;
    out[strcspn(out, "\r\n")] = '\0';
    return strlen(out) <= (size_t)n && *out ? 0 : -EINVAL;
}

/* `text` as seen from `dir`, without links. */
static int resolve(const char *dir, const char *text, char out[PATH_MAX])
{
    char path[PATH_MAX];
    bool whole = *text == '/';
    if (px_fmt(path, sizeof path, "%s%s%s", whole ? "" : dir, whole ? "" : "/", text) < 0)
        return -ENAMETOOLONG;
    return realpath(path, out) ? 0 : -errno;
}

/* A linked working tree: its part of the git directory names the tree (gitdir) and the common directory (commondir). */
static bool is_linked(const struct px_git_place *place, const char *git, char common[PATH_MAX])
{
    char line[PATH_MAX], back[PATH_MAX], own[PATH_MAX];
    return read_line(git, "gitdir", line, sizeof line) == 0 && resolve(git, line, back) == 0 &&
           px_fmt(own, sizeof own, "%s/.git", place->top) >= 0 && px_equal(own, back) &&
           read_line(git, "commondir", line, sizeof line) == 0 && resolve(git, line, common) == 0 &&
           px_path_within(git, common);
}

/* A submodule: its git directory lies in that of a repository around it. */
static bool is_module(const struct px_git_place *place, const char *git)
{
    const char *inside = strstr(git, "/.git/modules/");
    size_t n = inside ? (size_t)(inside - git) : 0;
    return n > 0 && strncmp(place->top, git, n) == 0 && place->top[n] == '/';
}

static int follow_file(struct px_git_place *place, struct px_err *e)
{
    char line[PATH_MAX], git[PATH_MAX], common[PATH_MAX];
    if (read_line(place->top, ".git", line, sizeof line) < 0 || !px_starts_with(line, "gitdir: ") ||
        resolve(place->top, line + 8, git) < 0)
        return refuse(place, "It is a file, and does not name a git directory that is there.", e);
    bool linked = is_linked(place, git, common);
    if (!linked && !is_module(place, git))
        return refuse(place, "The git directory that it names does not know of this one.", e);
    return px_fmt(place->elsewhere, sizeof place->elsewhere, "%s", linked ? common : git) < 0
               ? refuse(place, "The path of the git directory that it names is too long.", e)
               : 0;
}

static bool same_device(const char *path, dev_t device)
{
    struct stat st;
    return stat(*path ? path : "/", &st) == 0 && st.st_dev == device;
}

/* 1: found, with `st` of its .git; 0: not here and not above. */
static int search(struct px_git_place *place, const struct stat *own, struct stat *st)
{
    char path[PATH_MAX + 8];
    for (;;) {
        if (px_fmt(path, sizeof path, "%s/.git", place->top) >= 0 && lstat(path, st) == 0)
            return 1;
        char *slash = strrchr(place->top, '/');
        if (!slash || !place->top[0])
            return 0;
        *slash = '\0';
        if (!same_device(place->top, own->st_dev))       /* like git, stops at the file system's boundary */
            return 0;
    }
}

/* In a world-writable directory anybody can put a .git above other users' projects. */
static bool is_trusted(const struct stat *git, const struct stat *project)
{
    return git->st_uid == project->st_uid || git->st_uid == geteuid() || git->st_uid == 0;
}

static int judge(struct px_git_place *place, const struct stat *git, const struct stat *project, struct px_err *e)
{
    if (!is_trusted(git, project))
        return refuse(place, "It belongs to another user than the project.", e);
    if (S_ISREG(git->st_mode))
        return follow_file(place, e);
    return S_ISDIR(git->st_mode) ? 0 : refuse(place, "It is neither a directory nor a file.", e);
}

int px_worktree_git_find(const char *dir, struct px_git_place *ret_place, struct px_err *e)
{
    struct px_git_place *place = ret_place;
    struct stat own = {0}, st = {0};
    *place = (struct px_git_place){0};
    if (px_fmt(place->top, sizeof place->top, "%s", px_equal(dir, "/") ? "" : dir) < 0)
        return px_fail(e, PX_E_VALUE, ENAMETOOLONG, "'%.100s...' is too long for a path", dir);
    int r = stat(dir, &own) < 0 ? -errno : search(place, &own, &st);
    if (r < 0)
        return px_fail(e, PX_E_IO, r, "cannot look at '%.200s'", dir);
    place->repository = r > 0;
    size_t n = strlen(place->top);
    if (r == 0 || n == 0)
        (void)px_fmt(place->top, sizeof place->top, "%s", r == 0 ? dir : "/");
    else if (dir[n] == '/')
        (void)px_fmt(place->sub, sizeof place->sub, "%s", dir + n + 1);
    if (r > 0 && n == 0)
        (void)px_fmt(place->sub, sizeof place->sub, "%s", dir + 1);
    return r > 0 ? judge(place, &st, &own, e) : 0;
}
