#include "image/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"

enum { CHUNK = 256 << 10, TAR_BLOCK = 512 };

/* ---- blobs ---- */

static int compare_blobs(const void *a, const void *b)
{
    return strcmp(((const struct px_image_layout_blob *)a)->oid.hex, ((const struct px_image_layout_blob *)b)->oid.hex);
}

void px_image_layout_blobs(const struct px_image *image, struct px_image_layout_blobs *ret_blobs)
{
    struct px_image_layout_blob *list = ret_blobs->list;
    size_t n = 0, kept = 0;
    list[n++] = (struct px_image_layout_blob){image->manifest, image->manifest_size};
    list[n++] = (struct px_image_layout_blob){image->config_digest, image->config_size};
    for (size_t i = 0; i < image->layer_count; i++)
        list[n++] = (struct px_image_layout_blob){image->layers[i].digest, image->layers[i].size};
    qsort(list, n, sizeof *list, compare_blobs);
    ret_blobs->bytes = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !px_hash_oid_equal(&list[kept - 1].oid, &list[i].oid)) {
            list[kept++] = list[i];
            ret_blobs->bytes += list[i].size;
        }
    ret_blobs->count = kept;
}

static int copy(int from, int to, struct px_hash *hash, struct px_err *e)
{
    px_auto_free char *chunk = malloc(CHUNK);
    ssize_t n = chunk ? 1 : -ENOMEM;
    while (n > 0) {
        n = px_read_some(from, chunk, CHUNK);
        if (n <= 0)
            break;
        px_hash_add(hash, chunk, (size_t)n);
        int r = px_write_full(to, chunk, (size_t)n);
        if (r < 0)
            return px_fail(e, PX_E_IO, r, "cannot write the image");
    }
    return n < 0 ? px_fail(e, n == -ENOMEM ? PX_E_MEMORY : PX_E_OBJECT, (int)n, "cannot read a blob of the image") : 0;
}

int px_image_layout_copy(struct px_store *store, const struct px_oid *oid, int to, struct px_err *e)
{
    px_auto_fd int from = -EBADF;
    struct px_hash hash;
    struct px_oid is;
    if (px_blob_open(store, oid, &from, NULL, e) < 0)
        return -1;
    px_hash_begin(&hash);
    if (copy(from, to, &hash, e) < 0) {
        px_hash_drop(&hash);
        return -1;
    }
    if (px_hash_end(&hash, &is) < 0)
        return px_no_memory(e);
    if (px_hash_oid_equal(&is, oid))
        return 0;
    (void)px_fail(e, PX_E_OBJECT, 0, "blob %s was not what it is called when it was read", oid->hex);
    (void)px_blob_verify(store, oid, e);        /* checks again, moves it to corrupt/ and fills e */
    return -1;
}

/* ---- documents ---- */

static void put_blob_path(struct px_json *j, const char *name, const struct px_oid *oid)
{
    char path[96];
    (void)px_fmt(path, sizeof path, "blobs/sha256/%s", oid->hex);
    px_json_text(j, name, path);
}

static void write_docker(const struct px_image *image, const char *name, struct px_buf *out)
{
    struct px_json j = {.out = out};
    px_json_array(&j, NULL);
    px_json_object(&j, NULL);
    put_blob_path(&j, "Config", &image->config_digest);
    px_json_array(&j, "Layers");
    for (size_t i = 0; i < image->layer_count; i++)
        put_blob_path(&j, NULL, &image->layers[i].digest);
    px_json_end(&j);
    px_json_array(&j, "RepoTags");
    if (name)
        px_json_text(&j, NULL, name);
    px_json_end(&j);
    px_json_end(&j);
    px_json_end(&j);
}

/* {"REPOSITORY":{"TAG":LAST LAYER}}, for old versions of docker. */
static void write_repositories(const struct px_image *image, const char *name, struct px_buf *out)
{
    char repository[768];
    const char *slash = name ? strrchr(name, '/') : NULL, *colon = name ? strchr(slash ? slash : name, ':') : NULL;
    if (!colon || image->layer_count == 0 ||
        px_fmt(repository, sizeof repository, "%.*s", (int)(colon - name), name) < 0)
        return;
    struct px_json j = {.out = out};
    px_json_object(&j, NULL);
    px_json_object(&j, repository);
    px_json_text(&j, colon + 1, image->layers[image->layer_count - 1].digest.hex);
    px_json_end(&j);
    px_json_end(&j);
}

static int check_for_docker(const struct px_image *image, struct px_err *e)
{
    for (size_t i = 0; i < image->layer_count; i++)
        if (image->layers[i].compression == PX_COMPRESS_ZSTD) {
            (void)px_fail(e, PX_E_IMAGE, 0, "a docker archive cannot hold this image");
            (void)px_why(e, "Its layers are compressed with zstd, which not every docker unpacks.");
            return px_fix(e, "Build it with --compression gzip, or write --format oci-archive.");
        }
    return 0;
}

