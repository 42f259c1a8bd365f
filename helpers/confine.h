/* helpers/confine.h - what a helper can still do once it begins to read what others wrote.
 *
 * Why:     a mistake in a parser must be worth nothing: no file but those given, no program, no privilege, no more
 *          memory than planned.
 * Owns:    nothing.
 * Mustn't: be called after the first foreign byte, after a thread was made, or before libraries have opened what they
 *          need (hash something). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/allow.h"

/* One place of the file system, and the Landlock rights below it. */
struct confine_path {
    int fd;
    uint64_t access;
};

struct confine {
    const struct confine_path *paths;
    size_t path_count;
    const struct sock_filter *filter;
    unsigned short filter_length;
    uint64_t keep_caps;         /* bits by number; everything else goes. The filter says what they are good for. */
    uint64_t memory_bytes;      /* of address space; 0: as it is */
    uint64_t file_bytes;        /* no file grows larger; 0: as it is */
    uint64_t files;             /* descriptors; 0: as it is */
    uint32_t umask;             /* of files that it makes; 0: modes are what the caller of open says */
    bool stays;                 /* it ends by its socket, not with the thread that has started it */
};

/* 0 or -errno, after which the helper must end. Where the kernel has no Landlock, the filter stands alone. */
int confine(const struct confine *c);
