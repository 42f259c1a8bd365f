/* kernel/notify.h - notifications for each system call that a filter refuses.
 *
 * Why:     a program that only sees EPERM leaves its user guessing. The kernel holds the refused call until the
 *          supervisor has seen it. The filter has already decided the answer, which does not depend on anything seen
 *          here.
 * Owns:    nothing; the listener is a descriptor of the caller.
 * Mustn't: read the calling process's memory, or let a call continue. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sock_filter;

/* Turns the plain refusals of a program into notifications: EPERM, and in px's own filters EAFNOSUPPORT as well. */
void px_notify_patch(struct sock_filter *code, uint16_t length, bool ours);

/* Undoes it in a program that is not px's. */
void px_notify_restore(struct sock_filter *code, uint16_t length);

/* Loads a program with a listener, which is returned (it closes on exec); in the child. -errno. */
int px_notify_load(const struct sock_filter *code, uint16_t length);

/* A refused call; the thread that made it waits. */
struct px_notify_call {
    uint64_t id;
    int number;
    int pid;                    /* of the thread, in the reader's pid namespace */
};

/* Takes one from the listener, which must be readable and have no other reader: then it does not block. 0 or -errno:
 * -ENOENT if the process has ended meanwhile. */
int px_notify_receive(int listener, struct px_notify_call *ret_call);
/* Answers it with the filter's error; 0 or -errno, -ENOENT as above. */
int px_notify_answer(int listener, const struct px_notify_call *call, bool ours);
/* Both. Returns the call's number, or -errno. */
int px_notify_take(int listener, bool ours);
