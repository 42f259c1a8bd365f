/* All files of the project that are not ignored, by descriptors: no link is followed. What git tracks is never ignored,
 * whatever the patterns say; that is git's own rule. */
#include <dirent.h>
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
#include "base/sys.h"
#include "base/text.h"
#include "helpers/git/git.h"

enum { PATH_SIZE = 4096, DEPTH_MAX = 128 };

struct walk {
    struct look *look;
    char path[PATH_SIZE];       /* from the top */
    size_t prefix;              /* how much of it leads to the project */
    bool tracked_only;          /* it is below a directory that is ignored */
};

static int cannot(const struct walk *w, int sys, const char *why, struct px_err *e)
{
    const char *name = w->path[w->prefix] ? w->path + w->prefix : ".";
    px_fail(e, why ? PX_E_LIMIT : PX_E_IO, sys, "cannot pack '%.300s'", name);
    return why ? px_why(e, "%s", why) : -1;
}

bool git_is_skipped(const char *name)
{
    static const char *const names[] = {".git",          ".px",  "__pycache__", "target", "dist", ".mypy_cache",
                                        ".pytest_cache", ".nox", ".tox",        ".venv",  "venv", ".ruff_cache"};
    size_t n = strlen(name);
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (px_equal(name, names[i]))
            return true;
    return n > 4 && px_equal(name + n - 4, ".pyc");
}

bool git_is_made(const char *name, bool top)
{
    static const char *const names[] = {".coverage", ".eggs", "htmlcov", "node_modules"};
    static const char *const ends[] = {".egg-info", ".pyo"};
    size_t n = strlen(name);
    for (size_t i = 0; i < PX_COUNT_OF(names); i++)
        if (px_equal(name, names[i]))
            return true;
    for (size_t i = 0; i < PX_COUNT_OF(ends); i++)
        if (n > strlen(ends[i]) && px_equal(name + n - strlen(ends[i]), ends[i]))
            return true;
    return top && px_equal(name, "build");      /* deeper it may well be a package of that name */
}

/* The path of a directory ends with a slash. */
static bool is_tracked(const struct walk *w, bool directory)
{
    git_index *index = w->look->index;
    if (!index)
        return false;
    int r = directory ? git_index_find_prefix(NULL, index, w->path) : git_index_find(NULL, index, w->path);
    if (r < 0)
        git_error_clear();
    return r == 0;
}

/* 1, 0, -1 */
static int is_ignored(const struct walk *w, const char *name, unsigned depth, struct px_err *e)
{
    int ignored = 1;
    if (!w->tracked_only && !git_is_made(name, depth == 0) && git_ignore_path_is_ignored(&ignored, w->look->repo, w->path) < 0)
        return git_refused("judge what is ignored", e);
    return ignored;
}

static int walk(struct walk *w, int fd, unsigned depth, struct px_err *e);

static int enter(struct walk *w, int dir, const char *name, unsigned depth, struct px_err *e)
{
    size_t n = strlen(w->path);
    if (depth >= DEPTH_MAX || n + 2 > sizeof w->path)
        return cannot(w, 0, "It lies more than 128 directories deep, or its path is too long.", e);
    memcpy(w->path + n, "/", 2);
    int ignored = is_ignored(w, name, depth, e);
    if (ignored < 0 || (ignored && !is_tracked(w, true)))
        return ignored < 0 ? -1 : 0;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return cannot(w, fd, NULL, e);
    bool before = w->tracked_only;
    w->tracked_only = ignored;
    int r = walk(w, fd, depth + 1, e);
    w->tracked_only = before;
    return r;
}

static int visit(struct walk *w, int dir, const char *name, unsigned depth, struct px_err *e)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : cannot(w, errno, NULL, e);
    if (S_ISDIR(st.st_mode))
        return enter(w, dir, name, depth, e);
    int ignored = is_ignored(w, name, depth, e);
    if (ignored < 0 || (ignored && !is_tracked(w, false)))
        return ignored < 0 ? -1 : 0;
    bool ours = S_ISREG(st.st_mode) || S_ISLNK(st.st_mode);
    return git_record(w->look, ours ? PX_GIT_FILE : PX_GIT_SPECIAL, w->path + w->prefix, e);
}

static int visit_all(struct walk *w, DIR *stream, unsigned depth, struct px_err *e)
{
    size_t at = strlen(w->path);
    int r = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry)
            return errno ? cannot(w, errno, NULL, e) : 0;
        size_t n = strlen(entry->d_name);
        if (px_equal(entry->d_name, ".") || px_equal(entry->d_name, "..") || git_is_skipped(entry->d_name))
            continue;
        if (at + n + 1 >= sizeof w->path)
            return cannot(w, 0, "The names in it are too long.", e);
        memcpy(w->path + at, entry->d_name, n + 1);
        r = visit(w, dirfd(stream), entry->d_name, depth, e);
        if (r < 0)
            return -1;
        w->path[at] = '\0';
    }
}

static int walk(struct walk *w, int fd, unsigned depth, struct px_err *e)
{
    int copy = (int)px_sys(SYS_openat, fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) {
        (void)px_fd_close(copy);
        return cannot(w, copy < 0 ? copy : -ENOMEM, NULL, e);
    }
    int r = git_rules(w->look, fd, w->path, e);
    r = r < 0 ? -1 : visit_all(w, stream, depth, e);
    (void)closedir(stream);
    return r;
}

/* .ignore files above the project count as well; .gitignore files there the library finds itself. */
static int rules_above(struct walk *w, struct px_err *e)
{
    const char *sub = w->look->sub;
    px_auto_fd int dir = (int)px_sys(SYS_openat, GIT_TOP, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t at = 0; sub[at] && dir >= 0;) {
        char part[NAME_MAX + 1];
        size_t n = strcspn(sub + at, "/");
        if (git_rules(w->look, dir, w->path, e) < 0)
            return -1;
        if (px_fmt(part, sizeof part, "%.*s", (int)n, sub + at) < 0)
            return cannot(w, ENAMETOOLONG, NULL, e);
        int next = (int)px_sys(SYS_openat, dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)px_fd_close(dir);
        dir = next;
        at += n + (sub[at + n] == '/');
        (void)px_fmt(w->path, sizeof w->path, "%.*s%s", (int)at, sub, sub[at] ? "" : "/");
    }
    if (dir < 0)
        return cannot(w, dir, NULL, e);
    w->prefix = strlen(w->path);
    return walk(w, dir, 0, e);
}

int git_walk(struct look *l, struct px_err *e)
{
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return px_no_memory(e);
    w->look = l;
    int r = strlen(l->sub) + 2 > sizeof w->path ? cannot(w, ENAMETOOLONG, NULL, e) : rules_above(w, e);
    free(w);
    return r;
}
