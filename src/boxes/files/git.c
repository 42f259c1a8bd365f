/* Git directories: the host's git obeys what lies in one (hooks, settings), so that nothing writes it unless told so.
 *
 * A git directory is called .git; or a .git that is a link or a file leads to it; or it looks like one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "files/files.h"

bool px_git_named(const char *rel)
{
    for (const char *at = rel; *at;) {
        size_t n = strcspn(at, "/");
        if (n == 4 && strncasecmp(at, ".git", 4) == 0)
            return true;
        at += n + (at[n] == '/');
    }
    return false;
}

static bool holds(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool px_git_is_directory(int dir)
{
    return holds(dir, "HEAD") && (holds(dir, "objects") || holds(dir, "commondir"));  /* of one work tree */
}

/* ---- where a .git leads ---- */

/* The first line of a small file, without the words before it; -EINVAL if it has others. */
static int read_line(int dir, const char *name, const char *before, char out[PATH_MAX])
{
    size_t skip = strlen(before);
    px_auto_fd int fd = px_open_in_root(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t n = fd < 0 ? fd : px_read_full(fd, out, PATH_MAX - 1);
    if (n < 0)
        return (int)n;
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (strncmp(out, before, skip) != 0 || out[skip] == '\0')
        return -EINVAL;
    memmove(out, out + skip, strlen(out + skip) + 1);
    return 0;
}

static bool is_same(int fd, int other)
{
    struct stat a, b;
    return other >= 0 && fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The place below the root of a directory that is named from the host's root; -EXDEV if it lies elsewhere. */
static int find_below(int root_fd, const char *path, char out[PATH_MAX])
{
    char top[PATH_MAX], link[64];
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", root_fd);
    ssize_t n = fd < 0 ? -1 : readlinkat(AT_FDCWD, link, top, sizeof top - 1);
    (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t m = n < 0 ? -1 : readlinkat(AT_FDCWD, link, out, PATH_MAX - 1);
    if (m < 0)
        return -EXDEV;
    out[m] = '\0';
    if (m <= n || memcmp(top, out, (size_t)n) != 0 || out[n] != '/')
        return -EXDEV;
    memmove(out, out + n + 1, (size_t)(m - n));
    px_auto_fd int again = px_open_in_root(root_fd, out, O_PATH | O_DIRECTORY, 0);
    return is_same(fd, again) ? 0 : -EXDEV;
}

/* `text` as it is written in the directory `dir` of the root; 1 if a link is on the way. */
static int follow_text(const struct px_root *root, const char *dir, const char *text, char out[PATH_MAX])
{
    if (text[0] == '/') {
        int r = find_below(root->fd, text, out);
        size_t n = strlen(text), m = r < 0 ? 0 : strlen(out);
        while (n > 1 && text[n - 1] == '/')
            n--;
        return r < 0 ? r : !(m < n && memcmp(text + n - m, out, m) == 0 && text[n - m - 1] == '/');
    }
    struct px_place place = {.root = root};
    if (px_fmt(place.rel, sizeof place.rel, "%s%s%s", dir, dir[0] ? "/" : "", text) < 0)
        return -ENAMETOOLONG;
    px_auto_fd int plain = px_open_in_root(root->fd, place.rel, O_PATH, 0);
    int r = px_files_resolve_links(&place, false);
    if (r >= 0)
        memcpy(out, place.rel, strlen(place.rel) + 1);
    return r < 0 ? r : plain == -ELOOP;
}

int px_git_leads_to(const struct px_root *root, const char *dir, struct px_git_target *ret)
{
    char *text = ret->common;   /* as room, until it is known */
    px_auto_fd int here = px_open_in_root(root->fd, dir[0] ? dir : ".", O_PATH | O_DIRECTORY, 0);
    struct stat st;
    if (here < 0 || fstatat(here, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return here < 0 ? here : -errno;
    ret->linked = S_ISLNK(st.st_mode);
    int r = ret->linked ? 0 : S_ISREG(st.st_mode) ? read_line(here, ".git", "gitdir: ", text) : -EISDIR;
    r = r < 0 ? r : follow_text(root, dir, ret->linked ? ".git" : text, ret->rel);
    if (r < 0)
        return r;
    ret->linked |= r > 0;
    px_auto_fd int git = px_open_in_root(root->fd, ret->rel[0] ? ret->rel : ".", O_PATH | O_DIRECTORY, 0);
    char line[PATH_MAX];
    r = git < 0 || read_line(git, "commondir", "", line) < 0 ? -ENOENT : follow_text(root, ret->rel, line, ret->common);
    if (r < 0)
        (void)px_fmt(ret->common, sizeof ret->common, "%s", ret->rel);
    ret->linked |= r > 0;
    return 0;
}

/* ---- whether a place is protected ---- */

bool px_git_within(const char *rel, const char *dir)
{
    size_t n = strlen(dir);
    return n == 0 || (strncmp(rel, dir, n) == 0 && (rel[n] == '/' || rel[n] == '\0'));
}

/* Also what lies above the target: who moves that away can make another one. */
static bool leads_here(const struct px_root *root, const char *dir, const char *rel)
{
    struct px_git_target *t = malloc(sizeof *t);
    bool found = !t;            /* without memory it is not known, and so not allowed */
    if (t && px_git_leads_to(root, dir, t) >= 0)
        found = px_git_within(rel, t->rel) || px_git_within(t->rel, rel) || px_git_within(rel, t->common) ||
                px_git_within(t->common, rel);
    free(t);
    return found;
}

bool px_git_protects(const struct px_place *place)
{
    char dir[PATH_MAX];
    const char *rel = place->rel;
    size_t len = strlen(rel);
    if (place->asked_git || px_git_named(rel))
        return true;
    for (size_t n = 0; n <= len; n = n == len ? len + 1 : n + 1 + strcspn(rel + n + 1, "/")) {
        memcpy(dir, rel, n);
        dir[n] = '\0';
        px_auto_fd int fd = px_open_in_root(place->root->fd, n ? dir : ".", O_PATH | O_DIRECTORY, 0);
        if (fd < 0)
            return false;       /* nothing is there yet, or it is the file */
        if (px_git_is_directory(fd) || (n < len && holds(fd, ".git") && leads_here(place->root, dir, rel)))
            return true;
    }
    return false;
}
