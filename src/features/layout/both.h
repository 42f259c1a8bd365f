/* layout/both.h - writes a new manifest and its lock together.
 *
 *     .px/next.lock       the new lock, before anything else is changed
 *     pyproject.toml      replaced: from now on both are new
 *     px.lock             replaced, and .px/next.lock is removed
 *
 * Why:     a process that is killed between two writes would leave a manifest without its lock.
 * Owns:    .px/next.lock.
 * Mustn't: overwrite what a person wrote: a next.lock is used only if it matches the current manifest and px.lock
 *          does not, and only as a lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct px_buf;

/* The two texts, and where each goes. root: of the project, or of the workspace; dir: of the manifest. */
struct px_both {
    int root, dir;
    const char *lock_file;
    const struct px_buf *manifest, *lock;
};
/* 0, -errno; *ret_written: whether the manifest is the new one. */
int px_both_write(const struct px_both *both, bool *ret_written);

/* Reads the next.lock that a killed px left: 0; 1: none. */
int px_both_left(int root, size_t max, struct px_buf *out);
/* Makes it the lock if it matches the manifest, and removes it. */
int px_both_settle(int root, const char *lock_file, size_t max, bool keep);
