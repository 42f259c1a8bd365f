/* Zip archive to tree: first everything that can be checked without unpacking, then entry after entry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "helpers/layer/layer.h"

enum { TELL_EVERY = 64 };       /* entries */
static const struct timespec epoch[2] = {{0, 0}, {0, 0}};

static int make_entry(struct extract *x, const struct zip *z, const struct zip_entry *from, struct entry *entry,
                      struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    const char *reason = "";
    *entry = (struct entry){.kind = from->directory ? KIND_DIRECTORY : KIND_FILE, .size = from->size,
                            .mode = from->directory || from->executable ? 0755 : 0644};
    if (name_clean(z->names + from->name, from->name_length, from->directory, entry->name, &reason) < 0)
        return px_fail(e, PX_E_ARCHIVE, 0, "a name of the archive was refused: %s", reason);
    if (extract_open(x, entry, false, &fd, e) < 0 || zip_write(z, from, fd, e) < 0)
        return -1;
    if (fd >= 0 && (fchmod(fd, entry->mode) < 0 || futimens(fd, epoch) < 0))
        return px_fail(e, PX_E_STORE_WRITE, errno, "cannot finish a file of the archive");
    return 0;
}

static int extract_all(const struct unzip_job *job, const struct zip *z, struct extract *x, struct px_err *e)
{
    struct entry *entry = malloc(sizeof *entry);
    int r = entry ? 0 : px_no_memory(e);
    for (size_t i = 0; r == 0 && i < z->count; i++) {
        r = make_entry(x, z, &z->entries[i], entry, e);
        if (job->told.tell && i % TELL_EVERY == 0)
            job->told.tell(job->told.user, z->entries[i].at, z->size);
    }
    free(entry);
    return r < 0 ? -1 : extract_finish(x, e);
}

int unzip(const struct unzip_job *job, struct px_unpacked *ret_done, struct px_err *e)
{
    struct px_unpacked done = {.packed_bytes = job->size};
    struct extract x;
    struct zip z;
    struct stat st;
    uint64_t hashed = 0;
    if (fstat(job->archive, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != job->size)
        return px_fail(e, PX_E_ARCHIVE, 0, "the archive is not a file of the length that was said");
    int r = px_hash_fd(job->archive, job->size, &done.packed, &hashed);
    if (r < 0 || hashed != job->size)
        return px_fail(e, PX_E_IO, r < 0 ? r : EIO, "cannot read the archive");
    if (zip_open(job->archive, job->size, &job->limits, &z, e) < 0)
        return -1;
    r = extract_init(&x, job->dir, false, &job->limits);
    if (r < 0)
        (void)px_fail(e, PX_E_STORE_WRITE, r, "cannot open the directory to unpack into");
    else
        r = extract_all(job, &z, &x, e);
    extract_done(&x);
    zip_done(&z);
    done.diff_id = done.packed;
    done.bytes = x.bytes;
    done.entries = x.entries;
    if (r == 0)
        *ret_done = done;
    return r;
}
