/* distro/packages.h - a list of exact packages, as in a lock.
 *
 *     {"arch":"amd64","base":"debian-12","lock_version":1,"packages":[
 *         {"arch":..,"name":..,"sha256":..,"size":N,"version":..}]}
 *
 * Why:     the content of distributions' archives changes; a build is identified by the bytes of its packages and
 *          can be repeated.
 * Owns:    its texts.
 * Mustn't: accept a name, version or architecture with a byte that is special to a shell, a path or a package
 *          manager. */
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
    char *uri, *file;           /* its address and apt's file name, NULL: not known; never part of a lock */
};

struct px_packages {
    struct px_package *items;   /* sorted by name, then architecture: px_packages_sort */
    size_t count;
};

void px_packages_done(struct px_packages *list);
/* Adds copies; -EINVAL for an invalid string, -E2BIG, -ENOMEM. uri and file may be NULL. */
int px_packages_add(struct px_packages *list, const struct px_package *package);
/* Appends copies of all of them. */
int px_packages_copy(const struct px_packages *from, struct px_packages *to);
/* -EEXIST if one comes twice. */
int px_packages_sort(struct px_packages *list);
uint64_t px_packages_bytes(const struct px_packages *list);

/* The lock of a base, the rows in it, and only {"arch","name","version"} of each; NULL without memory. */
json_t *px_packages_lock(const struct px_packages *list, const char *base, const char *arch);
json_t *px_packages_exact(const struct px_packages *list);
json_t *px_packages_names(const struct px_packages *list);
/* The id of the list: the sha256 of those rows as canonical JSON. 0 or -errno. */
int px_packages_id(const struct px_packages *list, struct px_oid *ret_id);
/* Reads an untrusted lock; PX811 with the reason. The caller frees ret_base and ret_arch. */
int px_packages_read(const char *text, size_t len, struct px_packages *ret_list, char **ret_base, char **ret_arch,
                     struct px_err *e);
