/* seccomp/builtin.h - px's own filters as data, from data/syscalls.def and data/rules.def.
 *
 * Why:     the build compiles their programs from this, and `px policy show --seccomp` prints it.
 * Owns:    nothing: the tables are constants.
 * Mustn't: need anything but the C library: tools/gen-filter.c links it and is built first. */
#pragma once

#include "kernel/seccomp.h"

struct px_calls;

/* A row of data/syscalls.def; NULL past the end. */
const char *px_builtin_row(unsigned index, uint32_t *ret_number);
/* Fills the decisions about all numbers up to the highest known one. -EINVAL if the table has a number that is too high
 * or there twice. */
int px_builtin_calls(enum px_filter filter, struct px_calls *ret_calls);
