#include "state/homes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "kernel/tree.h"
#include "state/state.h"

enum { NAMES_MAX = 10000, VICTIMS = 16, TRIES = 100, NAME = 64 };

static const char kind[] = "homes", home_head[] = "home-";

/* ---- directories of ended boxes ---- */

static bool try_lock(int fd)
{
    return fd >= 0 && px_sys(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0;
}

/* Finds directories that no process holds, and locks them; VICTIMS at a time. */
static size_t find_left(int homes, int fds[VICTIMS], char names[VICTIMS][NAME])
{
    size_t count = 0;
    int copy = (int)px_sys(SYS_openat, homes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list)
        (void)px_fd_close(copy);
    struct dirent *entry;
    for (int seen = 0; list && seen < NAMES_MAX && count < VICTIMS && (entry = readdir(list)); seen++) {
        if (!px_starts_with(entry->d_name, home_head) || px_fmt(names[count], NAME, "%s", entry->d_name) < 0)
            continue;
        px_auto_fd int fd = px_state_part(homes, entry->d_name, false);
        if (try_lock(fd))
            fds[count++] = px_fd_take(&fd);
    }
    if (list)
        (void)closedir(list);
    return count;
}

/* A px that was killed could not remove its box's home directory. The lock on the parent directory is held only
 * while they are chosen. A process that makes one holds that lock too, so one that is not yet locked itself is not
 * taken. */
static bool sweep_some(int homes)
{
    int fds[VICTIMS];
    char names[VICTIMS][NAME];
    if (px_sys(SYS_flock, homes, LOCK_EX | LOCK_NB) < 0)
        return false;
    size_t count = find_left(homes, fds, names);
    (void)px_sys(SYS_flock, homes, LOCK_UN);
    for (size_t i = 0; i < count; i++) {
        if (px_kernel_tree_empty(fds[i]) == 0)
            (void)unlinkat(homes, names[i], AT_REMOVEDIR);
        (void)px_fd_close(fds[i]);
    }
    return count == VICTIMS;
}

static void sweep_all(int homes)
{
    for (int i = 0; i < TRIES && sweep_some(homes); i++)
        ;
}

/* ---- the parent directory ---- */

/* Random letters for a name that does not exist yet. */
static int random_name(const char *head, char out[NAME])
{
    uint64_t random = 0;
    if (px_sys(SYS_getrandom, &random, sizeof random, 0) != sizeof random)
        return -EIO;
    return px_fmt(out, NAME, "%s%016llx", head, (unsigned long long)random);
}

struct homes {
    const char *tmp;
    int dir;                    /* TMPDIR */
    char name[NAME];
    struct px_state state;
};

static int open_named(struct homes *h, bool make, struct px_err *e)
{
    char shown[PATH_MAX];
    if (px_fmt(shown, sizeof shown, "%s/%s", h->tmp, h->name) < 0)
        return px_fail(e, PX_E_STATE, ENAMETOOLONG, "TMPDIR has no room for homes");
    const struct px_state_place place = {.parent = h->dir, .name = h->name, .shown = shown, .kind = kind};
    return px_state_open(&place, make, &h->state, e);
}

/* Another user can take the usual name in a TMPDIR that all can write to. Looks for one of ours by another name. */
static int open_other(struct homes *h, const char *head, struct px_err *e)
{
    int copy = (int)px_sys(SYS_openat, h->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 1;
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    if (!list)
        (void)px_fd_close(copy);
    for (int seen = 0; list && r != 0 && seen < NAMES_MAX && (entry = readdir(list)); seen++)
        if (px_starts_with(entry->d_name, head) && px_fmt(h->name, NAME, "%s", entry->d_name) >= 0)
            r = open_named(h, false, NULL);
    if (list)
        (void)closedir(list);
    if (r == 0)
        return 0;
    if (random_name(head, h->name) < 0)
        return px_fail(e, PX_E_STATE, EIO, "no name can be made up");
    return open_named(h, true, e);
}

static int open_homes(struct homes *h, struct px_err *e)
{
    char head[NAME];
    if (px_fmt(h->name, NAME, "px-homes-%u", (unsigned)geteuid()) < 0 || px_fmt(head, NAME, "%s-", h->name) < 0)
        return px_fail(e, PX_E_STATE, ENAMETOOLONG, "TMPDIR has no room for homes");
    return open_named(h, true, e) == 0 ? 0 : open_other(h, head, e);
}

/* ---- one home directory ---- */

/* 0: another process has just removed the parent directory. */
static int make_in(const struct homes *h, char *ret_path, size_t size, int *ret_lock)
{
    char name[NAME];
    long r;
    while ((r = px_sys(SYS_flock, h->state.fd, LOCK_SH)) == -EINTR)
        ;
    if (r >= 0 && faccessat(h->state.fd, PX_STATE_MARK, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (r >= 0)
        r = random_name(home_head, name);
    px_auto_fd int fd = r < 0 ? (int)r : px_state_part(h->state.fd, name, true);
    r = fd < 0 ? fd : try_lock(fd) ? 1 : -EBUSY;
    if (r > 0 && px_fmt(ret_path, size, "%s/%s/%s", h->tmp, h->name, name) < 0)
        r = -ENAMETOOLONG;
    (void)px_sys(SYS_flock, h->state.fd, LOCK_UN);
    if (r > 0)
        *ret_lock = px_fd_take(&fd);
    return (int)r;
}

static int make_marked(struct homes *h, bool wanted, char *ret_path, size_t size, int *ret_lock, struct px_err *e)
{
    int r = 0;
    for (int i = 0; i < TRIES && r == 0; i++) {
        if (open_homes(h, e) < 0)
            return -1;
        if (wanted)
            sweep_all(h->state.fd);
        r = make_in(h, ret_path, size, ret_lock);
        h->state.fd = px_fd_close(h->state.fd);
    }
    return r > 0 ? 0 : px_fail(e, PX_E_IO, r < 0 ? r : -EBUSY, "cannot make a home for the box");
}

/* Without PX_HOME there is no key, and so no mark. px removes this directory at the end of the box; a px that is
 * killed leaves it. */
static int make_alone(const struct homes *h, char *ret_path, size_t size, int *ret_lock)
{
    char name[NAME];
    int r = random_name("px-home-", name);
    px_auto_fd int fd = r < 0 ? r : px_state_part(h->dir, name, true);
    r = fd < 0 ? fd : !try_lock(fd) ? -EBUSY : px_fmt(ret_path, size, "%s/%s", h->tmp, name);
    if (r >= 0)
        *ret_lock = px_fd_take(&fd);
    return r < 0 ? r : 0;
}

int px_homes_make(const char *tmp, bool wanted, char *ret_path, size_t size, int *ret_lock, struct px_err *e)
{
    struct homes h = {.tmp = tmp, .state = PX_STATE_NONE};
    h.dir = (int)px_sys(SYS_openat, AT_FDCWD, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (h.dir < 0)
        return px_fail(e, PX_E_IO, h.dir, "cannot make a home for the box in '%s'", tmp);
    int r = make_marked(&h, wanted, ret_path, size, ret_lock, e);
    if (r < 0 && e->code == PX_E_STATE && make_alone(&h, ret_path, size, ret_lock) == 0) {
        *e = (struct px_err){0};
        r = 0;
    }
    (void)px_fd_close(h.dir);
    return r;
}

void px_homes_drop(const char *path)
{
    char above[PATH_MAX];
    const char *name = strrchr(path, '/');
    if (!name || px_fmt(above, sizeof above, "%.*s", (int)(name - path), path) < 0)
        return;
    px_auto_fd int homes = (int)px_sys(SYS_openat, AT_FDCWD, above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    px_auto_fd int fd = homes < 0 ? homes : px_state_part(homes, name + 1, false);
    if (fd < 0 || px_kernel_tree_empty(fd) < 0 || unlinkat(homes, name + 1, AT_REMOVEDIR) < 0)
        return;
    char *last = strrchr(above, '/');
    if (!last || !px_starts_with(last + 1, "px-homes-"))
        return;
    *last = '\0';
    px_auto_fd int tmp = open(last == above ? "/" : above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tmp >= 0)
        px_state_remove(tmp, last + 1);
}
