/* runtime/log.h - what a runtime wrote into its log, as one sentence.
 *
 * Why:     it is the only one who knows why it could not make a container.
 * Mustn't: be used for anything but words: a name that the user chose may stand in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The last message of a log of JSON objects, one a line; false and "" if there is none. */
bool px_log_last(const char *text, size_t len, char *out, size_t size);
