/* start/buildbox.h - the boxes in which bases and layers are made.
 *
 * Why:     neither the host's package tool nor the packages' own scripts run outside of a box. A *fetch box* has the
 *          host's programs, the host's network and one directory of the store; apt runs in it, and no code of a
 *          package. An *index box* is for uv and pip: it reaches only the user's index. A *setup box* has the
 *          distribution's own programs on an overlay, runs as root of its own ids, and has no network. A *box here* has
 *          the host's programs and no network.
 * Owns:    the policy, until px_buildbox_done.
 * Mustn't: leave a box behind: it ends with this process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct px_err;
struct px_net_own;
struct px_policy;

struct px_buildbox {
    struct px_policy *policy;
    const char *doing;          /* "resolving packages": for errors */
    void (*tick)(void *user);   /* called at intervals while it runs; may be NULL */
    void *user;
    struct px_buf *out;         /* its standard output, if wanted, or */
    int out_fd;                 /* ... where it goes; -EBADF: neither */
    struct px_net_own *own;     /* the hosts of an index box */
    /* picks the lines that give the reason; NULL: as for apt */
    void (*quote)(const char *text, struct px_buf *out);
    void (*said)(void *user, const char *text, size_t length);  /* gets its whole output if it failed; may be NULL */
    void *said_user;
};

int px_buildbox_fetch(struct px_buildbox *box, const char *doing, struct px_err *e);
/* For uv and pip, which run the code of packages: it reaches only the user's own index (transfer/index.h). */
int px_buildbox_index(struct px_buildbox *box, const char *doing, struct px_err *e);
/* root: the directory that it sees as its root; changes: a directory for an overlay's changes, kept. */
int px_buildbox_setup(struct px_buildbox *box, const char *doing, const char *root, const char *changes,
                       struct px_err *e);
int px_buildbox_here(struct px_buildbox *box, const char *doing, struct px_err *e);
void px_buildbox_done(struct px_buildbox *box);

/* Binds a file or directory of the host; its name may contain a colon. If optional, a missing one is left out. */
int px_buildbox_show(struct px_buildbox *box, const char *source, const char *target, bool writable,
                      struct px_err *e);
int px_buildbox_env(struct px_buildbox *box, const char *name, const char *value, struct px_err *e);
/* Runs it to its end; anything but exit 0 is PX903, with its last output. */
int px_buildbox_run(struct px_buildbox *box, const char *const argv[], struct px_err *e);

/* Gives an error just made the fix that its `why` suggests, or else this one. Returns -1. */
int px_buildbox_fix(struct px_err *e, const char *otherwise);

/* The path of an open directory, for programs that need a name: valid until the directory is moved. */
int px_buildbox_path(int fd, const char *below, char *out, size_t size, struct px_err *e);
