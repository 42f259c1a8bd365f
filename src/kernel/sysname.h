/* kernel/sysname.h - names and numbers of system calls, from data/syscalls.def. */
#pragma once

#include <stdbool.h>

/* NULL if the table does not have it. */
const char *px_syscall_name(int number);
/* -1 if the table does not have it. */
int px_syscall_number(const char *name);
/* No box may make this call, whatever its profile says. */
bool px_syscall_never(int number);
