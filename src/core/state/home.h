/* state/home.h - PX_HOME and the directories below it, which only this user may write.
 *
 * Why:     named boxes and the store lie in the same directory, with the same checks.
 * Owns:    nothing: descriptors are the caller's.
 * Mustn't: follow a link below PX_HOME. PX_HOME itself may be one: the user chose it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct px_err;

/* The caller: the code of its errors, and the purpose for messages ("boxes", "a store"). */
struct px_home_use {
    int code;
    const char *what;
};

/* home NULL: PX_HOME, else HOME/.px. An absolute path. */
int px_home_find(const char *home, const struct px_home_use *use, char *out, size_t size, struct px_err *e);
/* Opens a directory of this user with no mode bit of `forbidden` set; parent AT_FDCWD: PX_HOME itself. `shown` is
 * its whole path. 1: it does not exist, and `make` is false. */
int px_home_enter(int parent, const char *name, const char *shown, bool make, mode_t forbidden,
                  const struct px_home_use *use, int *ret_fd, struct px_err *e);
