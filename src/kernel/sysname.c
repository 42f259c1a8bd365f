#include "kernel/sysname.h"

#include <stddef.h>
#include <string.h>

/* Short texts in the rows: no pointers, so no relocations. */
static const struct {
    short number;
    char name[30], floor[14];
} calls[] = {
#define PX_SYSCALL(name, number, by_default, strict, floor) {number, #name, #floor},
#include "syscalls.def"
#undef PX_SYSCALL
};

const char *px_syscall_name(int number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number)
            return calls[i].name;
    return NULL;
}

int px_syscall_number(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    return -1;
}

bool px_syscall_never(int number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number)
            return strcmp(calls[i].floor, "DENY") == 0 || strcmp(calls[i].floor, "NOSYS") == 0;
    return true;
}
