#include "box/upper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/tree.h"
#include "plan/plan.h"

enum { DEPTH_MAX = 256, MARK_MAX = 8192, DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static int refuse_directory(const char *path, const char *why, struct px_err *e)
{
    px_fail(e, PX_E_OVERLAY, 0, "cannot use '%s' for changes", path);
    return px_why(e, "%s", why);
}

/* A box that inspects its binds (kernel/tree.c) holds the lock only for a moment, so a few tries suffice. */
static bool try_lock(int fd)
{
    enum { TRIES = 20, PAUSE_NSEC = 5000000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NSEC};
    for (int i = 0; i < TRIES; i++) {
        if (px_sys(SYS_flock, fd, LOCK_EX | LOCK_NB) >= 0)
            return true;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

/* The directory must not be writable by others, and no other box may use it now. */
static int open_directory(const char *path, char **ret_made, struct px_err *e)
{
    struct stat st;
    if (mkdir(path, 0700) == 0)
        *ret_made = *ret_made ? *ret_made : strdup(path); /* without memory for its name the empty directory stays */
    else if (errno != EEXIST)
        return px_fail(e, PX_E_OVERLAY, errno, "cannot make '%s' for changes", path);
    px_auto_fd int fd = (int)px_sys(SYS_openat, AT_FDCWD, path, DIRECTORY);
    if (fd == -ELOOP || fd == -ENOTDIR)
        return refuse_directory(path, "It is a symbolic link or a file; the directory itself has to be named.", e);
    if (fd < 0 || fstat(fd, &st) < 0)
        return px_fail(e, PX_E_OVERLAY, fd < 0 ? fd : errno, "cannot use '%s' for changes", path);
    if (st.st_uid != geteuid() || st.st_mode & 022)
        return refuse_directory(path, "It belongs to somebody else, or others can write it.", e);
    if (!try_lock(fd))
        return refuse_directory(path, "Another box uses it now.", e);
    return px_fd_take(&fd);
}

/* Whether the directory `inner` is the object (dev, ino) or lies in it. Goes up by "..", which follows no link. */
static bool lies_in(int inner, dev_t dev, ino_t ino)
{
    px_auto_fd int at = (int)px_sys(SYS_openat, inner, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; at >= 0 && i < DEPTH_MAX; i++) {
        struct stat st, up;
        int above = (int)px_sys(SYS_openat, at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        bool known = fstat(at, &st) == 0 && above >= 0 && fstat(above, &up) == 0;
        bool found = known && st.st_dev == dev && st.st_ino == ino;
        bool top = known && st.st_dev == up.st_dev && st.st_ino == up.st_ino;
        (void)px_fd_close(at);
        at = above;
        if (found || !known || top)
            return found || !known;
    }
    return true; /* too deep: treated as inside */
}

/* The layers of an overlay must not lie in each other. */
static int check_apart(int dir, const char *path, const struct px_step *root, const char *root_path, struct px_err *e)
{
    struct stat st;
    px_auto_fd int given = (int)px_sys(SYS_openat, AT_FDCWD, root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (given < 0 || fstat(dir, &st) < 0)
        return px_fail(e, PX_E_ROOTFS, given < 0 ? given : errno, "cannot use '%s' as a root", root_path);
    if (lies_in(dir, root->num, root->num2) || lies_in(given, st.st_dev, st.st_ino))
        return refuse_directory(path, "It and what it is laid over lie in each other.", e);
    return 0;
}

static int open_part(int dir, const char *name, mode_t mode)
{
    long r = px_sys(SYS_mkdirat, dir, name, mode);
    if (r < 0 && r != -EEXIST)
        return (int)r;
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, DIRECTORY);
    if (fd >= 0 && r == 0 && fchmod(fd, mode) < 0) /* the caller's umask must not change the mode of "/" */
        return -errno;
    return px_fd_take(&fd);
}

static int empty_part(int dir, const char *name)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, DIRECTORY);
    return fd < 0 ? fd : px_kernel_tree_empty(fd);
}

/* What an overlay copies up keeps its set-id bits and capabilities, and the box can change its content. So nobody
 * else may reach it. A part that others could enter before is made anew, as they may still hold it open. */
static int make_private(int dir, bool kept)
{
    struct stat st;
    if (fstat(dir, &st) < 0)
        return -errno;
    if ((st.st_mode & 07777) == 0700)
        return 0;
    if (fchmod(dir, 0700) < 0)
        return -errno;
    if (!kept && unlinkat(dir, "upper", AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

/* DIR/.px-overlay marks the directory as px's: it was empty, or did not exist, when px first used it. */
static const char mark_name[] = PX_UPPER_MARK, kept_word[] = PX_UPPER_KEPT;

static bool is_empty(int dir)
{
    int copy = (int)px_sys(SYS_openat, dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        (void)px_fd_close(copy);
        return false;
    }
    int others = 0;
    for (struct dirent *entry; others == 0 && (entry = readdir(list));)
        others += !px_equal(entry->d_name, ".") && !px_equal(entry->d_name, "..");
    (void)closedir(list);
    return others == 0;
}

/* Changes that a run kept are only used by a run that keeps them too, so a forgotten --persist loses nothing. What a
 * killed run left is not kept. */
static int settle_mark(struct px_upper *u, const struct px_upper_want *want, struct px_err *e)
{
    const char *path = want->path;
    px_auto_buf struct px_buf text = PX_BUF(MARK_MAX);
    px_auto_free char *word = calloc(1, MARK_MAX);
    if (!word)
        return px_no_memory(e);
    ssize_t n = px_read_file(u->dir, mark_name, word, MARK_MAX);
    bool kept = n > 0 && px_starts_with(word, kept_word);
    px_buf_printf(&text, "%s%s", kept_word, want->note ? want->note : "");
    if (n < 0 && !is_empty(u->dir))
        return refuse_directory(path, "It holds files of its own.", e);
    if (kept && !want->keep && !want->reuse) {
        refuse_directory(path, "It holds changes that were kept, and without --persist they would be lost.", e);
        return px_fix(e, "Add --persist, or name another directory.");
    }
    px_auto_fd int mark = px_open_beneath(u->dir, mark_name, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
    if (mark < 0)
        return px_fail(e, PX_E_OVERLAY, mark, "cannot prepare '%s' for changes", path);
    u->ours = true;
    u->keep = kept;
    int r = kept ? 0 : empty_part(u->dir, "upper");
    if (r >= 0 || r == -ENOENT)
        r = make_private(u->dir, kept);
    if (r >= 0)
        r = empty_part(u->dir, "work");
    if ((r >= 0 || r == -ENOENT) && want->keep && !kept)
        r = text.err == 0 && px_sys(SYS_write, mark, text.data, text.len) == (long)text.len ? 0 : -EIO;
    if (r < 0 && r != -ENOENT)
        return px_fail(e, PX_E_OVERLAY, r, "cannot prepare '%s' for changes", path);
    u->keep = want->keep;
    return 0;
}

static int open_parts(struct px_upper *u, const char *path, struct px_err *e)
{
    static const char name[] = "user.px";
    u->upper = open_part(u->dir, "upper", 0755);
    px_auto_fd int work = u->upper < 0 ? u->upper : open_part(u->dir, "work", 0700);
    if (work < 0) {
        px_fail(e, PX_E_OVERLAY, work, "cannot use '%s' for changes", path);
        return work == -ELOOP || work == -ENOTDIR ? px_why(e, "Its 'upper' or 'work' is not a directory.") : -1;
    }
    if (fsetxattr(u->upper, name, "", 0, 0) < 0 || fremovexattr(u->upper, name) < 0)
        return refuse_directory(path, "Its file system has no attributes of users (user.*), which an overlay needs.", e);
    return 0;
}

int px_upper_open(struct px_upper *u, struct px_step *step, const struct px_upper_want *want, struct px_err *e)
{
    struct stat st;
    u->step = step;
    u->changes = want->reuse;
    if (want->reuse) /* a directory of px's: its content is removed with it */
        u->made = strdup(want->path);
    u->dir = open_directory(want->path, &u->made, e);
    if (u->dir < 0 || check_apart(u->dir, want->path, want->lower, want->lower_path, e) < 0 ||
        settle_mark(u, want, e) < 0 || open_parts(u, want->path, e) < 0)
        return -1;
    if (fstat(u->dir, &st) < 0)
        return px_fail(e, PX_E_OVERLAY, errno, "cannot use '%s' for changes", want->path);
    step->num = st.st_dev;
    step->num2 = st.st_ino;
    return 0;
}

void px_upper_done(struct px_upper *u)
{
    if (u->ours)
        (void)empty_part(u->dir, "work"); /* the kernel may keep a part of it */
    if (u->ours && !u->keep) {
        (void)empty_part(u->dir, "upper");
        (void)unlinkat(u->dir, "upper", AT_REMOVEDIR);
        (void)unlinkat(u->dir, "work", AT_REMOVEDIR);
        (void)unlinkat(u->dir, mark_name, 0);
    }
    if (u->made && !u->keep)
        (void)rmdir(u->made);
    free(u->made);
    u->upper = px_fd_close(u->upper);
    u->dir = px_fd_close(u->dir);
    *u = (struct px_upper)PX_UPPER_NONE;
}
