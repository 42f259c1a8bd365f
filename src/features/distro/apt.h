/* distro/apt.h - what is written for the host's apt-get, and what it answers.
 *
 * Why:     apt resolves what depends on what, fetches, and checks signatures; px gives it a state of its own, so that
 *          neither the
 *          host's packages nor its settings take part, and no privilege is needed.
 * Owns:    nothing.
 * Mustn't: run anything: boxes are the engine's. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "distro/capability.h"
#include "distro/packages.h"

/* Where apt's state appears in its box. */
#define PX_APT_DIR "/px/apt"

/* The directories below it that have to be there. NULL-terminated. */
extern const char *const px_apt_dirs[];
/* apt.conf. acquire: lines of the host's own settings for downloads (proxies), may be NULL. */
void px_apt_conf(const char *arch, const char *acquire, struct px_buf *out);

/* Where packages come from. Texts are one URI, before it in brackets options that apt knows: "[trusted=yes]
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
/* Keeps of `apt-config dump Acquire` what says how to reach the world: lines of proxies, timeouts and retries. */
void px_apt_keep_acquire(const char *text, struct px_buf *out);

/* From the lines of `apt-get --print-uris install`: 'URI' FILE SIZE SHA256:HEX. Other lines are refused: -EINVAL. */
int px_apt_uris(const char *text, struct px_packages *list);
/* "1%3a2" is "1:2", in place; -EINVAL. */
int px_apt_unquote(char *text);
