/* image/select.h - finds the wanted manifest in an index.
 *
 * Owns:    nothing.
 * Mustn't: read more than PX_INDEX_DEPTH_MAX documents, or one twice. */
#pragma once

#include "image/documents.h"

/* The entry of that name (NULL: any) for this machine. one: several different entries are an error; otherwise the first
 * is taken. */
int px_select_entry(const struct px_index *index, const char *name, bool one, struct px_descriptor *ret_entry,
                  struct px_err *e);

/* Reads documents; `read` checks the digest and the size. */
struct px_pick {
    int (*read)(void *user, const struct px_descriptor *what, struct px_buf *out, struct px_err *e);
    void *user;
};
/* Follows nested indexes from an entry to a manifest. */
int px_select_manifest(const struct px_pick *pick, struct px_descriptor *entry, struct px_err *e);
