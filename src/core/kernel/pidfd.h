/* kernel/pidfd.h - signals and reaps by descriptor: a pid number is never trusted. 0 or -errno. */
#pragma once

#include <stdbool.h>

struct rusage;

/* A descriptor of the process that has the number now. */
int px_pidfd_open(int pid);
int px_pidfd_signal(int pidfd, int signal);
/* Signals the process group that it leads; before Linux 6.9 only the process itself. */
int px_pidfd_signal_group(int pidfd, int signal);
/* Its number, in the pid namespace of the mounted /proc; 0 if it has ended or is not visible. */
int px_pidfd_number(int pidfd);
/* Whether it is stopped now; false if that is not visible. */
bool px_pidfd_stopped(int pidfd);
/* The wait status in *ret_status and the usage of it and its descendants; 1 if reaped, 0 if it still runs (no_hang),
 * -errno. */
int px_pidfd_wait(int pidfd, bool no_hang, int *ret_status, struct rusage *ret_usage);
