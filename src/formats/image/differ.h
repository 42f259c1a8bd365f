/* image/differ.h - finds the first file in which two layers differ that should be equal.
 *
 * Why:     a different digest does not show the cause; the first differing file does.
 * Owns:    nothing: it removes what it unpacked before it returns.
 * Mustn't: hide the error that it is added to. */
#pragma once

#include "image/oci.h"

struct px_err;
struct px_store;

/* Adds to an error just made: details.layer, expected and found, details.path and a line in why, if the store still has
 * both layers. Returns -1. */
int px_differ(struct px_store *store, const char *layer, const struct px_layer *expected, const struct px_layer *found,
              struct px_err *e);
/* The same for the first layer in which an image differs from the expected image. */
int px_differ_images(struct px_store *store, const struct px_oid *expected, const struct px_image *found, struct px_err *e);
