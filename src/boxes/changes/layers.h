/* changes/layers.h - directories that lie over each other, seen as one tree, without a mount.
 *
 * Why:     a branch of a workspace is its parent's frozen layers and its own; what it holds must be read outside of any
 *          box, also by who may not mount.
 * Owns:    nothing: the descriptors are the caller's.
 * Mustn't: follow a link, or show what a whiteout or an opaque directory hides. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { PX_LAYERS_DEPTH = 12 };

struct px_layers {
    int fds[PX_LAYERS_DEPTH]; /* the uppermost first */
    size_t count;
};

/* Where something is: the layer that has it, and (a directory) all layers that have a part of it, as bits. */
struct px_layers_at {
    struct stat st;
    size_t layer;
    uint32_t parts;
};

bool px_layers_is_whiteout(const struct stat *st);
bool px_layers_is_opaque(int dir);
/* 0; -ENOENT: there is nothing; or another -errno. A '/' at the end of the path counts for nothing; "" is the top. */
int px_layers_find(const struct px_layers *layers, const char *path, struct px_layers_at *ret);
/* Opens a file or the uppermost part of a directory, for reading. */
int px_layers_open(const struct px_layers *layers, const char *path);
/* The names in a directory, each once; stops when `each` returns < 0. -ENOENT if there is no such directory. */
int px_layers_list(const struct px_layers *layers, const char *dir,
                   int (*each)(void *user, const char *name, const struct stat *st), void *user);
