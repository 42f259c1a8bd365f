/* image/oci.h - OCI images in the store: assemble, write, read, unpack.
 *
 * Why:     what px builds runs under podman, docker, containerd and Kubernetes, and what they build runs in px.
 * Owns:    nothing; an image is blobs in the store, named by its manifest's digest.
 * Mustn't: trust a digest, a size or a media type before it is checked (SECURITY J12 to J21). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transfer/layer.h"

enum { PX_IMAGE_LAYERS_MAX = 127, PX_IMAGE_JSON_MAX = 4 << 20 };

struct px_image_text {          /* a NULL-terminated list of strings */
    char **items;
    size_t count;
};

/* The parts of an image's config that px uses. */
struct px_image_config {
    char *architecture, *os, *created;
    char *user, *workdir, *stop_signal;
    struct px_image_text env, entrypoint, cmd;
    struct px_image_text labels;                /* "key=value", sorted by key */
};

struct px_image {
    struct px_oid manifest;
    struct px_oid config_digest;
    uint64_t manifest_size, config_size;
    struct px_image_config config;
    struct px_layer layers[PX_IMAGE_LAYERS_MAX];
    const char *comments[PX_IMAGE_LAYERS_MAX];  /* history: one line a layer; static strings or NULL */
    size_t layer_count;
    struct px_image_text annotations;           /* of the manifest; "key=value", sorted */
};
void px_image_done(struct px_image *image);

/* From layers, config and annotations to a manifest: fills manifest and config_digest, writes both blobs. The same input gives the
 * same bytes. */
int px_image_seal(struct px_store *store, struct px_image *image, struct px_err *e);
/* Reads an image of the store by its manifest's digest and checks its documents, and that every blob exists with its
 * size. */
int px_image_load(struct px_store *store, const struct px_oid *manifest, struct px_image *ret_image, struct px_err *e);
/* Hashes every blob of it again. */
int px_image_verify(struct px_store *store, const struct px_image *image, struct px_err *e);
/* Unpacks all layers in order into one tree of the store. Its id depends on the diff ids only. Returns 0. */
int px_image_tree(struct px_store *store, const struct px_image *image, struct px_progress_to progress, struct px_oid *ret_tree,
                  struct px_err *e);

enum px_image_format { PX_IMAGE_OCI_DIR, PX_IMAGE_OCI_ARCHIVE, PX_IMAGE_DOCKER_ARCHIVE, PX_IMAGE_FORMATS };
/* Writes the image completely or not at all. `name` is its reference ("px.local/demo:1.2.3"), may be NULL. An existing
 * OCI layout directory gets the image added; anything else that exists is refused. */
int px_image_write(struct px_store *store, const struct px_image *image, enum px_image_format format, const char *path, const char *name,
                   struct px_progress_to progress, struct px_err *e);
/* Reads a layout directory, an OCI archive or a docker archive (compressed or not) into the store; the format is
 * detected. `name` selects one of several images; NULL: there is only one. The platform is this machine's. */
int px_image_read(struct px_store *store, const char *path, const char *name, struct px_progress_to progress, struct px_image *ret_image,
                  struct px_err *e);

/* REGISTRY[:PORT]/REPOSITORY[:TAG][@sha256:HEX], as docker and podman write it. */
struct px_image_ref {
    char registry[256], repository[256], tag[129];
    struct px_oid digest;       /* "" if none */
    /* the reference is from a file that px found: no credentials are sent, and only public addresses are used */
    bool found;
};
/* Refuses a name without a registry: its meaning differs from machine to machine, and a file that px found may contain
 * it. */
int px_image_ref_parse(const char *text, struct px_image_ref *ret_ref, struct px_err *e);
/* The same for a name that a user typed after docker://. Without a registry it means Docker Hub, as for docker and
 * skopeo. */
int px_image_ref_typed(const char *text, struct px_image_ref *ret_ref, struct px_err *e);
/* HOST[:PORT] of the registry. */
const char *px_image_ref_address(const struct px_image_ref *ref);

/* Credentials: PX_REGISTRY_USERNAME and PX_REGISTRY_PASSWORD (where PX_REGISTRY is set, for that registry only), else
 * those that docker and podman store for it (auth.json, config.json: "auths" only). Plain http only for loopback. */
int px_registry_pull(struct px_store *store, const struct px_image_ref *ref, struct px_progress_to progress, struct px_image *ret_image,
                     struct px_err *e);
int px_registry_push(struct px_store *store, const struct px_image *image, const struct px_image_ref *ref,
                     struct px_progress_to progress, struct px_err *e);
