/* files/walk.h - what lies below a path and matches a pattern, one entry at a time.
 *
 * Why:     list and search look at the same entries; trees are hostile, so there is one budget for all of it.
 * Owns:    the directories still to be visited, by name; one descriptor at a time.
 * Mustn't: follow a link into a directory, recurse, or go on when its budget is spent: then `truncated` says why. */
#pragma once

#include <sys/stat.h>

#include "files/files.h"
#include "files/glob.h"

enum {
    PX_WALK_ENTRIES = 200000,           /* that are looked at, in all roots together */
    PX_WALK_FUEL = 1 << 26,             /* compared characters of patterns */
};

struct px_walk {
    const struct px_files *files;
    struct px_glob glob, exclude[PX_FILES_EXCLUDE_MAX];
    size_t exclude_count;
    uint64_t entries, fuel;             /* what is left */
    const char *truncated;
    bool directories;
    bool kinds_only;                    /* of a stat only the kind of file is looked at */
    /* For each match, with what it is or leads to; 0 to go on, 1 to end the walk (having said why), -errno. */
    int (*visit)(struct px_walk *w, const struct px_root *root, const char *rel, const struct stat *st);
    void *user;
};

/* Reads the query's patterns and walks; fills e. */
int px_walk_run(struct px_walk *w, const struct px_files *f, const struct px_files_query *query, struct px_err *e);
