/* pep/tags.h - which wheels a system can use, and which is the best (PEP 425, 600, 656).
 *
 * Why:     a lock lists wheels for many systems; the base's Python and C library decide, not the host's.
 * Mustn't: guess: a file name that does not follow the rules is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_tags {
    unsigned python_minor;      /* 11 of 3.11 */
    bool musl;
    unsigned libc_major, libc_minor;            /* glibc 2.36, musl 1.2 */
    const char *machine;        /* x86_64 */
};

/* The parts of NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl; all point into the text. 0 or -EINVAL. */
struct px_wheel_name {
    const char *name, *version, *python, *abi, *platform;
    size_t name_length, version_length, python_length, abi_length, platform_length;
};
int px_tags_wheel_parse(const char *file_name, struct px_wheel_name *ret_name);

/* 0 is the best; -ENOENT: not compatible, -EINVAL: not a wheel. */
int px_tags_rank(const struct px_tags *tags, const char *file_name);
