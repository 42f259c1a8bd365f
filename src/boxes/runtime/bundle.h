/* runtime/bundle.h - config.json of an OCI bundle, from the plan of a native box.
 *
 * Why:     that plan says already, as data, what a box sees and may do; a second reading of the policy would drift from it.
 * Owns:    nothing.
 * Mustn't: decide anything: what cannot be said in a config is said by the caller, in `missing`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct px_buf;
struct px_err;
struct px_plan;
struct px_policy;
struct px_step;

/* The bundle in the processes around the container; all of it lies on a tmpfs that is theirs alone. */
#define PX_BUNDLE_DIR "/bundle"
#define PX_BUNDLE_ROOTFS PX_BUNDLE_DIR "/rootfs"
#define PX_BUNDLE_BINDS PX_BUNDLE_DIR "/binds"
#define PX_BUNDLE_STATE PX_BUNDLE_DIR "/state"
#define PX_BUNDLE_BESIDE PX_BUNDLE_DIR "/beside"

struct px_extent {
    uint32_t inside, outside, count;
};

enum { PX_EXTENTS_MAX = 3 };

struct px_bundle {
    const struct px_plan *plan; /* of the native box */
    const struct px_policy *policy;
    bool exported;              /* for somebody's own hands: the host's paths, the command itself, limits for the runtime */
    bool own_kernel;            /* the root is made read-only for it; a device on a read-only /dev cannot be written there */
    bool net_made;              /* so is the network namespace: the container keeps the one around it */
    bool terminal;              /* the runtime makes it */
    bool other_ids;             /* px-start renames the only id, for which the kernel wants CAP_SETFCAP; it does not keep it */
    uint32_t uid, gid;          /* of the command, in the container */
    struct px_extent uids[PX_EXTENTS_MAX], gids[PX_EXTENTS_MAX];
    unsigned extents;
};

/* The path of a bind's source in PX_BUNDLE_DIR; index is that of its step in the plan. */
int px_bundle_source(unsigned index, char *out, unsigned long size);
/* Whether a tmpfs of the native box is not left to the runtime but made in PX_BUNDLE_BESIDE: one with mount points in it, which
 * have to belong to the command, or one whose parts are shown in several places. */
bool px_bundle_beside(const struct px_plan *plan, const char *tmpfs);
/* Whether the native box never shows this path by its own name. */
bool px_bundle_detached(const struct px_plan *plan, const char *path);

/* The container's ids as those around it, shifted; how many extents. `apart` is one of those around that the map there has on
 * its own (0: none): an extent must lie in one of the map around it. */
unsigned px_bundle_shift(uint32_t shift, uint32_t count, uint32_t apart, struct px_extent out[PX_EXTENTS_MAX]);

int px_bundle_print(const struct px_bundle *bundle, struct px_buf *out, struct px_err *e);
