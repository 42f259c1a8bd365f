/* init/command.h - one command of a box that stays, from its request to its report. Part of px-init: raw calls only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A bit for each directory, of the first 32, that has no block or no inode left. */
uint32_t px_command_full(char **directories);
/* Takes one request from the control socket; 0, or -1 when the supervisor is gone. */
int px_command_take(int control);
/* Adds the reply sockets of what runs, PX_INIT_COMMANDS_MAX at most; how many. NULL: only that. */
struct pollfd;
int px_command_watch(struct pollfd *fds);
/* Who asked for it is gone, and with it the command's clock and the reader of its output: it is killed. Or it has closed the end by
 * which it would write (POLLRDHUP): that asks for the kill alone, whatever else lies in the control socket before it. */
void px_command_left(const struct pollfd *news);
/* Tells whoever waits for it that a process has ended. Nobody may. */
struct rusage;
void px_command_ended(int pid, int wait_status, const struct rusage *used);
/* Commands alone, and of them those that end by themselves. */
void px_command_reap(void);
/* The row of the running command with that pid, which is also that of its session; -1: none. */
int px_command_row(int pid);
/* The same, and it is being killed. */
bool px_command_ends(int pid);
/* One message with one descriptor (-1: none); never waits. 0 or -errno. */
int px_command_send_fd(int socket, const void *data, size_t size, int fd);
