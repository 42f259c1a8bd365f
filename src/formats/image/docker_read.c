/* Reading what `docker save` writes: manifest.json names a config and layers by paths of their own. They become an
 * image of the store with an OCI manifest; its config, and so its id, stays as it is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "image/layout.h"
#include "store/document.h"

/* ---- which one ---- */

static bool has_name(const json_t *item, const char *name)
{
    const json_t *tags = json_object_get(item, "RepoTags");
    for (size_t i = 0; i < json_array_size(tags); i++)
        if (px_equal(json_string_value(json_array_get(tags, i)), name))
            return true;
    return false;
}

static const json_t *choose(const json_t *root, const char *name, struct px_err *e)
{
    const json_t *found = NULL;
    size_t count = json_array_size(root);
    if (!json_is_array(root) || count == 0 || count > PX_INDEX_ENTRIES_MAX) {
        (void)px_fail(e, PX_E_IMAGE, 0, "the archive's manifest.json is not a list of images");
        return NULL;
    }
    for (size_t i = 0; i < count && !found; i++)
        if (name ? has_name(json_array_get(root, i), name) : count == 1)
            found = json_array_get(root, i);
    if (found)
        return found;
    if (name) {
        (void)px_fail(e, PX_E_IMAGE, 0, "there is no image '%.200s' in the archive", name);
    } else {
        (void)px_fail(e, PX_E_IMAGE, 0, "there are several images there, and none is chosen");
        (void)px_fix(e, "Name one of them.");
    }
    return NULL;
}

/* ---- its parts ---- */

/* Equal layers are one file and links to it. A link that leaves the directory is not followed. */
static int open_part(int dir, const char *path, uint64_t *ret_size, struct px_err *e)
{
    struct stat st;
    px_auto_fd int fd = px_open_beneath(dir, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return px_fail(e, PX_E_IMAGE, fd, "the archive's '%.200s' cannot be opened", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return px_fail(e, PX_E_IMAGE, 0, "the archive's '%.200s' is not a regular file", path);
    *ret_size = (uint64_t)st.st_size;
    return px_fd_take(&fd);
}

/* A path that contains a digest must match the content: HEX.json, blobs/sha256/HEX. */
static const struct px_oid *digest_in(const char *path, struct px_oid *oid)
{
    const char *slash = strrchr(path, '/');
    char name[72];
    if (px_fmt(name, sizeof name, "%s", slash ? slash + 1 : path) < 0)
        return NULL;
    name[strcspn(name, ".")] = '\0';
    return px_hash_oid_parse(name, false, oid) == 0 ? oid : NULL;
}

static int take_config(struct px_store *store, int dir, const char *path, struct px_image *image, struct px_err *e)
{
    struct px_oid expect;
    if (!path)
        return px_fail(e, PX_E_IMAGE, 0, "the archive names no config");
    px_auto_fd int fd = open_part(dir, path, &image->config_size, e);
    if (fd < 0)
        return -1;
    if (image->config_size > PX_IMAGE_JSON_MAX)
        return px_fail(e, PX_E_IMAGE, 0, "the image's config is larger than %d bytes", PX_IMAGE_JSON_MAX);
    return px_image_layout_take(store, fd, image->config_size, "config", digest_in(path, &expect), &image->config_digest, e);
}

/* Detects the compression by the first bytes, as docker does. */
static enum px_compression compression_of(int fd)
{
    unsigned char head[4] = {0};
    if (pread(fd, head, sizeof head, 0) != sizeof head)
        return PX_COMPRESS_NONE;
    if (head[0] == 0x1f && head[1] == 0x8b)
        return PX_COMPRESS_GZIP;
    return memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ? PX_COMPRESS_ZSTD : PX_COMPRESS_NONE;
}

static int take_layer(struct px_store *store, int dir, const char *path, struct px_layer *layer, struct px_err *e)
{
    struct px_oid expect;
    if (!path)
        return px_fail(e, PX_E_IMAGE, 0, "the archive names no layer");
    const char *slash = strrchr(path, '/');
    px_auto_fd int fd = open_part(dir, path, &layer->size, e);
    if (fd < 0)
        return -1;
    layer->compression = compression_of(fd);
    /* In HEX/layer.tar and HEX.tar the digits are docker's, of the layer's history or its diff id: that is checked
     * when it is unpacked. */
    bool digest = slash && !strchr(slash, '.');
    return px_image_layout_take(store, fd, layer->size, "layer", digest ? digest_in(path, &expect) : NULL, &layer->digest, e);
}

static int take_all(struct px_store *store, int dir, const json_t *item, struct px_image *image, struct px_err *e)
{
    const json_t *layers = json_object_get(item, "Layers");
    if (!json_is_array(layers) || json_array_size(layers) > PX_IMAGE_LAYERS_MAX)
        return px_fail(e, PX_E_IMAGE, 0, "the archive's image has no list of layers, or more than %d of them",
                       PX_IMAGE_LAYERS_MAX);
    if (take_config(store, dir, px_document_text(item, "Config"), image, e) < 0)
        return -1;
    image->layer_count = json_array_size(layers);
    for (size_t i = 0; i < image->layer_count; i++)
        if (take_layer(store, dir, json_string_value(json_array_get(layers, i)), &image->layers[i], e) < 0)
            return -1;
    return 0;
}

int px_image_layout_read_docker(struct px_store *store, int dir, const char *name, struct px_image *ret_image,
                         struct px_err *e)
{
    px_auto_buf struct px_buf text = PX_BUF(PX_IMAGE_JSON_MAX), manifest = PX_BUF(PX_IMAGE_JSON_MAX);
    px_auto(px_document) json_t *root = NULL;
    px_auto_free struct px_image *image = calloc(1, sizeof *image);
    struct px_oid id;
    int r = image ? px_image_layout_read(dir, "manifest.json", PX_IMAGE_JSON_MAX, &text) : -ENOMEM;
    if (r < 0)
        return px_fail(e, PX_E_IMAGE, r, "the archive's manifest.json cannot be read");
    if (px_document_read(px_buf_text(&text), text.len, "the archive's manifest.json", PX_E_IMAGE, &root, e) < 0)
        return -1;
    const json_t *item = choose(root, name, e);
    if (!item || take_all(store, dir, item, image, e) < 0 || px_documents_manifest_write(image, &manifest, e) < 0 ||
        px_blob_put(store, px_buf_text(&manifest), manifest.len, &id, e) < 0)
        return -1;
    return px_image_load(store, &id, ret_image, e);
}
