/* plan/mounts.h - what the policy puts into the root: writable directories, the work directory, binds.
 *
 * Why:     these may lie inside each other in any order the user wrote them; mounted parents first, none hides another.
 * Owns:    the sorted list. Texts are the policy's.
 * Mustn't: make a mount point in a tree that is not ours: a place inside a bind or the base must exist there. */
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
/* How many files so many bytes of a writable directory may be. */
uint64_t px_mounts_inodes(uint64_t bytes);
/* One tmpfs holds the changes of the root and the writable directories: --disk bounds their sum. */
bool px_mounts_shares_upper(const struct px_policy *policy);
/* How much the changes to a root or a directory may take: as much as all writable directories may, or as all the
 * memory, or a size that no host should miss. */
uint64_t px_mounts_upper_bytes(const struct px_policy *policy);
/* How much of them may be merged: the same, and without a limit what a directory on a disk holds. */
uint64_t px_mounts_merge_bytes(const struct px_policy *policy);
bool px_mounts_below(const struct px_mounts *places, const char *dir);
/* The mount points that lie in the skeleton. */
void px_mounts_skeleton(struct px_plan *plan, const struct px_mounts *places);
/* The mounts, with the mount points that lie in a tmpfs of ours. */
void px_mounts_mounts(struct px_plan *plan, const struct px_mounts *places);
