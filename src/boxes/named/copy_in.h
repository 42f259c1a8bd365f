/* named/copy_in.h - a command in a box whose streams are ours, for copying files.
 *
 * Mustn't: wait for a box that moves nothing, or keep more of what it says than a line. */
#pragma once

#include "named/client_internal.h"

struct px_layer_stream;

enum { PX_NAMED_PATH_MAX = 4096 };

struct px_named_stream {
    /* Bytes for its standard input: how many, 0 at the end, -1. NULL: none. */
    long (*feed)(void *user, char *out, size_t size, struct px_err *e);
    /* Bytes of its standard output; 0 or -1. */
    int (*take)(void *user, const char *data, size_t size, struct px_err *e);
    void *user;
    struct px_layer_stream *layer;      /* what `take` writes to; NULL: none */
};

/* Runs it to its end. *ret_said has the beginning of its standard error. -1: it could not be run, did not move, or a function
 * failed. */
int px_named_stream(struct px_living *l, const char *const argv[], const struct px_named_stream *how, int *ret_exit_code,
                   char ret_said[256], struct px_err *e);

/* What is at a path of the box. */
struct px_named_there {
    bool exists, directory, file, tar;
};
int px_named_there(struct px_living *l, const char *path, struct px_named_there *ret, struct px_err *e);
/* A path of the box from its root; -1 with an error. */
int px_named_box_path(struct px_living *l, const char *path, char *out, size_t size, struct px_err *e);
/* "/a/b" -> "/a" and "b". */
void px_named_split_path(const char *path, char *dir, size_t size, const char **ret_name);
/* Words for a command that ended badly. */
int px_named_copy_failed(const char *what, const char *path, int exit_code, const char *said, struct px_err *e);
/* A path of the host that is a link which a box may have made; it decides that. */
int px_named_refuse_link(const char *path, const char *decides, struct px_err *e);
