/* helpers/pasta/enter.h - becoming a process of a box's user namespace that pasta can be started from.
 *
 * Why:     whoever made the box may enter its namespaces; pasta itself needs no more than the privileges over them, in a process
 *          namespace of its own that dies as one.
 * Owns:    nothing.
 * Mustn't: keep an id of the caller's, or any privilege outside the box's user namespace. 0 or -errno. */
#pragma once

/* From the caller's namespace into that which owns the network namespace, as the highest id there: for all but ordinary users
 * without ids of their own that is one which no process of the box has. What is started next gets a process namespace of its own. */
int enter_box(int network);
/* The privileges that pasta needs, kept over its exec: the device, and its own confinement. */
int keep_privileges(void);
/* Moves into the network namespace, and lets everybody in the box have echo sockets. */
int allow_echo(int network);
