/* host/tool.h - programs of the host: where one is, and which version it says it is.
 *
 * Owns:    nothing.
 * Mustn't: run a program without a bound on its time and its output, through a shell, or from the working directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where the program is: in PATH, or where administrators' programs are. */
bool px_tool_find(const char *name, char *ret_path, size_t size);
/* The first line that `PATH --version` prints, quoted for a terminal; -errno, -ETIMEDOUT if it says nothing in time. */
int px_tool_version(const char *path, unsigned msec, char *ret_line, size_t size);
