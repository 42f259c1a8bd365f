/* kernel/sysname.h - names and numbers of system calls, from data/syscalls.def. */
#pragma once

#include <stdbool.h>

/* NULL if the table does not have it. */
const char *px_sysname_name(int number);
/* -1 if the table does not have it. */
int px_sysname_number(const char *name);
/* The option that would allow a call that px's filter refused: another profile, or NULL where no box may make it. */
const char *px_sysname_grant(int number, bool strict);
