/* The roots of a file sandbox in a box: the same directories, for the shell tool beside the file tools. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <px/files.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "files/files.h"
#include "kernel/mount.h"
#include "policy/policy.h"

/* Whether px can copy a mount itself. A container's root may lack the privilege. */
static bool may_mount(int fd)
{
    px_auto_fd int tree = geteuid() == 0 ? px_mount_clone(fd, "", 0) : -EPERM;
    return tree >= 0;
}

/* Root's boxes take the descriptor itself: whoever renames things meanwhile, the box gets what the file tools hold open. An
 * ordinary user's box is put together in a process of its own, to which our descriptors mean nothing; it gets the name that the
 * directory has now, and is refused if that leads elsewhere by the time the box is planned. Without a place of its own in the box the
 * directory keeps that name. */
static int source_of(const struct px_root *root, bool own_place, char out[PATH_MAX])
{
    char link[64];
    struct stat st;
    if (fstat(root->fd, &st) < 0 || st.st_nlink == 0)
        return -ENOENT;
    (void)px_fmt(link, sizeof link, "/proc/self/fd/%d", root->fd);
    if (own_place && may_mount(root->fd))
        return px_fmt(out, PATH_MAX, "%s", link);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n < 0)
        return -errno;
    out[n] = '\0';
    return strchr(out, ':') ? -ENOENT : 0;
}

/* `a/b` is shown inside `a`, and a box never makes a directory in a tree of the caller's to mount on. */
static int check_place(const struct px_files *files, const struct px_root *root, struct px_err *e)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct px_root *outer = &files->roots[i];
        if (root->name_len <= outer->name_len || strncmp(root->name, outer->name, outer->name_len) != 0 ||
            root->name[outer->name_len] != '/')
            continue;
        px_auto_fd int fd = px_open_beneath(outer->fd, root->name + outer->name_len + 1, O_PATH | O_DIRECTORY, 0);
        if (fd >= 0)
            continue;
        (void)px_fail(e, PX_E_ROOT, fd, "root '%s' has no place in a box: that of '%s' has no such directory", root->name,
                      outer->name);
        return px_fix(e, "Make that directory, or give the root a name of its own.");
    }
    return 0;
}

static int bind_one(struct px_policy *policy, const struct px_root *root, const char *source, const char *target, int fd, bool writable,
                    struct px_err *e)
{
    char word[3 * PATH_MAX];
    if (px_fmt(word, sizeof word, "%s:%s:%s", source, target, writable ? "rw" : "ro") < 0)
        return px_fail(e, PX_E_LIMIT, 0, "the name of root '%s' is too long for a bind", root->name);
    if (px_policy_set(policy, "bind", word, e) < 0)
        return -1;
    int r = px_policy_pin(policy, fd);
    return r < 0 ? px_fail(e, PX_E_ROOT, r, "root '%s' cannot be had in a box", root->name) : 0;
}

/* ---- git directories ---- */

/* A place below the root as a place of its own. */
static int bind_below(struct px_policy *policy, const struct px_root *root, const char *source, const char *target,
                      const char *rel, bool writable, struct px_err *e)
{
    char inner_source[PATH_MAX], inner_target[PATH_MAX];
    px_auto_fd int fd = px_open_in_root(root->fd, rel, O_PATH, 0);
    if (fd < 0)
        return px_fail(e, PX_E_ROOT, fd, "'%s' of root '%s' cannot be had in a box", rel, root->name);
    if (px_fmt(inner_source, sizeof inner_source, "%s/%s", source, rel) < 0 ||
        px_fmt(inner_target, sizeof inner_target, "%s/%s", target, rel) < 0)
        return px_fail(e, PX_E_LIMIT, 0, "the name of root '%s' is too long for a bind", root->name);
    return bind_one(policy, root, inner_source, inner_target, fd, writable, e);
}

/* Read-only, and each directory above it writable as before: what is mounted on can be neither renamed nor removed, so
 * that nothing else takes the place of one of them. Those above `besides` have been bound already. */
static int bind_deep(struct px_policy *policy, const struct px_root *root, const char *source, const char *target,
                     const char *rel, const char *besides, struct px_err *e)
{
    char part[PATH_MAX];
    for (size_t n = strcspn(rel, "/"); rel[n]; n += 1 + strcspn(rel + n + 1, "/")) {
        memcpy(part, rel, n);
        part[n] = '\0';
        if (!(besides && px_git_within(besides, part)) && bind_below(policy, root, source, target, part, true, e) < 0)
            return -1;
    }
    return bind_below(policy, root, source, target, rel, false, e);
}

static int cannot_hold(const struct px_root *root, struct px_err *e)
{
    (void)px_fail(e, PX_E_ROOT, 0, "the .git of root '%s' leads elsewhere by a link", root->name);
    (void)px_why(e, "A command in the box could replace the link, and the host's git would obey what it put there.");
    return px_fix(e, "Write a file .git with the line `gitdir: DIRECTORY` in the place of the link.\n"
                     "Or allow it: --git-writable, or git_writable: true in a worker's file.");
}

/* What a .git that is a file names: the git directory, and the one whose settings several work trees share. Outside the
 * root a command cannot reach it. */
static int bind_named(struct px_policy *policy, const struct px_root *root, const char *source, const char *target,
                      const struct px_git_target *t, struct px_err *e)
{
    bool inside = px_git_within(t->rel, t->common), around = px_git_within(t->common, t->rel);
    if (t->linked)
        return cannot_hold(root, e);
    if (!inside && bind_deep(policy, root, source, target, t->rel, NULL, e) < 0)
        return -1;
    return around && !inside ? 0 : bind_deep(policy, root, source, target, t->common, inside ? NULL : t->rel, e);
}

/* Where there is no .git nothing can be mounted, and a command can make one. */
static int bind_git(struct px_policy *policy, const struct px_root *root, const char *source, const char *target,
                    struct px_err *e)
{
    struct stat st;
    if (!root->writable || !root->protect_git || fstatat(root->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISLNK(st.st_mode))
        return cannot_hold(root, e);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return 0;
    if (bind_below(policy, root, source, target, ".git", false, e) < 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        return 0;
    struct px_git_target *t = malloc(sizeof *t);
    int r = t ? px_git_leads_to(root, "", t) : -ENOMEM;
    if (r >= 0)
        r = bind_named(policy, root, source, target, t, e);
    else if (r == -ENOMEM)
        r = px_no_memory(e);
    else
        r = 0;
    free(t);
    return r;
}

int px_files_bind(const struct px_files *files, const char *target, struct px_policy *policy,
                  struct px_err *e)
{
    PX_ERR(e);
    char source[PATH_MAX], place[2 * PATH_MAX];
    for (size_t i = 0; i < files->count; i++) {
        const struct px_root *root = &files->roots[i];
        if (target && check_place(files, root, e) < 0)
            return -1;
        int r = source_of(root, target != NULL, source);
        if (r < 0) {
            (void)px_fail(e, PX_E_ROOT, r, "root '%s' cannot be had in a box", root->name);
            return px_fix(e, "Check that its directory is still there, under a name without a colon.");
        }
        (void)px_fmt(place, sizeof place, "%s%s%s", target ? target : source, target ? "/" : "", target ? root->name : "");
        bool writable = root->writable && !(root->protect_git && px_git_is_directory(root->fd));
        policy->git_open |= !target && writable && root->protect_git &&
                            faccessat(root->fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (bind_one(policy, root, source, place, root->fd, writable, e) < 0 ||
            (target && bind_git(policy, root, source, place, e) < 0))
            return -1;
    }
    return 0;
}
