/* seccomp/assemble.h - from decisions about system calls to a BPF program.
 *
 * Why not libseccomp's compiler: it cannot say "every value but these four", and spends an instruction or two on each call
 * where one comparison covers a whole run of neighbours. It serves as the second opinion in the tests.
 *
 * The program: the architecture, then a search tree over runs of numbers with the same decision, then one block for each
 * decision that looks at arguments, then the answers. A foreign architecture is killed whatever the decisions say. x32 numbers
 * need no test of their own: they lie beyond every known number.
 *
 * When a filter is loaded the kernel follows it for each number to find the calls that are always allowed, so a short way to
 * every number counts, and no argument is loaded before the number is settled. A tree weighted by the length of the runs was
 * tried and saved 3 of 55 us: not worth its code.
 *
 * Owns:    nothing.
 * Mustn't: need anything but the C library: tools/gen-filter.c is made from it before all else. */
#pragma once

#include <stdint.h>

struct px_calls;
struct sock_filter;

enum { PX_PROGRAM_MAX = 4096 }; /* the kernel's BPF_MAXINSNS */

/* code has room for PX_PROGRAM_MAX instructions. -E2BIG if they are not enough, -ENOMEM. */
int px_assemble(const struct px_calls *calls, struct sock_filter *code, uint16_t *ret_len);
