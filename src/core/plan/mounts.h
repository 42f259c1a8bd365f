/* plan/mounts.h - what the policy mounts into the root: writable directories, the work directory, binds.
 *
 * Why:     the user may list them in any order, and they may lie inside each other. Parents are mounted first, so
 *          that none hides another.
 * Owns:    the sorted list. Texts are the policy's.
 * Mustn't: make a mount point in a tree that px did not make: a target inside a bind or the base must exist there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/source.h"

struct px_err;
struct px_place;
struct px_plan;
struct px_policy;

struct px_mounts {
    struct px_place *items;     /* parents before children */
    size_t count;
    const struct px_policy *policy;
    char way[PX_SOURCE_TEXT];   /* px_source_way of the first bind that has one */
};

int px_mounts_init(struct px_mounts *places, const struct px_policy *policy, struct px_err *e);
void px_mounts_done(struct px_mounts *places);
/* How many files a writable directory of that many bytes may have. */
uint64_t px_mounts_inodes(uint64_t bytes);
/* Whether one tmpfs holds the changes of the root and the writable directories: then --disk limits their sum. */
bool px_mounts_shares_upper(const struct px_policy *policy);
/* How large the changes to a root or a directory may get: the limit of all writable directories, or of memory, or a
 * default size. */
uint64_t px_mounts_upper_bytes(const struct px_policy *policy);
/* How much of them may be merged: the same; without a limit, what a directory on a disk holds. */
uint64_t px_mounts_merge_bytes(const struct px_policy *policy);
bool px_mounts_below(const struct px_mounts *places, const char *dir);
/* Adds the mount points that lie in the skeleton. */
void px_mounts_skeleton(struct px_plan *plan, const struct px_mounts *places);
/* Adds the mounts, with the mount points that lie in a tmpfs. */
void px_mounts_mounts(struct px_plan *plan, const struct px_mounts *places);
