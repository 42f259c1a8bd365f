/* distro/apt_run.h - one session with the host's apt-get, in fetch boxes.
 *
 * Why:     apt gets its own state directory, sources and settings, which exist during the session.
 * Owns:    the open directory and the mirrors, until px_apt_end.
 * Mustn't: use the host's packages or settings, except its mirrors and proxies. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "distro/apt.h"
#include "distro/fetch.h"

struct px_apt {
    const struct px_fetch *f;
    int dir;                    /* apt's state; the same as PX_APT_DIR in its boxes */
    char path[PATH_MAX];
    struct px_apt_mirrors mirrors;
    bool settled;               /* apt.conf is written; before that apt prints the host's settings */
    const struct px_packages *coming;   /* what it was asked to fetch */
    uint64_t total;             /* its bytes */
};

int px_apt_begin(struct px_apt *s, const struct px_fetch *f, struct px_err *e);
void px_apt_end(struct px_apt *s);
/* Runs one of apt's programs; tick and out as in start/buildbox.h. */
int px_apt_run(struct px_apt *s, const char *doing, const char *const argv[], void (*tick)(void *), struct px_buf *out,
               struct px_err *e);
