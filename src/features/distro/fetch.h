/* distro/fetch.h - resolves, fetches and checks packages of a base's distribution, and stores them as blobs.
 *
 * Why:     apt handles dependencies, mirrors, proxies and signatures; px stores the result as hashes, and then needs
 *          neither apt nor a network for the same packages.
 * Owns:    nothing; it leaves apt's files in `scratch`, a directory of the caller.
 * Mustn't: install anything. */
#pragma once

#include "catalog/catalog.h"
#include "distro/capability.h"
#include "distro/packages.h"

struct px_fetch {
    struct px_sandbox *sandbox;
    const struct px_base_row *base;
    int scratch;                /* an empty directory */
    int installed;              /* dpkg's status file of the installed packages; -EBADF: none */
};

/* Debian's name for this architecture; NULL: none. */
const char *px_distro_fetch_arch(void);
/* The packages that `wants` (NULL-terminated, apt's grammar) needs beside those installed, all in the store. */
int px_distro_fetch_packages(const struct px_fetch *f, const char *const *wants, struct px_packages *ret_list,
                      struct px_err *e);
/* The same for exact packages: those in the store are not fetched again. */
int px_distro_fetch_locked(const struct px_fetch *f, const struct px_packages *list, struct px_err *e);
