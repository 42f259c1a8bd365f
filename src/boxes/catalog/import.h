/* catalog/import.h - a base from wherever a project says it is.
 *
 * Why:     a base that is named by its place has no name of its own: its content is what it is.
 * Owns:    nothing.
 * Mustn't: bring anything that is there already under that place. */
#pragma once

struct px_err;
struct px_sandbox;

/* The project whose manifest names a source. */
struct px_within {
    int dir;
    const char *path; /* of dir, absolute and without links */
};

/* As px_sandbox_base_import, but only from below the project, without a link on the way, or from a registry of the
 * open network, which gets no credentials: a manifest is written by others. Kept under the source itself; in what it
 * is called and shipped as, it is "imported", so that the same files from two places are the same base. */
int px_import_base(struct px_sandbox *s, const char *source, const struct px_within *within, char **ret_json,
                  struct px_err *e);
