/* kernel/notify.h - being told of each system call that a filter refuses.
 *
 * Why:     a program that only sees EPERM leaves its user guessing. The kernel holds the refused call until the supervisor has
 *          seen it; what it is answered was decided before, by the filter, and does not depend on anything seen here.
 * Owns:    nothing; the listener is a descriptor of the caller's.
 * Mustn't: look at the caller's memory, or let a call continue. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sock_filter;

/* Makes the plain refusals of a program notifications: EPERM, and in a filter of ours EAFNOSUPPORT as well. */
void px_notify_patch(struct sock_filter *code, uint16_t length, bool ours);

/* Loads a program with a listener, which is returned (it closes on exec); in the child. -errno. */
int px_notify_load(const struct sock_filter *code, uint16_t length);

/* Takes one refused call from the listener, which must be readable, and answers it. Returns its number, or -errno: -ENOENT if
 * the process is gone meanwhile. */
int px_notify_take(int listener, bool ours);
