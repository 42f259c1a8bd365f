/* distro/fetch.h - packages of a base's distribution: what is needed, fetched and checked, as blobs of the
 * store.
 *
 * Why:     apt knows dependencies, mirrors, proxies and signatures; px keeps what it was told as hashes, and after
 *          that needs
 *          neither apt nor a network for the same packages.
 * Owns:    nothing; `scratch` is a directory of the caller's, in which it leaves what apt needs.
 * Mustn't: install anything. */
#pragma once

#include "catalog/catalog.h"
#include "distro/capability.h"
#include "distro/packages.h"

struct px_fetch {
    struct px_sandbox *sandbox;
    const struct px_base_row *base;
    int scratch;                /* an empty directory */
    int installed;              /* dpkg's status file of what is there already; -EBADF: nothing is */
};

/* What Debian calls this machine; NULL: it has no name for it. */
const char *px_distro_fetch_arch(void);
/* The packages that `wants` (NULL-terminated, apt's grammar) needs beside those installed, all in the store. */
int px_distro_fetch_packages(const struct px_fetch *f, const char *const *wants, struct px_packages *ret_list,
                      struct px_err *e);
/* The same for a list that is known to the byte: what is in the store is not fetched again. */
int px_distro_fetch_locked(const struct px_fetch *f, const struct px_packages *list, struct px_err *e);
