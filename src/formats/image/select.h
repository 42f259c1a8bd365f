/* image/select.h - from an index to the one manifest that is meant.
 *
 * Owns:    nothing.
 * Mustn't: read more than PX_INDEX_DEPTH_MAX documents, or one twice. */
#pragma once

#include "image/documents.h"

/* The entry of that name (NULL: any) for this machine. one: several that differ are an error; else the first counts. */
int px_select_entry(const struct px_index *index, const char *name, bool one, struct px_descriptor *ret_entry,
                  struct px_err *e);

/* How the documents come: read checks the digest and the size. */
struct px_pick {
    int (*read)(void *user, const struct px_descriptor *what, struct px_buf *out, struct px_err *e);
    void *user;
};
/* Goes on from an entry that may be an index to one that is not. */
int px_select_manifest(const struct px_pick *pick, struct px_descriptor *entry, struct px_err *e);
