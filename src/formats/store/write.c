/* Writes and removes so that a name always refers to something complete or does not exist. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/node.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "kernel/tree.h"
#include "store/store_internal.h"

enum { TRIES = 16, WAIT_SEC = 120 };

void px_store_random_name(char out[PX_RANDOM_NAME])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[16];

    for (ssize_t n = 0; n != sizeof bytes;)     /* does not block once the machine has booted */
        n = getrandom(bytes, sizeof bytes, 0);
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[32] = '\0';
}

int px_store_fsync(int fd)
{
    return fsync(fd) < 0 ? -errno : 0;
}

int px_store_rename_new(int from, const char *name, int to, const char *new_name)
{
    return (int)px_sys(SYS_renameat2, from, name, to, new_name, RENAME_NOREPLACE);
}

/* ---- tmp/ ---- */

static bool still_there(int dir, const char *name, int fd)
{
    struct stat a, b;

    return fstatat(dir, name, &a, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Between mkdir and flock the directory looks abandoned and may be swept: then another one is created. */
int px_store_tmp_make(const struct px_store *store, struct px_tmp *ret_tmp, struct px_err *e)
{
    int dir = store->place[PX_PLACE_TMP], r = -EEXIST;

    for (int i = 0; i < TRIES; i++) {
        struct px_tmp tmp;
        px_store_random_name(tmp.name);
        r = (int)px_sys(SYS_mkdirat, dir, tmp.name, 0700);
        px_auto_fd int fd =
            r < 0 ? r : (int)px_sys(SYS_openat, dir, tmp.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? fd : flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        if (r >= 0 && still_there(dir, tmp.name, fd)) {
            tmp.fd = px_fd_take(&fd);
            *ret_tmp = tmp;
            return 0;
        }
        if (r < 0 && r != -ENOENT && r != -EEXIST && r != -EWOULDBLOCK) {
            (void)unlinkat(dir, tmp.name, AT_REMOVEDIR);
            break;
        }
    }
    return px_fail(e, PX_E_STORE_WRITE, r, "cannot make a directory in '%s/tmp'", store->path);
}

void px_store_tmp_done(const struct px_store *store, struct px_tmp *tmp)
{
    if (tmp->fd < 0)
        return;
    (void)px_kernel_tree_empty(tmp->fd);       /* what cannot be removed is swept by a later process */
    (void)unlinkat(store->place[PX_PLACE_TMP], tmp->name, AT_REMOVEDIR);
    tmp->fd = px_fd_close(tmp->fd);
}

/* ---- small files ---- */

int px_store_write_new(int dir, const char *name, const void *data, size_t size, mode_t mode)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? fd : px_write_full(fd, data, size);

    if (r >= 0 && mode != 0600)
        r = (int)px_sys(SYS_fchmod, fd, mode);
    return r < 0 ? r : px_store_fsync(fd);
}

int px_store_small_put(const struct px_store *store, enum px_place place, const char *name, const void *data, size_t size,
                 struct px_err *e)
{
    struct px_tmp tmp = {.fd = -EBADF};

    if (px_store_tmp_make(store, &tmp, e) < 0)
        return -1;
    int r = px_store_write_new(tmp.fd, "file", data, size, 0600);
    if (r >= 0)
        r = (int)px_sys(SYS_renameat, tmp.fd, "file", store->place[place], name);
    if (r >= 0)
        r = px_store_fsync(store->place[place]);
    px_store_tmp_done(store, &tmp);
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot write '%s/%s' of the store", px_store_place_name(place), name) : 0;
}

int px_store_open_own(int dir, const char *name, int flags)
{
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return fd == -ELOOP || fd == -ENXIO || fd == -EISDIR ? -EINVAL : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) && st.st_uid == geteuid() ? px_fd_take(&fd) : -EINVAL;
}

int px_store_small_read(int dir, const char *name, struct px_buf *out)
{
    px_auto_fd int fd = px_store_open_own(dir, name, O_RDONLY);
    char chunk[4096];
    ssize_t n = fd;

    while (n >= 0 && fd >= 0 && (n = px_read_some(fd, chunk, sizeof chunk)) > 0)
        if (px_buf_add(out, chunk, (size_t)n) < 0)
            return out->err == -ENOMEM ? -ENOMEM : -EFBIG;
    return n < 0 ? (int)n : 0;
}

bool px_store_lacks(const struct px_err *e)
{
    return e->code == PX_E_MEMORY || e->sys == ENOMEM || e->sys == EMFILE || e->sys == ENFILE;
}

/* ---- out of sight ---- */

static int move_away(const struct px_store *store, enum px_place from, const char *name, enum px_place to,
                     const char *prefix)
{
    char random[PX_RANDOM_NAME], as[NAME_MAX];

    px_store_random_name(random);
    if (px_fmt(as, sizeof as, "%.180s%s%s", prefix, *prefix ? "." : "", random) < 0)
        return -ENAMETOOLONG;
    return px_store_rename_new(store->place[from], name, store->place[to], as);
}

void px_store_quarantine(const struct px_store *store, enum px_place place, const char *name)
{
    char prefix[NAME_MAX + 32];

    if (px_fmt(prefix, sizeof prefix, "%.*s-%s", (int)strcspn(px_store_place_name(place), "/"), px_store_place_name(place), name) >=
        0)
        (void)move_away(store, place, name, PX_PLACE_CORRUPT, prefix);
}

/* ---- what is left ---- */

static void remove_dir(int parent, const char *name, bool locked)
{
    mode_t was;
    px_auto_fd int fd = px_node_open_dir(parent, name, &was);
    if (fd < 0 || (locked && flock(fd, LOCK_EX | LOCK_NB) < 0))
        return;
    (void)px_kernel_tree_empty(fd);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static void remove_any(int parent, const char *name, bool locked)
{
    struct stat st;

    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISDIR(st.st_mode))
        remove_dir(parent, name, locked);
    else
        (void)unlinkat(parent, name, 0);
}

/* Where rename fails for lack of space it is removed in place: `complete` or the manifest goes first. */
static int remove_here(int dir, const char *name)
{
    static const char *const seals[] = {"complete", "manifest.json"};
    px_auto_fd int fd = (int)px_sys(SYS_openat, dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    for (size_t i = 0; fd >= 0 && i < PX_COUNT_OF(seals); i++)
        (void)unlinkat(fd, seals[i], 0);
    remove_any(dir, name, false);
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -ENOSPC : 0;
}

int px_store_trash(const struct px_store *store, enum px_place place, const char *name)
{
    int r = move_away(store, place, name, PX_PLACE_TRASH, "");

    return r == -ENOSPC || r == -EDQUOT ? remove_here(store->place[place], name) : r;
}

struct sweep {
    int dir;
    bool locked;
};

static int sweep_one(void *user, const char *name)
{
    const struct sweep *s = user;

    remove_any(s->dir, name, s->locked);
    return 0;
}

/* Only one process sweeps at a time; the others continue without waiting. */
void px_store_trash_empty(const struct px_store *store, bool wait)
{
    struct sweep s = {.dir = store->place[PX_PLACE_TRASH]};
    px_auto_fd int lock = (int)px_sys(SYS_openat, s.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    uint64_t until = wait ? px_now_nsec() + (uint64_t)WAIT_SEC * 1000000000 : 1;
    if (lock >= 0 && px_store_flock_until(lock, LOCK_EX, until) == 0)
        (void)px_store_entries(store, PX_PLACE_TRASH, sweep_one, &s);
}

void px_store_sweep(const struct px_store *store)
{
    struct sweep s = {.dir = store->place[PX_PLACE_TMP], .locked = true};

    (void)px_store_entries(store, PX_PLACE_TMP, sweep_one, &s);
    px_store_trash_empty(store, false);
}

int px_store_entries(const struct px_store *store, enum px_place place, px_entry_seen *seen, void *user)
{
    int fd = (int)px_sys(SYS_openat, store->place[place], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        (void)px_fd_close(fd);
        return fd < 0 ? fd : -ENOMEM;
    }
    while (r == 0 && (errno = 0, entry = readdir(dir)))
        if (!px_equal(entry->d_name, ".") && !px_equal(entry->d_name, ".."))
            r = seen(user, entry->d_name);
    if (r == 0 && errno)
        r = -errno;
    (void)closedir(dir);
    return r;
}
