/* changes/changes.h - what an overlay's upper directory says was done to the directory below it: listed, shown, merged.
 *
 * Why:     the upper directory is the change: it costs what changed, not what is there.
 * Owns:    its list and texts. Descriptors are the caller's.
 * Mustn't: follow a link in either tree, open anything but directories and regular files, let a set-id bit arrive, or
 *          overwrite what somebody else has changed since. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "changes/layers.h"
#include "changes/unified.h"

struct px_err;

enum px_change_kind { PX_CHANGE_ADDED, PX_CHANGE_MODIFIED, PX_CHANGE_DELETED, PX_CHANGE_MODE, PX_CHANGE_SPECIAL };
const char *px_changes_word(enum px_change_kind kind);

struct px_changes_item {
    char *path; /* from the directory; a directory's ends with '/' */
    enum px_change_kind kind;
    bool listed;            /* worth telling: not a directory that the files in it speak for */
    unsigned before, after; /* st_mode; 0: not there */
    uint64_t size, blocks;  /* of a regular file that is new or changed: bytes, and those that it has on its disk */
};

/* A symbolic link, or one that was deleted. */
bool px_changes_is_link(const struct px_changes_item *item);

struct px_changes {
    struct px_changes_item *items; /* sorted by path */
    size_t count, room;
    size_t bytes;           /* of all paths */
    struct px_layers upper, lower; /* of one directory, or of several that lie over each other; all borrowed */
};

enum { PX_CHANGES_MAX = 1 << 18, PX_CHANGES_BYTES_MAX = 64 << 20 };

/* Compares the two trees. 0 or -errno; -E2BIG: more than the bounds above. */
int px_changes_read(int upper, int lower, struct px_changes *ret_changes);
/* The same over several directories. `whole`: the upper tree is not what lies over the others but all there is now, a copy
 * that was finished at that time (CLOCK_REALTIME): where nothing was stamped since, nothing is read. */
int px_changes_compare(int upper, const struct px_layers *lower, const struct timespec *whole, struct px_changes *ret_changes);
void px_changes_done(struct px_changes *changes);

/* The diffs of all listed files, one after the other; a file whose diff does not fit is left out and *ret_truncated
 * set. All share one budget: once it is used, files are only named, and *ret_truncated is set, too. */
int px_changes_diff(const struct px_changes *changes, enum px_diff_style style, struct px_diff_budget budget,
                    struct px_buf *out, bool *ret_truncated);

/* Makes the lower directory what the two together are, file by file, each whole or not at all. Nothing is done if
 * anything that would be replaced or removed was changed after `since` (CLOCK_REALTIME): the error names it. The kernel
 * may stamp a file with the last tick of its clock, so that what changes within a tick of `since` can be missed. */
int px_changes_apply(const struct px_changes *changes, const struct timespec *since, struct px_err *e);
/* Only the question whether that could be done. */
int px_changes_check(const struct px_changes *changes, const struct timespec *since, struct px_err *e);
/* Whether what would be written takes no more than that many bytes of the disk, and the file system of `dir` has files
 * of that size. Each name of a file counts, as it becomes a file of its own; holes do not. */
int px_changes_weigh(const struct px_changes *changes, uint64_t bytes_max, int dir, struct px_err *e);

/* changes/walk.c, for the three above. */
/* A file of either tree by its path, without following any link; what its owner may not read is made readable in the
 * upper tree, which is ours. */
int px_changes_open(int dir, const char *path, bool ours);
/* Reads a file or a link of one tree as a side of a diff; memory is the caller's to free. Beyond PX_DIFF_BYTES_MAX only
 * its length. */
int px_changes_load(int dir, const char *path, unsigned mode, bool ours, char **ret_data, size_t *ret_len);
/* The same where several directories lie over each other, and the descriptor of the one that has a path. */
int px_changes_load_from(const struct px_layers *layers, const char *path, unsigned mode, bool ours, char **ret_data,
                         size_t *ret_len);
int px_changes_holder(const struct px_layers *layers, const char *path);
/* 1 if a path that both have is the same in both, modes aside; 0, or -errno. */
int px_changes_same(const struct px_layers *a, const struct px_layers *b, const char *path, const struct stat *st_a,
                    const struct stat *st_b);
/* Puts them in order, and says which directories are worth telling. */
void px_changes_sort(struct px_changes *changes);
/* One more; the path is copied. -E2BIG beyond the bounds. */
int px_changes_add(struct px_changes *changes, const char *path, struct px_changes_item item);
