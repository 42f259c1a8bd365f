/* box/upper.h - a directory of the caller that takes the changes of a root: DIR/upper and the kernel's DIR/work.
 *
 * Why:     only one box at a time may write it, no other user may reach it meanwhile (DIR gets mode 0700), and
 *          changes that are not kept must be removed.
 * Owns:    the lock on DIR, its mark DIR/.px-overlay, and the content of upper and work, unless the mark says that it
 *          is kept.
 * Mustn't: follow a link, remove what an earlier run kept or what px did not make, or use a directory that others can
 *          write. Runs in the parent. */
#pragma once

#include <stdbool.h>

struct px_err;
struct px_step;

struct px_upper {
    int dir;   /* locked; -EBADF: there is none */
    int upper; /* for reading the changes after the box has ended; -EBADF once it is removed */
    bool ours; /* it has the mark */
    bool keep;
    bool changes;               /* the changes of a directory, not of the root */
    char *made;                 /* its path, if px made it */
    const struct px_step *step; /* of the plan, while there is one */
};
#define PX_UPPER_NONE \
    { \
        -EBADF, -EBADF, false, false, false, NULL, NULL \
    }

#define PX_UPPER_MARK ".px-overlay"
#define PX_UPPER_KEPT "kept\n" /* how the mark begins if the changes are kept; the note follows */

struct px_upper_want {
    const char *path;       /* of the directory */
    const char *lower_path; /* the lower directory, and which object that is */
    const struct px_step *lower;
    bool keep;        /* for later runs */
    bool reuse;       /* kept changes may be used, and then be lost */
    const char *note; /* goes into the mark when something is first kept */
};

/* Opens the directory and enters its device and inode into its step. */
int px_upper_open(struct px_upper *upper, struct px_step *step, const struct px_upper_want *want, struct px_err *e);
/* Empties the directory, unless it is kept, and releases the lock. */
void px_upper_done(struct px_upper *upper);
