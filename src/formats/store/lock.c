/* Locks: flock on regular files, which the kernel releases when the holder dies. Pids are not used. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/time.h"
#include "store/store_internal.h"

enum { GUARD_SEC_MAX = 120, TRIES = 1000 };

static const uint64_t msec = 1000000;

int px_store_flock_until(int fd, int operation, uint64_t until_nsec)
{
    uint64_t pause = msec / 4;

    while (flock(fd, until_nsec ? operation | LOCK_NB : operation) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return -errno;
        if (px_now_nsec() >= until_nsec)
            return -ETIMEDOUT;
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
        pause = pause < 16 * msec ? pause * 2 : pause;
    }
    return 0;
}

int px_store_guard_take(const struct px_store *store, bool exclusive, struct px_err *e)
{
    px_auto_fd int fd = px_store_open_own(store->root, "version", O_RDONLY);

    if (fd < 0)
        return px_fail(e, PX_E_STORE_FORMAT, fd, "the store in '%s' has lost its version file", store->path);
    int r = px_store_flock_until(fd, exclusive ? LOCK_EX : LOCK_SH, px_now_nsec() + GUARD_SEC_MAX * 1000 * msec);
    if (r == -ETIMEDOUT)
        return px_fail(e, PX_E_STORE_BUSY, 0, "the store in '%s' is locked", store->path);
    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot lock the store in '%s'", store->path);
    return px_fd_take(&fd);
}

/* ---- one builder of an id ---- */

struct px_store_lock {
    int fd;
};

void px_store_lock_drop(struct px_store_lock *lock)
{
    if (!lock)
        return;
    (void)px_fd_close(lock->fd);
    free(lock);
}

static int open_lock(const struct px_store *store, const struct px_oid *id)
{
    int dir = store->place[PX_PLACE_LOCKS];
    int fd = (int)px_sys(SYS_openat, dir, id->hex, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd == -EEXIST ? px_store_open_own(dir, id->hex, O_RDWR) : fd;
}

/* GC removes the files of free locks, so a file may be unlinked by the time it is locked. */
static bool has_name(const struct px_store *store, const struct px_oid *id, int fd)
{
    struct stat a, b;

    return fstatat(store->place[PX_PLACE_LOCKS], id->hex, &a, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &b) == 0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Writes the holder for messages to waiting processes; nothing depends on it. */
static void write_holder(int fd)
{
    char text[64];

    if (px_fmt(text, sizeof text, "process %d\n", (int)getpid()) >= 0 && ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, strlen(text), 0);
}

/* "process 123", or nothing. */
static void read_holder(int fd, struct px_buf *out)
{
    char text[64] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    (void)px_buf_quote(out, text, n > 0 ? strcspn(text, "\n") : 0);
}

static int busy(int fd, const struct px_oid *id, struct px_err *e)
{
    px_auto_buf struct px_buf holder = PX_BUF(256);

    read_holder(fd, &holder);
    (void)px_fail(e, PX_E_STORE_BUSY, 0, "%s is being built by somebody else", id->hex);
    return holder.len > 0 ? px_why(e, "%s holds its lock.", px_buf_text(&holder)) : -1;
}

static void tell_wait(const struct px_store *store, int fd)
{
    px_auto_buf struct px_buf holder = PX_BUF(256);
    char line[320];

    read_holder(fd, &holder);
    (void)px_fmt(line, sizeof line, "waiting for %s, which makes the same",
                 holder.len > 0 ? px_buf_text(&holder) : "another process");
    if (store->aside.tell)
        store->aside.tell(store->aside.user, line);
}

/* Waits one second before it reports: most builds take less. until 0: no deadline. */
static int lock_until(const struct px_store *store, int fd, uint64_t until)
{
    uint64_t silent = px_now_nsec() + 1000 * msec;
    int r = px_store_flock_until(fd, LOCK_EX, until && until < silent ? until : silent);

    if (r != -ETIMEDOUT || (until && until <= silent))
        return r;
    tell_wait(store, fd);
    return px_store_flock_until(fd, LOCK_EX, until);
}

/* 1: the locked file was removed by GC meanwhile. */
static int try_lock(struct px_store *store, const struct px_oid *id, uint64_t until, int *ret_fd, struct px_err *e)
{
    px_auto_fd int fd = open_lock(store, id);

    if (fd == -ENOENT)          /* removed meanwhile */
        return 1;
    if (fd < 0) {
        (void)px_fail(e, PX_E_STORE_WRITE, fd == -EINVAL ? 0 : fd, "cannot open '%s/locks/%s'", store->path, id->hex);
        return fd == -EINVAL ? px_why(e, "It is not a regular file of this user.") : -1;
    }
    int r = lock_until(store, fd, until);
    if (r == -ETIMEDOUT)
        return busy(fd, id, e);
    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot lock '%s/locks/%s'", store->path, id->hex);
    if (!has_name(store, id, fd))
        return 1;
    write_holder(fd);
    *ret_fd = px_fd_take(&fd);
    return 0;
}

int px_store_lock_take(struct px_store *store, const struct px_oid *id, uint64_t timeout_msec, struct px_store_lock **ret_lock,
                 struct px_err *e)
{
    uint64_t until = timeout_msec ? px_now_nsec() + timeout_msec * msec : 0;
    struct px_store_lock *lock = calloc(1, sizeof *lock);
    int r = 1;

    if (!lock)
        return px_no_memory(e);
    lock->fd = -EBADF;
    for (int i = 0; r == 1 && i < TRIES; i++)
        r = try_lock(store, id, until, &lock->fd, e);
    if (r == 0) {
        *ret_lock = lock;
        return 0;
    }
    px_store_lock_drop(lock);
    return r < 0 ? -1 : px_fail(e, PX_E_STORE_BUSY, 0, "cannot get the lock of %s", id->hex);
}
