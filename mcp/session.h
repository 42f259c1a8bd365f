/* mcp/session.h - the files of the writable roots before a session's first change, and the differences since.
 *
 * Why:     a model must be able to see all changes of its session, by tools and by commands.
 * Owns:    a list of the original files, and the content of small ones.
 * Mustn't: access files except through px/files.h, or store more than its limits. */
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
    bool cut; /* there are more files than were read */
};

void session_done(struct session *s);
/* Reads the roots once, before the first possible change. */
int session_begin(struct session *s, const struct px_files *files, struct px_err *e);
/* What differs now, at a path and below it (NULL: everywhere): a diff, and a JSON object. */
int session_diff(const struct session *s, const struct px_files *files, const char *path, struct px_buf *text,
                 struct px_buf *json, struct px_err *e);
