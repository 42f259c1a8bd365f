/* mcp/session.h - what lay in the writable roots before a session's first change, and how it differs now.
 *
 * Why:     a model that has written files and run commands must be able to see what became of it all, whoever did it.
 * Owns:    a list of the files as they were, and the texts of those that are small enough.
 * Mustn't: follow anything but what px/files.h gives, or keep more than its bounds, however much lies there. */
#pragma once

#include <px/files.h>

#include "base/buf.h"

struct session_file {
    char *path;
    uint64_t version, size; /* of px_files_entry */
    char *data;       /* NULL: not kept */
    size_t len;
};

struct session {
    struct session_file *files; /* sorted by path */
    size_t count;
    bool begun;
    bool cut; /* there is more than was looked at */
};

void session_done(struct session *s);
/* Looks at the roots, once: before the first thing that may change them. */
int session_begin(struct session *s, const struct px_files *files, struct px_err *e);
/* What differs now, at a path and below it (NULL: everywhere): a diff, and a JSON object. */
int session_diff(const struct session *s, const struct px_files *files, const char *path, struct px_buf *text,
                 struct px_buf *json, struct px_err *e);
