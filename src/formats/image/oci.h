/* image/oci.h - OCI images over the store: put together, written out, read in, unpacked.
 *
 * Why:     what px builds runs under podman, docker, containerd and Kubernetes, and what they build runs in px.
 * Owns:    nothing; an image is blobs in the store, named by its manifest's digest.
 * Mustn't: believe a digest, a size or a media type that it has not checked (SECURITY J12 to J21). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transfer/layer.h"

enum { PX_IMAGE_LAYERS_MAX = 127, PX_IMAGE_JSON_MAX = 4 << 20 };

struct px_image_text {          /* a list of texts; NULL-terminated */
    char **items;
    size_t count;
};

/* The parts of an image's config that mean something to px. */
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
    const char *comments[PX_IMAGE_LAYERS_MAX];  /* history: what each layer is; static texts or NULL */
    size_t layer_count;
    struct px_image_text annotations;           /* of the manifest; "key=value", sorted */
};
void px_image_done(struct px_image *image);

/* From layers, config and annotations to a manifest: fills manifest and config_digest, writes both blobs. The same input gives the
 * same bytes. */
int px_image_seal(struct px_store *store, struct px_image *image, struct px_err *e);
/* Reads an image of the store by its manifest's digest and checks everything it says, blobs' sizes and presence too. */
int px_image_load(struct px_store *store, const struct px_oid *manifest, struct px_image *ret_image, struct px_err *e);
/* Re-hashes every blob of it. */
int px_image_verify(struct px_store *store, const struct px_image *image, struct px_err *e);
/* All layers, in order, as one tree of the store; its id depends on the diff ids alone. 0. */
int px_image_tree(struct px_store *store, const struct px_image *image, struct px_progress_to progress, struct px_oid *ret_tree,
                  struct px_err *e);

enum px_image_format { PX_IMAGE_OCI_DIR, PX_IMAGE_OCI_ARCHIVE, PX_IMAGE_DOCKER_ARCHIVE, PX_IMAGE_FORMATS };
/* Writes the image out, whole or not at all. `name` is its reference ("px.local/demo:1.2.3"), may be NULL. An existing OCI layout directory
 * gets the image added; anything else that exists is refused. */
int px_image_write(struct px_store *store, const struct px_image *image, enum px_image_format format, const char *path, const char *name,
                   struct px_progress_to progress, struct px_err *e);
/* Reads a layout directory, an OCI archive or a docker archive (compressed or not), told by its contents, into the store. `name` chooses one
 * of several; NULL: the only one. Platform: this machine's. */
int px_image_read(struct px_store *store, const char *path, const char *name, struct px_progress_to progress, struct px_image *ret_image,
                  struct px_err *e);

/* REGISTRY[:PORT]/REPOSITORY[:TAG][@sha256:HEX], as docker and podman write it. */
struct px_image_ref {
    char registry[256], repository[256], tag[129];
    struct px_oid digest;       /* "" if none */
    bool found;                 /* a file that px found names it: it gets no credentials, and is on the open network */
};
/* A name without a registry is refused: whose image it means differs from machine to machine, and a file that px found may hold it. */
int px_image_ref_parse(const char *text, struct px_image_ref *ret_ref, struct px_err *e);
/* The same for what somebody has typed behind docker://: without a registry it is of Docker Hub, as for docker and skopeo. */
int px_image_ref_typed(const char *text, struct px_image_ref *ret_ref, struct px_err *e);
/* HOST[:PORT] of the registry. */
const char *px_image_ref_address(const struct px_image_ref *ref);

/* Credentials: PX_REGISTRY_USERNAME and PX_REGISTRY_PASSWORD (where PX_REGISTRY is set, for that registry alone), else
 * what docker and podman keep for that registry (auth.json, config.json: "auths" only). Plain http only for loopback. */
int px_registry_pull(struct px_store *store, const struct px_image_ref *ref, struct px_progress_to progress, struct px_image *ret_image,
                     struct px_err *e);
int px_registry_push(struct px_store *store, const struct px_image *image, const struct px_image_ref *ref,
                     struct px_progress_to progress, struct px_err *e);
