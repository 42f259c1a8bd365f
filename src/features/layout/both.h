/* layout/both.h - a new manifest and its lock, written as one.
 *
 *     .px/next.lock       the new lock, before anything else is changed
 *     pyproject.toml      replaced: from now on both are new
 *     px.lock             replaced, and .px/next.lock goes
 *
 * Why:     who is killed between two files would leave a manifest without its lock.
 * Owns:    .px/next.lock.
 * Mustn't: overwrite what a person wrote: a next.lock counts only while it is made for the manifest that is there and px.lock
 *          is not, and nothing but a lock is ever taken from it. */
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

/* What a px that was killed left: 0; 1: nothing. */
int px_both_left(int root, size_t max, struct px_buf *out);
/* Makes that the lock, if it is to be, and removes it. */
int px_both_settle(int root, const char *lock_file, size_t max, bool keep);
