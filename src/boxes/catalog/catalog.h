/* catalog/catalog.h - what the functions of px/sandbox.h share: the open store and whom to tell.
 *
 * Why:     bases, layers, images and the store's own care are files of their own; this is what they all begin with.
 * Owns:    the store.
 * Mustn't: keep anything else between calls. */
#pragma once

#include "store/store.h"
#include "transfer/layer.h"

struct px_sandbox {
    struct px_store *store;
    struct px_progress_to progress;
};

/* sandbox_root.c: looks at the files of the root beside what the caller does; false: that takes reading them. And what
 * was found; true where nobody looked. */
struct px_root_lease;
bool px_root_lease_look(struct px_sandbox *s, struct px_root_lease *lease);
bool px_root_lease_holds(struct px_root_lease *lease);

/* sandbox_delete.c: whether a box or a px that is running uses what the record stands for. 1, 0, -1. */
int px_catalog_record_in_use(struct px_sandbox *s, enum px_record_kind kind, const struct px_oid *id, struct px_err *e);

/* Which version of layout and identity this px makes: part of every sbx_id. */
enum { PX_SBX_VERSION = 1 };
