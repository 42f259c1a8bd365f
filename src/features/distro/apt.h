/* distro/apt.h - the files written for the host's apt-get, and the parsers of its output.
 *
 * Why:     apt resolves dependencies, fetches, and checks signatures; px gives it a state directory of its own, so
 *          that the host's packages and settings are not used and no privilege is needed.
 * Owns:    nothing.
 * Mustn't: run anything: apt_run.h starts the boxes. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "distro/capability.h"
#include "distro/packages.h"

/* The path of apt's state in its box. */
#define PX_APT_DIR "/px/apt"

/* The directories below it that have to be there. NULL-terminated. */
extern const char *const px_apt_dirs[];
/* apt.conf. acquire: lines of the host's own settings for downloads (proxies), may be NULL. */
void px_apt_conf(const char *arch, const char *acquire, struct px_buf *out);

/* Where packages come from. Each string is one URI, optionally after apt's options in brackets: "[trusted=yes]
 * file:///srv/mirror". */
struct px_apt_mirrors {
    char *archive, *security;
};
void px_apt_mirrors_done(struct px_apt_mirrors *m);
/* sources.list: the suite, its updates, and its security updates. -EINVAL if a mirror is not one. */
int px_apt_sources(const struct px_base_row *base, const struct px_apt_mirrors *mirrors, struct px_buf *out);
/* From lines of `apt-get indextargets --format '$(REPO_URI) $(SUITE) $(COMPONENT)'`: what the host itself uses for
 * the suite. Missing
 * ones stay NULL. */
int px_apt_host_mirrors(const struct px_base_row *base, const char *text, struct px_apt_mirrors *mirrors);
/* Keeps the lines of `apt-config dump Acquire` about proxies, timeouts and retries. */
void px_apt_keep_acquire(const char *text, struct px_buf *out);

/* From the lines of `apt-get --print-uris install`: 'URI' FILE SIZE SHA256:HEX. Other lines are refused: -EINVAL. */
int px_apt_uris(const char *text, struct px_packages *list);
/* "1%3a2" is "1:2", in place; -EINVAL. */
int px_apt_unquote(char *text);
