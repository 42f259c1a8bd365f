/* seccomp/print.h - a filter as text, in the containers' JSON format.
 *
 * Why:     people want to see what is in force, and an OCI runtime has to be given the same filter.
 * Owns:    nothing; the caller's writer gets the bytes.
 * Mustn't: print a filter that allows more than the program in force. What the format cannot express is printed more
 *          strictly, with a comment. */
#pragma once

#include <px/px.h>

#include "kernel/seccomp.h"

struct px_json;
struct px_profile;

/* Prints the filter, or with a profile what both together allow (the filter is then the floor). The object is the
 * member `name`; NULL at the top or in a list. The writer's own errors stay in its buffer. */
int px_profile_print(enum px_filter filter, const struct px_profile *profile, struct px_json *out, const char *name,
                     struct px_err *e);
