/* runtime/kind.h - the OCI runtimes that px can drive, and how they differ.
 *
 * Why:     one row each, so that nothing else asks for a name.
 * Owns:    nothing: the rows are constants.
 * Mustn't: know anything that the programs tell about themselves; what is written here was found out by running them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct px_err;

struct px_runtime_kind {
    const char *name;           /* of the program; a table ends with NULL */
    const char *tier;           /* of the result */
    const char *package;        /* of Debian */
    bool socket;                /* hands descriptors on to the container, so px-start can talk */
    bool sees_cgroups;          /* wants to see a cgroup tree, though it need not write to it */
    bool own_kernel;            /* system calls do not reach the host's: no Landlock, no listener, its own /dev and /proc */
    const char *const *options; /* before its command */
};

/* PX_E_VALUE if there is no such runtime. */
const struct px_runtime_kind *px_runtime_find(const char *name, struct px_err *e);
/* Where the program is on the host, and so around the container; PX_E_RUNTIME names the package. */
int px_runtime_program(const struct px_runtime_kind *kind, char *out, size_t size, struct px_err *e);
