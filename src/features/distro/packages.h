/* distro/packages.h - a list of packages, each exactly one archive: what a lock holds.
 *
 *     {"arch":"amd64","base":"debian-12","lock_version":1,"packages":[
 *         {"arch":..,"name":..,"sha256":..,"size":N,"version":..}]}
 *
 * Why:     archives of distributions move; what was built is named by the bytes it was built from, and can be built
 *          again.
 * Owns:    its texts.
 * Mustn't: hold a name, version or architecture with a byte that a shell, a path or a package manager could mean
 *          otherwise. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "store/hash.h"

struct px_err;

enum { PX_PACKAGES_MAX = 4096, PX_LOCK_MAX = 4 << 20, PX_LOCK_VERSION = 1 };

struct px_package {
    char *name, *version, *arch;
    struct px_oid sha256;
    uint64_t size;
    char *uri, *file;           /* where it can be had and what apt calls it, NULL: not known; never part of a lock */
};

struct px_packages {
    struct px_package *items;   /* sorted by name, then architecture: px_packages_sort */
    size_t count;
};

void px_packages_done(struct px_packages *list);
/* Takes copies; -EINVAL for a text that is none of its kind, -E2BIG, -ENOMEM. uri and file may be NULL. */
int px_packages_add(struct px_packages *list, const struct px_package *package);
/* Copies of all of them, behind what is there. */
int px_packages_copy(const struct px_packages *from, struct px_packages *to);
/* -EEXIST if one comes twice. */
int px_packages_sort(struct px_packages *list);
uint64_t px_packages_bytes(const struct px_packages *list);

/* The lock of a base, the rows in it, and only {"arch","name","version"} of each; NULL without memory. */
json_t *px_packages_lock(const struct px_packages *list, const char *base, const char *arch);
json_t *px_packages_exact(const struct px_packages *list);
json_t *px_packages_names(const struct px_packages *list);
/* The sha256 of those rows as canonical JSON: what the list is called. 0 or -errno. */
int px_packages_id(const struct px_packages *list, struct px_oid *ret_id);
/* A lock from anywhere: PX811 with what is wrong with it. ret_base and ret_arch are the caller's to free. */
int px_packages_read(const char *text, size_t len, struct px_packages *ret_list, char **ret_base, char **ret_arch,
                     struct px_err *e);
