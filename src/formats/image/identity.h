/* image/identity.h - the id of a sandbox: the hash of its parts.
 *
 *     sbx_id = sha256 of {"sandbox":{"base_os_oid":B,"capabilities":[..],"profile_oid":P,"sbx_version":V}}, canonical,
 *              with a member "system_deps" at the end where the capabilities brought packages: px_packages_id of them
 *
 * Why:     the same base, packages and profile give the same id on every machine, and other input gives another id.
 *          The packages of a capability can change from day to day.
 * Owns:    nothing.
 * Mustn't: change without PX_SBX_VERSION. */
#pragma once

#include <stddef.h>

#include "store/hash.h"

/* capabilities: sorted, without duplicates. system_deps NULL: they have no packages. 0 or -errno. */
int px_identity_sbx_id(const char *base_os_oid, const char *const *capabilities, size_t count, const char *system_deps,
              const char *profile_oid, int sbx_version, struct px_oid *ret_id);
/* The profile where there is no project:
 * {"kind":"profile","payload":{"env":{},"packages":[],"profile_version":1,"runtime":null}}. */
int px_identity_profile_empty(struct px_oid *ret_oid);
