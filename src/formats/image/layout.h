/* image/layout.h - images as files of the caller's: what writing and reading them share.
 *
 * Owns:    nothing.
 * Mustn't: follow a link, or leave half of something under its final name. */
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
    uint64_t bytes;             /* of all */
};
void px_image_layout_blobs(const struct px_image *image, struct px_image_layout_blobs *ret_blobs);
/* A blob of the store to a descriptor, hashed on the way: what does not match its name is PX800. */
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

/* A regular file below a directory, no link anywhere: its descriptor, its size; -errno. */
int px_image_layout_open(int dir, const char *path, uint64_t *ret_size);
/* The same, whole, of at most max bytes. */
int px_image_layout_read(int dir, const char *path, size_t max, struct px_buf *out);
/* A file of this size into the store; expect may be NULL. */
int px_image_layout_take(struct px_store *store, int fd, uint64_t size, const char *what, const struct px_oid *expect,
                  struct px_oid *ret_oid, struct px_err *e);

struct stat;
/* An archive of any kind into a directory of the store, for px_tree_drop to remove. */
int px_image_layout_unpack(struct px_store *store, int fd, const struct stat *st, struct px_progress_to progress,
                    struct px_tree_build **ret_build, struct px_err *e);
/* What is in a directory: PX_IMAGE_OCI_DIR, PX_IMAGE_DOCKER_ARCHIVE, or -ENOENT if it is no image. */
int px_image_layout_kind(int dir);
/* From a directory, of either form, into the store. path: what to call it. */
int px_image_layout_read_directory(struct px_store *store, int dir, const char *path, const char *name,
                            struct px_image *ret_image, struct px_err *e);
int px_image_layout_read_layout(struct px_store *store, int dir, const char *name, struct px_image *ret_image,
                         struct px_err *e);
int px_image_layout_read_docker(struct px_store *store, int dir, const char *name, struct px_image *ret_image,
                         struct px_err *e);