int px_image_layout_documents(struct px_store *store, const struct px_image *image, enum px_image_format format,
                       const char *name, const char *old, size_t old_len, struct px_image_layout_documents *d,
                       struct px_err *e)
{
    px_auto_buf struct px_buf manifest = PX_BUF(PX_IMAGE_JSON_MAX);
    char type[160];
    *d = (struct px_image_layout_documents){PX_BUF(256), PX_BUF(PX_IMAGE_JSON_MAX), PX_BUF(PX_IMAGE_JSON_MAX), PX_BUF(4096)};
    if (px_blob_read(store, &image->manifest, PX_IMAGE_JSON_MAX, &manifest, e) < 0 ||
        px_documents_manifest_type(px_buf_text(&manifest), manifest.len, type, sizeof type, e) < 0)
        return -1;
    (void)px_buf_puts(&d->layout, "{\"imageLayoutVersion\":\"1.0.0\"}");
    if (px_documents_index_write(image, type, name, old, old_len, &d->index, e) < 0)
        return -1;
    if (format == PX_IMAGE_DOCKER_ARCHIVE) {
        if (check_for_docker(image, e) < 0)
            return -1;
        write_docker(image, name, &d->docker);
        write_repositories(image, name, &d->repositories);
    }
    int r = d->layout.err < 0 ? d->layout.err : d->docker.err < 0 ? d->docker.err : d->repositories.err;
    return r < 0 ? px_fail(e, PX_E_MEMORY, r, "writing the image") : 0;
}

void px_image_layout_documents_done(struct px_image_layout_documents *d)
{
    px_buf_done(&d->layout);
    px_buf_done(&d->index);
    px_buf_done(&d->docker);
    px_buf_done(&d->repositories);
}

/* ---- tar ---- */

static void octal(char *field, size_t size, uint64_t value)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static int put_header(int to, const char *name, char type, unsigned mode, uint64_t size)
{
    char block[TAR_BLOCK] = {0};
    uint64_t sum = 0;
    if (px_fmt(block, 100, "%s", name) < 0)
        return -ENAMETOOLONG;
    octal(block + 100, 8, mode);
    octal(block + 108, 8, 0);
    octal(block + 116, 8, 0);
    if (size < 1ull << 33) {
        octal(block + 124, 12, size);
    } else {
        block[124] = (char)0x80;                /* GNU base 256, which all current tars read */
        for (unsigned i = 0; i < 8; i++)
            block[135 - i] = (char)(size >> 8 * i & 0xff);
    }
    octal(block + 136, 12, 0);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    octal(block + 148, 7, sum);
    return px_write_full(to, block, sizeof block);
}

int px_image_layout_tar_directory(int to, const char *name)
{
    return put_header(to, name, '5', 0755, 0);
}

int px_image_layout_tar_begin(int to, const char *name, uint64_t size)
{
    return put_header(to, name, '0', 0644, size);
}

int px_image_layout_tar_end(int to, uint64_t size)
{
    static const char zeros[TAR_BLOCK];
    return px_write_full(to, zeros, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

int px_image_layout_tar_finish(int to)
{
    static const char zeros[2 * TAR_BLOCK];
    return px_write_full(to, zeros, sizeof zeros);
}

/* ---- reading ---- */

int px_image_layout_open(int dir, const char *path, uint64_t *ret_size)
{
    struct stat st;
    px_auto_fd int fd = px_open_in_root(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    *ret_size = (uint64_t)st.st_size;
    return px_fd_take(&fd);
}

int px_image_layout_read(int dir, const char *path, size_t max, struct px_buf *out)
{
    uint64_t size = 0;
    px_auto_fd int fd = px_image_layout_open(dir, path, &size);
    if (fd < 0)
        return fd;
    if (size > max)
        return -EFBIG;
    px_auto_free char *bytes = malloc((size_t)size + 1);
    ssize_t n = bytes ? px_read_full(fd, bytes, (size_t)size) : -ENOMEM;
    return n < 0 ? (int)n : px_buf_add(out, bytes, (size_t)n);
}

static int fill_blob(struct px_blob_writer *w, int fd, uint64_t size, struct px_err *e)
{
    px_auto_free char *chunk = malloc(CHUNK);
    if (!chunk)
        return px_no_memory(e);
    while (size > 0) {
        ssize_t n = px_read_some(fd, chunk, size < CHUNK ? (size_t)size : CHUNK);
        if (n <= 0)
            return px_fail(e, PX_E_IO, n < 0 ? (int)n : ESTALE, "cannot read the whole of a blob");
        if (px_blob_write(w, chunk, (size_t)n, e) < 0)
            return -1;
        size -= (uint64_t)n;
    }
    return 0;
}

int px_image_layout_take(struct px_store *store, int fd, uint64_t size, const char *what, const struct px_oid *expect,
                  struct px_oid *ret_oid, struct px_err *e)
{
    struct px_blob_writer *w = NULL;
    if (px_blob_begin(store, size, &w, e) < 0)
        return -1;
    if (fill_blob(w, fd, size, e) < 0) {
        px_blob_drop(w);
        return -1;
    }
    if (px_blob_commit(w, expect, ret_oid, NULL, e) == 0)
        return 0;
    if (e->code != PX_E_OBJECT || !expect)
        return -1;
    (void)px_fail(e, PX_E_IMAGE, 0, "the %s sha256:%s is not what it is called", what, expect->hex);
    return px_why(e, "Its bytes have another digest: it was damaged, or changed.");
}
