/* Reading an OCI layout: index, manifest and blobs of a directory, each checked while it is read (SECURITY J12 to
 * J14). */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "image/layout.h"
#include "image/select.h"
#include "store/document.h"

struct layout {
    struct px_store *store;
    int dir;
};

static int open_blob(const struct layout *l, const struct px_descriptor *d, int *ret_fd, struct px_err *e)
{
    char path[96];
    uint64_t size = 0;
    (void)px_fmt(path, sizeof path, "blobs/sha256/%s", d->digest.hex);
    int fd = px_image_layout_open(l->dir, path, &size);
    if (fd == -EINVAL || fd == -ELOOP)
        return px_fail(e, PX_E_IMAGE, 0, "the image's blob sha256:%s is not a regular file", d->digest.hex);
    if (fd < 0)
        return px_fail(e, PX_E_IMAGE, fd, "the image's blob sha256:%s cannot be opened", d->digest.hex);
    if (size != d->size) {
        (void)px_fd_close(fd);
        return px_fail(e, PX_E_IMAGE, 0, "the image's blob sha256:%s has %llu bytes, and the image says %llu",
                       d->digest.hex, (unsigned long long)size, (unsigned long long)d->size);
    }
    *ret_fd = fd;
    return 0;
}

static int take_blob(const struct layout *l, const struct px_descriptor *d, const char *what, struct px_err *e)
{
    px_auto_fd int fd = -EBADF;
    struct px_oid is;
    if (open_blob(l, d, &fd, e) < 0)
        return -1;
    return px_image_layout_take(l->store, fd, d->size, what, &d->digest, &is, e);
}

static int read_document(void *user, const struct px_descriptor *d, struct px_buf *out, struct px_err *e)
{
    const struct layout *l = user;
    if (d->size > PX_IMAGE_JSON_MAX)
        return px_fail(e, PX_E_IMAGE, 0, "the image's document sha256:%s is larger than %d bytes", d->digest.hex,
                       PX_IMAGE_JSON_MAX);
    return take_blob(l, d, "document", e) < 0 ? -1 : px_blob_read(l->store, &d->digest, PX_IMAGE_JSON_MAX, out, e);
}

static int check_marker(int dir, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(4096);
    px_auto(px_document) json_t *root = NULL;
    int r = px_image_layout_read(dir, "oci-layout", 4095, &text);
    if (r < 0)
        return px_fail(e, PX_E_IMAGE, r, "the layout's oci-layout cannot be read");
    if (px_document_read(px_buf_text(&text), text.len, "the layout's oci-layout", PX_E_IMAGE, &root, e) < 0)
        return -1;
    const char *version = px_document_text(root, "imageLayoutVersion");
    return px_equal(version, "1.0.0")
               ? 0
               : px_fail(e, PX_E_IMAGE, 0, "the layout has version '%.40s', not 1.0.0", version ? version : "");
}

static int find_entry(int dir, const char *name, struct px_descriptor *ret_entry, struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
    struct px_index index;
    int r = px_image_layout_read(dir, "index.json", PX_IMAGE_JSON_MAX, &text);
    if (r < 0)
        return px_fail(e, PX_E_IMAGE, r, "the layout's index.json cannot be read");
    if (px_documents_index_read(px_buf_text(&text), text.len, PX_MEDIA_NONE, &index, e) < 0)
        return -1;
    r = px_select_entry(&index, name, true, ret_entry, e);
    px_documents_index_done(&index);
    return r;
}

static int take_parts(const struct layout *l, const struct px_buf *text, struct px_err *e)
{
    struct px_oci_manifest m;
    if (px_documents_manifest_read(px_buf_text(text), text->len, PX_MEDIA_MANIFEST, &m, e) < 0)
        return -1;
    int r = take_blob(l, &m.config, "config", e);
    for (size_t i = 0; r == 0 && i < m.layer_count; i++)
        r = take_blob(l, &m.layers[i], "layer", e);
    px_documents_manifest_done(&m);
    return r;
}

int px_image_layout_read_layout(struct px_store *store, int dir, const char *name, struct px_image *ret_image,
                         struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX);
    struct layout l = {store, dir};
    const struct px_pick pick = {read_document, &l};
    struct px_descriptor entry;
    if (check_marker(dir, e) < 0 || find_entry(dir, name, &entry, e) < 0 || px_select_manifest(&pick, &entry, e) < 0 ||
        read_document(&l, &entry, &text, e) < 0 || take_parts(&l, &text, e) < 0)
        return -1;
    return px_image_load(store, &entry.digest, ret_image, e);
}
