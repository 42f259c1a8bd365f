/* env/base_python.h - finds the Python of a root file system that px did not build.
 *
 * Why:     an environment is made for one Python, and an imported root does not state which one it has.
 * Owns:    the texts of what it found.
 * Mustn't: run anything of the root, follow a link out of it, or trust unchecked content of a file. */
#pragma once

#include <limits.h>

#include "env/profile.h"

struct px_base_python {
    struct px_python python;    /* points to the strings below: must not be copied */
    char base[PATH_MAX], version[32], program[PATH_MAX], machine[16];
};

enum { PX_PYTHON_MINOR_MIN = 8, PX_PYTHON_MINOR_MAX = 40 };

/* usr/local/bin or usr/bin/python3.N, the highest N of the first that has one, with its C library. 0; 1: there is none that can be used on
 * this machine; -errno. */
int px_env_base_python_find(int root, const char *base, struct px_base_python *ret_found);
/* The Python at an absolute path in that root, reached without a link; it must be 3.MINOR. The same results. */
int px_env_base_python_at(int root, const char *base, const char *program, unsigned minor, struct px_base_python *ret_found);

/* The parsers. Finds "3.11.2" as a NUL-terminated string in the interpreter's file: 0, -ENOENT, -E2BIG. */
int px_env_base_python_version(const char *data, size_t length, unsigned minor, char *out, size_t size);
/* "GNU C Library (...) stable release version 2.36.": 0, -ENOENT. */
int px_env_base_python_glibc(const char *data, size_t length, unsigned *ret_major, unsigned *ret_minor);
