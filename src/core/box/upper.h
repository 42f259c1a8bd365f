/* box/upper.h - a directory of the caller's that takes the changes of a root: DIR/upper and, beside it, the kernel's
 * DIR/work.
 *
 * Why:     one box at a time may write it, nobody else may reach it meanwhile (DIR gets mode 0700), and what is not to
 *          be kept must be gone.
 * Owns:    the lock on DIR, its mark DIR/.px-overlay, and what lies in upper and work, unless the mark says that it is
 *          kept.
 * Mustn't: follow a link, remove what an earlier run has kept or what it has not made, or take a directory that others
 *          can write. Parent side. */
#pragma once

#include <stdbool.h>

struct px_err;
struct px_step;

struct px_upper {
    int dir;   /* locked; -EBADF: there is none */
    int upper; /* for reading what the box has left; -EBADF once it is gone */
    bool ours; /* marked as such */
    bool keep;
    bool changes;               /* of a directory, not of the root */
    char *made;                 /* its path, if it was not there before */
    const struct px_step *step; /* of the plan, as long as there is one */
};
#define PX_UPPER_NONE \
    { \
        -EBADF, -EBADF, false, false, false, NULL, NULL \
    }

#define PX_UPPER_MARK ".px-overlay"
#define PX_UPPER_KEPT "kept\n" /* what the mark begins with, where changes are kept; the note follows */

struct px_upper_want {
    const char *path;       /* of the directory */
    const char *lower_path; /* what it is laid over, and which object that is */
    const struct px_step *lower;
    bool keep;        /* for later runs */
    bool reuse;       /* what was kept may be used, and then be lost */
    const char *note; /* goes into the mark when something is first kept */
};

/* Makes it ready and tells its step which object it is. */
int px_upper_open(struct px_upper *upper, struct px_step *step, const struct px_upper_want *want, struct px_err *e);
/* Empties it, unless it is kept, and lets go. */
void px_upper_done(struct px_upper *upper);
