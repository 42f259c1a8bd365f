/* Blobs: writes and hashes tmp/NAME/blob in one pass, then renames it to blobs/sha256/HEX. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sys.h"
#include "store/store_internal.h"

enum { TRIES = 8 };

struct px_blob_writer {
    struct px_store *store;
    struct px_tmp tmp;
    int fd;
    uint64_t size, max;
    struct px_hash hash;
    bool foreign;               /* others write through the descriptor: hash the whole file at the end */
};

/* ---- reading ---- */

bool px_blob_there(const struct px_store *store, const struct px_oid *oid, uint64_t *ret_size)
{
    struct stat st;

    if (fstatat(store->place[PX_PLACE_BLOBS], oid->hex, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return false;
    if (ret_size)
        *ret_size = (uint64_t)st.st_size;
    return true;
}

bool px_blob_has(struct px_store *store, const struct px_oid *oid)
{
    px_auto_fd int guard = px_store_guard_take(store, false, NULL);

    return guard >= 0 && px_blob_there(store, oid, NULL) && px_lease_session_keep(store, PX_USE_BLOB, oid, NULL) == 0;
}

static int corrupt(struct px_store *store, const struct px_oid *oid, const char *why, struct px_err *e)
{
    px_store_quarantine(store, PX_PLACE_BLOBS, oid->hex);
    (void)px_fail(e, PX_E_OBJECT, 0, "blob %s is not what it is called", oid->hex);
    return px_why(e, "%s It was moved to '%s/corrupt'.", why, store->path);
}

int px_blob_open(struct px_store *store, const struct px_oid *oid, int *ret_fd, uint64_t *ret_size, struct px_err *e)
{
    px_auto_fd int fd = px_store_open_own(store->place[PX_PLACE_BLOBS], oid->hex, O_RDONLY);
    struct stat st;

    if (fd == -EINVAL)
        return corrupt(store, oid, "It is not a regular file of this user.", e);
    if (fd == -ENOENT) {
        (void)px_fail(e, PX_E_OBJECT, fd, "blob %s is not in the store", oid->hex);
        return px_why(e, "It was never stored, or was removed.");
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return px_fail(e, PX_E_OBJECT, fd < 0 ? fd : errno, "cannot open blob %s", oid->hex);
    if (ret_size)
        *ret_size = (uint64_t)st.st_size;
    *ret_fd = px_fd_take(&fd);
    return 0;
}

static int read_all(int fd, struct px_buf *out)
{
    char chunk[16 << 10];
    ssize_t n;

    while ((n = px_read_some(fd, chunk, sizeof chunk)) > 0)
        if (px_buf_add(out, chunk, (size_t)n) < 0)
            return out->err;
    return (int)n;
}

int px_blob_read(struct px_store *store, const struct px_oid *oid, size_t max, struct px_buf *out, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    size_t before = out->len;
    struct px_oid is;
    uint64_t size = 0;

    if (px_blob_open(store, oid, &fd, &size, e) < 0)
        return -1;
    if (size > max)
        return px_fail(e, PX_E_LIMIT, 0, "blob %s has %llu bytes, more than %zu", oid->hex, (unsigned long long)size,
                       max);
    int r = read_all(fd, out);
    if (r < 0)
        return px_fail(e,
                       r == -ENOMEM  ? PX_E_MEMORY
                       : r == -E2BIG ? PX_E_LIMIT
                                     : PX_E_OBJECT,
                       r, "cannot read blob %s", oid->hex);
    r = px_hash_bytes(px_buf_text(out) + before, out->len - before, &is);
    if (r < 0)
        return px_fail(e, PX_E_MEMORY, r, "hashing blob %s", oid->hex);
    return px_hash_oid_equal(oid, &is) ? 0 : corrupt(store, oid, "Its bytes have changed.", e);
}

int px_blob_verify(struct px_store *store, const struct px_oid *oid, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    struct px_oid is;

    if (px_blob_open(store, oid, &fd, NULL, e) < 0)
        return -1;
    int r = px_hash_fd(fd, UINT64_MAX - 1, &is, NULL);
    if (r < 0)
        return px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_OBJECT, r, "cannot read blob %s", oid->hex);
    return px_hash_oid_equal(oid, &is) ? 0 : corrupt(store, oid, "Its bytes have changed.", e);
}

/* ---- writing ---- */

void px_blob_drop(struct px_blob_writer *w)
{
    if (!w)
        return;
    px_hash_drop(&w->hash);
    (void)px_fd_close(w->fd);
    px_store_tmp_done(w->store, &w->tmp);
    free(w);
}

int px_blob_begin(struct px_store *store, uint64_t max, struct px_blob_writer **ret_writer, struct px_err *e)
{
    struct px_blob_writer *w = calloc(1, sizeof *w);

    if (!w)
        return px_no_memory(e);
    *w = (struct px_blob_writer){.store = store, .tmp.fd = -EBADF, .fd = -EBADF, .max = max};
    if (px_store_tmp_make(store, &w->tmp, e) < 0) {
        px_blob_drop(w);
        return -1;
    }
    w->fd = (int)px_sys(SYS_openat, w->tmp.fd, "blob", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (w->fd < 0) {
        (void)px_fail(e, PX_E_STORE_WRITE, w->fd, "cannot make a file in '%s/tmp'", store->path);
        px_blob_drop(w);
        return -1;
    }
    px_hash_begin(&w->hash);
    *ret_writer = w;
    return 0;
}

static int too_large(const struct px_blob_writer *w, struct px_err *e)
{
    (void)px_fail(e, PX_E_OBJECT, 0, "a blob is larger than it should be");
    return px_why(e, "It was to have at most %llu bytes.", (unsigned long long)w->max);
}

int px_blob_write(struct px_blob_writer *w, const void *data, size_t size, struct px_err *e)
{
    if (size > w->max - w->size)
        return too_large(w, e);
    int r = px_write_full(w->fd, data, size);
    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot write to '%s'", w->store->path);
    px_hash_add(&w->hash, data, size);
    w->size += size;
    return 0;
}

int px_blob_writer_fd(struct px_blob_writer *w)
{
    w->foreign = true;
    return w->fd;
}

/* Computes the blob's id and fsyncs the file. A failed fsync is not retried: the kernel drops the pages that it could
 * not write. */
static int finish(struct px_blob_writer *w, struct px_oid *ret_oid, struct px_err *e)
{
    int r = px_store_fsync(w->fd);

    if (r < 0)
        return px_fail(e, PX_E_STORE_WRITE, r, "cannot write to '%s'", w->store->path);
    r = w->foreign ? px_hash_fd(w->fd, w->max, ret_oid, &w->size) : px_hash_end(&w->hash, ret_oid);
    if (r == -EFBIG)
        return too_large(w, e);
    if (r < 0)
        return px_fail(e, r == -ENOMEM ? PX_E_MEMORY : PX_E_STORE_WRITE, r, "cannot hash a blob in '%s/tmp'",
                       w->store->path);
    if (fchmod(w->fd, 0444) < 0)
        return px_fail(e, PX_E_STORE_WRITE, errno, "cannot write to '%s'", w->store->path);
    return 0;
}

/* Renames under the guard, so that GC sees either no blob or one in use. 1: the blob exists already. */
static int show(struct px_blob_writer *w, const struct px_oid *oid, struct px_err *e)
{
    px_auto_fd int guard = px_store_guard_take(w->store, false, e);

    if (guard < 0 || px_lease_session_keep(w->store, PX_USE_BLOB, oid, e) < 0)
        return -1;
    int r = px_store_rename_new(w->tmp.fd, "blob", w->store->place[PX_PLACE_BLOBS], oid->hex);
    if (r == -EEXIST)
        return 1;
    return r < 0 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot store blob %s", oid->hex) : 0;
}

/* Keeps an existing blob if its content matches its name; otherwise px_blob_verify moves it away and this one is
 * stored. */
static int publish(struct px_blob_writer *w, const struct px_oid *oid, struct px_err *e)
{
    struct px_err old = {0};
    int r = 1;

    for (int i = 0; r == 1 && i < TRIES; i++) {
        r = show(w, oid, e);
        if (r == 1 && px_blob_verify(w->store, oid, &old) == 0)
            r = 0;
    }
    if (r == 1)
        return px_fail(e, PX_E_STORE_WRITE, 0, "cannot store blob %s: %.200s", oid->hex, old.what);
    if (r == 0)
        r = px_store_fsync(w->store->place[PX_PLACE_BLOBS]);
    return r < -1 ? px_fail(e, PX_E_STORE_WRITE, r, "cannot store blob %s", oid->hex) : r;
}

int px_blob_commit(struct px_blob_writer *w, const struct px_oid *expect, struct px_oid *ret_oid, uint64_t *ret_size,
                   struct px_err *e)
{
    struct px_oid oid;
    int r = finish(w, &oid, e);

    if (r >= 0 && expect && !px_hash_oid_equal(expect, &oid)) {
        (void)px_fail(e, PX_E_OBJECT, 0, "blob %s was expected", expect->hex);
        r = px_why(e, "What came is %s.", oid.hex);
    }
    if (r >= 0)
        r = publish(w, &oid, e);
    if (r >= 0 && ret_oid)
        *ret_oid = oid;
    if (r >= 0 && ret_size)
        *ret_size = w->size;
    px_blob_drop(w);
    return r;
}

int px_blob_put(struct px_store *store, const void *data, size_t size, struct px_oid *ret_oid, struct px_err *e)
{
    struct px_blob_writer *w = NULL;

    if (px_blob_begin(store, size, &w, e) < 0)
        return -1;
    if (px_blob_write(w, data, size, e) < 0) {
        px_blob_drop(w);
        return -1;
    }
    return px_blob_commit(w, NULL, ret_oid, NULL, e);
}
