/* transfer/settings.h - the user's settings of uv and pip that a box may see.
 *
 * Why:     an index, a wheel directory or a proxy that works in the user's shell works in `px sync`.
 * Owns:    nothing.
 * Mustn't: show more than the settings and the paths that they name, or show them writable. */
#pragma once

struct px_buildbox;
struct px_index;
struct px_err;

/* Shows paths and variables to a box: start/buildbox.h. */
struct px_settings_to {
    struct px_buildbox *box;
    int (*path)(struct px_buildbox *box, const char *path, struct px_err *e);          /* read-only, at its own place */
    int (*variable)(struct px_buildbox *box, const char *name, const char *value, struct px_err *e);
};

/* The project itself (read-only, at its own site), variables, files of settings, and local paths that they name. */
int px_settings_show(const struct px_settings_to *to, const char *root, struct px_err *e);
/* The hosts that the same variables and files name. -E2BIG or another -errno if there are too many. */
int px_settings_hosts(struct px_index *index);
