/* image/layout.h - images as directories and archives: what their reader and writer share.
 *
 * Owns:    nothing.
 * Mustn't: follow a link, or leave a partial file under its final name. */
#pragma once

#include "base/buf.h"
#include "image/documents.h"

/* The blobs of an image, each once, sorted by digest. */
struct px_image_layout_blob {
    struct px_oid oid;
    uint64_t size;
};
struct px_image_layout_blobs {
    struct px_image_layout_blob list[PX_IMAGE_LAYERS_MAX + 2];
    size_t count;
    uint64_t bytes;             /* the sum of all blobs */
};
void px_image_layout_blobs(const struct px_image *image, struct px_image_layout_blobs *ret_blobs);
/* Copies a blob of the store to a descriptor and hashes it; PX800 if the hash is not its name. */
int px_image_layout_copy(struct px_store *store, const struct px_oid *oid, int to, struct px_err *e);

/* The small documents beside the blobs. index and docker are empty if there is none. */
struct px_image_layout_documents {
    struct px_buf layout, index, docker, repositories;
};
int px_image_layout_documents(struct px_store *store, const struct px_image *image, enum px_image_format format,
                       const char *name, const char *old, size_t old_len, struct px_image_layout_documents *d,
                       struct px_err *e);
void px_image_layout_documents_done(struct px_image_layout_documents *d);

/* One tar, written to a descriptor from its start; names of at most 99 bytes. */
int px_image_layout_tar_directory(int to, const char *name);
int px_image_layout_tar_begin(int to, const char *name, uint64_t size);
int px_image_layout_tar_end(int to, uint64_t size);            /* of a file: up to the next block */
int px_image_layout_tar_finish(int to);

/* Opens a regular file below a directory without following a link. Returns its descriptor and size; -errno. */
int px_image_layout_open(int dir, const char *path, uint64_t *ret_size);
/* Reads such a file of at most max bytes. */
int px_image_layout_read(int dir, const char *path, size_t max, struct px_buf *out);
/* Copies a file of this size into the store; expect may be NULL. */
int px_image_layout_take(struct px_store *store, int fd, uint64_t size, const char *what, const struct px_oid *expect,
                  struct px_oid *ret_oid, struct px_err *e);

struct stat;
/* Unpacks an archive into a directory of the store; the caller removes it with px_tree_drop. */
int px_image_layout_unpack(struct px_store *store, int fd, const struct stat *st, struct px_progress_to progress,
                    struct px_tree_build **ret_build, struct px_err *e);
/* The format in a directory: PX_IMAGE_OCI_DIR, PX_IMAGE_DOCKER_ARCHIVE, or -ENOENT if it is not an image. */
int px_image_layout_kind(int dir);
/* Reads a directory of either format into the store. path: its name in messages. */
int px_image_layout_read_directory(struct px_store *store, int dir, const char *path, const char *name,
                            struct px_image *ret_image, struct px_err *e);
int px_image_layout_read_layout(struct px_store *store, int dir, const char *name, struct px_image *ret_image,
                         struct px_err *e);
int px_image_layout_read_docker(struct px_store *store, int dir, const char *name, struct px_image *ret_image,
                         struct px_err *e);
