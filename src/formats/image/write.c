/* Writes an image as a directory or an archive under a temporary name and renames it when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "image/layout.h"
#include "store/document.h"

struct target {
    int parent;                 /* the parent directory */
    char name[256];             /* the final name in it */
    char tmp[64];               /* the temporary name */
    const char *path;           /* for messages */
};

static int cannot(const struct target *t, int sys, struct px_err *e)
{
    return px_fail(e, PX_E_IO, sys, "cannot write the image to '%s'", t->path);
}

static int open_target(const char *path, struct target *t, struct px_err *e)
{
    char parent[4096];
    uint64_t random = 0;
    const char *slash;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (px_fmt(parent, sizeof parent, "%.*s", (int)len, path) < 0)
        return px_fail(e, PX_E_VALUE, ENAMETOOLONG, "'%.100s...' is too long for a path", path);
    slash = strrchr(parent, '/');
    if (getrandom(&random, sizeof random, 0) != sizeof random ||
        px_fmt(t->name, sizeof t->name, "%s", slash ? slash + 1 : parent) < 0 ||
        px_fmt(t->tmp, sizeof t->tmp, ".px-image-%016llx", (unsigned long long)random) < 0 || !t->name[0] ||
        px_equal(t->name, "..") || px_equal(t->name, "."))
        return px_fail(e, PX_E_VALUE, 0, "'%s' is not a name for an image's files", path);
    parent[slash ? slash - parent : 0] = '\0';
    t->path = path;
    t->parent = open(!slash ? "." : parent[0] ? parent : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return t->parent < 0 ? cannot(t, errno, e) : 0;
}

static int show(const struct target *t, bool replace, struct px_err *e)
{
    if (renameat2(t->parent, t->tmp, t->parent, t->name, replace ? 0 : RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EEXIST ? px_fail(e, PX_E_IO, EEXIST, "'%s' is there already", t->path) : cannot(t, errno, e);
}

/* ---- directories ---- */

static int write_file(int dir, const char *tmp, const char *name, const struct px_buf *text)
{
    px_auto_fd int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : px_write_full(fd, px_buf_text(text), text->len);
    if (r == 0 && (fsync(fd) < 0 || renameat(dir, tmp, dir, name) < 0))
        r = -errno;
    if (r < 0 && fd >= 0)
        (void)unlinkat(dir, tmp, 0);
    return r;
}

static bool there_already(int dir, const struct px_oid *oid)
{
    struct px_oid is;
    uint64_t size = 0;
    px_auto_fd int fd = px_image_layout_open(dir, oid->hex, &size);
    return fd >= 0 && px_hash_fd(fd, size, &is, NULL) == 0 && px_hash_oid_equal(&is, oid);
}

static int write_blob(struct px_store *store, const struct target *t, int dir, const struct px_oid *oid,
                      struct px_err *e)
{
    if (there_already(dir, oid))
        return 0;
    px_auto_fd int fd = openat(dir, t->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return cannot(t, errno, e);
    int r = px_image_layout_copy(store, oid, fd, e);
    if (r == 0 && (fsync(fd) < 0 || renameat(dir, t->tmp, dir, oid->hex) < 0))
        r = cannot(t, errno, e);
    if (r < 0)
        (void)unlinkat(dir, t->tmp, 0);
    return r;
}

static int enter(const struct target *t, int dir, const char *name, struct px_err *e)
{
    if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
        return cannot(t, errno, e);
    int fd = px_open_in_root(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return fd < 0 ? cannot(t, fd, e) : fd;
}

/* Writes the blobs first and the index last, so a reader never finds a reference to a missing blob. */
static int fill_directory(struct px_store *store, const struct px_image *image, const struct target *t, int dir,
                          const struct px_image_layout_documents *d, struct px_progress_to progress, struct px_err *e)
{
    struct px_image_layout_blobs blobs;
    px_auto_fd int outer = enter(t, dir, "blobs", e);
    px_auto_fd int inner = outer < 0 ? -1 : enter(t, outer, "sha256", e);
    if (inner < 0)
        return -1;
    px_image_layout_blobs(image, &blobs);
    uint64_t done = 0;
    for (size_t i = 0; i < blobs.count; i++) {
        if (write_blob(store, t, inner, &blobs.list[i].oid, e) < 0)
            return -1;
        done += blobs.list[i].size;
        if (progress.tell)
            progress.tell(progress.user, "writing", done, blobs.bytes);
    }
    int r = write_file(dir, t->tmp, "oci-layout", &d->layout);
    r = r < 0 ? r : write_file(dir, t->tmp, "index.json", &d->index);
    return r < 0 ? cannot(t, r, e) : 0;
}

/* Removes what fill_directory created, and nothing else. */
static void remove_directory(const struct target *t, const struct px_image *image)
{
    struct px_image_layout_blobs blobs;
    char path[192];
    px_image_layout_blobs(image, &blobs);
    for (size_t i = 0; i < blobs.count; i++)
        if (px_fmt(path, sizeof path, "%s/blobs/sha256/%s", t->tmp, blobs.list[i].oid.hex) >= 0)
            (void)unlinkat(t->parent, path, 0);
    static const struct {
        const char *name;
        int flags;
    } rest[] = {{"/blobs/sha256", AT_REMOVEDIR},
                {"/blobs", AT_REMOVEDIR},
                {"/oci-layout", 0},
                {"/index.json", 0},
                {"", AT_REMOVEDIR}};
    for (size_t i = 0; i < PX_COUNT_OF(rest); i++)
        if (px_fmt(path, sizeof path, "%s%s", t->tmp, rest[i].name) >= 0)
            (void)unlinkat(t->parent, path, rest[i].flags);
}

static int fill_new(struct px_store *store, const struct px_image *image, const struct target *t, const char *name,
                    struct px_progress_to progress, struct px_err *e)
{
    struct px_image_layout_documents d;
    px_auto_fd int dir = px_open_in_root(t->parent, t->tmp, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        return cannot(t, dir, e);
    int r = px_image_layout_documents(store, image, PX_IMAGE_OCI_DIR, name, NULL, 0, &d, e);
    r = r < 0 ? r : fill_directory(store, image, t, dir, &d, progress, e);
    px_image_layout_documents_done(&d);
    return r < 0 ? r : show(t, false, e);
}

static int new_directory(struct px_store *store, const struct px_image *image, const struct target *t, const char *name,
                         struct px_progress_to progress, struct px_err *e)
{
    if (mkdirat(t->parent, t->tmp, 0755) < 0)
        return cannot(t, errno, e);
    int r = fill_new(store, image, t, name, progress, e);
    if (r < 0)
        remove_directory(t, image);
    return r;
}

/* 1 if it is a layout; its index is then in `old`. */
static int look_at_layout(const struct target *t, int dir, struct px_buf *old, struct px_err *e)
{
    px_auto_buf struct px_buf marker = PX_BUF(4096);
    px_auto(px_document) json_t *root = NULL;
    struct px_index index;
    struct px_err ignored = {0};
    if (px_image_layout_read(dir, "oci-layout", 4095, &marker) < 0 ||
        px_document_read(px_buf_text(&marker), marker.len, "oci-layout", PX_E_IMAGE, &root, &ignored) < 0 ||
        !px_equal(px_document_text(root, "imageLayoutVersion"), "1.0.0"))
        return px_fail(e, PX_E_IO, EEXIST, "'%s' is there already, and is not an OCI layout", t->path);
    int r = px_image_layout_read(dir, "index.json", PX_IMAGE_JSON_MAX, old);
    if (r < 0)
        return px_fail(e, PX_E_IMAGE, r, "the layout '%s' has no index that can be read", t->path);
    if (px_documents_index_read(px_buf_text(old), old->len, PX_MEDIA_NONE, &index, e) < 0)
        return -1;
    px_documents_index_done(&index);
    return 0;
}

static int add_to_directory(struct px_store *store, const struct px_image *image, const struct target *t, int dir,
                            const char *name, struct px_progress_to progress, struct px_err *e)
{
    px_auto_buf struct px_buf old = PX_BUF(PX_IMAGE_JSON_MAX);
    struct px_image_layout_documents d;
    if (look_at_layout(t, dir, &old, e) < 0)
        return -1;
    int r = px_image_layout_documents(store, image, PX_IMAGE_OCI_DIR, name, px_buf_text(&old), old.len, &d, e);
    r = r < 0 ? r : fill_directory(store, image, t, dir, &d, progress, e);
    px_image_layout_documents_done(&d);
    return r;
}

static int write_directory(struct px_store *store, const struct px_image *image, const struct target *t,
                           const char *name, struct px_progress_to progress, struct px_err *e)
{
    px_auto_fd int dir = (int)px_sys(SYS_openat, t->parent, t->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir == -ENOENT)
        return new_directory(store, image, t, name, progress, e);
    if (dir == -ENOTDIR)
        return px_fail(e, PX_E_IO, EEXIST, "'%s' is there already", t->path);
    return dir < 0 ? cannot(t, dir, e) : add_to_directory(store, image, t, dir, name, progress, e);
}

/* ---- archives ---- */

static int put_document(int to, const char *name, const struct px_buf *text)
{
    if (text->len == 0)
        return 0;
    int r = px_image_layout_tar_begin(to, name, text->len);
    r = r < 0 ? r : px_write_full(to, text->data, text->len);
    return r < 0 ? r : px_image_layout_tar_end(to, text->len);
}

static int put_blob(struct px_store *store, const struct target *t, int to, const struct px_oid *oid, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    char name[96];
    uint64_t size = 0;
    if (px_blob_open(store, oid, &fd, &size, e) < 0)
        return -1;
    (void)px_fmt(name, sizeof name, "blobs/sha256/%s", oid->hex);
    int r = px_image_layout_tar_begin(to, name, size);
    if (r < 0)
        return cannot(t, r, e);
    if (px_image_layout_copy(store, oid, to, e) < 0)
        return -1;
    r = px_image_layout_tar_end(to, size);
    return r < 0 ? cannot(t, r, e) : 0;
}

static int fill_archive(struct px_store *store, const struct px_image *image, const struct target *t, int to,
                        const struct px_image_layout_documents *d, struct px_progress_to progress, struct px_err *e)
{
    struct px_image_layout_blobs blobs;
    int r = px_image_layout_tar_directory(to, "blobs/");
    r = r < 0 ? r : px_image_layout_tar_directory(to, "blobs/sha256/");
    if (r < 0)
        return cannot(t, r, e);
    px_image_layout_blobs(image, &blobs);
    uint64_t done = 0;
    for (size_t i = 0; i < blobs.count; i++) {
        if (put_blob(store, t, to, &blobs.list[i].oid, e) < 0)
            return -1;
        done += blobs.list[i].size;
        if (progress.tell)
            progress.tell(progress.user, "writing", done, blobs.bytes);
    }
    r = put_document(to, "index.json", &d->index);
    r = r < 0 ? r : put_document(to, "manifest.json", &d->docker);
    r = r < 0 ? r : put_document(to, "oci-layout", &d->layout);
    r = r < 0 ? r : put_document(to, "repositories", &d->repositories);
    r = r < 0 ? r : px_image_layout_tar_finish(to);
    if (r == 0 && fsync(to) < 0)
        r = -errno;
    return r < 0 ? cannot(t, r, e) : 0;
}

/* Whether the file begins as fill_archive writes it. Only such an archive of px is replaced. */
static bool is_archive(const struct target *t)
{
    enum { NAME_SIZE = 100, MAGIC_AT = 257, HEADER = 512 };
    char header[HEADER];
    uint64_t size = 0;
    px_auto_fd int fd = px_image_layout_open(t->parent, t->name, &size);
    return fd >= 0 && pread(fd, header, sizeof header, 0) == HEADER && strncmp(header, "blobs/", NAME_SIZE) == 0 &&
           memcmp(header + MAGIC_AT, "ustar", 5) == 0;
}

static int write_archive(struct px_store *store, const struct px_image *image, enum px_image_format format,
                         const struct target *t, const char *name, struct px_progress_to progress, struct px_err *e)
{
    struct px_image_layout_documents d;
    struct stat st;
    bool replace = is_archive(t);
    if (!replace && fstatat(t->parent, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        (void)px_fail(e, PX_E_IO, EEXIST, "'%s' is there already, and is not an archive of an image that px wrote", t->path);
        return px_fix(e, "Name another file, or remove this one.");
    }
    px_auto_fd int to = openat(t->parent, t->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (to < 0)
        return cannot(t, errno, e);
    int r = px_image_layout_documents(store, image, format, name, NULL, 0, &d, e);
    r = r < 0 ? r : fill_archive(store, image, t, to, &d, progress, e);
    px_image_layout_documents_done(&d);
    r = r < 0 ? r : show(t, replace, e);
    if (r < 0)
        (void)unlinkat(t->parent, t->tmp, 0);
    return r;
}

int px_image_write(struct px_store *store, const struct px_image *image, enum px_image_format format, const char *path,
                   const char *name, struct px_progress_to progress, struct px_err *e)
{
    struct target t = {.parent = -EBADF};
    if (open_target(path, &t, e) < 0)
        return -1;
    int r = format == PX_IMAGE_OCI_DIR ? write_directory(store, image, &t, name, progress, e)
                                       : write_archive(store, image, format, &t, name, progress, e);
    (void)px_fd_close(t.parent);
    return r;
}
