/* The cached hashes of the caller's files: seen/HASH of device and inode, one line. It is only a cache: an entry that
 * cannot be read is ignored. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "store/store_internal.h"

/* A file can change twice within one tick of the file system's clock. A file with such a recent time is not cached: the
 * next change could leave the same time. */
enum { SETTLED_SEC = 2, TRIES = 4 };

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool settled(const struct stat *st)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) < 0 || now.tv_sec < st->st_ctim.tv_sec)
        return false;
    int64_t nsec = (now.tv_sec - st->st_ctim.tv_sec) * INT64_C(1000000000) + now.tv_nsec - st->st_ctim.tv_nsec;
    return now.tv_sec - st->st_ctim.tv_sec > INT32_MAX || nsec > SETTLED_SEC * INT64_C(1000000000);
}

static int stamp(const struct stat *st, char *out, size_t size)
{
    return px_fmt(out, size, "px-seen 1 %ju %ju %jd %jd.%09ld %jd.%09ld ", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino,
                  (intmax_t)st->st_size, (intmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                  (intmax_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static int file_of(const struct stat *st, struct px_oid *ret_file)
{
    char key[64];
    int r = px_fmt(key, sizeof key, "%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);

    return r < 0 ? r : px_hash_bytes(key, strlen(key), ret_file);
}

static bool recall(const struct px_store *store, const struct stat *st, struct px_oid *ret_oid)
{
    px_auto_buf struct px_buf text = PX_BUF(1024);
    struct px_oid file;
    char expected[256];

    if (file_of(st, &file) < 0 || stamp(st, expected, sizeof expected) < 0 ||
        px_store_small_read(store->place[PX_PLACE_SEEN], file.hex, &text) < 0 ||
        !px_starts_with(px_buf_text(&text), expected))
        return false;
    char *oid = text.data + strlen(expected), *end = strchr(oid, '\n');
    if (!end || end[1])
        return false;
    *end = '\0';
    return px_hash_oid_parse(oid, false, ret_oid) == 0;
}

/* Not fsynced: after a power failure the entry is complete, or cannot be parsed and is ignored. */
static void remember(const struct px_store *store, const struct stat *st, const struct px_oid *oid)
{
    px_auto_buf struct px_buf text = PX_BUF(1024);
    struct px_tmp tmp = {.fd = -EBADF};
    struct px_oid file;
    char line[256];

    if (!settled(st) || file_of(st, &file) < 0 || stamp(st, line, sizeof line) < 0 ||
        px_store_tmp_make(store, &tmp, NULL) < 0)
        return;
    (void)px_buf_printf(&text, "%s%s\n", line, oid->hex);
    int fd = (int)px_sys(SYS_openat, tmp.fd, "seen", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && text.err == 0 && px_write_full(fd, text.data, text.len) == 0)
        (void)px_sys(SYS_renameat, tmp.fd, "seen", store->place[PX_PLACE_SEEN], file.hex);
    (void)px_fd_close(fd);
    px_store_tmp_done(store, &tmp);
}

static int refuse(struct px_err *e, const char *why)
{
    (void)px_fail(e, PX_E_IO, 0, "the file cannot be read as a whole");
    return px_why(e, "%s", why);
}

int px_hash_cache_file(struct px_store *store, int fd, struct px_oid *ret_oid, uint64_t *ret_size, struct px_err *e)
{
    struct stat before, after;

    for (int i = 0; i < TRIES; i++) {
        uint64_t size = 0;
        if (fstat(fd, &before) < 0)
            return px_fail(e, PX_E_IO, errno, "cannot look at the file");
        if (!S_ISREG(before.st_mode))
            return refuse(e, "It is not a regular file.");
        bool known = settled(&before) && recall(store, &before, ret_oid);
        int r = known ? 0 : px_hash_fd(fd, UINT64_MAX - 1, ret_oid, &size);
        if (r < 0)
            return px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_IO, r, "cannot read the file");
        if (fstat(fd, &after) < 0 || !same(&before, &after) || (!known && size != (uint64_t)after.st_size))
            continue;
        if (!known)
            remember(store, &before, ret_oid);
        if (ret_size)
            *ret_size = (uint64_t)before.st_size;
        return 0;
    }
    return refuse(e, "It is being changed all the time.");
}
