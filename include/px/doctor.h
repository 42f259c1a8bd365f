/* px/doctor.h - tests what this host can enforce.
 *
 *     struct px_doctor *doctor = NULL;
 *     if (px_doctor_run(&doctor, &e) < 0)
 *         return complain(&e);
 *     printf("tier: %s\n", px_doctor_verdict(doctor)->tier);
 *     for (size_t i = 0; px_doctor_row(doctor, i); i++)
 *         ...
 *     px_doctor_free(doctor);
 *
 * Every mechanism is tried in short-lived children of the calling process: a forbidden operation must fail, and its
 * permitted counterpart must work. Then real boxes are started. Nothing is left behind, and the rules of px/px.h
 * apply. It takes about a second, and at most the sum of its limits (5 s for each child and box, 2 s for each
 * program).
 *
 * Owns:    a px_doctor owns every row and text; they are borrowed until px_doctor_free.
 * Threads: as in px/px.h. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

struct px_doctor;

struct px_doctor_row {
    const char *group;          /* "namespaces", "limits", "tools", ... */
    const char *name;           /* "user" */
    const char *state;          /* "enforced", "degraded" or "absent" */
    const char *needed_for;     /* "full", "landlock", "limits", "network" or "nice to have" */
    const char *found;          /* "ABI 7"; may be empty, like the strings below */
    const char *forbidden;      /* "... failed with EPERM" */
    const char *permitted;      /* "... worked" */
    const char *why;            /* never empty unless enforced; "unknown: ..." if it could not be tested */
    const char *raise;          /* the fix, for this distribution */
};

/* A box that was really started. */
struct px_doctor_box {
    const char *preset;
    const char *require;        /* "full" or "landlock" for the two that ask for a tier, else NULL */
    bool starts;
    const char *tier;           /* that it got; "" if it did not start */
    int code;                   /* of the error; 0 if it starts */
    const char *why;            /* "" if it starts */
};

struct px_doctor_verdict {
    const char *tier;           /* "full", "landlock" or "none" */
    bool full;                  /* a real box of the full tier ran, and each mechanism that the tier needs is enforced */
    const char *kernel;         /* "6.1.0-40-amd64" */
    const char *distribution;   /* "Debian GNU/Linux 12 (bookworm)" */
    const char *raise;          /* what would raise the tier, in one line; "" if it is full */
};

PX_API int px_doctor_run(struct px_doctor **ret_doctor, struct px_err *e);
PX_API void px_doctor_free(struct px_doctor *doctor);   /* NULL is fine */

/* All borrowed from the doctor; NULL past the end. */
PX_API const struct px_doctor_verdict *px_doctor_verdict(const struct px_doctor *doctor);
PX_API const struct px_doctor_row *px_doctor_row(const struct px_doctor *doctor, size_t index);
PX_API const struct px_doctor_box *px_doctor_box(const struct px_doctor *doctor, size_t index);
PX_API const char *px_doctor_inside(const struct px_doctor *doctor, size_t index);      /* what surrounds the caller */
PX_API const char *px_doctor_raise(const struct px_doctor *doctor, size_t index);       /* everything, most important first */

/* The whole as one JSON object on one line; free() it. */
PX_API int px_doctor_json(const struct px_doctor *doctor, char **ret_json, struct px_err *e);

#ifdef __cplusplus
}
#endif
