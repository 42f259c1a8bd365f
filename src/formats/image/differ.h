/* image/differ.h - where two layers that ought to be one begin to differ.
 *
 * Why:     "another digest" helps nobody; the first file that differs tells what did it.
 * Owns:    nothing: what it unpacks is gone when it returns.
 * Mustn't: hide the error that it is added to. */
#pragma once

#include "image/oci.h"

struct px_err;
struct px_store;

/* Adds to an error just made: details.layer, expected and found, details.path and a line in why, as far as the store still has
 * both. Returns -1. */
int px_differ(struct px_store *store, const char *layer, const struct px_layer *expected, const struct px_layer *found,
              struct px_err *e);
/* The same for the first layer in which an image differs from the one that it ought to be. */
int px_differ_images(struct px_store *store, const struct px_oid *expected, const struct px_image *found, struct px_err *e);
