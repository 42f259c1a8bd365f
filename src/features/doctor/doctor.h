/* engine/doctor.h - the parts of the doctor: words for a distribution, and the programs that features of px call.
 *
 * Why:     what raises a tier is a command to type, and commands differ between distributions.
 * Mustn't: run a program without a bound on its time and its output, or through a shell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "doctor/probe.h"

enum px_family {
    PX_FAMILY_OTHER, PX_FAMILY_DEBIAN, PX_FAMILY_UBUNTU, PX_FAMILY_FEDORA, PX_FAMILY_ARCH, PX_FAMILY_ALPINE, PX_FAMILY_COUNT
};

struct px_release {
    enum px_family family;
    char name[128];             /* "Debian GNU/Linux 12 (bookworm)", quoted for a terminal; "unknown" */
};

/* doctor_words.c */
void px_release_parse(const char *text, size_t len, struct px_release *ret_release);    /* an os-release file */
void px_release_read(struct px_release *ret_release);
/* One value of such a file without its quotes; false: there is none, or it is too long. */
bool px_release_value(const char *text, size_t len, const char *key, char *ret_value, size_t size);
/* What to do about it; "" for PX_RAISE_NONE. */
const char *px_raise_words(enum px_raise raise, enum px_family family);

/* doctor_tools.c */
struct px_tool {
    const char *name;
    enum px_probe_need need;
    const char *feature;        /* what needs it */
    bool silent;                /* knows no --version */
    const char *packages[PX_FAMILY_COUNT];      /* NULL: not packaged there */
};
/* NULL past the end. */
const struct px_tool *px_tool_at(size_t index);
/* Where the program is: in PATH, or where administrators' programs are. */
bool px_tool_find(const char *name, char *ret_path, size_t size);
/* The first line that `PATH --version` prints, quoted for a terminal; -errno, -ETIMEDOUT if it says nothing in time. */
int px_tool_version(const char *path, unsigned msec, char *ret_line, size_t size);
void px_tool_words(const struct px_tool *tool, enum px_family family, char *ret_text, size_t size);     /* how to install it */
