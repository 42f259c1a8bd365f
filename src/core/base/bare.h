/* base/bare.h - for a program without a C library: the functions that the compiler may call by itself, and exit.
 *
 * Mustn't: be included by more than one file of a program. */
#pragma once

#include <stddef.h>

#include "base/sys.h"

void *memset(void *to, int byte, size_t n)
{
    char *p = to;
    while (n--)
        *p++ = (char)byte;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    char *p = to;
    const char *q = from;
    while (n--)
        *p++ = *q++;
    return to;
}

static _Noreturn void leave(int status)
{
    for (;;)
        (void)px_sys(SYS_exit_group, status);
}
