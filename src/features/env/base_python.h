/* env/base_python.h - which Python a root file system has that px did not build.
 *
 * Why:     an environment is made for one Python; of a root from elsewhere nobody said which one it has.
 * Owns:    the texts of what it found.
 * Mustn't: run anything of the root, follow a link out of it, or believe more of a file than what it can check. */
#pragma once

#include <limits.h>

#include "env/profile.h"

struct px_base_python {
    struct px_python python;    /* points to the texts below: not to be copied */
    char base[PATH_MAX], version[32], program[PATH_MAX], machine[16];
};

enum { PX_PYTHON_MINOR_MIN = 8, PX_PYTHON_MINOR_MAX = 40 };

/* usr/local/bin or usr/bin/python3.N, the highest N of the first that has one, with its C library. 0; 1: there is none that can be used on
 * this machine; -errno. */
int px_env_base_python_find(int root, const char *base, struct px_base_python *ret_found);
/* The one at an absolute path in that root, without a link on the way, which is to be Python 3.MINOR. The same answers. */
int px_env_base_python_at(int root, const char *base, const char *program, unsigned minor, struct px_base_python *ret_found);

/* What it reads in files. "3.11.2" as a whole text among others, which is how an interpreter carries its version: 0, -ENOENT, -E2BIG. */
int px_env_base_python_version(const char *data, size_t length, unsigned minor, char *out, size_t size);
/* "GNU C Library (...) stable release version 2.36.": 0, -ENOENT. */
int px_env_base_python_glibc(const char *data, size_t length, unsigned *ret_major, unsigned *ret_minor);
