/* catalog/record.h - a base as the store knows it: its object, its record, its name.
 *
 * Why:     a base that was built and one that was imported are the same thing afterwards.
 * Owns:    what struct px_base holds, until px_catalog_base_done.
 * Mustn't: judge where the files came from. */
#pragma once

#include <jansson.h>

#include "store/store.h"
#include "transfer/layer.h"

struct px_base_facts {
    const char *name;           /* "debian-12" */
    const char *place;          /* what it is found by, if not its name; NULL: its name */
    const char *variant;        /* "py311", "imported" */
    struct px_oid tree;         /* complete, in the store */
    const struct px_layer *layer;       /* the same files as one layer */
    const char *packages;       /* JSON list of {"arch","name","version"}, sorted by name; NULL: not known */
    const struct px_oid *blobs; /* more to keep as long as the base: the packages' archives, their lock */
    size_t blob_count;
    const char *lock;           /* the lock's JSON, NULL: none */
    const char *source;         /* where it came from, for people; NULL: built */
};
/* Lists the tree, makes the sandbox-base object (its id is base_os_oid), writes the record and gives it the name. The
 * answer is
 * {"base":..,"base_os_oid":..,..}. */
int px_catalog_base_record(struct px_store *store, const struct px_base_facts *facts, struct px_oid *ret_base, char **ret_json,
                   struct px_err *e);

struct px_base {
    struct px_oid oid;          /* base_os_oid */
    struct px_oid tree;
    struct px_layer layer;
    char *name;
    json_t *record;
};
void px_catalog_base_done(struct px_base *base);
/* By its name or its base_os_oid: 0, 1 if there is none, -1. */
int px_catalog_base_find(struct px_store *store, const char *name, struct px_base *ret_base, struct px_err *e);
/* The same, but none is PX900, and says how to get it. */
int px_catalog_base_need(struct px_store *store, const char *name, struct px_base *ret_base, struct px_err *e);

/* Its tree, in the store and as it was stored; if it is not, it is unpacked again from the base's layer. */
struct px_sandbox;
int px_catalog_base_whole(struct px_sandbox *s, const struct px_base *base, struct px_err *e);

/* An image by its tag or its sbx_id: its record (the caller's) and its manifest. 0, 1 if there is none, -1. */
int px_catalog_image_find(struct px_store *store, const char *name, json_t **ret_record, struct px_oid *ret_manifest,
                  struct px_err *e);

/* The JSON members of a layer in records, and back. */
json_t *px_catalog_layer_json(const struct px_layer *layer);
int px_catalog_layer_from_json(const json_t *object, struct px_layer *ret_layer);
