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

/* Undoes it in a program that is not ours. */
void px_notify_restore(struct sock_filter *code, uint16_t length);

/* Loads a program with a listener, which is returned (it closes on exec); in the child. -errno. */
int px_notify_load(const struct sock_filter *code, uint16_t length);

/* A refused call; whoever made it waits. */
struct px_notify_call {
    uint64_t id;
    int number;
    int pid;                    /* of the thread, as the reader's pid namespace has it */
};

/* Takes one from the listener, which must be readable and have no other reader: then it does not wait. 0 or -errno: -ENOENT if the
 * process is gone meanwhile. */
int px_notify_receive(int listener, struct px_notify_call *ret_call);
/* Answers it as the filter would have; 0 or -errno, -ENOENT as above. */
int px_notify_answer(int listener, const struct px_notify_call *call, bool ours);
/* Both. Returns the call's number, or -errno. */
int px_notify_take(int listener, bool ours);
