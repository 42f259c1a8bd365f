/* gen-filter - prints the seccomp programs of px as C arrays, for src/core/kernel/seccomp.c.
 *
 * The filters are data/syscalls.def and data/rules.def as src/formats/seccomp/builtin.c reads them, compiled by
 * src/formats/seccomp/assemble.c. Names and numbers are compared with libseccomp: a wrong row stops the build. */
#include <linux/filter.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seccomp/assemble.h"
#include "seccomp/builtin.h"
#include "seccomp/rules.h"

static const struct {
    enum px_filter filter;
    const char *name;
} filters[] = {
    {PX_FILTER_DEFAULT, "default"}, {PX_FILTER_WORKSPACE, "workspace"},
    {PX_FILTER_STRICT, "strict"},   {PX_FILTER_STRICT_WORKSPACE, "strict_workspace"},
    {PX_FILTER_FLOOR, "floor"},     {PX_FILTER_FLOOR_WORKSPACE, "floor_workspace"},
    {PX_FILTER_BUILD, "build"},
};

static _Noreturn void fail(const char *what, const char *name)
{
    (void)fprintf(stderr, "gen-filter: %s: %s\n", name, what);
    _Exit(1);                   /* without flushing: a partial program must not look complete */
}

static void check_name(const char *row, uint32_t row_number)
{
    int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, row);

    if (number >= 0 && (uint32_t)number != row_number)
        fail("libseccomp knows this call by another number", row);
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, (int)row_number);
    if (name && strcmp(name, row) != 0)
        fail("libseccomp knows this number by another name", row);
    free(name);
}

/* Every call that libseccomp knows needs a row. */
static void check_complete(const bool known[PX_CALLS_MAX])
{
    for (int i = 0; i < PX_CALLS_MAX; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, i);
        if (name && !known[i])
            fail("the table has no row for this call", name);
        free(name);
    }
}

static void check_table(void)
{
    bool known[PX_CALLS_MAX] = {false};
    const char *name;
    uint32_t number;

    for (unsigned i = 0; (name = px_builtin_row(i, &number)); i++) {
        if (number >= PX_CALLS_MAX)
            fail("the number is out of bounds", name);
        if (known[number])
            fail("the number is there twice", name);
        check_name(name, number);
        known[number] = true;
    }
    check_complete(known);
}

static void print(const char *name, const struct sock_filter *code, unsigned length)
{
    (void)printf("\nstatic const struct sock_filter px_filter_%s[] = {\n", name);
    for (unsigned i = 0; i < length; i++)
        (void)printf("    {0x%02x, %u, %u, 0x%08x}, /* %u */\n", (unsigned)code[i].code, (unsigned)code[i].jt,
                     (unsigned)code[i].jf, code[i].k, i);
    (void)printf("};\n");
}

int main(void)
{
    static struct sock_filter code[PX_PROGRAM_MAX];
    static struct px_calls calls;
    uint16_t length = 0;

    check_table();
    (void)printf("/* Made by gen-filter from syscalls.def and rules.def. */\n");
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (px_builtin_calls(filters[i].filter, &calls) < 0)
            fail("the table cannot be read", filters[i].name);
        if (px_assemble(&calls, code, &length) < 0)
            fail("the program cannot be made", filters[i].name);
        print(filters[i].name, code, length);
    }
    return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : 1;
}
