/* doctor/doctor.h - the parts of the doctor: fixes for each distribution, and the programs that px runs.
 *
 * Why:     the commands that enable a tier differ between distributions.
 * Mustn't: run a program without a bound on its time and its output, or through a shell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/release.h"
#include "probe/probe.h"

/* What to do about it; "" for PX_RAISE_NONE. */
const char *px_raise_words(enum px_raise raise, enum px_family family);

struct px_tool {
    const char *name;
    enum px_probe_need need;
    const char *feature;        /* what needs it */
    bool silent;                /* knows no --version */
    const char *packages[PX_FAMILY_COUNT];      /* NULL: not packaged there */
};
/* NULL past the end. */
const struct px_tool *px_doctor_tool_at(size_t index);
void px_doctor_tool_words(const struct px_tool *tool, enum px_family family, char *ret_text, size_t size);     /* how to install it */
