/* host/release.h - an os-release file: which distribution a root is.
 *
 * Owns:    nothing.
 * Mustn't: trust the text: it may come from an image. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum px_family {
    PX_FAMILY_OTHER, PX_FAMILY_DEBIAN, PX_FAMILY_UBUNTU, PX_FAMILY_FEDORA, PX_FAMILY_ARCH, PX_FAMILY_ALPINE, PX_FAMILY_COUNT
};

struct px_release {
    enum px_family family;
    char name[128];             /* "Debian GNU/Linux 12 (bookworm)", quoted for a terminal; "unknown" */
};

void px_release_parse(const char *text, size_t len, struct px_release *ret_release);    /* an os-release file */
void px_release_read(struct px_release *ret_release);
/* One value of such a file without its quotes; false: there is none, or it is too long. */
bool px_release_value(const char *text, size_t len, const char *key, char *ret_value, size_t size);
