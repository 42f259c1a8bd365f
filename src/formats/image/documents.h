/* image/documents.h - the documents of an image: index, manifest, config; from bytes to structs and back.
 *
 * Why:     an image is described by three small JSON documents; they are checked here by pure functions.
 * Owns:    the structs that px_*_done frees.
 * Mustn't: open, fetch or trust anything: a digest that is not 64 hexadecimal digits is refused (SECURITY J13 to
 *          J20). */
#pragma once

#include "image/oci.h"

struct px_buf;

/* The media types of OCI and of docker. */
enum px_media {
    PX_MEDIA_NONE,              /* no media type */
    PX_MEDIA_INDEX,
    PX_MEDIA_MANIFEST,
    PX_MEDIA_CONFIG,
    PX_MEDIA_LAYER,
    PX_MEDIA_FOREIGN,           /* a foreign layer, stored elsewhere: never fetched */
    PX_MEDIA_OTHER,
};
enum px_media px_media_find(const char *type, enum px_compression *ret_compression /* or NULL */);

#define PX_MEDIA_INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define PX_MEDIA_MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define PX_MEDIA_CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define PX_MEDIA_DOCKER_LIST_TYPE "application/vnd.docker.distribution.manifest.list.v2+json"
#define PX_MEDIA_DOCKER_MANIFEST_TYPE "application/vnd.docker.distribution.manifest.v2+json"

#define PX_REF_NAME "org.opencontainers.image.ref.name"
#define PX_REF_ALIAS "io.containerd.image.name"         /* the full name, where the other annotation is a tag */

enum {
    PX_INDEX_ENTRIES_MAX = 4096,
    PX_INDEX_DEPTH_MAX = 4,
    PX_CONFIG_TEXTS_MAX = 4096, /* items of one list */
};

/* A descriptor: what a document states about a blob. */
struct px_descriptor {
    struct px_oid digest;
    uint64_t size;
    enum px_media media;
    enum px_compression compression;            /* of a layer */
};

struct px_index_entry {
    struct px_descriptor is;
    char *os, *architecture, *variant;          /* NULL: absent */
    char *name, *alias;                         /* the annotations of its reference; NULL if none */
};
struct px_index {
    struct px_index_entry *entries;
    size_t count;
};
int px_documents_index_read(const char *text, size_t len, enum px_media said, struct px_index *ret_index, struct px_err *e);
void px_documents_index_done(struct px_index *index);
/* The platforms of an index that has none for this machine: "linux/arm64, linux/s390x". */
void px_documents_index_offers(const struct px_index *index, struct px_buf *out);

struct px_oci_manifest {
    struct px_descriptor config;
    struct px_descriptor layers[PX_IMAGE_LAYERS_MAX];
    size_t layer_count;
    struct px_image_text annotations;
};
int px_documents_manifest_read(const char *text, size_t len, enum px_media said, struct px_oci_manifest *ret_manifest,
                     struct px_err *e);
void px_documents_manifest_done(struct px_oci_manifest *manifest);

/* diff_ids has room for layer_count; a config with another number is refused. */
int px_documents_config_read(const char *text, size_t len, size_t layer_count, struct px_oid *diff_ids,
                   struct px_image_config *ret_config, struct px_err *e);
void px_documents_config_done(struct px_image_config *config);

/* Writes the document of an image that px made. The same input gives the same bytes. */
int px_documents_config_write(const struct px_image *image, struct px_buf *out, struct px_err *e);
int px_documents_manifest_write(const struct px_image *image, struct px_buf *out, struct px_err *e);
/* The media type of a manifest that px_documents_manifest_read has accepted. */
int px_documents_manifest_type(const char *text, size_t len, char *out, size_t size, struct px_err *e);
/* The index of a layout: one entry, or one more behind those of `old`, a document that px_documents_index_read has accepted
 * (NULL: none); an entry of the same name goes. type: px_documents_manifest_type's. name may be NULL. */
int px_documents_index_write(const struct px_image *image, const char *type, const char *name, const char *old, size_t old_len,
                   struct px_buf *out, struct px_err *e);

/* The architecture of this machine as images name it: "amd64". */
const char *px_image_architecture(void);

/* Adds a copy; -ENOMEM. */
int px_documents_text_add(struct px_image_text *list, const char *item);
void px_documents_text_done(struct px_image_text *list);
