/* engine/sandbox.h - what the functions of px/sandbox.h share: the open store and whom to tell.
 *
 * Why:     bases, layers, images and the store's own care are files of their own; this is what they all begin with.
 * Owns:    the store.
 * Mustn't: keep anything else between calls. */
#pragma once

#include "image/layer.h"
#include "store/store.h"

struct px_sandbox {
    struct px_store *store;
    struct px_progress_to progress;
};

/* Which version of layout and identity this px makes: part of every sbx_id. */
enum { PX_SBX_VERSION = 1 };
