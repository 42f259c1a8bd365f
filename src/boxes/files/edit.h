/* files/edit.h - one replacement, without a file. */
#pragma once

#include <px/files.h>

struct px_buf;

/* How often the old text occurs (overlapping ones count); if once, out gets the whole with the new one in its place. */
uint64_t px_edit_apply(const char *data, size_t len, const struct px_files_edit *edit, struct px_buf *out);
