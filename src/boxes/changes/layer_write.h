/* changes/layer_write.h - changes written as a layer that an overlay can have below it.
 *
 * Why:     what a command did is kept apart from the tree below it.
 * Owns:    nothing.
 * Mustn't: follow a link, or write outside of the directory it is given. All return 0 or -errno. */
#pragma once

#include "changes/changes.h"
#include "changes/layers.h"

/* Writes what the changes bring as a layer into the empty directory `into`. */
int px_changes_layer_write(const struct px_changes *changes, const struct px_layers *below, int into);
/* All layers but the lowest, as one. */
int px_changes_layer_merge(const struct px_layers *layers, int into);
/* Copies a file or a link of one directory to a new name of another: bytes, mode (without set-id bits) and time. */
int px_changes_layer_copy(int from, const char *path, unsigned mode, int to, const char *name);
