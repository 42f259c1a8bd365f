/* env/infer.h - which capabilities a sandbox gets, and why: from the manifest, the lock's packages, and the
 * libraries of extensions.
 *
 *     effective = explicit true  +  (inferred - explicit false), the latter only if `automatic`
 *
 * Why:     building and `px sandbox explain` use the same decision and reasons.
 * Owns:    its lists; names point into tables or into the input.
 * Mustn't: use anything but its input, so that the same lock and packages give the same set everywhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum px_infer_source { PX_INFER_EXPLICIT, PX_INFER_LOCK, PX_INFER_CAS, PX_INFER_SOURCES };
extern const char *const px_infer_source_words[PX_INFER_SOURCES];       /* "explicit", "static map", "cas" */

struct px_infer_wish {
    const char *name;
    bool enabled;
};
struct px_infer_package {
    const char *name;           /* canonical */
    const char *file;           /* that the lock selects: a wheel or a source archive; NULL: not known */
    const char *const *needed;  /* libraries that its files need and do not contain; NULL: not known yet */
    size_t needed_count;
};
struct px_infer_ask {
    const struct px_infer_wish *wishes;
    size_t wish_count;
    bool automatic;
    const struct px_infer_package *packages;
    size_t package_count;
    const char *base;           /* NULL: not one that px knows */
};

struct px_reason {
    char capability[64];
    enum px_infer_source source;
    char detail[192];           /* "psycopg2", "psycopg2: libpq.so.5", "[tool.px.sandbox.capabilities]" */
    bool counts;                /* false: listed but not used, because of `false` or because nothing is automatic */
    bool brought;               /* not used because its wheel contains the libraries */
};
enum { PX_INFER_NAMES_MAX = 128 };
struct px_inferred {
    struct px_reason *reasons;  /* by capability, then source, then detail */
    size_t count;
    const char *effective[PX_INFER_NAMES_MAX];  /* sorted, each once; point into reasons */
    size_t effective_count;
};

/* 0, -ENOMEM, -E2BIG. */
int px_infer(const struct px_infer_ask *ask, struct px_inferred *ret_inferred);
void px_infer_done(struct px_inferred *inferred);
/* Whether a package in the lock adds its capability: one whose wheels contain their libraries does so only when it is
 * built here, or comes as a wheel that was built for one system (linux_x86_64). */
bool px_infer_counts(const char *canonical_name, const char *file);
