/* state/home.h - PX_HOME and the directories below it: ours, and nobody else's.
 *
 * Why:     boxes with a name and the store live in the same place and ask the same of it.
 * Owns:    nothing: descriptors are the caller's.
 * Mustn't: follow a link below PX_HOME; PX_HOME itself may be one, it is the user's own word. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct px_err;

/* Who asks: the code of his errors, and what the place is for ("boxes", "a store"). */
struct px_home_use {
    int code;
    const char *what;
};

/* home NULL: PX_HOME, else HOME/.px. An absolute path. */
int px_home_find(const char *home, const struct px_home_use *use, char *out, size_t size, struct px_err *e);
/* A directory of this user's of which no mode bit in `forbidden` is set; parent AT_FDCWD: PX_HOME itself. `shown`
 * is its whole path. 1: it is not there, and was not to be made. */
int px_home_enter(int parent, const char *name, const char *shown, bool make, mode_t forbidden,
                  const struct px_home_use *use, int *ret_fd, struct px_err *e);
