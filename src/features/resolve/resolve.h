/* resolve/resolve.h - requirements to exact files, by uv or pip in a box.
 *
 * Why:     resolving may run the code of packages (a source archive says what it needs only when it is run), so it
 *          does not happen
 *          outside a box. The user's own settings - index, find-links, proxies, certificates - are shown to it.
 * Owns:    nothing; the box ends with the call.
 * Mustn't: write to the project, or install anything. */
#pragma once

#include <stddef.h>

#include "catalog/catalog.h"
#include "env/target.h"
#include "layout/locate.h"
#include "lock/lock.h"

struct px_err;

/* uv where it is installed, else pip. keep: "name==version" of fixed packages; NULL: none. The pins are incomplete
 * until px_resolved_write. PX120 with the reason resolver_missing or resolve_failed; then `said` has the tool's quoted
 * output. */
int px_resolve(struct px_sandbox *s, const struct px_located *site, const struct px_target *target,
               const struct px_names *keep, struct px_lock *ret_pins, const char **ret_tool, struct px_buf *said, struct px_err *e);

/* The same for a plain list of requirements: those of a source archive's build. */
int px_resolve_names(struct px_sandbox *s, const char *root, const struct px_target *target,
                     const struct px_names *asked, struct px_lock *ret_pins, struct px_err *e);

/* Fetches the files of pins without an address by `pip download` into an open directory. Does not check their
 * hashes. */
int px_resolve_download(const char *root, const struct px_target *target, const struct px_chosen *list, size_t count,
                        int dir, struct px_err *e);
