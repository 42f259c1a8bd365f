#include "kernel/sysname.h"

#include <stddef.h>
#include <string.h>

/* The texts are in the rows: no pointers, so no relocations. */
static const struct {
    short number;
    char name[30], usual[14], floor[14];
} calls[] = {
#define PX_SYSCALL(name, number, by_default, strict, floor) {number, #name, #by_default, #floor},
#include "syscalls.def"
#undef PX_SYSCALL
};

const char *px_sysname_name(int number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number)
            return calls[i].name;
    return NULL;
}

int px_sysname_number(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    return -1;
}

/* What the minimum filter refuses, always or by the same check of arguments as the default filter, stays refused. */
const char *px_sysname_grant(int number, bool strict)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].number != number)
            continue;
        if (strict && strcmp(calls[i].usual, "ALLOW") == 0)
            return "--seccomp default";
        bool never = strcmp(calls[i].floor, "DENY") == 0 || strcmp(calls[i].floor, "NOSYS") == 0;
        bool same = strcmp(calls[i].floor, "ALLOW") != 0 && strcmp(calls[i].floor, calls[i].usual) == 0;
        return never || same ? NULL : "--seccomp FILE";
    }
    return NULL;
}
