/* env/messages.h - finds a missing system library in the output of a program.
 *
 * Why:     the third layer of inference: a hint with the exact fix. The output is untrusted, so it is only a hint.
 * Mustn't: read more than the last part of an output, or take a name that is not in the tables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PX_MESSAGE_BYTES_MAX = 1 << 20, PX_MESSAGE_NAME_MAX = 128 };

struct px_missing {
    char what[PX_MESSAGE_NAME_MAX];             /* "libpq.so.5", "libpq-fe.h", "pg_config" */
    const char *capability;                     /* that brings it */
    bool build;                                 /* its development packages have it: a header, pg_config */
};

/* The first known missing item in the last part of the text; false if there is none. */
bool px_messages_missing(const char *text, size_t length, struct px_missing *ret_missing);
