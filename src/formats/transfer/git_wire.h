/* transfer/git_wire.h - px-git's command line, the file that it writes, and its messages on the socket.
 *
 * Why:     both ends are of one build; but the answer of a compromised helper must be harmless.
 * Owns:    nothing.
 * Mustn't: hold pointers. A reader bounds every text itself and checks every path.
 *
 *     px-git look TOP SUB REPOSITORY STATUS    4: the directory TOP, 5: the file that is written, 6: a git directory
 *                                              that lies elsewhere, if it does. SUB: the project in it, "" or "a/b".
 *     px-git try ACT                           4: a directory; for a test, see helpers/layer/try.c
 *
 * The file has records: a letter of enum px_git_record, a text, a NUL. Paths begin at the project. */
#pragma once

#include <stdint.h>

#include <px/px.h>

enum { PX_GIT_BYTES_MAX = 64 << 20, PX_GIT_COMMIT_SIZE = 65 };

enum px_git_record {
    PX_GIT_FILE = 'F',          /* a file or a link that belongs to the project */
    PX_GIT_DIRTY = 'D',         /* "XY PATH", as git status --porcelain has it */
    PX_GIT_SPECIAL = 'S',       /* a socket, a pipe or a device: left out */
};

enum px_git_said { PX_GIT_DONE = 1, PX_GIT_FAILED };

struct px_git_message {
    uint32_t kind;
    uint32_t repository;        /* there is one */
    char commit[PX_GIT_COMMIT_SIZE];            /* "" before the first */
    struct px_err err;          /* FAILED */
};
