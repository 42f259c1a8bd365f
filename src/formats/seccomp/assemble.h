/* seccomp/assemble.h - from decisions about system calls to a BPF program.
 *
 * Why not libseccomp's compiler: it cannot express "every value but these four", and uses one or two instructions
 *          for each call where one comparison covers a run of adjacent numbers. The tests compare with it.
 *
 * The program: the architecture, then a search tree over runs of numbers with the same decision, then one block for
 * each decision that checks arguments, then the BPF_RETs. A foreign architecture is always killed. x32 numbers need
 * no test: they are above every known number.
 *
 * When a filter is loaded the kernel runs it for each number to find the calls that are always allowed. So the path
 * to every number is short, and no argument is loaded before the number is decided. A tree weighted by the length of
 * the runs was tried and saved 3 of 55 us: not worth its code.
 *
 * Owns:    nothing.
 * Mustn't: need anything but the C library: tools/gen-filter.c links it and is built first. */
#pragma once

#include <stdint.h>

struct px_calls;
struct sock_filter;

enum { PX_PROGRAM_MAX = 4096 }; /* the kernel's BPF_MAXINSNS */

/* code has room for PX_PROGRAM_MAX instructions. -E2BIG if they are not enough, -ENOMEM. */
int px_assemble(const struct px_calls *calls, struct sock_filter *code, uint16_t *ret_len);
