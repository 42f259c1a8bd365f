/* state/state.h - px's own directories on disk: made with a mark, opened only if the mark is right.
 *
 * Why:     a directory that px finds may come from a repository, a box, an archive or another user. What lies in it is
 *          believed, moved and deleted only if px made the directory on this machine.
 * Owns:    PX_HOME/key, and the file .px-mark in each such directory: a MAC by that key over the kind of the directory,
 *          its inode and its time of birth. A clone or a copy has others, and another user has another key.
 * Mustn't: follow a link, change anything in a directory without the mark, or be used between clone and exec.
 *
 * An empty directory of the caller's gets the mark: there is nothing in it that could be believed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mac.h"

struct px_err;

#define PX_STATE_MARK ".px-mark"

struct px_state {
    int fd;
    uint8_t seal[PX_MAC_SIZE];  /* a key for what px writes in this directory, different for each directory */
};
#define PX_STATE_NONE ((struct px_state){.fd = -EBADF})

struct px_state_place {
    int parent;
    const char *name;           /* one path component */
    const char *shown;          /* the whole path, for messages */
    const char *kind;           /* its purpose; the mark of one kind is not valid for another */
    const char *home;           /* where the key is; NULL: PX_HOME */
};

/* make: creates a missing one. 1: it does not exist, and `make` is false. */
int px_state_open(const struct px_state_place *place, bool make, struct px_state *ret, struct px_err *e);
/* Removes an empty one with its mark. A process that uses it holds a lock (flock) on it. */
void px_state_remove(int parent, const char *name);

/* What lies in such a directory may still have been written by a box that can reach it. These return >= 0 or -errno.
 *
 * A directory of the caller's that nobody else can write to, no link on the way: -ELOOP, -ENOTDIR, -EPERM. */
int px_state_part(int dir, const char *path, bool make);
/* Reads a regular file of at most size-1 bytes, and ends it with a NUL. Any other file is -EINVAL, without blocking. */
ssize_t px_state_read(int dir, const char *name, char *out, size_t size);
/* Writes the whole file under another name and renames it. A file that had the name before is not written to. */
int px_state_write(int dir, const char *name, const void *data, size_t len);
/* Opens a directory that the user named, and makes what is missing in the path. Links are followed only in an
 * absolute path: a relative one may lie in a repository, and then gives -ELOOP. */
int px_state_path(const char *path);
/* The error for a directory, or a part of one, that is refused. */
int px_state_refuse(const char *shown, int err, struct px_err *e);
