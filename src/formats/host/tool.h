/* host/tool.h - programs of the host: where one is, and the version that it prints.
 *
 * Owns:    nothing.
 * Mustn't: run a program without a bound on its time and its output, through a shell, or from the working directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Finds the program in PATH, then in the system's bin and sbin directories. */
bool px_tool_find(const char *name, char *ret_path, size_t size);
/* The first line that `PATH --version` prints, quoted for a terminal; -errno, -ETIMEDOUT if it prints nothing in
 * time. */
int px_tool_version(const char *path, unsigned msec, char *ret_line, size_t size);
