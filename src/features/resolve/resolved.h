/* resolve/resolved.h - converts the answer of uv or pip to px.lock.
 *
 * Why:     uv and pip resolve; their results become the same px.lock.
 * Owns:    nothing; the pins are the caller's.
 * Mustn't: write anything of this machine into the lock: no absolute path, no password of an index, no time. */
#pragma once

#include <stddef.h>

#include "layout/locate.h"
#include "lock/lock.h"

struct px_err;
struct px_marker_env;
struct px_tags;

struct px_resolved_for {
    const char *root;           /* files below it have relative paths, others only a name and a hash */
    const struct px_marker_env *env;
    const struct px_tags *tags;
};

/* `pip install --dry-run --report -`. */
int px_resolved_from_pip(const char *report, size_t length, const struct px_resolved_for *what,
                         struct px_lock *ret_pins, struct px_err *e);
/* `uv pip compile --format pylock.toml`. */
int px_resolved_from_pylock(const char *text, size_t length, const struct px_resolved_for *what,
                            struct px_lock *ret_pins, struct px_err *e);
/* Pins without a package, for projects without requirements. */
int px_resolved_empty(struct px_lock *ret_pins, struct px_err *e);

/* px.lock or px.workspace.lock of a site, from pins that one of the functions above gave. Adds the direct requirements,
 * the fingerprint and the lock's id; sorts by name. */
int px_resolved_write(const struct px_located *site, struct px_lock *pins, struct px_buf *out, struct px_err *e);
